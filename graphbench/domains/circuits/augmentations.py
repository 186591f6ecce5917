"""Changes of converters that keep the conversion ratio and the efficiency of their steady state.

``phases`` exchanges the two kinds of switches and the two phases of the period: the period begins half-way, which no
mean over a period notices. ``series`` changes the order of devices in series: the same current flows through all of
them, and the voltages across them add up in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.data.components.augmentations import Augmentation, BatchArrays
from graphbench.domains.circuits.devices import TYPES
from graphbench.domains.circuits.graphs import KINDS

_SA, _SB, _NET = (KINDS.index(name) for name in ("Sa", "Sb", "net"))
_FIRST_DEVICE, _LAST_DEVICE = KINDS.index(TYPES[0]), KINDS.index(TYPES[-1])


def exchange_phases(graphs: BatchArrays, random: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Exchange Sa and Sb in every second circuit, by chance, and take one minus the duty cycle.

    ``conducting`` stays: a switch conducts for the same share of the period as before.

    Returns:
        ``kind`` (nodes) and ``duty`` (graphs), in the shapes and dtypes of the batch.
    """
    kind, duty = graphs.values["kind"], graphs.values["duty"]
    exchanged = random.random(graphs.num_graphs) < 0.5
    on_node = exchanged[graphs.graph].reshape(-1, *[1] * (kind.ndim - 1))
    partner = np.where(kind == _SA, _SB, np.where(kind == _SB, _SA, kind)).astype(kind.dtype)
    on_graph = exchanged.reshape(-1, *[1] * (duty.ndim - 1))
    return {"kind": np.where(on_node, partner, kind), "duty": np.where(on_graph, 1 - duty, duty)}


def reorder_series(graphs: BatchArrays, random: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Bring the devices of every chain into a random order, all orders alike likely.

    Devices are in one chain if nets that join two devices and nothing else lead from one to the next.

    Returns:
        ``kind`` and ``conducting`` (nodes), in the shapes and dtypes of the batch.
    """
    kind, conducting = graphs.values["kind"], graphs.values["conducting"]
    source, target = graphs.arcs
    places = _reordered(kind.reshape(-1), source, target, random.random(len(kind)))
    return {"kind": kind[places], "conducting": conducting[places]}


@kernel
def _reordered(
    kind: NDArray[Any], source: NDArray[np.int64], target: NDArray[np.int64], keys: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return int64 ``[N]``: for every node, the node whose device it gets; nodes outside of chains keep their own.

    Args:
        kind: ``[N]``, positions in :data:`~.graphs.KINDS`.
        source: int64 ``[E]``, senders of the arcs, of both directions.
        target: int64 ``[E]``, their receivers.
        keys: float64 ``[N]``, random numbers: the devices of a chain are sorted by them.
    """
    nodes = kind.shape[0]
    degree = np.zeros(nodes, np.int64)
    ends = np.zeros((nodes, 2), np.int64)
    for arc in range(source.shape[0]):
        net = target[arc]
        if degree[net] < 2:
            ends[net, degree[net]] = source[arc]
        degree[net] += 1
    chain = np.arange(nodes)
    for net in range(nodes):
        if kind[net] == _NET and degree[net] == 2:
            first, second = ends[net]
            if min(kind[first], kind[second]) >= _FIRST_DEVICE and max(kind[first], kind[second]) <= _LAST_DEVICE:
                while chain[first] != first:
                    first = chain[first]
                while chain[second] != second:
                    second = chain[second]
                chain[max(first, second)] = min(first, second)
    for node in range(nodes):
        chain[node] = chain[chain[node]]  # a node's chain has a smaller number, so that it is known already
    places = np.arange(nodes)
    order = np.argsort(chain, kind="mergesort")
    begin = 0
    while begin < nodes:
        end = begin + 1
        while end < nodes and chain[order[end]] == chain[order[begin]]:
            end += 1
        if end > begin + 1:
            members = order[begin:end]
            places[members] = members[np.argsort(keys[members])]
        begin = end
    return places


AUGMENTATIONS = {
    "phases": Augmentation(
        "Sa and Sb exchange their places in half of the circuits, and the duty cycle becomes one minus itself.",
        ("kind", "duty"),
        exchange_phases,
    ),
    "series": Augmentation(
        "Devices in series, with nothing else on the nets between them, get a random order.",
        ("kind", "conducting"),
        reorder_series,
    ),
}
