"""Greedy and random solutions, the trivial baselines of solvers and models.

Greedy takes nodes by degree: the node with fewest nodes left around it joins the set; nodes of high degree first
choose the side that cuts more edges, or the first free colour (Welsh and Powell 1967). Random takes nodes in random
order, or flips a coin for each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.neighbours import Neighbours, neighbour_lists
from graphbench.core.rng import below, permutation
from graphbench.domains.co.decoding_kernels import first_fit, join_in_order
from graphbench.domains.co.solvers import Edges, Label, checked_edges, random_state

_KEY = 0x72616E64


@kernel
def _random_sides(n: int, state: NDArray[np.uint64]) -> NDArray[np.int32]:
    sides = np.empty(n, np.int32)
    for v in range(n):
        sides[v] = below(state, 2)
    return sides


@kernel
def _set_by_degree(lists: Neighbours) -> NDArray[np.int32]:
    n = lists.first.shape[0] - 1
    first, node = lists.first, lists.node
    degree = np.empty(n, np.int64)
    for v in range(n):
        degree[v] = first[v + 1] - first[v]
    member = np.zeros(n, np.int32)
    waiting = np.ones(n, np.bool_)
    while True:
        best = -1
        for v in range(n):
            if waiting[v] and (best < 0 or degree[v] < degree[best]):
                best = v
        if best < 0:
            return member
        member[best] = 1
        waiting[best] = False
        for row in range(first[best], first[best + 1]):
            u = node[row]
            if waiting[u]:
                waiting[u] = False
                for other in range(first[u], first[u + 1]):
                    degree[node[other]] -= 1


@kernel
def _cut_in_order(lists: Neighbours, order: NDArray[np.int64]) -> NDArray[np.int32]:
    side = np.full(order.shape[0], -1, np.int32)
    for v in order:
        surplus = 0
        for row in range(lists.first[v], lists.first[v + 1]):
            other = side[lists.node[row]]
            if other >= 0:
                surplus += 1 if other == 0 else -1
        side[v] = 1 if surplus > 0 else 0
    return side


def greedy_independent_set(num_nodes: int, edges: Edges) -> Label:
    """Return the set that takes the node with fewest remaining neighbours until no node remains."""
    lists = neighbour_lists(num_nodes, checked_edges(num_nodes, edges))
    return _set_label(num_nodes, _set_by_degree(lists), "greedy")


def random_independent_set(num_nodes: int, edges: Edges, seed: int = 0) -> Label:
    """Return the set that takes nodes in random order where it can."""
    lists = neighbour_lists(num_nodes, checked_edges(num_nodes, edges))
    member = np.empty(num_nodes, np.int32)
    join_in_order(permutation(random_state(_KEY, seed), num_nodes), 0, lists.first, lists.node, member)
    return _set_label(num_nodes, member, "random")


def greedy_cut(num_nodes: int, edges: Edges) -> Label:
    """Return the cut in which each node, by falling degree, takes the side that cuts more edges to earlier nodes."""
    edges = checked_edges(num_nodes, edges)
    lists = neighbour_lists(num_nodes, edges)
    return _cut_label(edges, _cut_in_order(lists, _by_falling_degree(lists)), "greedy")


def random_cut(num_nodes: int, edges: Edges, seed: int = 0) -> Label:
    """Return a cut with each side drawn by a fair coin."""
    edges = checked_edges(num_nodes, edges)
    return _cut_label(edges, _random_sides(num_nodes, random_state(_KEY, seed)), "random")


def greedy_colouring(num_nodes: int, edges: Edges) -> Label:
    """Return the colouring that gives nodes by falling degree the first free colour."""
    lists = neighbour_lists(num_nodes, checked_edges(num_nodes, edges))
    return _colouring_label(_first_fit(lists, _by_falling_degree(lists)), len(edges), "greedy")


def random_colouring(num_nodes: int, edges: Edges, seed: int = 0) -> Label:
    """Return the colouring that gives nodes in random order the first free colour."""
    lists = neighbour_lists(num_nodes, checked_edges(num_nodes, edges))
    order = permutation(random_state(_KEY, seed), num_nodes)
    return _colouring_label(_first_fit(lists, order), len(edges), "random")


def _first_fit(lists: Neighbours, order: NDArray[np.int64]) -> NDArray[np.int32]:
    colour = np.empty(len(order), np.int32)
    first_fit(order, 0, lists.first, lists.node, colour)
    return colour


def _by_falling_degree(lists: Neighbours) -> NDArray[np.int64]:
    return np.argsort(-np.diff(lists.first), kind="stable")


def _set_label(num_nodes: int, member: NDArray[np.int32], solver: str) -> Label:
    return Label(int(member.sum()), member, num_nodes, solver)


def _cut_label(edges: Edges, side: NDArray[np.int32], solver: str) -> Label:
    value = int((side[edges[:, 0]] != side[edges[:, 1]]).sum())
    return Label(value, side, len(edges), solver)


def _colouring_label(colour: NDArray[np.int32], num_edges: int, solver: str) -> Label:
    return Label(int(colour.max()) + 1, colour, 2 if num_edges else 1, solver)
