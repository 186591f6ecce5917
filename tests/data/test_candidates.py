"""Candidate pairs: every link once among negatives that no edge joins, the same wherever the graph is read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.catalog.links import RULES
from graphbench.data.arrays.candidates import HiddenLinks


def random_graph(seed, nodes, directed, share=0.3):
    rng = np.random.default_rng(seed)
    table = rng.random((nodes, nodes)) < rng.uniform(0.05, 0.5)
    u, v = np.nonzero(table if directed else np.triu(table))
    kept = u != v
    edges = np.stack([u[kept], v[kept]], axis=1)
    return edges, (rng.random(len(edges)) < share).astype(np.uint8)


@given(st.integers(0, 1000), st.integers(2, 30), st.booleans(), st.sampled_from(RULES), st.integers(1, 12))
@settings(max_examples=80, deadline=None)
def test_every_link_is_asked_once_among_other_nodes_that_no_edge_joins(seed, nodes, directed, rule, count):
    edges, hidden = random_graph(seed, nodes, directed)
    drawn = HiddenLinks(nodes, edges, hidden, directed=directed).candidates({rule: count})
    joined = set(map(tuple, edges.tolist()))
    joined |= set() if directed else {(v, u) for u, v in joined}
    links = [tuple(pair) for pair in drawn.pairs[:, drawn.is_link].T.tolist()]
    wanted = sorted(map(tuple, edges[hidden == 1].tolist()))
    asked = sorted(links if directed else [tuple(sorted(pair)) for pair in links])
    assert len(set(asked)) == len(asked) and set(asked) <= set(wanted)
    read = edges[hidden == 0]
    ends = set(read[:, 1].tolist()) | (set() if directed else set(read[:, 0].tolist()))
    allowed = ends if rule == "ends" and ends else set(range(nodes))
    free = {u: sum(u != v and (u, v) not in joined for v in allowed) for u in range(nodes)}
    assert set(asked) >= {(u, v) for u, v in wanted if free[u] and (directed or free[v])}  # others have no negative
    for query in range(drawn.queries):
        here = drawn.query == query
        assert drawn.is_link[here].sum() == 1 and len(set(drawn.pairs[0, here].tolist())) == 1
        source, negatives = int(drawn.pairs[0, here][0]), drawn.pairs[1, here & ~drawn.is_link].tolist()
        assert (
            len(negatives) == min(count, free[source])
            and len(set(negatives)) == len(negatives)
            and set(negatives) <= allowed - {source}
        )
        assert not joined & {(source, node) for node in negatives}


@pytest.mark.parametrize("directed", [False, True])
def test_small_graphs_have_all_the_negatives_that_there_are(directed):
    edges, hidden = random_graph(3, 9, directed)
    drawn = HiddenLinks(9, edges, hidden, directed=directed).candidates({"uniform": 100})
    joined = np.zeros((9, 9), bool)
    joined[tuple(edges.T)] = True
    joined = joined if directed else joined | joined.T
    for query in range(drawn.queries):
        here = drawn.query == query
        free = ~joined[drawn.pairs[0, here][0]]
        free[drawn.pairs[0, here][0]] = False
        assert (here & ~drawn.is_link).sum() == free.sum()


def test_the_draw_is_a_function_of_the_graph_and_says_nothing_by_its_order():
    edges, hidden = random_graph(1, 60, True)
    first = HiddenLinks(60, edges, hidden, directed=True).candidates({"uniform": 9, "degree": 9})
    again = HiddenLinks(60, edges.astype(np.int32), hidden == 1, directed=True).candidates({"uniform": 9, "degree": 9})
    assert all(np.array_equal(getattr(first, name), getattr(again, name)) for name in ("pairs", "query", "is_link"))
    other = hidden.copy()
    other[np.flatnonzero(hidden)[0]] = 0
    assert HiddenLinks(60, edges, hidden, directed=True).seed() != HiddenLinks(60, edges, other, directed=True).seed()
    starts = np.searchsorted(first.query, np.arange(first.queries))
    place = np.flatnonzero(first.is_link) - starts
    assert 0.3 < (place < 9).mean() < 0.7 and len(np.unique(place)) > 10


def test_rules_draw_the_nodes_that_they_name():
    hub, nodes = 0, 400
    edges = np.array([(hub, v) for v in range(1, 100)] + [(v, v + 100) for v in range(100, 200)])
    hidden = np.zeros(len(edges), np.uint8)
    hidden[100:130] = 1  # sources far from the hub

    def targets(rule):
        drawn = HiddenLinks(nodes, edges, hidden, directed=False).candidates({rule: 4})
        return drawn.pairs[1, ~drawn.is_link]

    assert (targets("degree") == hub).mean() > 0.15 and (targets("uniform") == hub).mean() < 0.05
    lines = np.array([(0, 1), (0, 3), (1, 2), (5, 6)])  # two steps from 0 lead to 2 alone
    near = HiddenLinks(7, lines, np.array([0, 1, 0, 0]), directed=True).candidates({"near": 1})
    assert near.pairs[:, ~near.is_link].T.tolist() == [[0, 2]]


def test_negatives_of_users_are_items():
    rng = np.random.default_rng(0)
    edges = np.unique(np.stack([rng.integers(0, 50, 400), rng.integers(50, 70, 400)], axis=1), axis=0)
    hidden = (rng.random(len(edges)) < 0.2).astype(np.uint8)
    both = HiddenLinks(70, edges, hidden, directed=True).candidates({"ends": 3, "uniform": 30})
    assert 0.2 < (both.pairs[1] >= 50).mean() < 0.8 and np.bincount(both.query).max() == 34
    alone = HiddenLinks(70, edges, hidden, directed=True).candidates({"ends": 30})
    assert (alone.pairs[1] >= 50).all() and np.bincount(alone.query).max() < 20


def test_the_number_of_queries_is_limited_and_a_graph_without_links_has_none():
    edges, hidden = random_graph(2, 80, True)
    drawn = HiddenLinks(80, edges, hidden, directed=True).candidates({"uniform": 5}, queries=20)
    assert drawn.queries == 20 and drawn.is_link.sum() == 20
    empty = HiddenLinks(80, edges, np.zeros(len(edges)), directed=True).candidates({"uniform": 5})
    assert empty.queries == 0 and empty.pairs.shape == (2, 0)
