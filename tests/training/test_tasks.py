"""Runs on one task of a dataset that has several."""

from __future__ import annotations

from dataclasses import replace

import pytest
from torch import nn

from graphbench.catalog.names import catalog
from graphbench.core.errors import ConfigError, GraphBenchError
from graphbench.domains.co import labellers
from graphbench.loader import Loader, Splits
from graphbench.training.evaluate import evaluate_model
from graphbench.training.run import train
from graphbench.training.splits import cards_of


@pytest.fixture
def toy(make_labelled, monkeypatch):
    card = make_labelled()
    monkeypatch.setitem(catalog().cards, card.id, card)
    return card


def test_data_of_one_task_are_not_those_of_another(toy):
    data = Splits(toy.with_task("mis"), None)
    for name in ("co/toy:mis", None):
        assert cards_of(name, data)[0] == {"co/toy:mis": data.card}
        assert cards_of(name, data)[1] is False
    for name in ("co/toy", "co/toy:mis_size"):
        with pytest.raises(ConfigError, match=f"{name!r}.*co/toy:mis;"):
            cards_of(name, data)
    (card,) = cards_of("co/toy", Splits(toy, None))[0].values()
    assert card.task_name == "mis_size"


def test_a_task_is_trained_and_recorded_under_its_address(toy, tiny, tmp_path):
    options = {"root": tmp_path, "output": tmp_path / "run", "workers": 1, "progress": False, "evaluate": "test"}
    result = train("co/toy", str(tiny), steps=2, **options)
    assert result.record.dataset == "co/toy:mis_size"
    assert "+labels-mis-" in result.record.data_fingerprint
    assert result.record.relative_path.parts[:2] == ("co", "toy-mis_size")
    assert set(result.record.scores["test"]) == {"mae"}
    with pytest.raises(GraphBenchError, match=r"another run.*dataset co/toy:mis_size -> co/toy:mis"):
        train("co/toy:mis", str(tiny), steps=2, **options, resume=True)


def test_graphs_without_a_label_are_neither_trained_nor_scored_on(toy, tiny, tmp_path, monkeypatch):
    real = labellers.LABELLERS["mis"]

    def label(effort, number, graph):
        if graph.num_nodes[0] == 9:
            raise TimeoutError
        return real.label(effort, number, graph)

    monkeypatch.setattr(labellers, "LABELLERS", {**labellers.LABELLERS, "mis": replace(real, label=label)})
    splits = Loader("co/toy", root=tmp_path, workers=1).load(())
    with pytest.raises(GraphBenchError, match="co/toy:mis_size train have no label"):
        train(data=splits, model=str(tiny), steps=2, output=tmp_path / "run", progress=False)
    with pytest.raises(GraphBenchError, match="have no label to predict"):
        evaluate_model(nn.Identity(), splits.train)
