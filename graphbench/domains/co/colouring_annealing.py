"""Colourings by annealing: fewer and fewer colours, each time a search for a colouring without conflicts.

The energy of a colouring with a fixed number of colours is its number of conflicts, edges between nodes of one colour;
a move gives one node another colour (fixed-K annealing: Johnson, Aragon, McGeoch and Schevon, 1991).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.neighbours import Neighbours
from graphbench.core.rng import below, uniform

_CERTAIN = 40.0  # exp(-x) of a larger x is 0 in effect


@kernel
def _without_conflict(
    lists: Neighbours, colour: NDArray[np.int32], colours: int, sweeps: int, hottest: float, coldest: float,
    state: NDArray[np.uint64],
) -> bool:  # fmt: skip
    """Recolour nodes until no edge joins equal colours; return whether the sweeps sufficed."""
    n = colour.shape[0]
    beside = np.zeros((n, colours), np.int32)
    conflicts = 0
    for v in range(n):
        for row in range(lists.first[v], lists.first[v + 1]):
            c = colour[lists.node[row]]
            beside[v, c] += 1
            conflicts += c == colour[v]
    conflicts //= 2
    for sweep in range(sweeps):
        t = hottest * (coldest / hottest) ** (sweep / max(1, sweeps - 1))
        for _ in range(n):
            if conflicts == 0:
                return True
            v = below(state, n)
            old, new = colour[v], below(state, colours - 1)
            new += new >= old
            saved = beside[v, old] - beside[v, new]
            if saved >= 0 or (saved > -_CERTAIN * t and uniform(state) < math.exp(saved / t)):
                conflicts -= saved
                colour[v] = new
                for row in range(lists.first[v], lists.first[v + 1]):
                    beside[lists.node[row], old] -= 1
                    beside[lists.node[row], new] += 1
    return conflicts == 0


@kernel
def anneal_colouring(
    lists: Neighbours,
    colour: NDArray[np.int32],
    colours: int,
    sweeps: int,
    hottest: float,
    coldest: float,
    state: NDArray[np.uint64],
) -> NDArray[np.int32]:
    """Return a colouring with fewer colours where annealing finds one, else the given one, int32 ``[n]``.

    Args:
        lists: The neighbours of the nodes.
        colour: int32 ``[n]``, a proper colouring with the colours 0 to ``colours - 1``.
        colours: Number of its colours.
        sweeps: Number of sweeps for each number of colours; a sweep proposes as many moves as the graph has nodes.
        hottest: Temperature of the first sweep, in conflicts.
        coldest: Temperature of the last sweep; between them it falls by a constant factor.
        state: The random generator.
    """
    best = colour.copy()
    while colours > 2:
        fewer = best.copy()
        for v in range(fewer.shape[0]):
            if fewer[v] == colours - 1:
                fewer[v] = below(state, colours - 1)
        if not _without_conflict(lists, fewer, colours - 1, sweeps, hottest, coldest, state):
            break
        best, colours = fewer, colours - 1
    return best
