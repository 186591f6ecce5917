"""Formulas as samples, and back: the graph of variables and clauses, whose edges are signed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.data.samples import Samples
from graphbench.domains.sat.cnf import Cnf

IS_CLAUSE, NEGATED, FAMILY = "is_clause", "negated", "family"


def formulas_as_samples(formulas: Sequence[Cnf], families: NDArray[np.int64]) -> Samples:
    """Return the variable-clause graphs of formulas in canonical form.

    The nodes of a graph are its n variables and then its m clauses; an edge joins a clause to each of its variables.

    Args:
        formulas: The formulas.
        families: int64, one per formula, its family.

    Returns:
        Samples with the features ``is_clause`` (nodes), ``negated`` (edges) and ``family`` (graphs).
    """
    nodes = [cnf.num_variables + cnf.num_clauses for cnf in formulas]
    edges, negated, is_clause = [], [], []
    for cnf in formulas:
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
    first, last = samples.node_ptr[index], samples.node_ptr[index + 1]
    start, stop = samples.edge_ptr[index], samples.edge_ptr[index + 1]
    is_clause = np.asarray(samples.values[IS_CLAUSE][first:last])
    n = int(len(is_clause) - is_clause.sum())
    edges = np.asarray(samples.edges[start:stop])
    clause = edges[:, 1].astype(np.int64) - n
    sign = np.where(np.asarray(samples.values[NEGATED][start:stop]) != 0, -1, 1)
    literals = (sign * (edges[:, 0].astype(np.int64) + 1)).astype(np.int32)
    order = np.argsort(clause, kind="stable")
    ptr = np.zeros(len(is_clause) - n + 1, np.int64)
    np.cumsum(np.bincount(clause, minlength=len(is_clause) - n), out=ptr[1:])
    return Cnf(n, literals[order], ptr)
