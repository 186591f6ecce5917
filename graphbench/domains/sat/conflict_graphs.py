"""Conflict graphs of formulas: independent sets are choices of literals that do not contradict each other.

A node is a literal of a clause. The literals of one clause are joined, and so is every literal to its negations in
other clauses. A set of k independent nodes satisfies k clauses, so a formula of m clauses can be satisfied if and only
if m nodes are independent (Karp, 1972). Solvers of independent sets are tested on the conflict graphs of SATLIB.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from graphbench.core.errors import FormulaError
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.file_sources import FileSource, file_source
from graphbench.data.components.folder_splits import NAME, WHOLE, Graph, graphs_as_samples
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.formula_files import read_formulas

MAX_EDGES = 50_000_000


def conflict_graph(cnf: Cnf) -> Graph:
    """Return the conflict graph of a formula; the nodes are the literals in the order of the clauses.

    Raises:
        FormulaError: If the graph would have more than 50,000,000 edges.
    """
    literals = cnf.literals.astype(np.int64)
    lengths = np.diff(cnf.ptr)
    occurrences = np.bincount(np.abs(literals))
    negative = np.bincount(np.abs(literals[literals < 0]), minlength=len(occurrences))
    opposed = negative * (occurrences - negative)
    count = int(opposed.sum() + (lengths * (lengths - 1) // 2).sum())
    if count > MAX_EDGES:
        raise FormulaError(
            f"the conflict graph of {cnf.num_clauses:,} clauses would have {count:,} edges; at most {MAX_EDGES:,}"
        )
    order = np.lexsort((literals, np.abs(literals)))  # the negations of a variable, then its other literals
    first = np.concatenate([[0], np.cumsum(occurrences)])
    parts = [np.empty((0, 2), np.int64)]
    for variable in np.flatnonzero(opposed).tolist():
        nodes = order[first[variable] : first[variable + 1]]
        denied, asserted = nodes[: negative[variable]], nodes[negative[variable] :]
        parts.append(np.stack(np.meshgrid(denied, asserted, indexing="ij"), axis=-1).reshape(-1, 2))
    for length in np.unique(lengths).tolist():
        starts = cnf.ptr[:-1][lengths == length]
        inside = np.stack(np.triu_indices(length, 1), axis=1)
        parts.append((starts[:, None, None] + inside[None]).reshape(-1, 2))
    edges = np.unique(np.sort(np.concatenate(parts), axis=1), axis=0)
    return len(literals), edges.astype(np.int32)


def _as_samples(folder: Path) -> dict[str, Samples]:
    return {
        split: graphs_as_samples({name: conflict_graph(cnf) for name, cnf in formulas.items()})
        for split, formulas in read_formulas(folder, whole=WHOLE).items()
    }


CONFLICTS: FileSource = file_source("sat.conflicts", _as_samples, also=(NAME,))
"""The source ``sat.conflicts``: DIMACS formulas, such as those of SATLIB, as graphs of combinatorial optimisation."""
