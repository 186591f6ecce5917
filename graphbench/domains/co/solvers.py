"""The interface of solvers.

A solver is a pure function ``(num_nodes, edges, effort, seed) -> Label`` of a graph of at least one node, its edges
(``int32[m, 2]``, each once, ``u < v``, sorted), how many steps it may take, and a number that chooses the random
numbers. Effort counts steps, never time, so a label is the same on every machine; only ``Label.seconds`` is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.rng import seed
from graphbench.core.validation import StrictModel

Edges = NDArray[np.int32]


class Effort(StrictModel):
    """The number of steps that a solver may take: counts, the same on every machine."""


@dataclass(frozen=True)
class Label:
    """A solution and a bound of the optimum.

    Attributes:
        value: Objective of ``solution``: nodes of an independent set, edges of a cut, colours of a colouring.
        solution: ``int32[n]``. Independent set and cut: 1 for a member, 0 else. Colouring: colours 0 to value - 1.
        bound: A proved bound of the optimum: no solution is larger (set, cut), or no colouring has fewer colours.
        solver: Name of the solver.
        seconds: Processor time spent, for reports; not part of a dataset.
        effort: Steps spent by step name.
    """

    value: int
    solution: NDArray[np.int32]
    bound: int
    solver: str
    seconds: float = 0.0
    effort: dict[str, int] = field(default_factory=dict)

    @property
    def proved(self) -> bool:
        """Whether the value is proved to be the optimum."""
        return self.value == self.bound


def checked_edges(num_nodes: int, edges: NDArray[Any]) -> Edges:
    """Return the edges as contiguous int32.

    Raises:
        ValueError: If there are no nodes, or the edges are not pairs ``u < v`` of known nodes, whole numbers, sorted,
            each once.
    """
    if num_nodes < 1:
        raise ValueError(f"a graph of {num_nodes} nodes; give 1 or more")
    array = np.asarray(edges)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"edges have the shape {array.shape}; give [m, 2]")
    if not len(array):
        return np.empty((0, 2), np.int32)
    if array.dtype.kind not in "iu":
        raise ValueError(f"edges are {array.dtype}; give whole numbers, the ids of nodes")
    if array.min() < 0 or array.max() >= num_nodes:
        raise ValueError(f"edges name nodes {array.min()} to {array.max()} of a graph of {num_nodes} nodes")
    result = np.ascontiguousarray(array, np.int32)
    loops = result[result[:, 0] == result[:, 1], 0]
    if len(loops):
        raise ValueError(f"node {loops[0]} is joined to itself; leave loops out")
    rank = result[:, 0].astype(np.int64) * num_nodes + result[:, 1]
    if (result[:, 0] >= result[:, 1]).any() or (np.diff(rank) <= 0).any():
        raise ValueError(
            "edges are not sorted pairs u < v, each once; sort them with np.unique(np.sort(edges, 1), axis=0)"
        )
    return result


def random_state(key: int, number: int) -> NDArray[np.uint64]:
    """Return the random generator of one run of the solver with ``key``."""
    return seed(np.uint64(key), number, 0, 0)


def timed(solve: Callable[..., Label]) -> Callable[..., Label]:
    """Return the solver with its processor time filled in."""

    @wraps(solve)
    def run(*arguments: Any, **named: Any) -> Label:
        start = time.process_time()
        label = solve(*arguments, **named)
        return replace(label, seconds=time.process_time() - start)

    return run
