"""Attacks on trained models: their samples are those of the package, and their labels have the properties asked for."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

import graphbench
from benchmarks import attacks


@pytest.mark.parametrize("task", attacks.ATTACKS)
def test_samples_have_the_tensors_of_the_package(task, tmp_path):
    card = graphbench.card(f"algoreas/{task}_easy")
    splits = graphbench.Loader(card.id, root=tmp_path, limit=2).load(splits=["val"])
    given = splits.val[0]
    inputs = {feature.name: given[feature.name].numpy() for feature in card.inputs}
    made = attacks._sample(list(zip(*given.edge_index.tolist(), strict=True)), given.num_nodes, **inputs)
    for name in ("x", "edge_attr", "edge_index"):
        assert (name in made) == (name in given)
        if name in made:
            assert torch.equal(made[name], given[name]), name


def _graph(case: attacks.Case, chosen: np.ndarray | None = None) -> nx.Graph:
    arcs = case.data.edge_index.T.numpy()
    graph = nx.Graph()
    graph.add_nodes_from(range(case.data.num_nodes))
    graph.add_edges_from((arcs if chosen is None else arcs[chosen]).tolist())
    return graph


def _case(task: str, kind: str) -> attacks.Case:
    return attacks.ATTACKS[task][kind](np.random.default_rng(1))


@pytest.mark.parametrize("kind", attacks.ATTACKS["mst"])
def test_a_spanning_tree_spans_and_holds_the_edges_of_the_rule(kind):
    case = _case("mst", kind)
    assert nx.is_tree(_graph(case, case.label))
    assert (case.label | ~case.rule).all()


@pytest.mark.parametrize("kind", attacks.ATTACKS["bridges"])
def test_without_its_bridges_a_graph_has_as_many_more_parts(kind):
    case = _case("bridges", kind)
    rest = _graph(case, ~case.label)
    assert nx.number_connected_components(rest) == 1 + case.label.sum() // 2
    assert not nx.has_bridges(rest)


@pytest.mark.parametrize("kind", attacks.ATTACKS["max_matching"])
def test_a_matching_is_one_and_weighs_no_less_than_the_greedy_one(kind):
    case = _case("max_matching", kind)
    weights = case.data.weight.numpy()
    for chosen in (case.label, case.rule):
        assert max(degree for _, degree in _graph(case, chosen).degree) == 1
    assert weights[case.label].sum() >= weights[case.rule].sum()


@pytest.mark.parametrize("kind", attacks.ATTACKS["steiner_tree"])
def test_a_steiner_tree_joins_the_terminals_and_weighs_no_more_than_two_paths(kind):
    case = _case("steiner_tree", kind)
    terminals = np.flatnonzero(case.data.is_terminal.numpy()).tolist()
    weights = case.data.weight.numpy()
    tree = _graph(case, case.label)
    tree.remove_nodes_from([node for node, degree in tree.degree if degree == 0])
    assert nx.is_tree(tree) and set(terminals) <= set(tree)
    assert {node for node, degree in tree.degree if degree == 1} <= set(terminals)
    assert weights[case.label].sum() <= weights[case.rule].sum() + 1e-4


@pytest.mark.parametrize("kind", attacks.ATTACKS["topological_sort"])
def test_an_order_follows_every_arc(kind):
    case = _case("topological_sort", kind)
    before, after = case.data.edge_index.numpy()
    assert (case.label[before] < case.label[after]).all()
    assert len(set(case.label.tolist())) == len(case.label)


@pytest.mark.parametrize("kind", attacks.ATTACKS["flow"])
def test_a_flow_is_at_most_what_leaves_the_source_or_reaches_the_sink(kind):
    case = _case("flow", kind)
    assert 0 < case.label[0] <= case.rule[0] + 1e-5


def test_a_model_without_weights_fails_and_a_trained_one_does_not(monkeypatch):
    kind = "grids of 12 x 12 nodes"
    trained = attacks.attack("mst", kind, 1)
    assert trained.ours > 0.95 and trained.peer < trained.ours
    model = graphbench.load_model("algoreas/mst_easy", "pairs")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    monkeypatch.setattr(attacks, "_model", lambda task: model)
    assert not attacks.attack("mst", kind, 1).ours > 0.7


def test_matched_weight_drops_the_lighter_of_two_edges_at_a_node():
    path = nx.Graph()
    path.add_weighted_edges_from([(0, 1, 2.0), (1, 2, 3.0), (2, 3, 2.0), (4, 5, 1.0)])
    case = attacks._matching(path)
    everything = np.ones_like(case.label)
    none = np.zeros_like(case.label)
    assert attacks.matched_weight([case.label, case.rule], [case, case]) == pytest.approx((1 + 4 / 5) / 2)
    assert attacks.matched_weight([everything, none], [case, case]) == pytest.approx((4 / 5 + 0) / 2)
    assert attacks.exact([case.label, case.rule, everything], [case] * 3) == pytest.approx(1 / 3)
