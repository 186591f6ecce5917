"""Conflict graphs of formulas: independent sets are choices of literals that do not contradict each other.

A node is a literal of a clause. The literals of one clause are joined, and so is every literal to its negations in
other clauses. A set of k independent nodes satisfies k clauses, so a formula of m clauses can be satisfied if and only
if m nodes are independent (Karp, 1972). Solvers of independent sets are tested on the conflict graphs of SATLIB.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import FormulaError
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts
from graphbench.data.components.file_sources import FileSource, file_source
from graphbench.data.components.folder_splits import NAME
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.formula_files import Formulas, read_formulas

MAX_EDGES = 50_000_000


def conflict_graph(cnf: Cnf) -> tuple[int, NDArray[np.int32]]:
    """Return the number of literals and the edges [m, 2], each once, u < v, sorted.

    Raises:
        FormulaError: If the graph would have more than 50,000,000 edges.
    """
    literals = cnf.literals.astype(np.int64)
    lengths = np.diff(cnf.ptr)
    places = np.bincount(np.abs(literals)), np.bincount(np.abs(literals[literals < 0]))
    negative = np.zeros_like(places[0])
    negative[: len(places[1])] = places[1]
    count = int((negative * (places[0] - negative)).sum() + (lengths * (lengths - 1) // 2).sum())
    if count > MAX_EDGES:
        raise FormulaError(
            f"the conflict graph of {cnf.num_clauses:,} clauses would have {count:,} edges; at most {MAX_EDGES:,}"
        )
    order = np.lexsort((literals, np.abs(literals)))  # the negations of a variable, then its other literals
    first = np.concatenate([[0], np.cumsum(places[0])])
    parts = [np.empty((0, 2), np.int64)]
    for variable in np.flatnonzero(negative * (places[0] - negative)).tolist():
        own = order[first[variable] : first[variable + 1]]
        denied, asserted = own[: negative[variable]], own[negative[variable] :]
        parts.append(np.stack(np.meshgrid(denied, asserted, indexing="ij"), axis=-1).reshape(-1, 2))
    for length in np.unique(lengths).tolist():
        starts = cnf.ptr[:-1][lengths == length]
        inside = np.stack(np.triu_indices(length, 1), axis=1)
        parts.append((starts[:, None, None] + inside[None]).reshape(-1, 2))
    edges = np.unique(np.sort(np.concatenate(parts), axis=1), axis=0)
    return len(literals), edges.astype(np.int32)


def _samples(formulas: Formulas) -> Samples:
    graphs = [conflict_graph(cnf) for cnf in formulas.values()]
    sizes = np.array([nodes for nodes, _ in graphs], np.int64)
    counts = np.array([len(edges) for _, edges in graphs], np.int64)
    return Samples(sizes, counts, np.concatenate([edges for _, edges in graphs]), {NAME.name: Texts.of(formulas)})


def _as_samples(folder: Path) -> dict[str, Samples]:
    return {split: _samples(formulas) for split, formulas in read_formulas(folder).items()}


CONFLICTS: FileSource = file_source("sat.conflicts", _as_samples, also=(NAME,))
"""The source ``sat.conflicts``: DIMACS formulas, such as those of SATLIB, as graphs of combinatorial optimisation."""
