"""Draw arguments for the algorithms, in the order of draws of the reference (dm-clrs 2.0.3).

Every sampler takes its numbers from a ``numpy.random.RandomState``, whose stream NumPy keeps for ever. With the same
seed, draw j here equals draw j of the reference, bit for bit.

To add a sampler for an algorithm of your own, from ``graphbench.domains.clrs.distributions`` or from NumPy alone::

    @sampler("my_algorithm", least=2)
    def my_arguments(length, rng, *, edge_probability=0.5):
        return (directed_graph(length, rng, edge_probability),)

Its keyword-only parameters are the options that ``sample`` and ``draw`` accept for that algorithm.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.random import RandomState

from graphbench.domains.clrs.algorithm import find_algorithm
from graphbench.domains.clrs.arguments import ArgumentError
from graphbench.domains.clrs.distributions import (
    COMMUNITIES,
    Probability,
    acyclic_graph,
    community_graph,
    directed_graph,
    haystack_and_needle,
    points_of_a_disc,
    random_string,
    truncate,
    two_segments,
    undirected_graph,
    weighted_graph,
    whole_number,
)

MOST_DECIMALS = 15
MULTI_SIZE_PROBABILITIES = tuple(0.1 + 0.1 * i for i in range(9))
MULTI_SIZE_NEEDLE = 8
SPARSE = frozenset({"articulation_points", "bridges", "mst_kruskal"})
"""Algorithms on graphs with fewer edges, as their trajectories are long."""


@dataclass(frozen=True)
class Sampler:
    """How the arguments of an algorithm are drawn.

    Attributes:
        draw: ``(length, rng, **options) -> arguments``.
        least: Shortest length that the sampler and the algorithm can work with.
        options: Names of its options.
    """

    draw: Callable[..., tuple[Any, ...]]
    least: int
    options: tuple[str, ...]


_SAMPLERS: dict[str, Sampler] = {}
_F = TypeVar("_F", bound=Callable[..., tuple[Any, ...]])


def sampler(*algorithms: str, least: int) -> Callable[[_F], _F]:
    """Register a function as the sampler of some algorithms.

    The function takes ``(length, rng)`` and returns the tuple of arguments. Keyword-only parameters are options and
    need defaults. One called ``decimals`` is passed on, for samplers that check numbers once they are truncated.

    Args:
        *algorithms: Names of the algorithms.
        least: Shortest length that the sampler and the algorithms can work with.
    """

    def register(function: _F) -> _F:
        parameters = inspect.signature(function).parameters.values()
        options = tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
        _SAMPLERS.update(dict.fromkeys(algorithms, Sampler(function, least, options)))
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
        count: How many samples.
        seed: Seed of the ``RandomState`` from which all are drawn, one after the other.
        decimals: Digits after the point to which float arguments are cut, towards zero; None for all digits.
        **options: As in ``draw``.

    Returns:
        One tuple per sample, in the order that ``trace`` takes: arrays int64 or float64, single numbers int or float.

    Raises:
        UnknownAlgorithm: If there is no algorithm of that name.
        ArgumentError: If a length, count, seed or option is of the wrong type or out of range.
    """
    draw_one = _ready(algorithm, length, decimals, options)
    rng = RandomState(whole_number("seed", seed, 0, 2**32 - 1))
    return [draw_one(rng) for _ in range(whole_number("count", count, 0))]


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
    return _ready(algorithm, length, decimals, options)(rng)


def draw_multi_size(algorithm: str, length: int, rng: RandomState) -> tuple[Any, ...]:
    """Return the arguments of one sample of the protocol multi_size (Ibarz et al., 2022).

    Graphs draw their edge probability from 0.1, 0.2, .. 0.9, or half of these for those of ``SPARSE``. String matchers
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
) -> Callable[[RandomState], tuple[Any, ...]]:
    """Check a request and return the function that draws one sample."""
    found = _find(algorithm)
    length = _checked_length(algorithm, length)
    for name in options:
        if name not in found.options:
            takes = ", ".join(option for option in found.options if option != "decimals") or "none"
            raise ArgumentError(f"{algorithm} has no option {name!r}; its options: {takes}")
    given = {name: value for name, value in options.items() if value is not None}
    if decimals is None:
        return partial(found.draw, length, **given)
    digits = whole_number("decimals", decimals, 0, MOST_DECIMALS)
    if "decimals" in found.options:
        given["decimals"] = digits

    def draw_and_cut(rng: RandomState) -> tuple[Any, ...]:
        return tuple(truncate(value, digits) for value in found.draw(length, rng, **given))

    return draw_and_cut


@sampler("dfs", least=2)
def _directed(length: int, rng: RandomState, *, edge_probability: Probability = 0.5) -> tuple[Any, ...]:
    return (directed_graph(length, rng, edge_probability),)


@sampler("topological_sort", least=2)
def _acyclic(length: int, rng: RandomState, *, edge_probability: Probability = 0.5) -> tuple[Any, ...]:
    return (acyclic_graph(length, rng, edge_probability),)


@sampler("articulation_points", "bridges", least=2)
def _sparse(length: int, rng: RandomState, *, edge_probability: Probability = 0.2) -> tuple[Any, ...]:
    return (undirected_graph(length, rng, edge_probability),)


@sampler("bfs", least=2)
def _undirected_with_source(length: int, rng: RandomState, *, edge_probability: Probability = 0.5) -> tuple[Any, ...]:
    return undirected_graph(length, rng, edge_probability), rng.randint(length)


@sampler("mst_kruskal", least=2)
def _sparse_weighted(length: int, rng: RandomState, *, edge_probability: Probability = 0.2) -> tuple[Any, ...]:
    return (weighted_graph(length, rng, edge_probability),)


@sampler("floyd_warshall", least=2)
def _weighted(length: int, rng: RandomState, *, edge_probability: Probability = 0.5) -> tuple[Any, ...]:
    return (weighted_graph(length, rng, edge_probability),)


@sampler("mst_prim", "bellman_ford", "dijkstra", least=2)
def _weighted_with_source(length: int, rng: RandomState, *, edge_probability: Probability = 0.5) -> tuple[Any, ...]:
    return weighted_graph(length, rng, edge_probability), rng.randint(length)


@sampler("dag_shortest_paths", least=2)
def _acyclic_with_source(length: int, rng: RandomState, *, edge_probability: Probability = 0.5) -> tuple[Any, ...]:
    arcs = acyclic_graph(length, rng, edge_probability)
    weights = rng.random_sample((length, length))
    return arcs * weights, rng.randint(length)


@sampler("strongly_connected_components", least=COMMUNITIES)
def _communities(length: int, rng: RandomState, *, edge_probability: Probability = 0.5) -> tuple[Any, ...]:
    return (community_graph(length, rng, edge_probability),)


@sampler(
    *("insertion_sort", "bubble_sort", "heapsort", "quicksort", "quickselect", "minimum", "matrix_chain_order"),
    least=2,
)
def _keys(length: int, rng: RandomState) -> tuple[Any, ...]:
    return (rng.random_sample(length),)


@sampler("binary_search", least=2)
def _target_and_sorted_keys(length: int, rng: RandomState) -> tuple[Any, ...]:
    keys = np.sort(rng.random_sample(length))
    return rng.random_sample(), keys


@sampler("find_maximum_subarray_kadane", least=2)
def _signed_keys(length: int, rng: RandomState) -> tuple[Any, ...]:
    return (rng.uniform(-1, 1, length),)


@sampler("optimal_bst", least=2)
def _probabilities(length: int, rng: RandomState) -> tuple[Any, ...]:
    weights = rng.random_sample(2 * length + 1)
    shares = weights / weights.sum()
    return shares[:length], shares[length:]


@sampler("activity_selector", least=2)
def _activities(length: int, rng: RandomState) -> tuple[Any, ...]:
    a, b = rng.random_sample((2, length))
    return np.minimum(a, b), np.maximum(a, b)


@sampler("task_scheduling", least=2)
def _tasks(length: int, rng: RandomState) -> tuple[Any, ...]:
    deadlines = rng.randint(length, size=length) + 1
    return deadlines, rng.random_sample(length)


@sampler("lcs_length", least=2)
def _two_strings(length: int, rng: RandomState) -> tuple[Any, ...]:
    second = length // 2
    return random_string(length - second, rng), random_string(second, rng)


@sampler("naive_string_matcher", "kmp_matcher", least=3)
def _haystack_and_needle(
    length: int, rng: RandomState, *, needle_length: int | tuple[int, int] | None = None
) -> tuple[Any, ...]:
    return haystack_and_needle(length, rng, max(1, length // 5) if needle_length is None else needle_length)


@sampler("segments_intersect", least=1)
def _two_segments(length: int, rng: RandomState) -> tuple[Any, ...]:
    return two_segments(rng)


@sampler("graham_scan", "jarvis_march", least=3)
def _points(length: int, rng: RandomState, *, decimals: int | None = None) -> tuple[Any, ...]:
    return points_of_a_disc(length, rng, decimals)
