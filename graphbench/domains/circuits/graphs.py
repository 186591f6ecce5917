"""Converters as graphs, and back: ports, devices and nets are nodes (figure 4 of the paper).

A graph of K devices and M nets has 3 + K + M nodes: the ports GND, VIN and VOUT, the devices, and the nets (the
ports' nets first). Edges join every port to its net and every device to its two nets; an edge from VIN to GND is
the source, one from VOUT to GND for the load. Hence there are 2 K + 5 undirected edges: 15 at K = 5, which are the 30
arcs of table 2; at K = 7 and 10 they are 38 and 50 arcs, where the table has 42 and 56. The 13.0 nodes of the table are
the mean over different random topologies of five devices (:mod:`~.drawing`). Its mean degree of 7.0 does not follow
from the table's nodes and edges by any usual definition: 30 arcs on 13 nodes are 2.3 per node.

Nodes are in canonical order, which is the same for circuits that differ in names and order alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Location
from graphbench.core.errors import ArgumentError
from graphbench.core.kernels import kernel
from graphbench.data.arrays.samples import Samples
from graphbench.domains.circuits.converters import Elements, Operation
from graphbench.domains.circuits.devices import PORTS, TYPES, Circuit, Device, net_names, read_devices
from graphbench.domains.circuits.topology import Ints, canonical_form

KINDS = (*PORTS, *TYPES, "net")
TERMINAL, SOURCE, LOAD = range(3)
OPERATION = ("duty", "vin", "load", *Elements.model_fields)
_NET = KINDS.index("net")
_FIRST_TYPE = len(PORTS)
_USUAL = Operation(duty=0.5)


def _values(operation: Operation) -> list[float]:
    return [getattr(operation, name) for name in OPERATION]


def logarithms(operations: Sequence[Operation]) -> NDArray[np.float64]:
    """Return the values of load and elements over those of the paper as logarithms to base 10, float64 ``[S, 8]``.

    It is -30 without an output capacitor.
    """
    values = np.array([_values(operation) for operation in operations]).reshape(len(operations), -1)
    return np.log10(np.maximum(values[:, 2:] / np.array(_values(_USUAL))[2:], 1e-30))


def circuits_as_samples(types: Ints, nets: Ints, num_nets: Ints, operations: Sequence[Operation]) -> Samples:
    """Return the graphs of circuits of equally many devices in canonical form.

    Args:
        types: int64 ``[S, K]``.
        nets: int64 ``[S, K, 2]``.
        num_nets: int64 ``[S]``.
        operations: The operating conditions of each circuit.

    Returns:
        Samples with the features ``kind`` (nodes, a position in :data:`KINDS`), ``conducting`` (nodes: share of a
        period in which a switch conducts, else 0), ``link`` (edges: terminal, source or load), ``duty`` (graphs),
        ``elements`` (graphs, 8 values: the logarithms to base 10 of load, inductance and so on, divided by the
        values of the paper; -30 without an output capacitor), and ``operation`` (graphs, the values of
        :class:`~.converters.Operation`).
    """
    count, devices = types.shape
    kind, edges, link = _graph_arrays(types, nets, num_nets)
    values = np.array([_values(operation) for operation in operations]).reshape(count, -1)
    nodes = len(PORTS) + devices + num_nets
    duty = values[:, 0]
    on_node = np.repeat(duty, nodes)
    share = np.where(kind == KINDS.index("Sa"), on_node, np.where(kind == KINDS.index("Sb"), 1.0 - on_node, 0.0))
    features = {
        "kind": kind,
        "conducting": share,
        "link": link,
        "duty": duty,
        "elements": logarithms(operations),
        "operation": values,
    }
    return Samples(nodes, np.full(count, 2 * devices + 5), edges, features)


@kernel
def _graph_arrays(
    types: Ints, nets: Ints, num_nets: Ints
) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.uint8]]:
    count, devices = types.shape
    ports = 3
    kind = np.full(count * (ports + devices) + num_nets.sum(), _NET, np.uint8)
    edges = np.empty((count * (2 * devices + 5), 2), np.int32)
    link = np.zeros(edges.shape[0], np.uint8)
    node, edge = 0, 0
    for s in range(count):
        first_net = ports + devices
        for port in range(ports):
            kind[node + port] = port
        for d in range(devices):
            kind[node + ports + d] = _FIRST_TYPE + types[s, d]
        edges[edge], edges[edge + 1], edges[edge + 2] = (0, 1), (0, 2), (0, first_net)
        edges[edge + 3], edges[edge + 4] = (1, first_net + 1), (2, first_net + 2)
        link[edge], link[edge + 1] = SOURCE, LOAD
        edge += 5
        for d in range(devices):
            a, b = nets[s, d, 0], nets[s, d, 1]
            edges[edge] = (ports + d, first_net + min(a, b))
            edges[edge + 1] = (ports + d, first_net + max(a, b))
            edge += 2
        node += ports + devices + num_nets[s]
    return kind, edges, link


def devices_to_sample(devices: Iterable[Sequence[str]], *, duty: float, **values: float) -> Samples:
    """Return the graph of one circuit, with nodes in canonical order.

    Args:
        devices: ``(type, net, net)`` each, as of :func:`~.converters.steady_state`.
        duty: From 0 to 1.
        **values: As of :func:`~.converters.steady_state`.

    Raises:
        ArgumentError: If a device or a value is malformed or out of range.
    """
    circuit, operation = read_devices(devices), Operation.read({"duty": duty, **values})
    types, nets = canonical_form(circuit.types, circuit.nets, circuit.num_nets)
    return circuits_as_samples(types[None], nets[None], np.array([circuit.num_nets]), [operation])


def sample_to_devices(sample: Any, position: int = 0) -> list[Device]:
    """Return the devices of a sample, with internal nets named ``n1``, ``n2``, ...

    Args:
        sample: A PyG ``Data`` of a dataset of circuits, or ``Samples``.
        position: Number of the graph in ``Samples``.

    Raises:
        ArgumentError: If the sample is not the graph of a circuit.
    """
    return circuit_of(sample, position).devices


def circuit_of(sample: Any, position: int = 0) -> Circuit:
    """Return the circuit of a sample; see :func:`sample_to_devices`."""
    kind, edges = _graph_of(sample, position)
    nodes = np.arange(len(kind))
    devices = nodes[(kind >= _FIRST_TYPE) & (kind < _NET)]
    ports = nodes[kind < _FIRST_TYPE]
    ends: dict[int, list[int]] = {int(node): [] for node in (*devices, *ports)}
    for a, b in edges.tolist():
        for node, net in ((a, b), (b, a)):
            if node in ends and kind[net] == _NET:
                ends[node].append(net)
    ends = {node: sorted(set(nets)) for node, nets in ends.items()}
    wrong = [node for node in ends if len(ends[node]) != (1 if kind[node] < _FIRST_TYPE else 2)]
    if wrong or sorted(kind[ports].tolist()) != [0, 1, 2] or not len(devices):
        reason = (
            f"node {wrong[0]} ({KINDS[kind[wrong[0]]]}) is joined to {len(ends[wrong[0]])} nets"
            if wrong
            else ("it has not one port of each kind, or no device")
        )
        raise ArgumentError(f"the graph is no circuit: {reason}; ports are joined to one net, devices to two")
    number = {ends[int(node)][0]: int(kind[node]) for node in ports}
    for net in nodes[kind == _NET].tolist():
        number.setdefault(net, len(number))
    if len(set(number.values())) != len(number):
        raise ArgumentError("the graph is no circuit: two ports are on one net")
    return Circuit(
        kind[devices].astype(np.int64) - _FIRST_TYPE,
        np.array([[number[net] for net in ends[int(node)]] for node in devices], np.int64),
        net_names(len(number)),
    )


def _graph_of(sample: Any, position: int) -> tuple[Ints, Ints]:
    if isinstance(sample, Samples):
        if not 0 <= position < len(sample):
            raise ArgumentError(f"position is {position}, and there are {len(sample)} graphs, numbered from 0")
        kind = sample.values["kind"][sample.rows(Location.NODE, position, position + 1)]
        return np.asarray(kind, np.int64), np.asarray(sample.edges[sample.rows(Location.EDGE, position, position + 1)])
    missing = [name for name in ("kind", "edge_index") if getattr(sample, name, None) is None]
    if missing:
        raise ArgumentError(
            f"the sample has no {missing[0]}; give a sample of a dataset of circuits, got {sample!r:.80}"
        )
    return np.asarray(sample.kind, np.int64), np.asarray(sample.edge_index, np.int64).T


def operation_of(samples: Samples, position: int = 0) -> Operation:
    """Return the operating conditions of a circuit; float32 numbers are read as 7 significant decimal digits."""
    row = np.asarray(samples.values["operation"])[position]
    numbers = [float(f"{value:.7g}") for value in row.tolist()]
    return Operation(**dict(zip(OPERATION, numbers, strict=True)))
