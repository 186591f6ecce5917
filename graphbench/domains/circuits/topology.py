"""Topologies in compiled code: canonical form, and the rules of valid converters.

Two circuits are the same if a renaming of internal nets, a change of the order of the devices, and swaps of the two
terminals of devices turn one into the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.circuits.devices import GND, INDUCTOR, SA, SB, VIN, VOUT

VALID, SHORTED, UNCONNECTED, REDUNDANT, FORBIDDEN = range(5)
VERDICTS = ("valid", "shorted", "unconnected", "redundant", "forbidden")

_PORTS = 3
_LONGEST_SWITCHES = 3  # longest chain of switches of one phase that is looked for
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT, _SHIFT_11 = np.uint64(29), np.uint64(11)

Ints = NDArray[np.int64]


@kernel
def verdict(types: Ints, nets: Ints, num_nets: int) -> int:
    """Return whether a circuit is a valid converter, as a position in :data:`VERDICTS`.

    The rules follow Fan et al. (Graph-transformer-based surrogate model, 2024):

    - no device has both terminals on one net (``shorted``);
    - every port has a device, and a path joins every two ports (``unconnected``);
    - no path between two ports is one of VIN-L-GND, VIN-L-VOUT, VOUT-L-GND, or runs from VIN or VOUT to GND through
      one to three switches that all conduct at the same time and nothing else (``forbidden``);
    - every device lies on a path between two ports that meets no net twice (``redundant``).

    Args:
        types: int64 ``[K]``, types of devices.
        nets: int64 ``[K, 2]``, their nets; GND, VIN and VOUT are 0, 1 and 2.
        num_nets: Number of nets.
    """
    for d in range(types.shape[0]):
        if nets[d, 0] == nets[d, 1]:
            return SHORTED
    used = np.zeros(types.shape[0], np.bool_)
    forbidden = False
    for source, target in ((VIN, VOUT), (VIN, GND), (VOUT, GND)):
        has_path, bad = _walk_paths(types, nets, num_nets, source, target, used)
        if not has_path:
            return UNCONNECTED
        forbidden |= bad
    if forbidden:
        return FORBIDDEN
    return VALID if used.all() else REDUNDANT


@inner
def _walk_paths(
    types: Ints, nets: Ints, num_nets: int, source: int, target: int, used: NDArray[np.bool_]
) -> tuple[bool, bool]:
    """Walk all paths between two nets that meet no net twice, and mark the devices on them in ``used``.

    Returns:
        Whether there is a path, and whether one is forbidden.
    """
    count = types.shape[0]
    on_path = np.zeros(num_nets, np.bool_)
    net = np.empty(num_nets, np.int64)
    device = np.empty(num_nets, np.int64)  # the device tried last at every net of the path
    net[0], device[0], on_path[source] = source, -1, True
    depth, has_path, bad = 0, False, False
    while depth >= 0:
        device[depth] += 1
        here, d = net[depth], device[depth]
        if d == count:
            on_path[here] = False
            depth -= 1
            continue
        if nets[d, 0] == here:
            there = nets[d, 1]
        elif nets[d, 1] == here:
            there = nets[d, 0]
        else:
            continue
        if there == target:
            has_path = True
            for i in range(depth + 1):
                used[device[i]] = True
            bad |= _is_forbidden(types, device[: depth + 1], target)
        elif not on_path[there]:
            depth += 1
            net[depth], device[depth], on_path[there] = there, -1, True
    return has_path, bad


@inner
def _is_forbidden(types: Ints, path: Ints, target: int) -> bool:
    length = path.shape[0]
    first = types[path[0]]
    if first == INDUCTOR:
        return length == 1
    if target != GND or length > _LONGEST_SWITCHES or (first != SA and first != SB):
        return False
    same = True
    for i in range(1, length):
        same &= types[path[i]] == first
    return same


@kernel
def canonical_form(types: Ints, nets: Ints, num_nets: int) -> tuple[Ints, Ints]:
    """Return types and nets of the canonical circuit: equal for circuits that are the same.

    Internal nets are sorted into classes by colour refinement; of all orders of the nets within their classes, the one
    with the smallest sorted list of devices is taken.

    Returns:
        ``types`` int64 ``[K]`` and ``nets`` int64 ``[K, 2]``, the smaller net first; devices are sorted by type, first
        and second net.
    """
    count, internal = types.shape[0], num_nets - _PORTS
    colour = _refined_colours(types, nets, num_nets)
    order = np.argsort(colour[_PORTS:], kind="mergesort")
    label = np.empty(num_nets, np.int64)
    label[:_PORTS] = np.arange(_PORTS)
    best = np.empty(0, np.int64)
    tried = np.full(internal + 1, -1, np.int64)  # the net that is tried at every position
    taken = np.zeros(internal, np.bool_)
    depth = 0
    while depth >= 0:
        if depth == internal:
            codes = _sorted_codes(types, nets, label, num_nets)
            if best.shape[0] == 0 or _is_less(codes, best):
                best = codes
            depth -= 1
            continue
        if tried[depth] >= 0:
            taken[tried[depth]] = False
        next_net = tried[depth] + 1
        while next_net < internal and (taken[next_net] or colour[_PORTS + next_net] != colour[_PORTS + order[depth]]):
            next_net += 1
        if next_net == internal:
            tried[depth] = -1
            depth -= 1
            continue
        tried[depth], taken[next_net], label[_PORTS + next_net] = next_net, True, _PORTS + depth
        depth += 1
    canonical_types, canonical_nets = np.empty(count, np.int64), np.empty((count, 2), np.int64)
    for d in range(count):
        canonical_types[d] = best[d] // (num_nets * num_nets)
        canonical_nets[d, 0] = best[d] // num_nets % num_nets
        canonical_nets[d, 1] = best[d] % num_nets
    return canonical_types, canonical_nets


@kernel
def topology_number(types: Ints, nets: Ints) -> float:
    """Return a number from 0 to 1 that a canonical form fixes, and that is uniform over all topologies.

    Splits with disjoint ranges of this number have no topology in common.
    """
    value = np.uint64(types.shape[0])
    for d in range(types.shape[0]):
        for part in (types[d], nets[d, 0], nets[d, 1]):
            value = _mixed(value ^ (np.uint64(part + 1) * _MIX))
    return float(value >> _SHIFT_11) * 2.0**-53


@kernel
def _mixed(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> _SHIFT)) * _MIX_2 + _MIX
    return (value ^ (value >> _SHIFT)) * _MIX


@inner
def _refined_colours(types: Ints, nets: Ints, num_nets: int) -> NDArray[np.uint64]:
    """Return a colour per net, uint64, that depends on the surroundings of the net alone, not on its number."""
    colour = np.empty(num_nets, np.uint64)
    for net in range(num_nets):
        colour[net] = np.uint64(min(net, _PORTS))
    for _ in range(num_nets):
        fresh = np.empty(num_nets, np.uint64)
        for net in range(num_nets):
            fresh[net] = _mixed(colour[net])
        for d in range(types.shape[0]):
            a, b = nets[d, 0], nets[d, 1]
            kind = np.uint64(types[d] + 1) * _MIX
            fresh[a] += _mixed(colour[b] ^ kind)
            fresh[b] += _mixed(colour[a] ^ kind)
        colour = fresh
    return colour


@inner
def _sorted_codes(types: Ints, nets: Ints, label: Ints, num_nets: int) -> Ints:
    codes = np.empty(types.shape[0], np.int64)
    for d in range(types.shape[0]):
        a, b = label[nets[d, 0]], label[nets[d, 1]]
        codes[d] = (types[d] * num_nets + min(a, b)) * num_nets + max(a, b)
    return np.sort(codes)


@inner
def _is_less(first: Ints, second: Ints) -> bool:
    for i in range(first.shape[0]):
        if first[i] != second[i]:
            return first[i] < second[i]
    return False
