"""Which inputs tabular models read, and what reading them costs a selector."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from graphbench.catalog.features import Location, parse_features
from graphbench.core.errors import CardError, ConfigError
from graphbench.models.base import TaskFeatures
from graphbench.models.tabular.config import SelectorModelConfig, TabularModelConfig
from graphbench.models.tabular.table import table_of_model
from graphbench.tasks.registry import task_of

FEATURES = parse_features(
    {
        "wide": ["input", "graph", "scalar(2)"],
        "mark": ["input", "node", "mask"],
        "target": ["output", "graph", "scalar"],
    }
)
BATCH = SimpleNamespace(
    batch=torch.tensor([0, 0, 1]),
    edge_index=torch.tensor([[0, 1], [1, 0]]),
    num_graphs=2,
    wide=torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
    mark=torch.tensor([1, 0, 1]),
)


class _Batch:
    def __getattr__(self, name):
        return getattr(BATCH, name)

    def __getitem__(self, name):
        return getattr(BATCH, name)


@pytest.mark.parametrize("kind", [TabularModelConfig, SelectorModelConfig])
def test_the_columns_are_those_of_the_inputs_that_are_read(kind):
    task = TaskFeatures(FEATURES)
    inputs = table_of_model(_Batch(), task, Location.GRAPH, kind(columns="inputs"))
    assert inputs.tolist() == [[1, 2], [3, 4]]
    whole = table_of_model(_Batch(), task, Location.GRAPH, kind(hops=0))
    without = table_of_model(_Batch(), task, Location.GRAPH, kind(hops=0, ignore=["wide"]))
    assert whole.shape[1] == without.shape[1] + 2
    assert any(np.array_equal(whole[:, k : k + 2], inputs) for k in range(whole.shape[1] - 1))
    unmarked = table_of_model(_Batch(), task, Location.GRAPH, kind(hops=0, ignore=["mark"]))
    assert unmarked.shape[1] < whole.shape[1]


@pytest.mark.parametrize("kind", [TabularModelConfig, SelectorModelConfig])
def test_what_cannot_be_read_is_refused(kind):
    task = TaskFeatures(FEATURES)
    with pytest.raises(ConfigError, match=r"model\.ignore names 'width'"):
        table_of_model(_Batch(), task, Location.GRAPH, kind(ignore=["width"]))
    with pytest.raises(ConfigError, match="no input is located at graphs"):
        table_of_model(_Batch(), task, Location.GRAPH, kind(columns="inputs", ignore=["wide"]))
    with pytest.raises(ConfigError, match=r"model\.columns is inputs"):
        table_of_model(_Batch(), task, Location.NODE, kind(columns="inputs"))


def by_input(card, **costs):
    spec = card.task.model_copy(update={"options": {"overhead": costs}})
    return card.model_copy(update={"task": spec})


def test_a_selector_pays_for_the_inputs_that_it_reads():
    from graphbench.catalog.names import catalog

    task = task_of(catalog().card("sat/small:select"))
    assert task.overhead == ("structure_seconds", "probes_seconds")
    for ignored, paid in (
        ((), ("structure_seconds", "probes_seconds")),
        (("probes",), ("structure_seconds",)),
        (("structure", "probes"), ()),
    ):
        task.configure(SelectorModelConfig(ignore=ignored))
        assert task.overhead == paid
        evaluator = task.evaluator()
        assert evaluator.overhead == paid


def test_a_card_whose_costs_of_inputs_do_not_exist_is_refused():
    from graphbench.catalog.names import catalog

    card = catalog().card("sat/small:select")
    with pytest.raises(CardError, match=r"overhead is 'none'.*scalars"):
        task_of(by_input(card, structure="none"))
    with pytest.raises(CardError, match="overhead names 'family'"):
        task_of(by_input(card, family="structure_seconds"))


def test_too_few_rows_for_an_estimator_are_a_clear_error():
    from graphbench.models.tabular.model import TabularModel

    config = TabularModelConfig(processor="k_nearest", columns="inputs", options={"n_neighbors": 16})
    model = TabularModel(config, TaskFeatures(FEATURES))
    BATCH.target = torch.tensor([1.0, 2.0])
    with pytest.raises(ConfigError, match=r"k_nearest.*2 training rows.*n_neighbors"):
        model.fit([_Batch()], seed=0)
