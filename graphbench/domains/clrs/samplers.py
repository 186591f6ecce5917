"""Draw arguments for the algorithms, in the order of draws of the reference (dm-clrs 2.0.3).

Every sampler takes its numbers from a ``numpy.random.RandomState``, whose stream NumPy keeps for ever. With the same
seed, draw j here equals draw j of the reference, bit for bit.

A sampler for a new algorithm uses ``graphbench.domains.clrs.distributions``, or NumPy alone::

    @sampler("my_algorithm", least=2)
    def my_arguments(length, rng, *, edge_probability=0.5):
        return (directed_graph(length, rng, edge_probability),)

The keyword-only parameters of the sampler are the options that ``sample`` and ``draw`` accept for this algorithm.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.random import RandomState

from graphbench.domains.clrs.algorithm import find_algorithm
from graphbench.domains.clrs.arguments import ArgumentError
from graphbench.domains.clrs.distributions import (
    COMMUNITIES,
    Draw,
    Probability,
    acyclic,
    arcs,
    community_graphs,
    haystack_and_needle,
    in_turn,
    needle_sizes,
    points_of_a_disc,
    random_strings,
    truncate,
    two_segments,
    undirected,
    weighted,
    whole_number,
)

Columns = tuple[Any, ...]
"""Every argument of many samples: arrays ``[count, ...]``, or lists where shapes differ."""

MOST_DECIMALS = 15
MULTI_SIZE_PROBABILITIES = tuple(0.1 + 0.1 * i for i in range(9))
MULTI_SIZE_NEEDLE = 8
SPARSE = frozenset({"articulation_points", "bridges", "mst_kruskal"})
"""Algorithms on graphs with fewer edges, as their trajectories are long."""


@dataclass(frozen=True)
class Sampler:
    """How the arguments of an algorithm are drawn.

    Attributes:
        draw: ``(length, rng, **options) -> arguments``, or ``(length, rng, count, **options) -> Columns``.
        least: Shortest length that the sampler and the algorithm can work with.
        options: Names of its options.
        of_many: Whether ``draw`` draws many samples.
    """

    draw: Callable[..., tuple[Any, ...]]
    least: int
    options: tuple[str, ...]
    of_many: bool = False

    def columns(self, length: int, rng: RandomState, count: int, options: Mapping[str, Any]) -> Columns:
        """Return the arguments of ``count`` samples, drawn one after the other."""
        if self.of_many:
            return self.draw(length, rng, count, **options)
        return tuple(zip(*(self.draw(length, rng, **options) for _ in range(count)), strict=True))


_SAMPLERS: dict[str, Sampler] = {}
_IDLE: list[RandomState] = []
_F = TypeVar("_F", bound=Callable[..., tuple[Any, ...]])


def sampler(*algorithms: str, least: int) -> Callable[[_F], _F]:
    """Register a function as the sampler of some algorithms.

    The function takes ``(length, rng)`` and returns the tuple of arguments. Keyword-only parameters are options and
    need defaults. One called ``decimals`` is passed on, for samplers that check numbers once they are truncated.

    Args:
        *algorithms: Names of the algorithms.
        least: Shortest length that the sampler and the algorithms can work with.
    """
    return _registration(algorithms, least, of_many=False)


def _sampler_of_many(*algorithms: str, least: int) -> Callable[[_F], _F]:
    """Register a function ``(length, rng, count, **options) -> Columns`` as the sampler of some algorithms."""
    return _registration(algorithms, least, of_many=True)


def _registration(algorithms: Sequence[str], least: int, of_many: bool) -> Callable[[_F], _F]:
    def register(function: _F) -> _F:
        parameters = inspect.signature(function).parameters.values()
        options = tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
        _SAMPLERS.update(dict.fromkeys(algorithms, Sampler(function, least, options, of_many)))
        return function

    return register


def sample(
    algorithm: str, length: int, count: int, seed: int, decimals: int | None = None, **options: Any
) -> list[tuple[Any, ...]]:
    """Return the arguments of the first samples that a seed gives; fewer are the start of more.

    Args:
        algorithm: Name, e.g. ``bfs``.
        length: Problem size. It is the number of nodes, but ``optimal_bst`` has one more and ``segments_intersect``
            always has four.
        count: Number of samples.
        seed: Seed of the ``RandomState`` from which all are drawn, one after the other.
        decimals: Digits after the point to which float arguments are cut, towards zero; None for all digits.
        **options: As in ``draw``.

    Returns:
        One tuple per sample, in the order that ``trace`` takes: arrays int64 or float64, single numbers int or float.

    Raises:
        UnknownAlgorithm: If there is no algorithm of that name.
        ArgumentError: If a length, count, seed or option is of the wrong type or out of range.
    """
    draw_all = _ready(algorithm, length, decimals, options)
    with a_generator() as rng:
        rng.seed(whole_number("seed", seed, 0, 2**32 - 1))
        return draw_all(rng, whole_number("count", count, 0))


@contextmanager
def a_generator() -> Iterator[RandomState]:
    """Yield a generator to be seeded, for nobody else while the block runs: making one takes longer than seeding it."""
    try:
        rng = _IDLE.pop()
    except IndexError:
        rng = RandomState(0)
    yield rng
    _IDLE.append(rng)


def draw(
    algorithm: str, length: int, rng: RandomState, *, decimals: int | None = None, **options: Any
) -> tuple[Any, ...]:
    """Return the arguments of one sample, drawn from a generator.

    Args:
        algorithm: Name, e.g. ``bfs``.
        length: Problem size.
        rng: The generator.
        decimals: Digits after the point to which float arguments are cut, towards zero; None for all digits. Points
            whose hull is asked for are cut, drawn again until no three of them lie on a line, and cut once more, as in
            the reference: a second cut can take a last digit, for 1000 x 1.001 is below 1001 in float64.
        **options: Options of that algorithm's sampler. Graphs take ``edge_probability``: a number, or a sequence of
            which one is drawn first. A pair of nodes of an undirected graph is joined with its square. String matchers
            take ``needle_length``: a number, or the pair of the shortest and the longest. None stands for the default.

    Raises:
        UnknownAlgorithm: If there is no algorithm of that name.
        ArgumentError: If the length or an option is of the wrong type or out of range.
    """
    if not isinstance(rng, RandomState):
        raise ArgumentError(f"rng is a {type(rng).__name__}; give a numpy.random.RandomState")
    return _ready(algorithm, length, decimals, options)(rng, 1)[0]


def draw_multi_size(algorithm: str, length: int, rng: RandomState) -> tuple[Any, ...]:
    """Return the arguments of one sample of the protocol multi_size (Ibarz et al., 2022).

    Graphs draw their edge probability from 0.1, 0.2, .. 0.9, or half of these for ``SPARSE``. String matchers
    draw the length of the needle from 1 .. 8, or to the longest that fits where ``length`` is below 17; the protocol
    takes length 20 for them. All else is drawn as in ``draw``.

    Args:
        algorithm: Name, e.g. ``bfs``.
        length: Problem size.
        rng: The generator.

    Raises:
        UnknownAlgorithm: If there is no algorithm of that name.
        ArgumentError: If the length is not a whole number or too small.
    """
    accepted = _find(algorithm).options
    options: dict[str, Any] = {}
    if "edge_probability" in accepted:
        divisor = 2 if algorithm in SPARSE else 1
        options["edge_probability"] = tuple(p / divisor for p in MULTI_SIZE_PROBABILITIES)
    if "needle_length" in accepted:
        length = _checked_length(algorithm, length)
        options["needle_length"] = (1, min(MULTI_SIZE_NEEDLE, (length - 1) // 2))
    return draw(algorithm, length, rng, **options)


def least_length(algorithm: str) -> int:
    """Return the shortest length that an algorithm and its sampler can work with.

    Raises:
        UnknownAlgorithm: If there is no algorithm of that name.
    """
    return _find(algorithm).least


def _find(algorithm: str) -> Sampler:
    if algorithm not in _SAMPLERS:
        find_algorithm(algorithm)
        raise ArgumentError(f"algorithm {algorithm!r} has no sampler; register one with @sampler({algorithm!r}, ...)")
    return _SAMPLERS[algorithm]


def _checked_length(algorithm: str, length: int) -> int:
    return whole_number(f"length of {algorithm}", length, least_length(algorithm))


def _ready(
    algorithm: str, length: int, decimals: int | None, options: Mapping[str, Any]
) -> Callable[[RandomState, int], list[tuple[Any, ...]]]:
    """Check a request and return the function that draws some samples."""
    ready = _find(algorithm)
    length = _checked_length(algorithm, length)
    for name in options:
        if name not in ready.options:
            takes = ", ".join(option for option in ready.options if option != "decimals") or "none"
            raise ArgumentError(f"{algorithm} has no option {name!r}; its options: {takes}")
    settings = {name: value for name, value in options.items() if value is not None}
    digits = None if decimals is None else whole_number("decimals", decimals, 0, MOST_DECIMALS)
    if digits is not None and "decimals" in ready.options:
        settings["decimals"] = digits

    def draw_all(rng: RandomState, count: int) -> list[tuple[Any, ...]]:
        if count == 0:
            return []
        columns = ready.columns(length, rng, count, settings)
        return list(zip(*(_values(column, digits) for column in columns), strict=True))

    return draw_all


def _values(column: Sequence[Any], decimals: int | None) -> Sequence[Any]:
    """Return one argument of every sample, cut to some decimals; single numbers are Python's."""
    if not isinstance(column, np.ndarray):
        return column if decimals is None else [truncate(value, decimals) for value in column]
    cut = column if decimals is None else truncate(column, decimals)
    values: Sequence[Any] = cut.tolist() if cut.ndim == 1 else cut
    return values


@_sampler_of_many("dfs", least=2)
def _directed(length: int, rng: RandomState, count: int, *, edge_probability: Probability = 0.5) -> Columns:
    return tuple(in_turn(count, arcs(length, rng, edge_probability)))


@_sampler_of_many("topological_sort", least=2)
def _acyclic(length: int, rng: RandomState, count: int, *, edge_probability: Probability = 0.5) -> Columns:
    return (acyclic(*in_turn(count, arcs(length, rng, edge_probability), lambda: rng.permutation(length))),)


@_sampler_of_many("articulation_points", "bridges", least=2)
def _sparse(length: int, rng: RandomState, count: int, *, edge_probability: Probability = 0.2) -> Columns:
    return (undirected(*in_turn(count, arcs(length, rng, edge_probability))),)


@_sampler_of_many("bfs", least=2)
def _undirected_with_source(
    length: int, rng: RandomState, count: int, *, edge_probability: Probability = 0.5
) -> Columns:
    drawn, sources = in_turn(count, arcs(length, rng, edge_probability), lambda: rng.randint(length))
    return undirected(drawn), sources


def _weights(length: int, rng: RandomState) -> Draw:
    return lambda: rng.random_sample((length, length))


@_sampler_of_many("mst_kruskal", least=2)
def _sparse_weighted(length: int, rng: RandomState, count: int, *, edge_probability: Probability = 0.2) -> Columns:
    return _weighted(length, rng, count, edge_probability=edge_probability)


@_sampler_of_many("floyd_warshall", least=2)
def _weighted(length: int, rng: RandomState, count: int, *, edge_probability: Probability = 0.5) -> Columns:
    drawn, weights = in_turn(count, arcs(length, rng, edge_probability), _weights(length, rng))
    return (weighted(undirected(drawn), weights),)


@_sampler_of_many("mst_prim", "bellman_ford", "dijkstra", least=2)
def _weighted_with_source(length: int, rng: RandomState, count: int, *, edge_probability: Probability = 0.5) -> Columns:
    draws = arcs(length, rng, edge_probability), _weights(length, rng), lambda: rng.randint(length)
    drawn, weights, sources = in_turn(count, *draws)
    return weighted(undirected(drawn), weights), sources


@_sampler_of_many("dag_shortest_paths", least=2)
def _acyclic_with_source(length: int, rng: RandomState, count: int, *, edge_probability: Probability = 0.5) -> Columns:
    graph = arcs(length, rng, edge_probability), lambda: rng.permutation(length)
    drawn, orders, weights, sources = in_turn(count, *graph, _weights(length, rng), lambda: rng.randint(length))
    return acyclic(drawn, orders) * weights, sources


@_sampler_of_many("strongly_connected_components", least=COMMUNITIES)
def _communities(length: int, rng: RandomState, count: int, *, edge_probability: Probability = 0.5) -> Columns:
    return (community_graphs(length, rng, count, edge_probability),)


@_sampler_of_many(
    *("insertion_sort", "bubble_sort", "heapsort", "quicksort", "quickselect", "minimum", "matrix_chain_order"),
    least=2,
)
def _keys(length: int, rng: RandomState, count: int) -> Columns:
    return (rng.random_sample((count, length)),)


@_sampler_of_many("binary_search", least=2)
def _target_and_sorted_keys(length: int, rng: RandomState, count: int) -> Columns:
    drawn = rng.random_sample((count, length + 1))
    return drawn[:, -1], np.sort(drawn[:, :-1])


@_sampler_of_many("find_maximum_subarray_kadane", least=2)
def _signed_keys(length: int, rng: RandomState, count: int) -> Columns:
    return (rng.uniform(-1, 1, (count, length)),)


@_sampler_of_many("optimal_bst", least=2)
def _probabilities(length: int, rng: RandomState, count: int) -> Columns:
    weights = rng.random_sample((count, 2 * length + 1))
    shares = weights / weights.sum(axis=1, keepdims=True)
    return shares[:, :length], shares[:, length:]


@_sampler_of_many("activity_selector", least=2)
def _activities(length: int, rng: RandomState, count: int) -> Columns:
    drawn = rng.random_sample((count, 2, length))
    return drawn.min(axis=1), drawn.max(axis=1)


@_sampler_of_many("task_scheduling", least=2)
def _tasks(length: int, rng: RandomState, count: int) -> Columns:
    deadlines, weights = in_turn(count, lambda: rng.randint(length, size=length), lambda: rng.random_sample(length))
    return deadlines + 1, weights


@_sampler_of_many("lcs_length", least=2)
def _two_strings(length: int, rng: RandomState, count: int) -> Columns:
    drawn = random_strings(count, length, rng)
    first = length - length // 2
    return drawn[:, :first], drawn[:, first:]


@sampler("naive_string_matcher", "kmp_matcher", least=3)
def _haystack_and_needle(
    length: int, rng: RandomState, *, needle_length: int | tuple[int, int] | None = None
) -> tuple[Any, ...]:
    sizes = needle_sizes(length, max(1, length // 5) if needle_length is None else needle_length)
    return haystack_and_needle(length, rng, sizes)


@_sampler_of_many("segments_intersect", least=1)
def _two_segments(length: int, rng: RandomState, count: int) -> Columns:
    (ends,) = in_turn(count, lambda: two_segments(rng))
    return ends[:, 0], ends[:, 1]


@_sampler_of_many("graham_scan", "jarvis_march", least=3)
def _points(length: int, rng: RandomState, count: int, *, decimals: int | None = None) -> Columns:
    (places,) = in_turn(count, lambda: points_of_a_disc(length, rng, decimals))
    return places[:, 0], places[:, 1]
