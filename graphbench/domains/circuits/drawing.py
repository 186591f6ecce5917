"""Random topologies, drawn by the method of Fan et al. (2024) until one is valid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below, permutation, seed, uniform
from graphbench.domains.circuits.topology import VALID, Ints, canonical_form, topology_number, verdict

_PORTS = 3
_SKIPPED = 0.8  # probability that a connected terminal is not connected again
MOST_DRAWS = 1_000_000


@kernel
def draw_topologies(
    key: np.uint64, indices: Ints, attempts: Ints, devices: int, low: float, high: float
) -> tuple[Ints, Ints, Ints, Ints]:
    """Draw one valid topology per index, in canonical form, each from ``seed(key, index, attempt, 0)``.

    Args:
        key: Key of the split, uint64.
        indices: int64 ``[S]``, positions in the split.
        attempts: int64 ``[S]``.
        devices: Number K of devices.
        low: Smallest number of a topology (:func:`~.topology.topology_number`).
        high: End of the range of these numbers.

    Returns:
        ``types`` int64 ``[S, K]``, ``nets`` int64 ``[S, K, 2]``, ``num_nets`` int64 ``[S]``, and ``draws`` int64
        ``[S]``, the topologies drawn until one was valid and in the range; 0 if there was none among a million.
    """
    count = indices.shape[0]
    types, nets = np.zeros((count, devices), np.int64), np.zeros((count, devices, 2), np.int64)
    num_nets, draws = np.full(count, _PORTS), np.zeros(count, np.int64)
    for s in range(count):
        state = seed(key, indices[s], attempts[s], 0)
        for draw in range(1, MOST_DRAWS + 1):
            drawn_types, drawn_nets, drawn_count = draw_topology(state, devices)
            if verdict(drawn_types, drawn_nets, drawn_count) != VALID:
                continue
            drawn_types, drawn_nets = canonical_form(drawn_types, drawn_nets, drawn_count)
            if low <= topology_number(drawn_types, drawn_nets) < high:
                types[s], nets[s], num_nets[s], draws[s] = drawn_types, drawn_nets, drawn_count, draw
                break
    return types, nets, num_nets, draws


@kernel
def draw_topology(state: NDArray[np.uint64], devices: int) -> tuple[Ints, Ints, int]:
    """Return types, nets and number of nets of a random topology, which need not be valid.

    Types are uniform. The ports, and then the terminals of the devices, are each joined to a random other one; one that
    is already joined is skipped with probability 0.8. A terminal is not joined to the other terminal of its device, and
    two ports are never joined, directly or through others.
    """
    types = np.empty(devices, np.int64)
    for d in range(devices):
        types[d] = below(state, 4)
    terminals = _PORTS + 2 * devices
    parent = np.arange(terminals)
    joined = np.zeros((terminals, terminals), np.bool_)
    for here in range(terminals):
        if joined[here].any() and uniform(state) < _SKIPPED:
            continue
        for there in permutation(state, terminals):
            if here == there or (here >= _PORTS and there >= _PORTS and (here - _PORTS) // 2 == (there - _PORTS) // 2):
                continue
            if joined[here, there]:
                break
            a, b = _root(parent, here), _root(parent, there)
            if a == b or (_has_port(parent, a) and _has_port(parent, b)):
                continue
            joined[here, there] = joined[there, here] = True
            parent[a] = b
            break
    return _numbered(types, parent)


@inner
def _numbered(types: Ints, parent: Ints) -> tuple[Ints, Ints, int]:
    """Return a topology with numbered nets; the nets of the ports come first."""
    number = np.full(parent.shape[0], -1, np.int64)
    count = 0
    nets = np.empty((types.shape[0], 2), np.int64)
    for terminal in range(parent.shape[0]):
        root = _root(parent, terminal)
        if number[root] < 0:
            number[root] = count
            count += 1
        if terminal >= _PORTS:
            nets[(terminal - _PORTS) // 2, (terminal - _PORTS) % 2] = number[root]
    return types, nets, count


@inner
def _root(parent: Ints, terminal: int) -> int:
    while parent[terminal] != terminal:
        terminal = parent[terminal]
    return terminal


@inner
def _has_port(parent: Ints, root: int) -> bool:
    has_port = False
    for port in range(_PORTS):
        has_port |= _root(parent, port) == root
    return has_port
