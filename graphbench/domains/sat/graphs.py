"""The four graphs of a formula: variables, variables and clauses, literals and clauses, and clauses.

GraphBench, section 3.3.1, defines the variable graph (VG), variable-clause graph (VCG) and literal-clause graph (LCG);
SATzilla defines the clause graph (CG; Nudelman et al. 2004, "Understanding random SAT: beyond the clauses-to-variables
ratio"). A variable that occurs nowhere and an empty clause are isolated nodes. A literal that is repeated in a clause
counts once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import ArgumentError
from graphbench.core.ragged import offsets
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.graph_kernels import (
    CLAUSE,
    LITERAL,
    VARIABLE,
    Relation,
    canonical_codes,
    count_pairs,
    edge_rows,
    incidence_graphs,
    joined,
    joined_pairs,
    literal_codes,
    occurrences,
    sign_counts,
    transposed,
    variable_graphs,
    variable_occurrences,
)

GraphKind = Literal["vg", "vcg", "lcg", "cg"]
MAX_EDGES = 50_000_000
"""Default limit of the number of edges of a graph: 600 MB with the counts of the edges."""

_PAIRS_PER_LITERAL = 16  # up to which the pairs of a formula are stored before equal ones are merged


@dataclass(frozen=True, eq=False)
class FormulaGraph:
    """An undirected graph of a formula.

    Attributes:
        kind: "vg", "vcg", "lcg" or "cg".
        num_nodes: Number N of nodes.
        edges: int32 ``[E, 2]``, every edge once, the smaller node first; sorted and distinct.
        node_arrays: ``type`` int8 ``[N]`` (`VARIABLE`, `CLAUSE` or `LITERAL`) and ``occurrences`` int32 ``[N, 2]``: for
            a variable the number of clauses with its positive and with its negative literal, for a literal the number
            of clauses with it and with its negation, for a clause the number of its positive and negative literals.
        edge_arrays: vcg: ``polarity`` int8 ``[E]``, 1 if the clause holds the variable, -1 if it holds the negation, 0
            if it holds both. vg: ``count`` int32 ``[E]``, the number of clauses that hold both variables. cg: ``count``
            int32 ``[E]``, the number of literals of one clause whose negation the other holds. lcg: ``link`` bool
            ``[E]``, whether the edge joins a literal and its negation.
    """

    kind: GraphKind
    num_nodes: int
    edges: NDArray[np.int32]
    node_arrays: Mapping[str, NDArray[Any]]
    edge_arrays: Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class FormulaGraphs:
    """The graphs of S formulas, one after the other; the node ids of every graph begin at 0.

    Attributes:
        kind: "vg", "vcg", "lcg" or "cg".
        num_nodes: int64 ``[S]``.
        num_edges: int64 ``[S]``.
        edges: int32 ``[E, 2]``, the edges of all graphs, each as in `FormulaGraph`.
        node_arrays: As in `FormulaGraph`, with one row per node of all graphs.
        edge_arrays: As in `FormulaGraph`, with one row per edge of all graphs.
    """

    kind: GraphKind
    num_nodes: NDArray[np.int64]
    num_edges: NDArray[np.int64]
    edges: NDArray[np.int32]
    node_arrays: Mapping[str, NDArray[Any]]
    edge_arrays: Mapping[str, NDArray[Any]]


def graph(cnf: Cnf, kind: GraphKind, max_edges: int = MAX_EDGES, *, link_literals: bool = False) -> FormulaGraph:
    """Return a graph of a formula of n variables and m clauses.

    Args:
        cnf: The formula.
        kind: "vg": node ``v - 1`` is variable v, and variables in a common clause are joined. "vcg": nodes 0 .. n - 1
            are the variables, n .. n + m - 1 the clauses, and a clause is joined with its variables. "lcg": node
            ``2(v - 1)`` is the literal v, the node after it is the literal -v, then come the clauses, and a clause is
            joined with its literals. "cg": the nodes are the clauses, and two are joined if one holds the negation
            of a literal of the other.
        max_edges: Number of edges that the graph may have; it is checked before the edges are stored.
        link_literals: Whether every literal is joined with its negation (lcg only).

    Raises:
        ArgumentError: If the kind is unknown, a literal has no variable, or the graph has more edges than allowed.
    """
    _check_kind(kind, link_literals)
    graphs = None
    if cnf.has_plain_arrays():
        sizes = np.array([cnf.num_variables]), np.array([cnf.num_clauses])
        graphs = _canonical_graphs(kind, *sizes, cnf.ptr, cnf.literals, max_edges, link_literals)
    if graphs is None:
        literals, ptr = cnf.checked()
        sizes = np.array([cnf.num_variables]), np.array([cnf.num_clauses])
        graphs = graphs_of_formulas(*sizes, ptr, literals, kind, max_edges, link_literals=link_literals)
    return FormulaGraph(kind, int(graphs.num_nodes[0]), graphs.edges, graphs.node_arrays, graphs.edge_arrays)


def graphs_of_formulas(
    num_variables: NDArray[np.int64],
    num_clauses: NDArray[np.int64],
    ptr: NDArray[np.int64],
    literals: NDArray[np.int32],
    kind: GraphKind,
    max_edges: int = MAX_EDGES,
    *,
    link_literals: bool = False,
) -> FormulaGraphs:
    """Return the graphs of many formulas that are stored one after the other.

    Args:
        num_variables: int64 ``[S]``, the number of variables of every formula; each formula numbers them from 1.
        num_clauses: int64 ``[S]``, the number of clauses of every formula.
        ptr: int64 ``[m + 1]``, where the literals of each clause begin, over the clauses of all formulas.
        literals: int32 ``[L]``.
        kind: As for `graph`.
        max_edges: Number of edges that all graphs together may have.
        link_literals: As for `graph`.

    Raises:
        ArgumentError: If the kind is unknown, the sizes do not fit, a literal has no variable, or there are more edges
            than allowed.
    """
    _check_kind(kind, link_literals)
    n, m = np.asarray(num_variables, np.int64), np.asarray(num_clauses, np.int64)
    ptr, literals = np.asarray(ptr, np.int64), np.asarray(literals, np.int32)
    sizes_fit = n.shape == m.shape and m.sum() == len(ptr) - 1 and min(n.min(initial=0), m.min(initial=0)) == 0
    if not sizes_fit or ptr[0] != 0 or ptr[-1] != len(literals):
        raise _misfit(n, m, ptr, literals)
    graphs = _canonical_graphs(kind, n, m, ptr, literals, max_edges, link_literals)
    if graphs is not None:
        return graphs
    if (np.diff(ptr) < 0).any():
        raise _misfit(n, m, ptr, literals)
    codes, bad = literal_codes(n, m, ptr, literals)
    if bad >= 0:
        raise ArgumentError(f"the literal {literals[bad]} at position {bad} is no variable of its formula, or negated")
    holders = occurrences(codes, ptr, 2 * int(n.sum()))
    num_edges, edges, edge_arrays = _edges_of(kind, holders, n, m, max_edges, link_literals)
    num_nodes = {"vg": n, "vcg": n + m, "lcg": 2 * n + m, "cg": m}[kind]
    return FormulaGraphs(kind, num_nodes, num_edges, edges, _node_arrays(kind, holders, n, m), edge_arrays)


def _check_kind(kind: GraphKind, link_literals: bool) -> None:
    if kind not in get_args(GraphKind):
        raise ArgumentError(f"unknown kind of graph {kind!r}; give one of {', '.join(get_args(GraphKind))}")
    if link_literals and kind != "lcg":
        raise ArgumentError(f"link_literals has no meaning for {kind!r}, which has no literals; use 'lcg'")


def _misfit(
    n: NDArray[np.int64], m: NDArray[np.int64], ptr: NDArray[np.int64], literals: NDArray[np.int32]
) -> ArgumentError:
    return ArgumentError(
        f"{len(n)} formulas of {m.sum()} clauses do not fit {len(ptr) - 1} clauses of {len(literals)} literals"
    )


def _canonical_graphs(
    kind: GraphKind,
    n: NDArray[np.int64],
    m: NDArray[np.int64],
    ptr: NDArray[np.int64],
    literals: NDArray[np.int32],
    max_edges: int,
    link_literals: bool,
) -> FormulaGraphs | None:
    """Return the graphs if all formulas are in canonical form with short clauses (as stored ones), else None.

    The graphs of variables, of variables and clauses and of literals and clauses follow directly from the clauses.
    Building the lists of occurrences would double the time.
    """
    if kind == "cg":
        return None
    if kind == "vg":
        num_edges, edges, shared, counts, is_canonical = variable_graphs(n, m, ptr, literals, _PAIRS_PER_LITERAL)
        if not is_canonical:
            return None
        _check_limit(len(edges) <= max_edges, kind, max_edges)
        types = np.full(len(counts) // 2, VARIABLE, np.int8)
        node_arrays: dict[str, NDArray[Any]] = {"type": types, "occurrences": counts.reshape(-1, 2)}
        return FormulaGraphs(kind, n, num_edges, edges, node_arrays, {"count": shared})
    if len(literals) + int(n.sum()) * link_literals > max_edges:
        return None
    codes, counts, is_canonical = canonical_codes(n, m, ptr, literals)
    if not is_canonical:
        return None
    num_edges, edges, marks, types, rows = incidence_graphs(n, m, ptr, codes, counts, kind == "lcg", link_literals)
    num_nodes = n + m if kind == "vcg" else 2 * n + m
    edge_arrays = {"polarity": marks} if kind == "vcg" else {"link": marks.view(np.bool_)}
    return FormulaGraphs(kind, num_nodes, num_edges, edges, {"type": types, "occurrences": rows}, edge_arrays)


def _edges_of(
    kind: GraphKind,
    holders: Relation,
    n: NDArray[np.int64],
    m: NDArray[np.int64],
    max_edges: int,
    link_literals: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int32], dict[str, NDArray[Any]]]:
    """Return the number of edges of every formula, the edges, and the edge arrays."""
    clauses = int(m.sum())
    if kind == "lcg":
        _check_limit(len(holders[1]) + int(n.sum()) * link_literals <= max_edges, kind, max_edges)
        num_edges, edges = edge_rows(*holders, 2 * n, m, link_literals)
        return num_edges, edges, {"link": edges[:, 1] < np.repeat(2 * n, num_edges)}
    if kind == "cg":
        starts, larger, counts, kept = joined(*transposed(*holders, clauses), *holders, 1, max_edges)
        _check_limit(kept, kind, max_edges)
        return *edge_rows(starts, larger, m, m[:0], False), {"count": counts}
    first, of_variables, signs = variable_occurrences(*holders)
    if kind == "vcg":
        _check_limit(len(of_variables) <= max_edges, kind, max_edges)
        return *edge_rows(first, of_variables, n, m, False), {"polarity": signs}
    by_clause = transposed(first, of_variables, clauses)
    pairs = count_pairs(by_clause[0])
    if pairs <= _PAIRS_PER_LITERAL * len(of_variables):
        num_edges, edges, counts = joined_pairs(n, *by_clause)
        _check_limit(len(edges) <= max_edges, kind, max_edges)
        return num_edges, edges, {"count": counts}
    starts, larger, counts, kept = joined(first, of_variables, *by_clause, 0, max_edges)
    _check_limit(kept, kind, max_edges)
    return *edge_rows(starts, larger, n, n[:0], False), {"count": counts}


def _check_limit(kept: bool, kind: GraphKind, max_edges: int) -> None:
    if not kept:
        raise ArgumentError(
            f"the graph {kind!r} has more than max_edges = {max_edges:,} edges; raise max_edges, or use 'vcg' or "
            "'lcg', which have one edge per literal"
        )


def _node_arrays(
    kind: GraphKind, holders: Relation, n: NDArray[np.int64], m: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Return the arrays of the nodes, in the order of the formulas."""
    of_variables = np.diff(holders[0]).astype(np.int32).reshape(-1, 2)
    if kind == "vg":
        return {"type": np.full(len(of_variables), VARIABLE, np.int8), "occurrences": of_variables}
    of_clauses = sign_counts(*holders, int(m.sum()))
    if kind == "cg":
        return {"type": np.full(len(of_clauses), CLAUSE, np.int8), "occurrences": of_clauses}
    of_literals = np.stack([of_variables, of_variables[:, ::-1]], axis=1).reshape(-1, 2)
    left, rows, code = (n, of_variables, VARIABLE) if kind == "vcg" else (2 * n, of_literals, LITERAL)
    first, after = offsets(left), offsets(m)
    parts = [rows[:0]]
    for s in range(len(n)):
        parts += [rows[first[s] : first[s + 1]], of_clauses[after[s] : after[s + 1]]]
    sizes = np.stack([left, m], axis=1).ravel()
    types = np.repeat(np.tile(np.array([code, CLAUSE], np.int8), len(n)), sizes)
    return {"type": types, "occurrences": np.concatenate(parts)}
