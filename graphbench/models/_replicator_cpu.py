"""All steps of copies of competing masses, compiled for the CPU; nobody needs gradients of them.

A vector holds one number of ``LANES`` copies. The copies of a graph do not depend on each other, nor do the graphs of a
batch, so one vector of copies of one graph takes all its steps in the cache of a core.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.models._vectors import LANES, empty_vectors, exponential, load, splat, sqrt, store, where_less

_ZERO, _ONE, _TWO, _HALF, _FIVE = (np.float32(value) for value in (0.0, 1.0, 2.0, 0.5, 5.0))
_LEAST, _LARGEST_GAIN, _LEAST_VARIANCE = np.float32(-20.0), np.float32(4.0), np.float32(1e-6)
_LOWEST = np.float32(-np.inf)


@kernel
def run_copies(
    scores: NDArray[np.float32],
    memory: NDArray[np.float32],
    hidden: NDArray[np.float32],
    places: NDArray[np.float32],
    seen: NDArray[np.float32],
    out: NDArray[np.float32],
    bias: NDArray[np.float32],
    gain: float,
    pace: float,
    sources: NDArray[np.int64],
    offsets: NDArray[np.int64],
    ptr: NDArray[np.int64],
    steps: NDArray[np.int64],
) -> None:
    """Let the copies of every graph take their steps, see :class:`~graphbench.models.processors.replicator`.

    Args:
        scores: [N * K], changed; K is a multiple of ``LANES``.
        memory: [N * m * K], changed.
        hidden: [N * h], what the hidden layer reads of the node itself.
        places: [N], or empty if the hidden layer does not read them.
        seen: [h, f], the weights of the hidden layer; f is m + 3, and one more with places.
        out: [1 + m, h], the weights of the changes.
        bias: [1 + m].
        gain: The weight of the standardised mass of the neighbours.
        pace: The sum of the rates of a graph's steps.
        sources: [A]; the arcs into node v start at ``sources[offsets[v]:offsets[v + 1]]``.
        offsets: [N + 1].
        ptr: [B + 1], first node of every graph.
        steps: [B], the steps of every graph.
    """
    kept = bias.size - 1
    vectors = scores.size // max(ptr[-1], 1) // LANES
    most = 0
    for graph in range(steps.size):
        most = max(most, ptr[graph + 1] - ptr[graph])
    own, mass, around = empty_vectors(most + 1), empty_vectors(most + 1), empty_vectors(most + 1)
    numbers, features = empty_vectors(most * kept + 1), empty_vectors(seen.shape[1])
    values, changes = empty_vectors(seen.shape[0]), empty_vectors(1 + kept)
    for graph in range(steps.size):
        first, nodes = ptr[graph], ptr[graph + 1] - ptr[graph]
        rate = np.float32(pace / max(steps[graph], 1))
        for vector in range(vectors):
            for v in range(nodes):
                store(own, v, load(scores, (first + v) * vectors + vector))
                for j in range(kept):
                    store(numbers, v * kept + j, load(memory, ((first + v) * kept + j) * vectors + vector))
            for _ in range(steps[graph]):
                _spread_mass(own, mass, nodes)
                mean, deviation = _see_neighbours(mass, around, first, nodes, sources, offsets)
                for v in range(nodes):
                    difference = (load(around, v) - mean) / deviation
                    low, high = splat(-_LARGEST_GAIN), splat(_LARGEST_GAIN)
                    difference = where_less(difference, low, low, difference)
                    difference = where_less(high, difference, high, difference)
                    store(features, 0, load(own, v) / splat(_FIVE))
                    store(features, 1, difference)
                    store(features, 2, load(around, v))
                    if places.size:
                        store(features, 3, splat(places[first + v]))
                    begin = seen.shape[1] - kept
                    for j in range(kept):
                        store(features, begin + j, load(numbers, v * kept + j))
                    _change(features, hidden, (first + v) * seen.shape[0], seen, out, bias, values, changes)
                    moved = splat(np.float32(gain)) * difference + load(changes, 0)
                    store(own, v, load(own, v) + splat(rate) * moved)
                    for j in range(kept):
                        before = load(numbers, v * kept + j)
                        after = _tangent(load(changes, 1 + j))
                        store(numbers, v * kept + j, before + splat(min(rate, _ONE)) * (after - before))
            for v in range(nodes):
                store(scores, (first + v) * vectors + vector, load(own, v))
                for j in range(kept):
                    store(memory, ((first + v) * kept + j) * vectors + vector, load(numbers, v * kept + j))


@inner
def _spread_mass(own: NDArray[np.float32], mass: NDArray[np.float32], nodes: int) -> None:
    """Subtract the largest score from all of them, bound them from below, and write masses that add up to 1."""
    highest, least, sum_ = splat(_LOWEST), splat(_LEAST), splat(_ZERO)
    for v in range(nodes):
        score = load(own, v)
        highest = where_less(highest, score, score, highest)
    for v in range(nodes):
        score = load(own, v) - highest
        score = where_less(score, least, least, score)
        store(own, v, score)
        weight = exponential(score)
        store(mass, v, weight)
        sum_ = sum_ + weight
    for v in range(nodes):
        store(mass, v, load(mass, v) / sum_)


@inner
def _see_neighbours(
    mass: NDArray[np.float32],
    around: NDArray[np.float32],
    first: int,
    nodes: int,
    sources: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> Any:
    """Write the mass of the neighbours of every node and half its own, and return its mean and its deviation."""
    mean, variance = splat(_ZERO), splat(_ZERO)
    for v in range(nodes):
        seen = splat(_ZERO)
        for k in range(offsets[first + v], offsets[first + v + 1]):
            seen = seen + load(mass, sources[k] - first)
        seen = seen + splat(_HALF) * load(mass, v)
        store(around, v, seen)
        mean = mean + load(mass, v) * seen
    for v in range(nodes):
        apart = load(around, v) - mean
        variance = variance + load(mass, v) * (apart * apart)
    return mean, sqrt(variance + splat(_LEAST_VARIANCE))


@inner
def _change(
    features: NDArray[np.float32],
    hidden: NDArray[np.float32],
    place: int,
    seen: NDArray[np.float32],
    out: NDArray[np.float32],
    bias: NDArray[np.float32],
    values: NDArray[np.float32],
    changes: NDArray[np.float32],
) -> None:
    """Write what a network of one hidden layer makes of the features of a node to ``changes`` [1 + m, LANES]."""
    zero = splat(_ZERO)
    for i in range(seen.shape[0]):
        value = splat(hidden[place + i])
        for f in range(seen.shape[1]):
            value = value + splat(seen[i, f]) * load(features, f)
        store(values, i, where_less(value, zero, zero, value))
    for o in range(bias.size):
        change = splat(bias[o])
        for i in range(seen.shape[0]):
            change = change + splat(out[o, i]) * load(values, i)
        store(changes, o, change)


@inner
def _tangent(x: Any) -> Any:
    """Return the hyperbolic tangents."""
    one, two = splat(_ONE), splat(_TWO)
    return one - two / (one + exponential(two * x))
