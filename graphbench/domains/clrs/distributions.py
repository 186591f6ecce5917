"""Random graphs, strings and points, drawn number by number as in the reference (dm-clrs 2.0.3).

The samples of a seed depend on the order of the calls on the generator, so the numbers are drawn sample by sample. All
arrays that follow from these numbers are computed for many samples at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.clrs.arguments import ArgumentError

Array = NDArray[Any]
Floats = NDArray[np.float64]
Draw = Callable[[], Any]
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


def in_turn(count: int, *draws: Draw) -> list[Array]:
    """Call all functions, one after the other, ``count`` times; return the results of each, stacked."""
    rows = [[draw() for draw in draws] for _ in range(count)]
    return [np.array(column) for column in zip(*rows, strict=True)]


def coins(shape: tuple[int, ...], rng: RandomState, probability: Probability) -> Draw:
    """Return a function that draws int64 0 and 1 of some shape, all with the same probability of 1."""
    several: Any = probability if np.ndim(probability) else None
    choices: list[Any] = [probability] if several is None else list(several)
    if not choices:
        raise ArgumentError("edge_probability is empty; give one probability or more")
    for chosen in choices:
        if not isinstance(chosen, int | float | np.number) or not 0 <= chosen <= 1:
            raise ArgumentError(f"edge_probability is {chosen!r}; give a number from 0 to 1, or several")
    if several is None:
        return partial(rng.binomial, 1, probability, shape)
    return lambda: rng.binomial(1, several[rng.randint(len(several))], shape)


def arcs(nodes: int, rng: RandomState, probability: Probability) -> Draw:
    """Return a function that draws int64 ``[n, n]`` of 0 and 1: every ordered pair, loops included."""
    return coins((nodes, nodes), rng, probability)


def undirected(drawn: Array) -> Array:
    """Return symmetric graphs ``[S, n, n]``: a pair is joined if both directions were drawn, a loop if its one was."""
    return drawn * drawn.transpose(0, 2, 1)


def acyclic(drawn: Array, orders: Array) -> Array:
    """Return the arcs from lower to higher nodes, of graphs ``[S, n, n]`` which are then relabelled."""
    return relabelled(np.triu(drawn, 1), orders)


def weighted(edges: Array, weights: Floats) -> Floats:
    """Return edges with the weights ``sqrt(a b + 0.001)``, where a and b are numbers of the two directions."""
    return edges * np.sqrt(weights * weights.transpose(0, 2, 1) + 1e-3)


def relabelled(graphs: Array, orders: Array) -> Array:
    """Return graphs ``[S, n, n]`` whose node i is the node ``orders[s, i]`` of before."""
    return graphs[np.arange(len(graphs))[:, None, None], orders[:, :, None], orders[:, None, :]]


def community_graphs(nodes: int, rng: RandomState, count: int, probability: Probability) -> Floats:
    """Return float64 ``[S, n, n]`` of 0 and 1: four dense communities, few arcs between them, relabelled at random.

    Nodes are dealt out in equal parts, and the last community takes the rest. Then single pairs flip, none from a later
    to an earlier community, so that no cycle runs through two of them.
    """
    community = np.minimum(np.arange(nodes) // (nodes // COMMUNITIES), COMMUNITIES - 1)
    inside = community[:, None] == community
    dense, flips, orders = in_turn(
        count,
        coins((int(inside.sum()),), rng, probability),
        coins((nodes, nodes), rng, FLIP_PROBABILITY),
        lambda: rng.permutation(nodes),
    )
    graphs = np.zeros((count, nodes, nodes), np.int64)
    graphs[:, inside] = dense
    flips[:, community[:, None] > community] = 0
    return relabelled(graphs ^ flips, orders).astype(np.float64)


def random_strings(count: int, letters: int, rng: RandomState) -> NDArray[np.int64]:
    """Return int64 ``[count, letters]``: letters 0 .. 3."""
    return rng.randint(LETTERS, size=(count, letters))


def haystack_and_needle(
    length: int, rng: RandomState, sizes: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return two random strings of ``length`` letters together; the second stands somewhere in the first.

    The second string never stands at the very end of the first. The numbers are drawn in this order: the length of the
    second string (from a range), its letters, the letters of the first string, the position of the second in the first.
    """
    shortest, longest = sizes
    size = shortest if shortest == longest else rng.randint(shortest, longest + 1)  # one choice costs no draw
    letters = rng.randint(LETTERS, size=length)
    needle, haystack = letters[:size], letters[size:]
    start = rng.randint(length - 2 * size)
    haystack[start : start + size] = needle
    return haystack, needle


def needle_sizes(length: int, wanted: int | tuple[int, int]) -> tuple[int, int]:
    """Return the lengths of the shortest and of the longest needle, checked.

    Raises:
        ArgumentError: If they are out of range.
    """
    pair = tuple(wanted) if isinstance(wanted, tuple | list) else (wanted, wanted)
    if len(pair) != 2:
        raise ArgumentError(f"needle_length is {wanted!r}; give a number, or the pair of the shortest and the longest")
    shortest = whole_number("needle_length", pair[0], 1)
    longest = whole_number("needle_length", pair[1], shortest)
    if 2 * longest >= length:
        raise ArgumentError(
            f"needle_length {longest} is too long: both strings together have length {length}; "
            f"give a needle of {(length - 1) // 2} or less, or length {2 * longest + 1} or more"
        )
    return shortest, longest


def two_segments(rng: RandomState) -> tuple[Floats, Floats]:
    """Return the coordinates x and y, float64 ``[4]`` in [0, 1), of the ends of two segments, one after the other.

    A fair coin decides whether they cross; points are drawn until they do, or do not.
    """
    crossing = rng.binomial(1, 0.5) == 1
    while True:
        ends = rng.random_sample((2, 4))
        if _segments_cross(ends) == crossing:
            return ends[0], ends[1]


@kernel
def _segments_cross(ends: Floats) -> bool:
    """Return whether the segments from the first to the second, and from the third to the last end cross.

    That is, if no three of the ends are on a line.
    """
    xs, ys = ends
    first = _turns_left(xs, ys, 0, 2, 3) != _turns_left(xs, ys, 1, 2, 3)
    return first and _turns_left(xs, ys, 0, 1, 2) != _turns_left(xs, ys, 0, 1, 3)


@inner
def _turns_left(xs: Floats, ys: Floats, a: int, b: int, c: int) -> bool:
    return (ys[c] - ys[a]) * (xs[b] - xs[a]) > (ys[b] - ys[a]) * (xs[c] - xs[a])


def points_of_a_disc(points: int, rng: RandomState, decimals: int | None = None) -> tuple[Floats, Floats]:
    """Return the coordinates x and y, float64 ``[points]``, of points uniform over the disc of radius 2.

    All are drawn again until no three, cut to ``decimals``, are on a line: then their order by angle is unique.

    Raises:
        ArgumentError: If three are on a line every time.
    """
    for _ in range(HULL_ATTEMPTS):
        angles = rng.uniform(0, 2 * np.pi, points)
        radii = RADIUS * np.sqrt(rng.random_sample(points))
        places = np.array([radii * np.cos(angles), radii * np.sin(angles)])
        xs, ys = places if decimals is None else truncate(places, decimals)
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
