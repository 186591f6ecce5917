"""Random graphs, strings and points: what the samplers draw, number by number as the reference (dm-clrs 2.0.3).

The order of the calls on the generator is part of each function's contract, as it decides the samples of a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from graphbench.domains.clrs.arguments import ArgumentError
from graphbench.kernels import kernel

Array = NDArray[Any]
Floats = NDArray[np.float64]
Point = tuple[float, float]
Probability = float | Sequence[float]
"""The probability of an edge, or several of which each sample draws one."""

LETTERS = 4
COMMUNITIES = 4
FLIP_PROBABILITY = 0.01
"""How probable it is that a pair of nodes in different communities is joined, or a pair in one changed."""
RADIUS = 2.0
HULL_ATTEMPTS = 1000
COLLINEAR_BELOW = 1e-12


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return a value if it is a whole number from ``least`` to ``most``; no upper bound if None.

    Raises:
        ArgumentError: If it is not.
    """
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        span = f"{least} or more" if most is None else f"from {least} to {most}"
        raise ArgumentError(f"{name} is {value!r}; give a whole number, {span}")
    return int(value)


def truncate(value: Any, decimals: int) -> Any:
    """Return floats cut to some digits after the point, towards zero; anything else as it is."""
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return value
    scale = 10**decimals
    cut = np.trunc(array * scale) / scale
    return cut if array.ndim else float(cut)


def _chosen_probability(rng: RandomState, probability: Probability) -> float:
    chosen: Any = probability
    if np.ndim(chosen):
        if not len(chosen):
            raise ArgumentError("edge_probability is empty; give one probability or more")
        chosen = chosen[rng.randint(len(chosen))]
    if not isinstance(chosen, int | float | np.number) or not 0 <= chosen <= 1:
        raise ArgumentError(f"edge_probability is {chosen!r}; give a number from 0 to 1, or several")
    return float(chosen)


def directed_graph(nodes: int, rng: RandomState, probability: Probability) -> Array:
    """Return int64 ``[n, n]`` of 0 and 1: every ordered pair, loops included, with the probability."""
    return rng.binomial(1, _chosen_probability(rng, probability), (nodes, nodes))


def undirected_graph(nodes: int, rng: RandomState, probability: Probability) -> Array:
    """Return symmetric int64 ``[n, n]``: a pair is joined if both directions were drawn, a loop if its one was."""
    arcs = directed_graph(nodes, rng, probability)
    return arcs * arcs.T


def acyclic_graph(nodes: int, rng: RandomState, probability: Probability) -> Array:
    """Return int64 ``[n, n]``: arcs from lower to higher nodes, which are then relabelled at random."""
    arcs = np.triu(directed_graph(nodes, rng, probability), 1)
    return _relabelled(arcs, rng)


def weighted_graph(nodes: int, rng: RandomState, probability: Probability) -> Floats:
    """Return symmetric float64 ``[n, n]``: weights ``sqrt(a b + 0.001)``, with a and b uniform in [0, 1)."""
    edges = undirected_graph(nodes, rng, probability)
    weights = rng.random_sample((nodes, nodes))
    return edges * np.sqrt(weights * weights.T + 1e-3)


def community_graph(nodes: int, rng: RandomState, probability: Probability) -> Floats:
    """Return float64 ``[n, n]`` of 0 and 1: four dense communities, few arcs between them, relabelled at random.

    Nodes are dealt out in equal parts, and the last community takes the rest. Then single pairs flip, none from a later
    to an earlier community, so that no cycle runs through two of them.
    """
    chosen = _chosen_probability(rng, probability)
    share = nodes // COMMUNITIES
    community = np.minimum(np.arange(nodes) // share, COMMUNITIES - 1)
    arcs = np.zeros((nodes, nodes), np.int64)
    for number in range(COMMUNITIES):
        members = slice(number * share, nodes if number == COMMUNITIES - 1 else (number + 1) * share)
        size = arcs[members, members].shape
        arcs[members, members] = rng.binomial(1, chosen, size)
    flips = rng.binomial(1, FLIP_PROBABILITY, (nodes, nodes))
    flips[community[:, None] > community] = 0
    return _relabelled(arcs ^ flips, rng).astype(np.float64)


def _relabelled(graph: Array, rng: RandomState) -> Array:
    order = rng.permutation(len(graph))
    return graph[order[:, None], order]


def random_string(letters: int, rng: RandomState) -> NDArray[np.int64]:
    """Return int64 ``[letters]``: letters 0 .. 3."""
    return rng.randint(LETTERS, size=letters)


def haystack_and_needle(
    length: int, rng: RandomState, needle_length: int | tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return two random strings of ``length`` letters together; the second stands somewhere in the first.

    It never stands at the very end. Its length comes first, then its letters, those of the first, and the place.
    """
    size = _needle_size(length, rng, needle_length)
    needle, haystack = random_string(size, rng), random_string(length - size, rng)
    start = rng.randint(length - 2 * size)
    haystack[start : start + size] = needle
    return haystack, needle


def _needle_size(length: int, rng: RandomState, wanted: int | tuple[int, int]) -> int:
    pair = tuple(wanted) if isinstance(wanted, tuple | list) else (wanted, wanted)
    if len(pair) != 2:
        raise ArgumentError(f"needle_length is {wanted!r}; give a number, or the pair of the shortest and the longest")
    shortest = whole_number("needle_length", pair[0], 1)
    longest = whole_number("needle_length", pair[1], shortest)
    if 2 * longest >= length:
        raise ArgumentError(
            f"needle_length {longest} is too much for length {length}, which is that of both strings; "
            f"give a needle of {(length - 1) // 2} or less, or length {2 * longest + 1} or more"
        )
    return int(rng.randint(shortest, longest + 1))


def two_segments(rng: RandomState) -> tuple[Floats, Floats]:
    """Return the coordinates x and y, float64 ``[4]`` in [0, 1), of the ends of two segments, one after the other.

    A fair coin decides whether they cross; points are drawn until they do, or do not.
    """
    crossing = rng.binomial(1, 0.5) == 1
    while True:
        xs, ys = rng.random_sample((2, 4))
        if _segments_cross(*zip(xs.tolist(), ys.tolist(), strict=True)) == crossing:
            return xs, ys


def _segments_cross(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Return whether a-b crosses c-d, if no three of the points are on a line."""
    return _turns_left(a, c, d) != _turns_left(b, c, d) and _turns_left(a, b, c) != _turns_left(a, b, d)


def _turns_left(a: Point, b: Point, c: Point) -> bool:
    return (c[1] - a[1]) * (b[0] - a[0]) > (b[1] - a[1]) * (c[0] - a[0])


def points_of_a_disc(points: int, rng: RandomState, decimals: int | None = None) -> tuple[Floats, Floats]:
    """Return the coordinates x and y, float64 ``[points]``, of points uniform over the disc of radius 2.

    All are drawn again until no three, cut to ``decimals``, are on a line: then their order by angle is unique.

    Raises:
        ArgumentError: If three are on a line every time.
    """
    for _ in range(HULL_ATTEMPTS):
        angles = rng.uniform(0, 2 * np.pi, points)
        radii = RADIUS * np.sqrt(rng.random_sample(points))
        xs, ys = radii * np.cos(angles), radii * np.sin(angles)
        if decimals is not None:
            xs, ys = truncate(xs, decimals), truncate(ys, decimals)
        if not has_collinear_triple(xs, ys, COLLINEAR_BELOW):
            return xs, ys
    cut = "" if decimals is None else f" cut to {decimals} decimals"
    raise ArgumentError(
        f"in {HULL_ATTEMPTS} draws of {points} points{cut}, three were on a line; give fewer points or more decimals"
    )


@kernel
def has_collinear_triple(xs: Floats, ys: Floats, tolerance: float) -> bool:
    """Return whether the cross product of any three points is smaller than a tolerance; O(n^3)."""
    for i in range(len(xs)):
        for j in range(i + 1, len(xs)):
            dx, dy = xs[j] - xs[i], ys[j] - ys[i]
            for k in range(j + 1, len(xs)):
                if abs(dx * (ys[k] - ys[i]) - dy * (xs[k] - xs[i])) < tolerance:
                    return True
    return False
