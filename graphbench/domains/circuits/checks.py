"""Checks that share no code with the checked functions: graphs by networkx, steady states by time stepping."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from graphbench.data.arrays.samples import Samples
from graphbench.domains.circuits.converters import Operation
from graphbench.domains.circuits.devices import Circuit
from graphbench.domains.circuits.graphs import circuit_of, operation_of

Floats = NDArray[np.float64]

_STEP_DOUBLINGS = 10  # a phase is 2**10 implicit steps; with many more, rounding errors outweigh step errors
_TOLERANCE = 2e-3
_SETTLED, _LONGEST = 5.0, 1e3  # length of simulations: in times of settling, and in seconds
_FORBIDDEN = {
    ("VIN", ("L",), "VOUT"),
    *((port, ("L",), "GND") for port in ("VIN", "VOUT")),
    *((port, (kind,) * length, "GND") for port in ("VIN", "VOUT") for kind in ("Sa", "Sb") for length in (1, 2, 3)),
}


def check_graphs(parameters: Any, samples: Samples) -> list[str]:
    """Return the circuits that break a rule, determined by enumerating paths with networkx."""
    problems = []
    for i in range(len(samples)):
        circuit, operation = circuit_of(samples, i), operation_of(samples, i)
        broken = broken_rules(circuit)
        if len(circuit.types) != parameters.devices:
            broken.append(f"it has {len(circuit.types)} devices, not {parameters.devices}")
        if operation.duty not in parameters.duties or operation.load not in parameters.loads:
            broken.append(f"its duty cycle {operation.duty} or load {operation.load} is none of the split's")
        problems += [f"graph {i}: {problem}" for problem in broken]
    return problems


def broken_rules(circuit: Circuit) -> list[str]:
    """Return the rules of valid converters that a circuit breaks; see :func:`~.topology.verdict`."""
    graph = nx.Graph()
    graph.add_nodes_from(circuit.names)
    for number, (kind, a, b) in enumerate(circuit.devices):  # a device is a node between two nets
        graph.add_node(number, kind=kind)
        graph.add_edges_from([(a, number), (number, b)])
    shorted = [number for number, (_, a, b) in enumerate(circuit.devices) if a == b]
    if shorted:
        return [f"both terminals of device {shorted[0]} are on one net"]
    if not nx.is_connected(graph):
        return ["it is not connected"]
    used, problems = set(), []
    for source, target in (("VIN", "VOUT"), ("VIN", "GND"), ("VOUT", "GND")):
        for path in nx.all_simple_paths(graph, source, target):
            places = [node for node in path if isinstance(node, int)]
            used.update(places)
            chain = tuple(graph.nodes[number]["kind"] for number in places)
            if (source, chain, target) in _FORBIDDEN:
                problems.append(f"the path {source}-{'-'.join(chain)}-{target} is forbidden")
    idle = set(range(len(circuit.types))) - used
    return problems + [f"device {number} is on no path between ports" for number in sorted(idle)]


def contradictions(
    ratio: float,
    efficiency: float,
    circuit: Circuit,
    operation: Operation,
    settling: float,
    *,
    has_power: bool = True,
) -> list[str]:
    """Return in what a simulation differs from a steady state; nothing if it agrees.

    Where the simulation differs at first, its results are extrapolated from steps of two lengths.

    Args:
        ratio: Claimed ratio.
        efficiency: Claimed efficiency.
        circuit: The circuit.
        operation: The operating conditions and element values.
        settling: Seconds until the slowest mode has decayed to 1 %.
        has_power: Whether the source gives power, without which the efficiency is not compared.
    """
    seconds = min(_SETTLED * settling, _LONGEST)
    problems: list[str] = []
    for simulate in (simulated_state, extrapolated_state):
        problems, (simulated_ratio, simulated_efficiency) = [], simulate(circuit, operation, seconds)
        if not math.isclose(simulated_ratio, ratio, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
            problems.append(f"the ratio is {ratio:.5g}, but a simulation gives {simulated_ratio:.5g}")
        if has_power and abs(simulated_efficiency - efficiency) > _TOLERANCE:
            problems.append(f"the efficiency is {efficiency:.5g}, but a simulation gives {simulated_efficiency:.5g}")
        if not problems:
            break
    return problems


def extrapolated_state(circuit: Circuit, operation: Operation, seconds: float) -> tuple[float, float]:
    """Return results of :func:`simulated_state`, extrapolated from steps of two lengths to an error of second order."""
    coarse = simulated_state(circuit, operation, seconds)
    fine = simulated_state(circuit, operation, seconds, _STEP_DOUBLINGS + 1)
    return 2 * fine[0] - coarse[0], 2 * fine[1] - coarse[1]


def simulated_state(
    circuit: Circuit, operation: Operation, seconds: float, doublings: int = _STEP_DOUBLINGS
) -> tuple[float, float]:
    """Return ratio and efficiency at the end of a transient from rest, in implicit Euler steps.

    Every capacitor and inductor is replaced by its companion model, so one linear system on all nets gives a step;
    steps, and then periods, are joined by squaring. The error is of the order of the step.

    Args:
        circuit: The circuit.
        operation: The operating conditions and element values.
        seconds: Minimal length of the transient. Conserved charges drift by rounding errors, so it should not be much
            longer than the circuit takes to settle.
        doublings: A phase is ``2**doublings`` steps.
    """
    devices = [(kind, a, b) for kind, a, b in circuit.devices if kind in "CL"]
    devices += [("C", "VOUT", "GND")] if operation.output_capacitance else []
    values = [operation.capacitance if kind == "C" else operation.inductance for kind, _, _ in devices]
    if operation.output_capacitance:
        values[-1] = operation.output_capacitance
    lengths = [share / operation.frequency for share in (operation.duty, 1.0 - operation.duty)]
    phases = [
        _phase(circuit, operation, devices, values, length, kind, doublings)
        for length, kind in zip(lengths, ("Sa", "Sb"), strict=True)
    ]
    over = phases[1][0] @ phases[0][0]
    for _ in range(math.ceil(math.log2(max(2.0, seconds * operation.frequency)))):
        over = over @ over
    start = over[:, -1]  # from rest: the state is 0, followed by the constant 1
    means = np.zeros(3)
    for change, linear, square in phases:
        means += [linear[0] @ start, linear[1] @ start, start @ square @ start]
        start = change @ start
    mean_out, mean_in, mean_square = means
    source = (1.0 - mean_in) / operation.input_resistance
    power = mean_square / operation.load
    return float(mean_out), float(power / source) if source > 0 else 0.0


def _phase(
    circuit: Circuit,
    operation: Operation,
    devices: list[Any],
    values: list[float],
    length: float,
    on: str,
    doublings: int,
) -> tuple[Floats, Floats, Floats]:
    """Return the change of (state, 1) over a phase, means of VOUT and VIN, and of the square of VOUT, per period."""
    step = length / 2**doublings
    column = {name: number for number, name in enumerate(name for name in circuit.names if name != "GND")}
    count, states = len(column), len(devices)
    incidence = np.zeros((count, states))
    for j, (_, a, b) in enumerate(devices):
        for name, sign in ((a, 1.0), (b, -1.0)):
            if name in column:
                incidence[column[name], j] += sign
    is_c = np.array([kind == "C" for kind, _, _ in devices], bool)
    size = np.array(values)
    companion = np.where(is_c, size / step, step / size)
    conductance = (incidence * companion) @ incidence.T
    for kind, a, b in [*circuit.devices, ("in", "VIN", "GND"), ("load", "VOUT", "GND")]:
        if kind in "CL":
            continue
        ohm = {"in": operation.input_resistance, "load": operation.load}.get(
            kind, operation.on_resistance if kind == on else operation.off_resistance
        )
        ends = np.array([float(name == a) - float(name == b) for name in column])
        conductance += np.outer(ends, ends) / ohm
    source = np.zeros(count)
    source[column["VIN"]] = 1.0 / operation.input_resistance
    # a capacitor drives companion * v back into its nets, an inductor draws its current i
    memory = np.column_stack([incidence * np.where(is_c, companion, -1.0), source])
    nodes = np.linalg.solve(conductance, memory)
    across = incidence.T @ nodes
    change = np.where(is_c[:, None], across, companion[:, None] * across)
    change[~is_c, :states] += np.eye(states)[~is_c]
    change = np.vstack([change, np.eye(states + 1)[-1]])
    rows = nodes[[column["VOUT"], column["VIN"]]] * step * operation.frequency
    square = np.outer(nodes[column["VOUT"]], nodes[column["VOUT"]]) * step * operation.frequency
    for _ in range(doublings):
        rows = rows + rows @ change
        square = square + change.T @ square @ change
        change = change @ change
    return change, rows, square


def same_circuit(first: Circuit, second: Circuit) -> bool:
    """Return whether two circuits differ in names, order and terminals alone, by networkx."""
    graphs = []
    for circuit in (first, second):
        graph = nx.Graph()
        for name in circuit.names:
            graph.add_node(name, kind=name if name in ("VIN", "VOUT", "GND") else "net")
        for number, (kind, a, b) in enumerate(circuit.devices):
            graph.add_node(number, kind=kind)
            graph.add_edges_from([(a, number), (number, b)])
        graphs.append(graph)
    return bool(nx.is_isomorphic(*graphs, node_match=lambda a, b: a["kind"] == b["kind"]))
