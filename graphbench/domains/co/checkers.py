"""Independent checks of solutions, in plain Python: nothing here calls a solver."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.co.solvers import Label

Checker = Callable[[int, NDArray[np.int32], Label], list[str]]


def check_independent_set(num_nodes: int, edges: NDArray[np.int32], label: Label) -> list[str]:
    """Return the problems of an independent set; an empty list if it is correct.

    Besides independence, the value and the bound, no node may be free to join the set.
    """
    problems = _shape_problems(num_nodes, label, largest=1)
    if problems:
        return problems
    members = {v for v, inside in enumerate(label.solution.tolist()) if inside}
    touched = set(members)
    for u, v in edges.tolist():
        if u in members and v in members:
            problems.append(f"members {u} and {v} are joined by an edge")
        if u in members or v in members:
            touched |= {u, v}
    if len(touched) < num_nodes:
        problems.append(f"node {min(set(range(num_nodes)) - touched)} could join the set")
    return problems + _value_problems(len(members), label, maximise=True)


def check_vertex_cover(num_nodes: int, edges: NDArray[np.int32], label: Label) -> list[str]:
    """Return the problems of a vertex cover: an edge without a member, a member too many, its value or its bound."""
    problems = _shape_problems(num_nodes, label, largest=1)
    if problems:
        return problems
    members = {v for v, inside in enumerate(label.solution.tolist()) if inside}
    needed = set()
    for u, v in edges.tolist():
        if u not in members and v not in members:
            problems.append(f"the edge between {u} and {v} has no member")
        needed |= {a for a, b in ((u, v), (v, u)) if b not in members}
    if members - needed:
        problems.append(f"node {min(members - needed)} could leave the cover")
    return problems + _value_problems(len(members), label, maximise=False)


def check_clique(num_nodes: int, edges: NDArray[np.int32], label: Label) -> list[str]:
    """Return the problems of a clique: members that are not joined, a node that could join, its value or its bound."""
    problems = _shape_problems(num_nodes, label, largest=1)
    if problems:
        return problems
    members = {v for v, inside in enumerate(label.solution.tolist()) if inside}
    beside: dict[int, set[int]] = {v: set() for v in range(num_nodes)}
    for u, v in edges.tolist():
        beside[u].add(v)
        beside[v].add(u)
    for u in sorted(members):
        strangers = members - beside[u] - {u}
        if strangers:
            problems.append(f"members {u} and {min(strangers)} are not joined")
    free = [v for v in range(num_nodes) if v not in members and members <= beside[v]]
    if free:
        problems.append(f"node {free[0]} could join the clique")
    return problems + _value_problems(len(members), label, maximise=True)


def check_cut(num_nodes: int, edges: NDArray[np.int32], label: Label) -> list[str]:
    """Return the problems of a cut: its value, its bound, or a node that would be better on the other side."""
    problems = _shape_problems(num_nodes, label, largest=1)
    if problems:
        return problems
    side = label.solution.tolist()
    surplus = [0] * num_nodes
    value = 0
    for u, v in edges.tolist():
        cut = side[u] != side[v]
        value += cut
        for node in (u, v):
            surplus[node] += 1 if cut else -1
    worst = min(range(num_nodes), key=surplus.__getitem__)
    if surplus[worst] < 0:
        problems.append(f"moving node {worst} to the other side would cut {-surplus[worst]} edges more")
    return problems + _value_problems(value, label, maximise=True)


def check_colouring(num_nodes: int, edges: NDArray[np.int32], label: Label) -> list[str]:
    """Return the problems of a colouring: joined nodes of one colour, colours left out, the value or the bound."""
    problems = _shape_problems(num_nodes, label, largest=num_nodes - 1)
    if problems:
        return problems
    colour = label.solution.tolist()
    problems += [
        f"nodes {u} and {v} are joined and have colour {colour[u]}" for u, v in edges.tolist() if colour[u] == colour[v]
    ]
    used = set(colour)
    if used != set(range(len(used))):
        problems.append(f"the colours used are {sorted(used)}; number them from 0 without gaps")
    return problems + _value_problems(len(used), label, maximise=False)


def _shape_problems(num_nodes: int, label: Label, largest: int) -> list[str]:
    if label.solution.shape != (num_nodes,):
        return [f"the solution has the shape {label.solution.shape} for {num_nodes} nodes"]
    wrong = [v for v in label.solution.tolist() if not 0 <= v <= largest]
    return [f"the solution has the entry {wrong[0]}, not from 0 to {largest}"] if wrong else []


def _value_problems(value: int, label: Label, maximise: bool) -> list[str]:
    problems = []
    if label.value != value:
        problems.append(f"the value is given as {label.value} but is {value}")
    if (label.bound < value) if maximise else (label.bound > value):
        problems.append(f"the bound {label.bound} rules out the value {value}")
    return problems
