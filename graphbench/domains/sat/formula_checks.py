"""Independent checks of drawn formulas: the structure of their graphs and limits of size.

The checks call none of the kernels that draw formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.data.arrays.samples import Samples


def check_formulas(parameters: Any, samples: Samples) -> list[str]:
    """Return the problems of the samples, each naming the formula; an empty list if there are none.

    Args:
        parameters: The parameters of the split (``SatParameters``).
        samples: The variable-clause graphs of the formulas.
    """
    return _problems(samples, {"variables": parameters.variables, "clauses": parameters.clauses})


def structural_problems(samples: Samples) -> list[str]:
    """Return the samples that are no variable-clause graphs, each problem as ``formula <number>: <reason>``."""
    return _problems(samples, {})


def _problems(samples: Samples, limits: Mapping[str, tuple[int, int]]) -> list[str]:
    problems = []
    for i in range(len(samples)):
        nodes = slice(*samples.node_ptr[i : i + 2].tolist())
        edges = slice(*samples.edge_ptr[i : i + 2].tolist())
        is_clause = np.asarray(samples.values["is_clause"][nodes]) != 0
        problem = _problem(limits, is_clause, np.asarray(samples.edges[edges], np.int64))
        if problem is not None:
            problems.append(f"formula {i}: {problem}")
    return problems


def _problem(
    limits: Mapping[str, tuple[int, int]], is_clause: NDArray[np.bool_], edges: NDArray[np.int64]
) -> str | None:
    n, m = int((~is_clause).sum()), int(is_clause.sum())
    if is_clause[:n].any():
        return "a clause comes before a variable"
    if edges.min(initial=0) < 0 or edges.max(initial=-1) >= n + m:
        return "an edge has a node that does not exist"
    if is_clause[edges[:, 0]].any() or not is_clause[edges[:, 1]].all():
        return "an edge does not join a variable to a clause"
    if len(np.unique(edges, axis=0)) < len(edges):
        return "a clause holds a variable twice"
    if len(np.unique(edges[:, 0])) < n:
        return "a variable does not occur"
    if len(np.unique(edges[:, 1])) < m:
        return "a clause is empty"
    counts = {"variables": n, "clauses": m}
    for name, (low, high) in limits.items():
        if not low <= counts[name] <= high:
            return f"{counts[name]} {name}, not {low} to {high}"
    return None
