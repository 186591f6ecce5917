"""Conversion of formulas to samples and back: a sample is the graph of variables and clauses with signed edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Location
from graphbench.core.kernels import kernel
from graphbench.data.arrays.samples import Samples
from graphbench.domains.sat.cnf import Cnf

IS_CLAUSE, NEGATED, FAMILY = "is_clause", "negated", "family"


def formulas_as_samples(formulas: Sequence[Cnf], families: NDArray[np.int64]) -> Samples:
    """Return the variable-clause graphs of formulas in canonical form.

    The nodes of a graph are its n variables and then its m clauses; an edge joins a clause to each of its variables.

    Args:
        formulas: The formulas.
        families: int64, the family of every formula.

    Returns:
        Samples with the features ``is_clause`` (nodes), ``negated`` (edges) and ``family`` (graphs).
    """
    nodes = [cnf.num_variables + cnf.num_clauses for cnf in formulas]
    edges, negated, is_clause = [], [], []
    for cnf in formulas:
        cnf.checked()
        variable = np.abs(cnf.literals).astype(np.int32) - 1
        clause = np.repeat(np.arange(cnf.num_clauses, dtype=np.int32), cnf.lengths)
        order = np.argsort(variable, kind="stable")  # clauses are sorted already
        edges.append(np.stack((variable, cnf.num_variables + clause), axis=1)[order])
        negated.append(cnf.literals[order] < 0)
        is_clause.append(np.arange(cnf.num_variables + cnf.num_clauses) >= cnf.num_variables)
    values = {
        IS_CLAUSE: _joined(is_clause, np.empty(0, bool)),
        NEGATED: _joined(negated, np.empty(0, bool)),
        FAMILY: np.asarray(families, np.int64),
    }
    sizes = np.array([len(cnf.literals) for cnf in formulas], np.int64)
    return Samples(np.array(nodes, np.int64), sizes, _joined(edges, np.empty((0, 2), np.int32)), values)


def _joined(parts: Sequence[NDArray[Any]], empty: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else empty


def formula_of(samples: Samples, index: int = 0) -> Cnf:
    """Return one formula of samples, in canonical form."""
    one = Samples(
        samples.num_nodes[index : index + 1],
        samples.num_edges[index : index + 1],
        samples.edges[samples.rows(Location.EDGE, index, index + 1)],
        {
            IS_CLAUSE: samples.values[IS_CLAUSE][samples.rows(Location.NODE, index, index + 1)],
            NEGATED: samples.values[NEGATED][samples.rows(Location.EDGE, index, index + 1)],
        },
    )
    variables, _, ptr, literals = formulas_of(one)
    return Cnf(int(variables[0]), literals, ptr)


Formulas = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


def formulas_of(samples: Samples) -> Formulas:
    """Return all formulas of samples, one after the other, in canonical form.

    Returns:
        ``num_variables int64[S]``, ``num_clauses int64[S]``, ``ptr int64[m + 1]`` over the clauses of all formulas, and
        ``literals int32[L]``.
    """
    is_clause = np.asarray(samples.values[IS_CLAUSE]) != 0
    clauses = np.add.reduceat(np.append(is_clause, False).astype(np.int64), samples.node_ptr[:-1])
    clauses[samples.num_nodes == 0] = 0
    variables = samples.num_nodes - clauses
    negated = np.asarray(samples.values[NEGATED]) != 0
    return variables, clauses, *_by_clause(variables, clauses, samples.edge_ptr, np.asarray(samples.edges), negated)


@kernel
def _by_clause(
    variables: NDArray[np.int64],
    clauses: NDArray[np.int64],
    edge_ptr: NDArray[np.int64],
    edges: NDArray[np.integer[Any]],
    negated: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Sort the literals of all formulas by clause; the input is sorted by variable.

    Returns:
        ``ptr`` int64 ``[m + 1]``, where the literals of every clause begin, and the literals int32 ``[L]``.
    """
    ptr = np.zeros(clauses.sum() + 1, np.int64)
    first = 0
    for s in range(len(variables)):
        for e in range(edge_ptr[s], edge_ptr[s + 1]):
            ptr[first + np.int64(edges[e, 1]) - variables[s] + 1] += 1
        first += clauses[s]
    for j in range(first):
        ptr[j + 1] += ptr[j]
    end = ptr[:-1].copy()
    literals = np.empty(len(negated), np.int32)
    first = 0
    for s in range(len(variables)):
        for e in range(edge_ptr[s], edge_ptr[s + 1]):
            clause = first + np.int64(edges[e, 1]) - variables[s]
            literal = np.int32(edges[e, 0]) + np.int32(1)
            literals[end[clause]] = -literal if negated[e] else literal
            end[clause] += 1
        first += clauses[s]
    return ptr, literals
