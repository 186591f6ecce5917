"""Measures of sets of nodes: the largest clique within predicted nodes, and how cards name measures."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphbench
from graphbench.core.errors import CardError, EvaluationError
from graphbench.data.components.domain import find
from graphbench.evaluation.evaluator import FeatureEvaluator
from graphbench.evaluation.metrics.accumulators import WithinSums
from graphbench.tasks.registry import task_of

MEMBERS = "algoreas/clique_membership_easy"


def drawn(seed: int, count: int, largest: int = 14) -> list[Any]:
    """Return random graphs, some of them without edges."""
    rng = np.random.default_rng(seed)
    return [nx.gnp_random_graph(int(rng.integers(1, largest)), rng.random(), seed=seed + i) for i in range(count)]


def largest_within(graph: Any, chosen: Any) -> int:
    """Return the size of the largest clique among the chosen nodes."""
    inside = graph.subgraph(np.flatnonzero(chosen).tolist())
    return max(map(len, nx.find_cliques(inside)), default=0)


def as_data(graph: Any, target: Any) -> Any:
    """Return a graph with both directions of its edges and its targets, as PyG has it."""
    import torch
    from torch_geometric.data import Data

    edges = [pair for u, v in graph.edges for pair in ((u, v), (v, u))]
    index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    return Data(edge_index=index, num_nodes=len(graph), is_member=torch.as_tensor(target))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0, 1), st.booleans())
def test_sizes_are_those_of_the_largest_cliques_networkx_lists(seed: int, share: float, both: bool) -> None:
    graphs = drawn(seed, 4)
    ptr = np.cumsum([0, *map(len, graphs)])
    edges = [(u + first, v + first) for graph, first in zip(graphs, ptr, strict=False) for u, v in graph.edges]
    index = np.array(edges + [(v, u) for u, v in edges] * both, np.int64).reshape(-1, 2).T
    index = index[:, np.random.default_rng(seed).permutation(index.shape[1])]
    chosen = np.random.default_rng(seed).random(ptr[-1]) < share
    found = find("measure", "algoreas.largest_clique").sizes(ptr, index, chosen)
    expected = [largest_within(graph, chosen[a:b]) for graph, a, b in zip(graphs, ptr, ptr[1:], strict=False)]
    assert found.tolist() == expected


@pytest.mark.parametrize("size", [70, 130])
def test_sizes_beyond_one_word(size: int) -> None:
    graph = nx.gnp_random_graph(size, 0.5, seed=size)
    chosen = np.arange(size) % 3 > 0
    index = np.array(graph.edges, np.int64).T
    found = find("measure", "algoreas.largest_clique").sizes(np.array([0, size]), index, chosen)
    assert found.tolist() == [largest_within(graph, chosen)]


def test_the_ratio_is_the_mean_of_that_of_every_graph() -> None:
    graphs, rng = drawn(5, 12), np.random.default_rng(5)
    targets = []
    for graph in graphs:
        cliques = list(nx.find_cliques(graph))
        members = set().union(*(clique for clique in cliques if len(clique) == max(map(len, cliques))))
        targets.append(np.isin(np.arange(len(graph)), list(members)))
    predicted = [rng.random(len(graph)) < 0.6 for graph in graphs]
    data = [as_data(graph, target) for graph, target in zip(graphs, targets, strict=True)]
    expected = np.mean(
        [
            largest_within(graph, chosen) / largest_within(graph, target)
            for graph, chosen, target in zip(graphs, predicted, targets, strict=True)
        ]
    )
    evaluator = graphbench.Evaluator(MEMBERS)
    score = evaluator.evaluate(data, np.concatenate(predicted))
    assert 0 < expected < 1 and score["within_ratio"] == pytest.approx(expected)
    for part in (slice(0, 5), slice(5, 12)):
        evaluator.update(data[part], np.concatenate(predicted[part]))
    assert evaluator.compute() == pytest.approx(dict(score))
    everything = evaluator.evaluate(data, np.ones(len(np.concatenate(targets)), bool))
    assert everything["within_ratio"] == evaluator.evaluate(data, np.concatenate(targets))["within_ratio"] == 1.0
    assert evaluator.evaluate(data, np.zeros(len(np.concatenate(targets)), bool))["within_ratio"] == 0.0


def test_without_graphs_the_metric_is_left_out_and_mixed_updates_are_refused() -> None:
    (graph,) = drawn(9, 1)
    target = np.ones(len(graph), bool)
    evaluator = graphbench.Evaluator(MEMBERS)
    score = evaluator.evaluate(target, target)
    assert score["f1"] == 1.0 and "within_ratio" not in score
    evaluator.update(target, target, np.zeros(len(target), np.int64))
    with pytest.raises(EvaluationError, match="some updates come as graphs"):
        evaluator.update([as_data(graph, target)], target)
    feature = graphbench.card(MEMBERS).outputs[0]
    with pytest.raises(EvaluationError, match="within_ratio needs the edges"):
        FeatureEvaluator(feature, "within_ratio").evaluate([as_data(graph, target)], target)


def test_replicates_of_sums_have_their_value() -> None:
    sums = WithinSums().like(np.array([1.5, 2.0]))
    assert (sums.sum, sums.total) == (1.5, 2.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metrics": {"primary": "f1", "also": ["within_ratio"]}}, "'within_ratio' needs a measure"),
        ({"task": {"options": {"measure": "algoreas.largest_cliqe"}}}, "largest_clique"),
        ({"task": {"options": {"measure": "algoreas.largest_clique"}}}, "measures a mask of nodes"),
        ({"task": {"options": {"mesure": "algoreas.largest_clique"}}}, "measure"),
    ],
)
def test_cards_without_a_fitting_measure_are_refused(make_card: Any, changes: Any, words: str) -> None:
    card = make_card(**{"metrics": {"primary": "f1"}, **changes})
    with pytest.raises(CardError, match=words):
        task_of(card)
