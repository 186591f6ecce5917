"""The peers of the SAT benchmark: generators, graphs and the closed gap in plain Python, as the papers describe them.

They are written for this comparison, without NumPy: what somebody writes who reads the papers. A formula is a pair: the
number of variables, and the clauses as lists of literals. Preimages are in :mod:`benchmarks.sat_peer_hashes`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from typing import Any

PlainFormula = tuple[int, list[list[int]]]


def _signed(rng: random.Random, variables: Sequence[int]) -> list[int]:
    return [variable if rng.random() < 0.5 else -variable for variable in variables]


def renamed(rng: random.Random, formula: PlainFormula, flip: bool) -> PlainFormula:
    """Return a formula with variables renamed and clauses reordered at random; with ``flip``, signs change, too."""
    n, clauses = formula
    names = list(range(1, n + 1))
    rng.shuffle(names)
    if flip:
        names = _signed(rng, names)
    result = []
    for clause in clauses:
        own = [names[literal - 1] if literal > 0 else -names[-literal - 1] for literal in clause]
        result.append(sorted(own, key=abs))
    rng.shuffle(result)
    return n, result


# --------------------------------------------------------------------------------------------------------------------
# Generators


def community(
    rng: random.Random,
    variables: tuple[int, int],
    communities: tuple[int, int],
    ratio: tuple[float, float],
    modularity: tuple[float, float],
    k: int = 3,
) -> PlainFormula:
    """Draw a formula by community attachment (Giraldez-Cru and Levy 2016)."""
    n = rng.randint(*variables)
    c = rng.randint(*communities)
    m = round(rng.uniform(*ratio) * n)
    inside = rng.uniform(*modularity) + 1 / c
    members = [list(range(1 + i * n // c, 1 + (i + 1) * n // c)) for i in range(c)]
    clauses = []
    for _ in range(m):
        if rng.random() < inside:
            chosen = rng.sample(rng.choice(members), k)
        else:
            chosen = [rng.choice(own) for own in rng.sample(members, k)]
        clauses.append(_signed(rng, sorted(chosen)))
    return n, clauses


def _tseitin(operator: str, g: int, a: int, b: int) -> list[list[int]]:
    """Return the clauses that say that g is the value of a gate."""
    if operator == "and":
        return [[-g, a], [-g, b], [g, -a, -b]]
    if operator == "or":
        return [[g, -a], [g, -b], [-g, a, b]]
    if operator == "iff":
        g = -g
    return [[-g, a, b], [-g, -a, -b], [g, -a, b], [g, a, -b]]


def fuzz(
    rng: random.Random,
    inputs: tuple[int, int],
    references: tuple[int, int],
    clause_length: tuple[int, int],
    clause_ratio: tuple[float, float],
) -> PlainFormula:
    """Draw a random circuit whose root holds, and random clauses (Brummayer, Lonsing and Biere 2010)."""
    v = rng.randint(*inputs)
    times = rng.randint(*references)
    operators = ("and", "or", "xor", "iff")
    uses = [0] * (v + 1)
    waiting = set(range(1, v + 1))
    clauses: list[list[int]] = []
    while waiting:
        operands = rng.sample(range(1, len(uses)), 2)
        for operand in operands:
            uses[operand] += 1
            if operand <= v and uses[operand] >= times:
                waiting.discard(operand)
        uses.append(0)
        clauses += _tseitin(rng.choice(operators), len(uses) - 1, *_signed(rng, operands))
    roots = [node for node in range(v + 1, len(uses)) if uses[node] == 0]
    rng.shuffle(roots)
    n = len(uses) - 1
    while len(roots) > 1:
        n += 1
        clauses += _tseitin(rng.choice(operators), n, *_signed(rng, roots[:2]))
        roots = [*roots[2:], n]
    clauses.append([roots[0]])
    length = rng.randint(*clause_length)
    for _ in range(round(rng.uniform(*clause_ratio) * n)):
        clauses.append(_signed(rng, rng.sample(range(1, n + 1), length)))
    return renamed(rng, (n, clauses), flip=True)


# --------------------------------------------------------------------------------------------------------------------
# Graphs


def _pairs(formula: PlainFormula, kind: str) -> Any:
    """Yield the edges of a graph; an edge may come several times, in either direction."""
    n, clauses = formula
    if kind == "cg":
        holders: dict[int, list[int]] = {}
        for j, clause in enumerate(clauses):
            for literal in clause:
                holders.setdefault(literal, []).append(j)
    for j, clause in enumerate(clauses):
        if kind == "vg":
            yield from combinations([abs(literal) - 1 for literal in clause], 2)
        elif kind == "vcg":
            for literal in clause:
                yield abs(literal) - 1, n + j
        elif kind == "lcg":
            for literal in clause:
                yield 2 * (abs(literal) - 1) + (literal < 0), 2 * n + j
        else:
            for literal in clause:
                for other in holders.get(-literal, ()):
                    yield j, other


def _num_nodes(formula: PlainFormula, kind: str) -> int:
    n, m = formula[0], len(formula[1])
    return {"vg": n, "vcg": n + m, "lcg": 2 * n + m, "cg": m}[kind]


def networkx_graph(formula: PlainFormula, kind: str) -> Any:
    """Return a graph of a formula whose clauses hold distinct variables, as a networkx graph."""
    import networkx as nx

    found = nx.Graph()
    found.add_nodes_from(range(_num_nodes(formula, kind)))
    for a, b in _pairs(formula, kind):
        found.add_edge(a, b)
    return found


def pyg_graph(formula: PlainFormula, kind: str) -> Any:
    """Return a graph of a formula whose clauses hold distinct variables, as PyG's ``Data``, each edge in both ways."""
    import torch
    from torch_geometric.data import Data

    edges = set()
    for a, b in _pairs(formula, kind):
        edges.add((a, b))
        edges.add((b, a))
    index = torch.tensor(sorted(edges), dtype=torch.long).reshape(-1, 2).t().contiguous()
    return Data(edge_index=index, num_nodes=_num_nodes(formula, kind))


# --------------------------------------------------------------------------------------------------------------------
# Selection


def closed_gap(
    costs: Sequence[Sequence[float]], choices: Sequence[int], train_costs: Sequence[float], overhead: Sequence[float]
) -> float:
    """Return the closed gap of choices; the single best algorithm is the one with the lowest training cost."""
    best = min(range(len(train_costs)), key=lambda k: train_costs[k])
    chosen = single = virtual = 0.0
    for row, choice, extra in zip(costs, choices, overhead, strict=True):
        chosen += row[choice] + extra
        single += row[best]
        virtual += min(row)
    return (single - chosen) / (single - virtual)
