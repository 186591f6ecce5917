"""Proposed designs in raw form: texts, files, objects or graphs; any of them may be malformed or missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Location
from graphbench.core.errors import ArgumentError, EvaluationError
from graphbench.core.untrusted import open_regular, shown
from graphbench.data.components.verifiers import EDGE_INDEX, EDGES, NODES
from graphbench.domains.circuits.designs import LONGEST, Design
from graphbench.domains.circuits.devices import MOST_DEVICES, PORTS, TYPES, Circuit, net_names

KIND, DUTY = "kind", "duty"
ENDING = ".net"
"""Ending of the names of files with a design."""
GRAPH_FIELDS: Mapping[str, Location] = {KIND: Location.EDGE, DUTY: Location.EDGE}
"""Fields of the graph of a design, whose nodes are nets, GND, VIN and VOUT first, and whose edges are devices: ``kind``
``[E]``, 0 to 3 for Sa, Sb, C and L, and ``duty`` ``[E]``, the duty cycle, the same at every edge."""
FORMS = (
    "a Design, a text such as 'duty 0.35; Sa VIN n1; L n1 VOUT; Sb GND n1', the path of a file with such a text, a "
    "graph with kind and duty, or None"
)
MISSING, UNREADABLE = "there is no design", "the text or graph cannot be read"

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Proposals:
    """The designs of some samples.

    Attributes:
        circuits: The circuit of each sample; None where there is none.
        duties: Its duty cycle; 0 where there is none.
        faults: Why there is no circuit, ``MISSING`` or ``UNREADABLE``; None where there is one.
        details: Number of a sample -> what is wrong with its answer, in words.
    """

    circuits: list[Circuit | None]
    duties: list[float]
    faults: list[str | None]
    details: dict[int, str]

    @classmethod
    def of(cls, answers: Any) -> Proposals:
        """Read designs in any form of :data:`FORMS`; a wrong design raises no error.

        Raises:
            EvaluationError: If the designs do not come one per sample, or flat arrays do not fit together.
        """
        if isinstance(answers, Mapping):
            items: list[Any] = _graphs_of(answers)
        elif isinstance(answers, Iterable) and not isinstance(answers, (str, bytes)):
            items = list(answers)
        else:
            raise EvaluationError(f"the designs are a {type(answers).__name__}; give one per sample: {FORMS}")
        proposals = cls([], [], [], {})
        for number, item in enumerate(items):
            try:
                design = _design_of(item)
                circuit = None if design is None else design.checked()
                proposals._append(circuit, 0.0 if design is None else float(design.duty), None if circuit else MISSING)
            except Exception as error:  # an answer may be any object
                proposals._append(None, 0.0, UNREADABLE)
                text = str(error) if isinstance(error, ArgumentError) else f"{type(error).__name__}: {error}"
                proposals.details[number] = shown(text, 300)
        return proposals

    def _append(self, circuit: Circuit | None, duty: float, fault: str | None) -> None:
        self.circuits.append(circuit)
        self.duties.append(duty)
        self.faults.append(fault)

    def arrays(self) -> dict[str, Array]:
        """Return the designs as flat arrays of graphs; a missing or unreadable design has no node."""
        known = [circuit for circuit in self.circuits if circuit is not None]
        sizes = np.array([0 if circuit is None else len(circuit.types) for circuit in self.circuits], np.int64)
        nets = np.concatenate([np.empty((0, 2), np.int64), *(circuit.nets for circuit in known)])
        return {
            NODES: np.array([0 if circuit is None else circuit.num_nets for circuit in self.circuits], np.int64),
            EDGES: sizes,
            EDGE_INDEX: np.ascontiguousarray(nets.T),
            KIND: np.concatenate([np.empty(0, np.int64), *(circuit.types for circuit in known)]),
            DUTY: np.repeat(np.array(self.duties, np.float64), sizes),
        }


def _design_of(item: Any) -> Design | None:
    if item is None:
        return None
    if isinstance(item, Design):
        return item
    if isinstance(item, str) and item.endswith(ENDING):
        item = Path(item)
    if isinstance(item, Path):
        item = _content(item)
    if isinstance(item, bytes):
        if not item.isascii():
            raise ArgumentError("the text has characters beyond ASCII; a design is plain text")
        item = item.decode("ascii")
    if isinstance(item, str):
        return Design.read(item)
    if isinstance(item, Mapping):
        return _design_of_graph(item)
    raise ArgumentError(f"a design is of the type {type(item).__name__}; give {FORMS}")


def _content(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(LONGEST + 1)
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror or error}") from error


def _design_of_graph(graph: Mapping[str, Any]) -> Design | None:
    missing = [name for name in (EDGE_INDEX, KIND, DUTY) if graph.get(name) is None]
    if missing:
        raise ArgumentError(f"the graph has no {missing[0]}; the graph of a design has {EDGE_INDEX}, {KIND} and {DUTY}")
    edges, kinds = np.asarray(graph[EDGE_INDEX]), np.asarray(graph[KIND]).reshape(-1)
    duties = np.asarray(graph[DUTY], np.float64).reshape(-1)
    nodes = int(graph[NODES]) if graph.get(NODES) is not None else int(edges.max(initial=-1)) + 1
    if nodes == 0:
        return None
    if edges.ndim != 2 or len(edges) != 2 or not edges.shape[1] == len(kinds) <= MOST_DEVICES:
        raise ArgumentError(
            f"{EDGE_INDEX} has the shape {list(edges.shape)} and {KIND} {list(kinds.shape)}; give [2, E] and [E] of at "
            f"most {MOST_DEVICES} devices"
        )
    if len(duties) not in (1, len(kinds)) or len(np.unique(duties)) != 1:
        raise ArgumentError(f"{DUTY} is {duties.tolist()!s:.80}; give the same duty cycle at every edge")
    if edges.min(initial=0) < 0 or edges.max(initial=0) >= nodes:
        wrong = edges[(edges < 0) | (edges >= nodes)][0]
        raise ArgumentError(f"{EDGE_INDEX} holds {wrong}; the nets are 0 to {nodes - 1}, GND, VIN and VOUT first")
    if not np.isin(kinds, range(len(TYPES))).all():
        wrong = kinds[~np.isin(kinds, range(len(TYPES)))][0]
        raise ArgumentError(f"{KIND} holds {wrong}; the kinds are 0 to {len(TYPES) - 1} for {', '.join(TYPES)}")
    if nodes > len(PORTS) + 2 * MOST_DEVICES:
        raise ArgumentError(f"the graph has {nodes} nets; {MOST_DEVICES} devices join at most {2 * MOST_DEVICES}")
    names = net_names(max(nodes, len(PORTS)))
    rows = zip(kinds.astype(int).tolist(), edges.T.astype(int).tolist(), strict=True)
    return Design([(TYPES[kind], names[a], names[b]) for kind, (a, b) in rows], float(duties[0]))


def _graphs_of(flat: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return flat arrays as one mapping per graph."""
    missing = [name for name in (NODES, EDGES, EDGE_INDEX, KIND, DUTY) if flat.get(name) is None]
    if missing:
        raise EvaluationError(f"the flat arrays of designs lack {missing[0]!r}; give {NODES} [S] and {EDGES} [S]")
    nodes, counts = (np.asarray(flat[name]).reshape(-1) for name in (NODES, EDGES))
    edges, fields = np.asarray(flat[EDGE_INDEX]), {name: np.asarray(flat[name]).reshape(-1) for name in GRAPH_FIELDS}
    wrong = any(array.dtype.kind not in "iu" or array.min(initial=0) < 0 for array in (nodes, counts))
    total = 0 if wrong or len(nodes) != len(counts) else int(counts.sum())
    if wrong or len(nodes) != len(counts) or any(len(v) != total for v in (edges.T, *fields.values())):
        raise EvaluationError(
            f"the arrays of designs do not fit together: {NODES} {list(nodes.shape)}, {EDGES} {list(counts.shape)}, "
            f"{EDGE_INDEX} {list(edges.shape)}, {KIND} {list(fields[KIND].shape)}; give [S], [S], [2, E] and [E], "
            f"where E is the sum of {EDGES}"
        )
    ends = np.concatenate([[0], np.cumsum(counts)])
    return [
        {
            NODES: nodes[i],
            EDGE_INDEX: edges[:, ends[i] : ends[i + 1]],
            **{name: values[ends[i] : ends[i + 1]] for name, values in fields.items()},
        }
        for i in range(len(nodes))
    ]
