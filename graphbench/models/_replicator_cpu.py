"""All steps of copies of competing masses, compiled for the CPU; nobody needs gradients of them.

A vector holds one number of ``LANES`` copies. The copies of a graph do not depend on each other, nor do the graphs of a
batch, so one vector of copies of one graph takes all its steps in the cache of a core.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.models._vectors import LANES, empty_vectors, exponential, load, splat, sqrt, store, where_less

_ZERO, _ONE, _TWO, _HALF, _FIVE = (np.float32(value) for value in (0.0, 1.0, 2.0, 0.5, 5.0))
_LEAST, _LARGEST_GAIN, _LEAST_VARIANCE = np.float32(-20.0), np.float32(4.0), np.float32(1e-6)
_LOWEST = np.float32(-np.inf)


class Network(NamedTuple):
    """What a step reads of the nodes and of the weights; f is m + 3, and one more with places.

    Attributes:
        hidden: [N * h], what the hidden layer reads of the node itself.
        places: [N], or empty if the hidden layer does not read them.
        seen: [h, f], the weights of the hidden layer.
        out: [1 + m, h], the weights of the changes.
        bias: [1 + m].
        gain: The weight of the standardised mass of the neighbours.
    """

    hidden: NDArray[np.float32]
    places: NDArray[np.float32]
    seen: NDArray[np.float32]
    out: NDArray[np.float32]
    bias: NDArray[np.float32]
    gain: float


class _Work(NamedTuple):
    """Vectors of the copies that take their steps.

    Attributes:
        own: [n, LANES], scores.
        mass: [n, LANES].
        around: [n, LANES], the mass of the neighbours and half the node's mass.
        memory: [n * m, LANES].
        features: [f, LANES], of one node, as are the following ones.
        values: [h, LANES], of the hidden layer.
        changes: [1 + m, LANES].
    """

    own: NDArray[np.float32]
    mass: NDArray[np.float32]
    around: NDArray[np.float32]
    memory: NDArray[np.float32]
    features: NDArray[np.float32]
    values: NDArray[np.float32]
    changes: NDArray[np.float32]


@kernel
def run_copies(
    scores: NDArray[np.float32],
    memory: NDArray[np.float32],
    network: Network,
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
        network: The network of a step.
        pace: The sum of the rates of a graph's steps.
        sources: [A]; the arcs into node v start at ``sources[offsets[v]:offsets[v + 1]]``.
        offsets: [N + 1].
        ptr: [B + 1], first node of every graph.
        steps: [B], the steps of every graph.
    """
    kept = network.bias.size - 1
    vectors = scores.size // max(ptr[-1], 1) // LANES
    most = 0
    for graph in range(steps.size):
        most = max(most, ptr[graph + 1] - ptr[graph])
    work = _make_work(most, network.seen.shape[1], network.seen.shape[0], kept)
    for graph in range(steps.size):
        first, nodes = ptr[graph], ptr[graph + 1] - ptr[graph]
        rate = np.float32(pace / max(steps[graph], 1))
        for vector in range(vectors):
            for v in range(nodes):
                store(work.own, v, load(scores, (first + v) * vectors + vector))
            for row in range(nodes * kept):
                store(work.memory, row, load(memory, (first * kept + row) * vectors + vector))
            for _ in range(steps[graph]):
                _take_step(work, network, rate, first, nodes, sources, offsets)
            for v in range(nodes):
                store(scores, (first + v) * vectors + vector, load(work.own, v))
            for row in range(nodes * kept):
                store(memory, (first * kept + row) * vectors + vector, load(work.memory, row))


@inner
def _make_work(nodes: int, features: int, hidden: int, kept: int) -> _Work:
    return _Work(
        empty_vectors(nodes + 1),
        empty_vectors(nodes + 1),
        empty_vectors(nodes + 1),
        empty_vectors(nodes * kept + 1),
        empty_vectors(features),
        empty_vectors(hidden),
        empty_vectors(1 + kept),
    )


@inner
def _take_step(
    work: _Work,
    network: Network,
    rate: np.float32,
    first: int,
    nodes: int,
    sources: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> None:
    """Let the copies of the graph whose nodes begin at ``first`` take one step."""
    kept = network.bias.size - 1
    low, high, slow = splat(-_LARGEST_GAIN), splat(_LARGEST_GAIN), splat(min(rate, _ONE))
    _spread_mass(work.own, work.mass, nodes)
    mean, deviation = _see_neighbours(work.mass, work.around, first, nodes, sources, offsets)
    for v in range(nodes):
        difference = (load(work.around, v) - mean) / deviation
        difference = where_less(difference, low, low, difference)
        difference = where_less(high, difference, high, difference)
        _change(work, network, v, first + v, difference)
        moved = splat(np.float32(network.gain)) * difference + load(work.changes, 0)
        store(work.own, v, load(work.own, v) + splat(rate) * moved)
        for j in range(kept):
            before = load(work.memory, v * kept + j)
            after = _tangent(load(work.changes, 1 + j))
            store(work.memory, v * kept + j, before + slow * (after - before))


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
def _change(work: _Work, network: Network, v: int, node: int, difference: Any) -> None:
    """Write what the network makes of node v of a graph, ``node`` of the batch, to ``work.changes``."""
    seen, kept, zero = network.seen, network.bias.size - 1, splat(_ZERO)
    store(work.features, 0, load(work.own, v) / splat(_FIVE))
    store(work.features, 1, difference)
    store(work.features, 2, load(work.around, v))
    if network.places.size:
        store(work.features, 3, splat(network.places[node]))
    for j in range(kept):
        store(work.features, seen.shape[1] - kept + j, load(work.memory, v * kept + j))
    for i in range(seen.shape[0]):
        value = splat(network.hidden[node * seen.shape[0] + i])
        for f in range(seen.shape[1]):
            value = value + splat(seen[i, f]) * load(work.features, f)
        store(work.values, i, where_less(value, zero, zero, value))
    for o in range(network.bias.size):
        change = splat(network.bias[o])
        for i in range(seen.shape[0]):
            change = change + splat(network.out[o, i]) * load(work.values, i)
        store(work.changes, o, change)


@inner
def _tangent(x: Any) -> Any:
    """Return the hyperbolic tangents."""
    one, two = splat(_ONE), splat(_TWO)
    return one - two / (one + exponential(two * x))
