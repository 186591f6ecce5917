"""Neighbour lists, against lists in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.neighbours import arc_lists, neighbour_lists

NODES = 7
PAIRS = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=30)


def of_each_node(first, *values):
    """The rows of every node, as tuples."""
    return [
        list(zip(*(value[first[v] : first[v + 1]].tolist() for value in values), strict=True))
        for v in range(len(first) - 1)
    ]


@settings(deadline=None)  # the first call compiles
@given(PAIRS)
def test_neighbours_come_in_the_order_of_the_arcs(pairs):
    lists = neighbour_lists(NODES, np.array(pairs, np.int32).reshape(-1, 2))
    assert [array.dtype for array in lists] == [np.int64, np.int32, np.int32]
    expected = [[] for _ in range(NODES)]
    for j, (u, v) in enumerate(pairs):
        expected[u].append((v, 2 * j))
        expected[v].append((u, 2 * j + 1))
    # The arcs of an edge stand in the order of the edges; both arcs of a loop belong to one node.
    assert of_each_node(lists.first, lists.node, lists.arc) == expected


@settings(deadline=None)  # the first call compiles
@given(PAIRS)
def test_sorted_edges_give_ascending_neighbours(pairs):
    edges = np.array(sorted({(min(p), max(p)) for p in pairs if p[0] != p[1]}), np.int32).reshape(-1, 2)
    lists = neighbour_lists(NODES, edges)
    for rows in of_each_node(lists.first, lists.node):
        assert rows == sorted(set(rows))
    assert (edges[lists.arc >> 1, 1 - (lists.arc & 1)] == lists.node).all()


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@settings(deadline=None)  # the first call compiles
@given(pairs=PAIRS)
def test_targets_come_in_the_order_of_the_arcs(kind, pairs):
    arcs = np.array(pairs, kind).reshape(-1, 2)
    expected = [[(target,) for source, target in pairs if source == v] for v in range(NODES)]
    for columns in (arcs.T, np.ascontiguousarray(arcs.T)):  # strided and contiguous
        first, node = arc_lists(NODES, *columns)
        assert (first.dtype, node.dtype) == (np.int64, kind)
        assert of_each_node(first, node) == expected
