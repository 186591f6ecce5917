"""Generated circuits as they come: graphs, circuits or AIGER files, of which any may be malformed or missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import CircuitError
from graphbench.domains.chip_design.aig import Aig, Circuits
from graphbench.domains.chip_design.graph_kernels import FAULTS, circuits_of_graphs

(WRONG_INPUTS, WRONG_OUTPUTS, NOT_EQUIVALENT, UNREADABLE, MISSING) = range(len(FAULTS), len(FAULTS) + 5)
REASONS = (
    *FAULTS,
    "the number of inputs is not that of the truth table",
    "the number of outputs is not that of the truth table",
    "the circuit computes another function",
    "the file or graph cannot be read",
    "there is no circuit",
)
"""Why a circuit scores 0, by the number of the reason; the first, 0, is that of correct circuits, and is empty."""


@dataclass(frozen=True, eq=False)
class Submission:
    """Generated circuits, one per function.

    Attributes:
        circuits: The circuits; those with a fault are empty.
        faults: uint8 ``[S]``, by their places in :data:`REASONS`; 0 for a well-formed circuit.
        details: Circuit -> what is wrong with it, for files and graphs that cannot be read.
    """

    circuits: Circuits
    faults: NDArray[np.uint8]
    details: dict[int, str]

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
        if min(nodes.min(initial=0), arcs.min(initial=0)) < 0 or shapes != (
            (len(nodes),),
            (len(nodes),),
            (int(arcs.sum()), 2),
            (int(nodes.sum()),),
            (int(arcs.sum()),),
        ):
            found = ", ".join(
                f"{name} {list(shape)}"
                for name, shape in zip(("num_nodes", "num_edges", "edges", "gates", "inverted"), shapes, strict=True)
            )
            raise CircuitError(
                f"the arrays of graphs have the shapes {found}; give [S], [S], [E, 2], [N] and [E], where N and E are "
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
    def of(cls, items: Iterable[Aig | bytes | str | Path | None]) -> Submission:
        """Read circuits, each an :class:`~.aig.Aig`, the content or the path of an AIGER file, or missing (None)."""
        found, faults, details = [], [], {}
        nothing = Aig(0, np.empty((0, 2), np.int32), np.empty(0, np.int32))
        for i, item in enumerate(items):
            aig, fault = nothing, 0
            if item is None:
                fault = MISSING
            elif isinstance(item, Aig):
                aig = item
            else:
                try:
                    aig = Aig.from_aiger(item)
                except CircuitError as error:
                    fault, details[i] = UNREADABLE, str(error)
            found.append(aig)
            faults.append(fault)
        return cls(Circuits.of(found), np.array(faults, np.uint8), details)

    @classmethod
    def of_folder(cls, folder: Path, count: int) -> Submission:
        """Read the AIGER files of a folder: ``<number>.aig`` or ``<number>.aag`` is the circuit of that function.

        A number that no file has is a missing circuit.

        Raises:
            CircuitError: If the folder cannot be read, or holds a file of another name or a number twice.
        """
        items: list[Path | None] = [None] * count
        try:
            paths = sorted(folder.iterdir())
        except OSError as error:
            raise CircuitError(f"{folder} cannot be read: {error.strerror or error}") from error
        for path in paths:
            stem = path.stem
            if path.suffix not in (".aig", ".aag") or not (stem.isascii() and stem.isdigit()) or int(stem) >= count:
                raise CircuitError(
                    f"{path} is not expected; circuits are files 0.aig to {count - 1}.aig (or .aag), numbered like the "
                    "functions"
                )
            if items[int(stem)] is not None:
                raise CircuitError(f"{folder} has two circuits of function {int(stem)}: {items[int(stem)]} and {path}")
            items[int(stem)] = path
        return cls.of(items)


def counted(reasons: NDArray[np.uint8]) -> dict[str, int]:
    """Return how many circuits fail for each reason, as text, the most frequent first."""
    found: Sequence[tuple[int, int]] = Counter(reasons[reasons > 0].tolist()).most_common()
    return {REASONS[reason]: number for reason, number in found}
