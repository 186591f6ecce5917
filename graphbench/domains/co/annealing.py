"""Samplers of independent sets and cuts whose temperature falls: reference points for learned solvers.

Both minimise an energy of binary numbers x_v: for independent sets minus the size of the set plus ``PENALTY`` for every
edge within it, for cuts minus the number of edges between the sides. The change of energy when one node flips depends
on the node's number and on how many of its neighbours are 1, which both samplers keep up to date.

``langevin`` is regularised Langevin simulated annealing (Feng and Yang, ICML 2025): in every step all nodes of a chain
flip independently of each other, node v with probability ``sigmoid((a_v - a_(d)) / t)``, where ``a_v`` is half the
energy that its flip alone would save, ``a_(d)`` the d-th largest of these numbers, and t the temperature. So about d
nodes flip in every step, and a chain leaves a local minimum. ``metropolis`` flips one node at a time, with probability
``min(1, exp(saved energy / t))`` (Kirkpatrick, Gelatt and Vecchi, 1983).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.rng import below, seed, uniform

PENALTY = 1.02
"""Energy of an edge within a set; above 1, so that a set without edges in it has the least energy."""

_ROUNDING = 1e-9  # differences of energies that sums of energies may have by rounding
_CERTAIN = 40.0  # sigmoid and exponential function of a larger number are 1, or 0, in effect

Ints = NDArray[np.int64]
Heads = NDArray[np.int32]
Bits = NDArray[np.int8]


@kernel
def _saved(of_set: bool, bit: int, ones: int, degree: int) -> float:
    """Return the energy that the flip of a node saves, of whose neighbours ``ones`` are 1."""
    if of_set:
        gain = 1.0 - PENALTY * ones  # of joining
        return gain if bit == 0 else -gain
    same = ones if bit == 1 else degree - ones
    return float(2 * same - degree)


@kernel
def _flip(v: int, start: int, first: Ints, node: Heads, bits: Bits, ones: Heads) -> None:
    change = 1 if bits[v] == 0 else -1
    bits[v] += change
    for row in range(first[start + v], first[start + v + 1]):
        ones[node[row] - start] += change


@kernel
def _begin(
    start: int, first: Ints, node: Heads, of_set: bool, state: NDArray[np.uint64], bits: Bits, ones: Heads
) -> float:
    """Start with the empty set or random sides; return the energy."""
    n = bits.shape[0]
    bits[:] = 0
    ones[:] = 0
    energy = 0.0
    if not of_set:
        for v in range(n):
            if below(state, 2):
                energy -= _saved(of_set, bits[v], ones[v], first[start + v + 1] - first[start + v])
                _flip(v, start, first, node, bits, ones)
    return energy


@kernel
def _kept_best(energy: float, least: float, bits: Bits, best: Bits) -> float:
    """Copy a state of less energy than all states before it to ``best``; return the least energy."""
    if energy < least - _ROUNDING:
        best[:] = bits
        return energy
    return least


@kernel
def _threshold(values: NDArray[np.float64], d: int, largest: NDArray[np.float64]) -> float:
    """Return the d-th largest value; ``largest`` is room for d numbers."""
    count = 0
    for value in values:
        if count == d and value <= largest[d - 1]:
            continue
        i = min(count, d - 1)
        while i > 0 and largest[i - 1] < value:
            largest[i] = largest[i - 1]
            i -= 1
        largest[i] = value
        count = min(count + 1, d)
    return largest[count - 1]


@kernel
def langevin(
    ptr: Ints,
    first: Ints,
    node: Heads,
    of_set: bool,
    chains: int,
    steps: int,
    temperature: float,
    distance: int,
    key: np.uint64,
) -> Bits:
    """Return the state of least energy that any chain of a graph was in, int8 ``[N]``.

    Args:
        ptr: int64 ``[G + 1]``, first node of each graph.
        first: int64 ``[N + 1]``, first row of each node's neighbours.
        node: int32 ``[E]``, the neighbours.
        of_set: Whether the energy is that of independent sets; otherwise that of cuts.
        chains: Number of chains of a graph, which share nothing.
        steps: Number of steps of a chain.
        temperature: Temperature of the first step; it falls linearly to zero.
        distance: About so many nodes flip in a step.
        key: Seed of all chains; a graph draws the same numbers in any batch.
    """
    best = np.zeros(ptr[-1], np.int8)
    for g in range(ptr.shape[0] - 1):
        start, n = ptr[g], ptr[g + 1] - ptr[g]
        bits, ones = np.zeros(n, np.int8), np.zeros(n, np.int32)
        half, flips = np.empty(n), np.empty(n, np.int64)
        d = min(distance, n)
        largest = np.empty(d)
        least = math.inf
        for chain in range(chains):
            state = seed(key, chain, 0, 0)
            energy = _begin(start, first, node, of_set, state, bits, ones)
            least = _kept_best(energy, least, bits, best[start : start + n])
            for step in range(steps):
                t = temperature * (1.0 - step / steps)
                for v in range(n):
                    half[v] = 0.5 * _saved(of_set, bits[v], ones[v], first[start + v + 1] - first[start + v])
                level = _threshold(half, d, largest)
                count = 0
                for v in range(n):
                    x = (half[v] - level) / t
                    if x > _CERTAIN or (x > -_CERTAIN and uniform(state) * (1.0 + math.exp(-x)) < 1.0):
                        flips[count] = v
                        count += 1
                for i in range(count):
                    v = flips[i]
                    energy -= _saved(of_set, bits[v], ones[v], first[start + v + 1] - first[start + v])
                    _flip(v, start, first, node, bits, ones)
                least = _kept_best(energy, least, bits, best[start : start + n])
    return best


@kernel
def metropolis(
    ptr: Ints,
    first: Ints,
    node: Heads,
    of_set: bool,
    chains: int,
    sweeps: int,
    hottest: float,
    coldest: float,
    key: np.uint64,
) -> Bits:
    """Return the state of least energy that any chain of a graph was in, int8 ``[N]``.

    Args:
        ptr: As in :func:`langevin`, like the three arguments after it.
        first: See ``ptr``.
        node: See ``ptr``.
        of_set: See ``ptr``.
        chains: Number of chains of a graph, one after the other.
        sweeps: Number of sweeps of a chain; a sweep proposes as many flips as the graph has nodes.
        hottest: Temperature of the first sweep.
        coldest: Temperature of the last sweep; between them it falls by a constant factor.
        key: As in :func:`langevin`.
    """
    best = np.zeros(ptr[-1], np.int8)
    for g in range(ptr.shape[0] - 1):
        start, n = ptr[g], ptr[g + 1] - ptr[g]
        bits, ones = np.zeros(n, np.int8), np.zeros(n, np.int32)
        least = math.inf
        for chain in range(chains):
            state = seed(key, chain, 0, 0)
            energy = _begin(start, first, node, of_set, state, bits, ones)
            least = _kept_best(energy, least, bits, best[start : start + n])
            for sweep in range(sweeps):
                t = hottest * (coldest / hottest) ** (sweep / max(1, sweeps - 1))
                for _ in range(n):
                    v = below(state, n)
                    saved = _saved(of_set, bits[v], ones[v], first[start + v + 1] - first[start + v])
                    if saved >= 0.0 or (saved > -_CERTAIN * t and uniform(state) < math.exp(saved / t)):
                        energy -= saved
                        _flip(v, start, first, node, bits, ones)
                        least = _kept_best(energy, least, bits, best[start : start + n])
    return best


@kernel
def independent_part(ptr: Ints, first: Ints, node: Heads, bits: Bits) -> NDArray[np.int32]:
    """Return an independent set of every graph, int32 ``[N]``.

    While a member of ``bits`` has a neighbour in it, the member of the most such neighbours leaves (of equals the
    first); then every node without a neighbour in the set joins, in the order of the nodes.
    """
    chosen = np.empty(bits.shape[0], np.int32)
    for g in range(ptr.shape[0] - 1):
        start, stop = ptr[g], ptr[g + 1]
        beside = np.zeros(stop - start, np.int64)
        chosen[start:stop] = bits[start:stop]
        for v in range(start, stop):
            for row in range(first[v], first[v + 1]):
                beside[v - start] += bits[node[row]]
        while True:
            worst, most = -1, 0
            for v in range(start, stop):
                if chosen[v] and beside[v - start] > most:
                    worst, most = v, beside[v - start]
            if worst < 0:
                break
            chosen[worst] = 0
            for row in range(first[worst], first[worst + 1]):
                beside[node[row] - start] -= 1
        for v in range(start, stop):
            if not chosen[v] and beside[v - start] == 0:
                chosen[v] = 1
                for row in range(first[v], first[v + 1]):
                    beside[node[row] - start] += 1
    return chosen
