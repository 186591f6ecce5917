"""Attacks on trained models of CLRS: their inputs are what they are said to be, and their answers are right."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

import graphbench
from benchmarks import attacks_clrs as attacks
from graphbench.domains.clrs import sample


def test_samples_are_those_of_the_dataset(tmp_path):
    splits = graphbench.Loader("clrs/dijkstra", root=tmp_path).load(splits=["val"])
    given = next(iter(splits.val.batches(4)))
    made = attacks.batch_of("dijkstra", sample("dijkstra", 16, 4, 2))
    for name in ("A", "adj", "s", "pi", "pos"):
        assert torch.equal(made[name], given[name]), name
    for name, hint in given.hints.items():
        assert torch.equal(made.hints[name], hint), name


@pytest.mark.parametrize("kind", attacks.GRAPHS)
def test_answers_on_graphs_are_those_of_networkx(kind):
    weights = attacks.GRAPHS[kind](np.random.default_rng(5))
    assert np.array_equal(weights, weights.T) and len(weights) == 64
    graph = nx.from_numpy_array(weights)
    assert nx.is_connected(graph)
    before = attacks.batch_of("dijkstra", [(weights, 7)])["pi"].reshape(-1).tolist()
    lengths = nx.single_source_dijkstra_path_length(graph, 7)
    for node in set(graph) - {7}:
        assert lengths[node] == pytest.approx(lengths[before[node]] + weights[before[node], node])
    tree = attacks.batch_of("mst_prim", [(weights, 7)])["pi"].reshape(-1).tolist()
    weight = sum(weights[tree[node], node] for node in set(graph) - {7})
    assert weight == pytest.approx(nx.minimum_spanning_tree(graph).size("weight"))


@pytest.mark.parametrize("kind", attacks.KEYS)
def test_answers_on_numbers_are_those_of_numpy(kind):
    keys = attacks.KEYS[kind](np.random.default_rng(5))
    assert keys.shape == (64,) and len(set(keys.tolist())) == 64
    smallest = attacks.batch_of("minimum", [(keys,)])["min"].reshape(-1)
    assert int(smallest.argmax() if len(smallest) > 1 else smallest) == int(keys.argmin())


@pytest.mark.parametrize("algorithm", attacks.MODELS)
def test_every_kind_has_arguments_of_the_algorithm(algorithm):
    for kind, draw in attacks.kinds(algorithm).items():
        given = draw(2, np.random.default_rng(0))
        expected = sample(algorithm, 8, 1, 0)[0]
        assert len(given) == 2, kind
        for one in given:
            assert [np.asarray(part).dtype for part in one] == [np.asarray(part).dtype for part in expected], kind


def test_a_row_has_the_score_of_the_committed_weights():
    row = attacks.attack("bfs", "rings of 64 nodes", 2)
    assert row.unit == "score" and row.n == {"samples": 2} and 0.5 < row.ours <= 1.0
