"""The graphs of circuits as samples, with their features."""

from __future__ import annotations

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.data.arrays.samples import Samples
from graphbench.domains.chip_design.aig_kernels import Ints, Literals
from graphbench.domains.chip_design.graph_kernels import GATES, graphs_of_circuits

GATE, INVERTED = "gate", "inverted"
CIRCUIT_FEATURES = (
    Feature(GATE, Stage.INPUT, Location.NODE, Kind.CATEGORICAL, classes=len(GATES)),
    Feature(INVERTED, Stage.INPUT, Location.EDGE, Kind.MASK),
)
"""Features of the graph of a circuit: the kind of a node (:data:`~.graph_kernels.GATES`), and inversion of an arc."""


def run_as_samples(num_inputs: Ints, and_ptr: Ints, fanins: Literals, output_ptr: Ints, outputs: Literals) -> Samples:
    """Return the graphs of a run of circuits (:mod:`~.aig_kernels`).

    The nodes of a graph are the inputs in order, the ANDs in order of dependence, the outputs in order, and the
    constant false if it drives anything. Arcs lead from driver to driven.

    Returns:
        Samples of directed graphs with the features :data:`CIRCUIT_FEATURES`.
    """
    nodes, arcs, edges, gates, inverted = graphs_of_circuits(num_inputs, and_ptr, fanins, output_ptr, outputs)
    return Samples(nodes, arcs, edges, {GATE: gates, INVERTED: inverted})
