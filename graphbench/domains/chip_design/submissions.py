"""Generated circuits in raw form: graphs, circuits or AIGER files; any of them may be malformed or missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Location
from graphbench.core.errors import CircuitError
from graphbench.data.components.verifiers import EDGE_INDEX, EDGES, MOST_PER_GRAPH, NODES
from graphbench.domains.chip_design.aig import RUN, Aig, Circuits
from graphbench.domains.chip_design.circuit_graphs import GATE, INVERTED, run_as_samples
from graphbench.domains.chip_design.graph_kernels import FAULTS, GATES, circuits_of_graphs
from graphbench.domains.chip_design.graphs import decoded

(WRONG_INPUTS, WRONG_OUTPUTS, NOT_EQUIVALENT, UNREADABLE, MISSING) = range(len(FAULTS), len(FAULTS) + 5)
REASONS = (
    *FAULTS,
    "the number of inputs differs from the truth table",
    "the number of outputs differs from the truth table",
    "the circuit computes another function",
    "the file or graph cannot be read",
    "there is no circuit",
)
"""Why a circuit scores 0, by the number of the reason; reason 0 is empty and stands for correct circuits."""

GRAPH_FIELDS: Mapping[str, Location] = {
    GATE: Location.NODE,
    "x": Location.NODE,
    INVERTED: Location.EDGE,
    "edge_attr": Location.EDGE,
}
"""Fields of the graph of a circuit, whose ``edge_index`` leads from driver to driven: ``gate`` ``[N]``, the kinds of
its nodes, or ``x`` ``[N, 3]`` or ``[N, 4]``, these one-hot; and ``inverted`` ``[E]``, or ``edge_attr`` ``[E]`` or
``[E, 1]``."""
FORMS = (
    "an Aig, the content (bytes, text of the form aag, or text in base64 as labels have it) or the path of an AIGER "
    "file, a graph with gate and inverted, or None"
)

_NO_GATE = -1
_BASE64 = "YWlnI"  # of "aig "
_ASCII = "aag "
_NOTHING = Aig(0, np.empty((0, 2), np.int32), np.empty(0, np.int32))
_NO_ARRAYS = (np.empty((0, 2), np.int64), np.empty(0), np.empty(0))


@dataclass(frozen=True, eq=False)
class Submission:
    """Generated circuits, one per function.

    Attributes:
        circuits: The circuits; a circuit with a fault is empty.
        faults: uint8 ``[S]``, by their places in :data:`REASONS`; 0 for a well-formed circuit.
        details: Circuit -> description of its fault, for files and graphs that cannot be read.
    """

    circuits: Circuits
    faults: NDArray[np.uint8]
    details: dict[int, str]

    def __post_init__(self) -> None:
        """Check the faults."""
        faults = np.asarray(self.faults)
        if faults.shape != (len(self.circuits),) or faults.dtype.kind not in "iu" or not _are_reasons(faults):
            raise CircuitError(
                f"faults is {faults.dtype} {list(faults.shape)} of {len(self.circuits):,} circuits; give one number "
                f"from 0 to {len(REASONS) - 1} for each"
            )
        object.__setattr__(self, "faults", faults.astype(np.uint8))

    def __len__(self) -> int:
        """Return the number of circuits."""
        return len(self.faults)

    @classmethod
    def of_graphs(
        cls,
        num_nodes: NDArray[np.int64],
        num_edges: NDArray[np.int64],
        edges: NDArray[Any],
        gates: NDArray[Any],
        inverted: NDArray[Any],
    ) -> Submission:
        """Read circuits from graphs; nodes and arcs may be in any order.

        Args:
            num_nodes: int64 ``[S]``; 0 for a circuit that is missing.
            num_edges: int64 ``[S]``.
            edges: integers ``[E, 2]``: driver and driven, nodes count within the graph.
            gates: numbers ``[N]``, by :data:`~.graph_kernels.GATES`; the k-th input node is input k, the k-th output
                node output k.
            inverted: numbers ``[E]``, 0 or 1.

        Raises:
            CircuitError: If the arrays do not have as many rows as the graphs have nodes and arcs.
        """
        nodes, arcs = np.asarray(num_nodes, np.int64), np.asarray(num_edges, np.int64)
        edges, gates, inverted = np.asarray(edges), np.asarray(gates), np.asarray(inverted)
        shapes = (nodes.shape, arcs.shape, edges.shape, gates.shape, inverted.shape)
        if (largest := max(nodes.max(initial=0), arcs.max(initial=0))) > MOST_PER_GRAPH:
            raise CircuitError(f"num_nodes or num_edges has {largest:,}; one graph has at most {MOST_PER_GRAPH:,}")
        if min(nodes.min(initial=0), arcs.min(initial=0)) < 0 or shapes != (
            (len(nodes),),
            (len(nodes),),
            (int(arcs.sum()), 2),
            (int(nodes.sum()),),
            (int(arcs.sum()),),
        ):
            parsed = ", ".join(
                f"{name} {list(shape)}"
                for name, shape in zip(("num_nodes", "num_edges", "edges", "gates", "inverted"), shapes, strict=True)
            )
            raise CircuitError(
                f"the arrays of graphs have the shapes {parsed}; give [S], [S], [E, 2], [N] and [E], where N and E are "
                "the sums of num_nodes and num_edges"
            )
        if edges.dtype.kind not in "iu" and edges.size:
            raise CircuitError(f"edges is {edges.dtype}; give integers")
        if gates.dtype.kind not in "biuf" or inverted.dtype.kind not in "biuf":
            raise CircuitError(f"gates is {gates.dtype} and inverted {inverted.dtype}; give numbers")
        ptr = [np.append(0, np.cumsum(counts)) for counts in (nodes, arcs)]
        fault, num_inputs, and_ptr, fanins, output_ptr, outputs = circuits_of_graphs(
            ptr[0], ptr[1], np.ascontiguousarray(edges), gates, inverted
        )
        circuits = Circuits(num_inputs, and_ptr, fanins, output_ptr, outputs)
        return cls(circuits, np.where(nodes == 0, MISSING, fault).astype(np.uint8), {})

    @classmethod
    def of(cls, answers: Any) -> Submission:
        """Read circuits in any form; a wrong circuit raises no error.

        Args:
            answers: A submission or :class:`~.aig.Circuits`; a mapping with the flat arrays of graphs, as
                :data:`GRAPH_FIELDS` has them, and ``num_nodes``, ``num_edges`` and ``edge_index`` ``[2, E]``; or one
                item per function: an :class:`~.aig.Aig`, the content (bytes) or the path of an AIGER file, a mapping
                with the arrays of a graph, or None for a missing circuit.

        Raises:
            CircuitError: If the circuits come in another form, or flat arrays do not fit together.
        """
        if isinstance(answers, Submission):
            return cls(Circuits(*(getattr(answers.circuits, name) for name in RUN)), answers.faults, answers.details)
        if isinstance(answers, Circuits):
            circuits = Circuits(*(getattr(answers, name) for name in RUN))  # not a subclass with other arrays
            return cls(circuits, np.zeros(len(circuits), np.uint8), {})
        if isinstance(answers, Mapping):
            if missing := [name for name in (NODES, EDGES) if name not in answers]:
                raise CircuitError(f"the flat arrays of graphs lack {missing[0]!r}; give {NODES} [S] and {EDGES} [S]")
            return cls.of_graphs(answers[NODES], answers[EDGES], *_arrays_of(answers))
        if not isinstance(answers, Iterable):
            raise CircuitError(f"the circuits are a {type(answers).__name__}; give one per function: {FORMS}")
        items = list(answers)
        graphs = [i for i, item in enumerate(items) if isinstance(item, Mapping)]
        read = _of_items([items[i] for i in graphs])
        if len(graphs) == len(items):
            return read
        forms: list[Aig] = [_NOTHING] * len(items)
        faults = np.zeros(len(items), np.uint8)
        details: dict[int, str] = {}
        for position, i in enumerate(graphs):
            forms[i], faults[i] = read.circuits[position], read.faults[position]
        details |= {graphs[position]: text for position, text in read.details.items()}
        for i, item in enumerate(items):
            if not isinstance(item, Mapping):
                forms[i], faults[i], text = _read_item(item)
                if text:
                    details[i] = text
        return cls(_joined(forms, faults, details), faults, details)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the circuits as flat arrays of graphs, in the form of :meth:`of`; wrong circuits have no node."""
        graphs = run_as_samples(*self.circuits.arrays)
        right = self.faults == 0
        nodes, edges = np.repeat(right, graphs.num_nodes), np.repeat(right, graphs.num_edges)
        return {
            NODES: np.where(right, graphs.num_nodes, 0),
            EDGES: np.where(right, graphs.num_edges, 0),
            EDGE_INDEX: np.ascontiguousarray(graphs.edges[edges].T),
            GATE: graphs.values[GATE][nodes],
            INVERTED: graphs.values[INVERTED][edges],
        }


def _joined(aigs: list[Aig], faults: NDArray[np.uint8], details: dict[int, str]) -> Circuits:
    """Return circuits as flat arrays; a circuit that is no longer valid or raises errors gets a fault."""
    try:
        return Circuits.of(aigs)
    except Exception:  # a subclass may run other code
        for i, aig in enumerate(aigs):
            try:
                aigs[i] = Circuits.of([aig])[0]
            except Exception as error:
                aigs[i], faults[i], details[i] = _NOTHING, UNREADABLE, f"{type(error).__name__}: {error}"
        return Circuits.of(aigs)


def _are_reasons(faults: NDArray[Any]) -> bool:
    return not faults.size or bool(faults.min() >= 0 and faults.max() < len(REASONS))


def _of_items(graphs: Sequence[Mapping[str, Any]]) -> Submission:
    """Read graphs, each a mapping with its arrays; they are checked and converted together."""
    parts, faults = [], np.zeros(len(graphs), np.uint8)
    details: dict[int, str] = {}
    for i, graph in enumerate(graphs):
        try:
            parts.append(_arrays_of(graph))
        except CircuitError as error:
            parts.append(_NO_ARRAYS)
            faults[i], details[i] = UNREADABLE, str(error)
    joined = [np.concatenate([_NO_ARRAYS[k], *(part[k] for part in parts)]) for k in range(3)]
    nodes = np.array([len(gates) for _, gates, _ in parts], np.int64)
    arcs = np.array([len(edges) for edges, _, _ in parts], np.int64)
    read = Submission.of_graphs(nodes, arcs, *joined)
    return Submission(read.circuits, np.where(faults > 0, faults, read.faults).astype(np.uint8), details)


def _read_item(item: Any) -> tuple[Aig, int, str]:
    """Return a circuit, its fault (0 for none) and a description of the fault."""
    if item is None:
        return _NOTHING, MISSING, ""
    if isinstance(item, Aig):
        return item, 0, ""
    if not isinstance(item, (bytes, str, Path)):
        return _NOTHING, UNREADABLE, f"{item!r:.60} is no circuit; give {FORMS}"
    try:
        if isinstance(item, str) and item.startswith(_BASE64):
            return decoded(item), 0, ""
        if isinstance(item, str) and item.startswith(_ASCII):
            return Aig.from_aiger(item.encode()), 0, ""
        return Aig.from_aiger(item), 0, ""
    except CircuitError as error:
        return _NOTHING, UNREADABLE, str(error)


def _arrays_of(graph: Mapping[str, Any]) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return edges ``[E, 2]``, gates ``[N]`` and inversions ``[E]`` of a graph, or of several as flat arrays.

    Raises:
        CircuitError: If a field is missing or has another shape.
    """
    edges = _numbers(graph, EDGE_INDEX)
    if edges.ndim != 2 or len(edges) != 2 or (edges.size and edges.dtype.kind not in "iu"):
        raise CircuitError(f"edge_index is {edges.dtype} {list(edges.shape)}, not integers [2, E]")
    if graph.get(GATE) is not None:
        gates = _numbers(graph, GATE)
    else:
        x = _numbers(graph, "x")
        if x.ndim != 2 or x.shape[1] not in (len(GATES) - 1, len(GATES)):
            raise CircuitError(f"x has the shape {list(x.shape)}, not [N, 3] or [N, 4]; or give gate [N]")
        one_hot = ((x == 0) | (x == 1)).all(axis=1) & (x.sum(axis=1) == 1)
        gates = np.where(one_hot, x.argmax(axis=1), _NO_GATE)
    inverted = _numbers(graph, "edge_attr" if graph.get(INVERTED) is None else INVERTED)
    if inverted.ndim == 2 and inverted.shape[1] == 1:
        inverted = inverted[:, 0]
    if gates.ndim != 1 or inverted.shape != (edges.shape[1],):
        raise CircuitError(
            f"gate has the shape {list(gates.shape)} and the inversions {list(inverted.shape)}, not [N] and "
            f"[{edges.shape[1]}]"
        )
    return edges.T.astype(np.int64), gates.astype(np.float64), inverted.astype(np.float64)


def _numbers(graph: Mapping[str, Any], name: str) -> NDArray[Any]:
    value = graph.get(name)
    if value is None:
        raise CircuitError(f"the graph has no {name}")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise CircuitError(f"{name} is no array: {error}") from error
    if array.dtype.kind not in "biuf":
        raise CircuitError(f"{name} is {array.dtype}, not numbers")
    return array


def counted(reasons: NDArray[np.uint8]) -> dict[str, int]:
    """Return the number of circuits that fail for each reason, as text, the most frequent first."""
    counts: Sequence[tuple[int, int]] = Counter(reasons[reasons > 0].tolist()).most_common()
    return {REASONS[reason]: number for reason, number in counts}
