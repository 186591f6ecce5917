"""Circuits and truth tables as samples of a dataset, and back.

Storage. A sample has the inputs of inference: the truth table, as text at the graph (``table``), and its structurally
hashed circuit as the stored graph (``gate`` at nodes, ``inverted`` at arcs). Both are drawn in compiled code. The
reference circuit, which takes a solver, is a label: its numbers of ANDs (``reference_ands``) and levels
(``reference_depth``), and the circuit itself as text (``reference``), which is decoded by :func:`decoded`. The
representation ``reference`` of the dataset has the reference circuit as graph. So a task checks with ``table`` whether
a generated circuit is correct, compares its size with ``reference_ands``, and trains on the representation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import CircuitError
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts
from graphbench.domains.chip_design.aig import Aig, Circuits
from graphbench.domains.chip_design.aig_kernels import Words
from graphbench.domains.chip_design.circuit_graphs import GATE, INVERTED, run_as_samples
from graphbench.domains.chip_design.graph_kernels import FAULTS, circuits_of_graphs
from graphbench.domains.chip_design.table_kernels import words_of_texts

TABLE = "table"


def circuits_as_samples(circuits: Circuits) -> Samples:
    """Return the graphs of circuits; see :func:`~.circuit_graphs.run_as_samples`."""
    return run_as_samples(*circuits.arrays)


def circuits_of(samples: Samples) -> Circuits:
    """Return the circuits of graphs; nodes and arcs may be in any order.

    Raises:
        CircuitError: If a graph is no circuit; the message names the first and its fault.
    """
    fault, num_inputs, and_ptr, fanins, output_ptr, outputs = circuits_of_graphs(
        samples.node_ptr, samples.edge_ptr, samples.edges, samples.values[GATE], samples.values[INVERTED]
    )
    if fault.any():
        first = int(np.argmax(fault != 0))
        raise CircuitError(f"graph {first} is no circuit: {FAULTS[fault[first]]}")
    return Circuits(num_inputs, and_ptr, fanins, output_ptr, outputs)


def tables_of(samples: Samples) -> tuple[NDArray[np.int64], NDArray[np.int64], Words]:
    """Return the truth tables of samples: numbers of inputs and outputs, int64 ``[S]``, and all words, uint64.

    Raises:
        CircuitError: If a text is no truth table.
    """
    return tables_of_texts(samples.values[TABLE])


def tables_of_texts(texts: Texts | Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64], Words]:
    """Return truth tables that are given as text (:mod:`~.truth_tables`), as :func:`tables_of` does.

    Raises:
        CircuitError: If a text is no truth table.
    """
    stored = texts if isinstance(texts, Texts) else Texts.of(texts)
    inputs, outputs, words = words_of_texts(np.ascontiguousarray(stored.content), stored.ptr)
    if (inputs < 0).any():
        first = int(np.argmax(inputs < 0))
        text = stored[first : first + 1].strings()[0]
        raise CircuitError(
            f"the text {first}, {text[:40]!r}, is no truth table; give one number of 2^n / 4 hexadecimal digits, in "
            "lower case, per output, separated by single spaces"
        )
    return inputs, outputs, words


def encoded(aig: Aig) -> str:
    """Return a circuit as text of one line: the content of a binary AIGER file, in base 64."""
    import base64

    return base64.b64encode(aig.to_aiger()).decode()


def decoded(text: str) -> Aig:
    """Return the circuit that :func:`encoded` gave as text.

    Raises:
        CircuitError: If the text is damaged.
    """
    import base64
    import binascii

    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CircuitError(f"{text[:40]!r} is no circuit in base 64: {error}") from error
    return Aig.from_aiger(data)
