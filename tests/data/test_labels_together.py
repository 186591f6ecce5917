"""Labellers that take many graphs together: the same labels as one at a time, and failures that concern one graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphbench.catalog.cards import Card
from graphbench.core.errors import SolverError
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts
from graphbench.data.build.generation import draw_samples
from graphbench.data.build.labelling import label_samples
from graphbench.data.components.domain import find
from graphbench.data.store.labels import with_labels
from graphbench.domains.co import labellers
from graphbench.verification.measuring import labels_hash

FEATURES = {
    "heavy": ["meta", "edge", "mask"],
    "name": ["meta", "graph", "text"],
    "number": ["meta", "graph", "scalar"],
    "mis_failed": ["meta", "graph", "mask"],
}
ODD = 3  # a graph that fails in some tests


def label(effort: Any, number: int, graph: Samples) -> Mapping[str, Any]:
    u, v = graph.edges.astype(int).T
    return {"heavy": (u + v) % 2, "name": f"graph ä {int(u.sum())}", "number": number % 1000}


def label_many(effort: Any, numbers: Sequence[int], graphs: Samples) -> list[Any]:
    bounds = graphs.edge_ptr
    found: list[Any] = []
    for i, number in enumerate(numbers):
        u, v = graphs.edges[bounds[i] : bounds[i + 1]].astype(int).T
        found.append({"heavy": (u + v) % 2, "name": f"graph ä {int(u.sum())}", "number": number % 1000})
    return found


@pytest.fixture
def card(make_labelled: Callable[..., Card], monkeypatch: pytest.MonkeyPatch) -> Card:
    use(monkeypatch, label_many=label_many)
    task = {
        "title": "Number",
        "summary": "Which.",
        "labels": "co.mis",
        "outputs": ["number"],
        "metrics": {"primary": "mae"},
    }
    labels = {"co.mis": {"effort": {"steps": 10}, "features": FEATURES}}
    return make_labelled(tasks={"number": task}, labels=labels).with_task("number")


def use(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    own = replace(labellers.LABELLERS["mis"], label=label, check=lambda graph, values: [], **changes)
    monkeypatch.setitem(labellers.LABELLERS, "mis", own)  # type: ignore[index]
    assert find("labeller", "co.mis") is own


def labels_of(card: Card, places: Sequence[int]) -> Samples:
    chosen = np.array(places)
    return label_samples(
        card, card.labellers[0], "train", chosen, draw_samples(card.graphs, "train", np.arange(8)), chosen
    )


def test_labels_together_are_those_alone(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    for places in (range(8), [5, 2, 7]):
        together = labels_of(card, list(places))
        with monkeypatch.context() as one_at_a_time:
            use(one_at_a_time, label_many=None)
            alone = labels_of(card, list(places))
        assert labels_hash(card.label_schemas[card.labellers[0]], together) == labels_hash(
            card.label_schemas[card.labellers[0]], alone
        )
        assert together.values["name"].strings() == alone.values["name"].strings()
    assert isinstance(together.values["name"], Texts) and together.values["name"].strings()[0].startswith("graph ä")


def test_an_exception_of_one_graph_concerns_it_alone(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_on_one(effort: Any, numbers: Sequence[int], graphs: Samples) -> list[Any]:
        return [KeyError("odd") if i == ODD else own for i, own in enumerate(label_many(effort, numbers, graphs))]

    whole = labels_of(card, list(range(8)))
    use(monkeypatch, label_many=fail_on_one)
    found = labels_of(card, list(range(8)))
    assert found.values["mis_failed"].tolist() == [int(i == ODD) for i in range(8)]
    assert found.facts["failed"] == {str(ODD): "KeyError: 'odd'"}
    names = whole.values["name"].strings()
    assert found.values["name"].strings() == [*names[:ODD], "", *names[ODD + 1 :]]
    assert found.values["number"][ODD] == -1
    graphs = draw_samples(card.graphs, "train", np.arange(8))
    assert with_labels(card, card.labellers[0], graphs, found).values["name"].strings()[ODD] == ""


@pytest.mark.parametrize("fault", ["raises", "too few"])
def test_one_at_a_time_if_the_graphs_cannot_be_taken_together(
    card: Card, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    def broken(effort: Any, numbers: Sequence[int], graphs: Samples) -> list[Any]:
        if fault == "raises":
            raise ValueError("broken")
        return label_many(effort, numbers, graphs)[:-1]

    whole = labels_of(card, list(range(8)))
    use(monkeypatch, label_many=broken)
    found = labels_of(card, list(range(8)))
    assert labels_hash(card.label_schemas[card.labellers[0]], found) == labels_hash(
        card.label_schemas[card.labellers[0]], whole
    )


def test_errors_that_concern_all_graphs_are_raised(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(effort: Any, numbers: Sequence[int], graphs: Samples) -> list[Any]:
        raise SolverError("no solver")

    use(monkeypatch, label_many=missing)
    with pytest.raises(SolverError, match="no solver"):
        labels_of(card, [0, 1])
