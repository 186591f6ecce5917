"""Circuits as directed graphs and back, in compiled code.

The nodes of a graph are the inputs, then the ANDs, then the outputs, and at last the constant false, if the circuit
uses it. An arc leads from a driver to the driven node, and may be inverted. An AND has two arcs, an output one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.chip_design.aig_kernels import Ints, Literals

INPUT, AND, OUTPUT, CONSTANT = range(4)
GATES = ("input", "and", "output", "constant")

(
    WELL_FORMED,
    WRONG_GATE,
    WRONG_ARC,
    WRONG_INVERSION,
    DRIVEN_INPUT,
    DRIVING_OUTPUT,
    WRONG_FAN_IN,
    UNDRIVEN_OUTPUT,
    LOOP,
) = range(9)
FAULTS = (
    "",
    "a node is neither input, AND, output nor constant",
    "an arc names a node that the graph does not have",
    "an inversion bit is neither 0 nor 1",
    "an input or a constant is driven",
    "an output drives a node",
    "an AND has not two fan-ins",
    "an output has not one driver",
    "the ANDs form a loop",
)


@inner
def _driver(first_and: Any, ands: Any, fanins: Literals, first_output: Any, outputs: Literals, arc: Any) -> Any:
    """Return the literal from which an arc comes: the arcs of the ANDs are counted first, then the outputs' arcs."""
    if arc < 2 * ands:
        return np.int64(fanins[first_and + arc // 2, arc % 2])
    return np.int64(outputs[first_output + arc - 2 * ands])


@kernel
def graphs_of_circuits(
    num_inputs: Ints, and_ptr: Ints, fanins: Literals, output_ptr: Ints, outputs: Literals
) -> tuple[Ints, Ints, NDArray[np.int32], NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the graphs of a run of circuits.

    Returns:
        ``num_nodes`` int64 ``[S]``, ``num_edges`` int64 ``[S]``, ``edges`` int32 ``[E, 2]`` sorted by (source, target)
        within a graph, ``gates`` uint8 ``[N]``, and ``inverted`` uint8 ``[E]``. Both arcs of an AND that has twice the
        same fan-in are listed.
    """
    count = num_inputs.shape[0]
    num_nodes, num_edges = np.empty(count, np.int64), np.empty(count, np.int64)
    for s in range(count):
        ands, m = and_ptr[s + 1] - and_ptr[s], output_ptr[s + 1] - output_ptr[s]
        constant: Any = 0
        for k in range(and_ptr[s], and_ptr[s + 1]):
            if fanins[k, 0] < 2 or fanins[k, 1] < 2:
                constant = 1
        for o in range(output_ptr[s], output_ptr[s + 1]):
            if outputs[o] < 2:
                constant = 1
        num_nodes[s] = num_inputs[s] + ands + m + constant
        num_edges[s] = 2 * ands + m
    gates = np.empty(num_nodes.sum(), np.uint8)
    edges = np.empty((num_edges.sum(), 2), np.int32)
    inverted = np.empty(num_edges.sum(), np.uint8)
    positions = np.zeros(max(num_nodes.max(), 1) + 1 if count else 1, np.int64)
    node, edge = 0, 0
    for s in range(count):
        n, m = num_inputs[s], output_ptr[s + 1] - output_ptr[s]
        ands, last = and_ptr[s + 1] - and_ptr[s], num_nodes[s] - 1
        gates[node : node + n] = INPUT
        gates[node + n : node + n + ands] = AND
        gates[node + n + ands : node + n + ands + m] = OUTPUT
        gates[node + n + ands + m : node + num_nodes[s]] = CONSTANT
        positions[: num_nodes[s] + 1] = 0
        for arc in range(2 * ands + m):  # two passes: count the arcs of every source, then place them
            literal = (
                fanins[and_ptr[s] + arc // 2, arc % 2] if arc < 2 * ands else outputs[output_ptr[s] + arc - 2 * ands]
            )
            positions[(literal // 2 - 1 if literal > 1 else last) + 1] += 1
        for v in range(num_nodes[s]):
            positions[v + 1] += positions[v]
        for arc in range(2 * ands + m):
            literal = (
                fanins[and_ptr[s] + arc // 2, arc % 2] if arc < 2 * ands else outputs[output_ptr[s] + arc - 2 * ands]
            )
            source = literal // 2 - 1 if literal > 1 else last
            at = edge + positions[source]
            positions[source] += 1
            edges[at, 0], edges[at, 1] = source, n + (arc // 2 if arc < 2 * ands else arc - ands)
            inverted[at] = literal & 1
        node += num_nodes[s]
        edge += num_edges[s]
    return num_nodes, num_edges, edges, gates, inverted


@kernel
def circuits_of_graphs(
    node_ptr: Ints, edge_ptr: Ints, edges: NDArray[Any], gates: NDArray[Any], inverted: NDArray[Any]
) -> tuple[NDArray[np.uint8], Ints, Ints, Literals, Ints, Literals]:
    """Return the circuits of graphs whose nodes and arcs may be in any order.

    Inputs and outputs are numbered in the order of their nodes. Every AND and output is kept as it stands, whether an
    output needs it or not. Several constants are one.

    Args:
        node_ptr: int64 ``[S + 1]``.
        edge_ptr: int64 ``[S + 1]``.
        edges: integers ``[E, 2]``, nodes count within the graph.
        gates: integers ``[N]``.
        inverted: numbers ``[E]``.

    Returns:
        ``fault`` uint8 ``[S]``, by its place in :data:`FAULTS`; ``num_inputs``, ``and_ptr``, ``fanins``,
        ``output_ptr`` and ``outputs`` of the circuits, which are empty where there is a fault.
    """
    count = node_ptr.shape[0] - 1
    fault = np.zeros(count, np.uint8)
    num_inputs = np.zeros(count, np.int64)
    and_ptr, output_ptr = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    most_ands, most_outputs, most = np.int64(0), np.int64(0), np.int64(1)
    for s in range(count):
        most = max(most, node_ptr[s + 1] - node_ptr[s])
        for v in range(node_ptr[s], node_ptr[s + 1]):
            most_ands += gates[v] == AND
            most_outputs += gates[v] == OUTPUT
    fanins, outputs = np.empty((most_ands, 2), np.int32), np.empty(most_outputs, np.int32)
    driver = np.empty((most, 2), np.int64)  # literals of the graph's nodes: 2 * node + inverted
    degree, literal = np.empty(most, np.int64), np.empty(most, np.int64)
    stack = np.empty(most, np.int64)
    for s in range(count):
        first, size = node_ptr[s], node_ptr[s + 1] - node_ptr[s]
        graph_edges, bits = edges[edge_ptr[s] : edge_ptr[s + 1]], inverted[edge_ptr[s] : edge_ptr[s + 1]]
        kinds = gates[first : first + size]
        fault[s] = _read_arcs(kinds, graph_edges, bits, driver, degree)
        n, a, o = np.int64(0), and_ptr[s], output_ptr[s]
        if not fault[s]:
            n, a = _number_nodes(kinds, driver, literal, stack, fanins, a)
            if a < 0:
                fault[s], n, a = LOOP, np.int64(0), and_ptr[s]
            else:
                for v in range(size):
                    if kinds[v] == OUTPUT:
                        outputs[o] = literal[driver[v, 0] >> 1] ^ (driver[v, 0] & 1)
                        o += 1
        num_inputs[s], and_ptr[s + 1], output_ptr[s + 1] = n, a, o
    return fault, num_inputs, and_ptr, fanins[: and_ptr[count]], output_ptr, outputs[: output_ptr[count]]


@kernel
def _read_arcs(
    gates: NDArray[Any], edges: NDArray[Any], inverted: NDArray[Any], driver: NDArray[np.int64], degree: Ints
) -> int:
    """Collect the drivers of every node of one graph, and return its fault, if there is one other than a loop."""
    size = gates.shape[0]
    for v in range(size):
        if not (gates[v] == INPUT or gates[v] == AND or gates[v] == OUTPUT or gates[v] == CONSTANT):
            return WRONG_GATE
        degree[v] = 0
    for e in range(edges.shape[0]):
        source, target = np.int64(edges[e, 0]), np.int64(edges[e, 1])
        if source < 0 or target < 0 or source >= size or target >= size:
            return WRONG_ARC
        if not (inverted[e] == 0 or inverted[e] == 1):
            return WRONG_INVERSION
        if gates[target] == INPUT or gates[target] == CONSTANT:
            return DRIVEN_INPUT
        if gates[source] == OUTPUT:
            return DRIVING_OUTPUT
        if degree[target] < 2:
            driver[target, degree[target]] = 2 * source + np.int64(inverted[e])
        degree[target] += 1
    for v in range(size):
        if gates[v] == AND and degree[v] != 2:
            return WRONG_FAN_IN
    for v in range(size):
        if gates[v] == OUTPUT and degree[v] != 1:
            return UNDRIVEN_OUTPUT
    return WELL_FORMED


@kernel
def _number_nodes(
    gates: NDArray[Any], driver: NDArray[np.int64], literal: Ints, stack: Ints, fanins: Literals, first: Any
) -> tuple[Any, Any]:
    """Write the literals of all nodes, and the ANDs from row ``first`` on in order of dependence.

    Returns:
        The number of inputs, and the row after the last AND; -1 if there is a loop.
    """
    size = gates.shape[0]
    n = np.int64(0)
    for v in range(size):
        literal[v] = -1  # not numbered
        if gates[v] == INPUT:
            n += 1
            literal[v] = 2 * n
        elif gates[v] == CONSTANT:
            literal[v] = 0
    a = np.int64(first)
    for root in range(size):
        if gates[root] != AND or literal[root] >= 0:
            continue
        height = np.int64(1)
        stack[0], literal[root] = root, -2  # on the stack
        while height:
            v = stack[height - 1]
            below = np.int64(-1)
            for side in range(2):
                u = driver[v, side] >> 1
                if literal[u] == -2:
                    return n, np.int64(-1)
                if literal[u] == -1:
                    below = u
                    break
            if below >= 0:
                stack[height], literal[below] = below, -2
                height += 1
            else:
                for side in range(2):
                    fanins[a, side] = literal[driver[v, side] >> 1] ^ (driver[v, side] & 1)
                literal[v] = 2 * (1 + n + a - first)
                a += 1
                height -= 1
    return n, a
