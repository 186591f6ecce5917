"""Costly labels: computed graph by graph, and stored in separate files next to the graphs that several tasks share.

The label of sample ``i`` is a function of its graph, the effort on the card, and (id, version, data seed, split,
labeller, i) alone. So labels are built, resumed and shared like the graphs themselves: a file of labels is a file of
samples that lists no edges. It has one row per stored edge of the graph for labels of edges.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature, Kind, Location
from graphbench.catalog.schema import Schema
from graphbench.core.errors import GraphBenchError
from graphbench.core.foreign import described
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.seeds import label_number, stream_key
from graphbench.data.arrays.texts import Texts
from graphbench.data.build.label_tables import LabelTable, find_tables, first_outcome
from graphbench.data.components.domain import find
from graphbench.data.components.generators import Labeller, Outcome
from graphbench.data.store.casting import compact
from graphbench.data.store.labels import has_edge_labels, root_of
from graphbench.data.store.shards import interrupted, stored_samples

_GENERAL_ERRORS = (GraphBenchError, MemoryError)  # errors that do not depend on the graph


_NO_VALUE = -1


@dataclass(frozen=True)
class LabelTask:
    """The description of a labelling job that is sent to workers.

    Attributes:
        card: The card.
        labeller: Name of the labeller.
        split: Name of the split.
        path: The file of the split's graphs.
    """

    card: Card
    labeller: str
    split: str
    path: Path
    probe: ClassVar[int] = 1  # samples labelled to compile and to estimate the size

    @property
    def schema(self) -> Schema:
        """The schema of the labels, which are stored without the graphs."""
        return self.card.label_schemas[self.labeller]

    @property
    def maker(self) -> Labeller:
        """The registered labeller."""
        return find("labeller", self.labeller)

    @property
    def parameters(self) -> Any:
        """The effort of the labeller."""
        return self.maker.parse(self.card, self.split)

    def draw(self, indices: NDArray[np.int64], attempts: NDArray[np.int64]) -> Samples:
        """Return the labels of the given graphs of the file; ``attempts`` has no effect."""
        graphs = stored_samples(self.card.graph_schema, self.path)
        return label_samples(self.card, self.labeller, self.split, indices, graphs, indices, root=root_of(self.path))


def label_samples(
    card: Card,
    name: str,
    split: str,
    indices: NDArray[np.int64],
    graphs: Samples,
    places: NDArray[np.int64] | None = None,
    *,
    root: Path | None = None,
) -> Samples:
    """Return the labels of graphs, as samples that list no edges, in the dtypes of the store.

    If the labeller fails on a graph, or the label does not pass the check, the graph has -1 for every value, and 1 for
    the feature that marks failures. ``facts`` have ``seconds``, the total CPU time, ``failed``, sample -> reason, and,
    for a labeller with recorded outcomes, ``outcomes``, sample -> numbers.

    Args:
        card: The card.
        name: Name of the labeller.
        split: Name of the split.
        indices: int64 ``[S]``, positions of the graphs in the split.
        graphs: The graphs.
        places: int64 ``[S]``, the positions of the chosen graphs in ``graphs``; None for 0, 1, 2, ...
        root: Folder of all datasets, where imported tables of outcomes are.

    Raises:
        GraphBenchError: If no graph can be labelled, e.g. because a solver is not installed.
    """
    labeller, schema = find("labeller", name), card.label_schemas[name]
    effort = labeller.parse(card, split)
    key = stream_key(card.id, card.version, f"{split}|{labeller.name}", card.data_seed)
    began = time.process_time()
    labels_of_graphs: list[Mapping[str, Any]] = []
    facts: dict[str, dict[str, Any]] = {"failed": {}, "outcomes": {}}
    tables = () if labeller.recorded is None else find_tables(labeller, effort, root)
    chosen = np.arange(len(indices)) if places is None else places
    numbers = [label_number(key, index) for index in indices.tolist()]
    together = _label_together(card, labeller, effort, numbers, graphs, chosen)
    for i, (index, position) in enumerate(zip(indices.tolist(), chosen.tolist(), strict=True)):
        graph = graphs.part(card.graph_schema, position, position + 1)
        ready = None if together is None else together[i]
        values, problem, outcome = _label(schema, labeller, effort, numbers[i], graph, tables, ready)
        if problem:
            facts["failed"][str(index)] = problem
        if outcome is not None and labeller.recorded is not None:
            facts["outcomes"][str(index)] = [int(outcome[name]) for name in labeller.recorded.columns]
        labels_of_graphs.append(values)
    edges = graphs.num_edges[chosen] if has_edge_labels(schema) else np.zeros(len(indices), np.int64)
    columns = {f.name: _column(f, [values[f.name] for values in labels_of_graphs]) for f in schema.features}
    manifest_facts = {"seconds": time.process_time() - began, **{name: value for name, value in facts.items() if value}}
    labels = Samples(graphs.num_nodes[chosen], edges, np.empty((0, 2), np.uint8), columns, facts=manifest_facts)
    return compact(schema, labels, labeller)


def _label(
    schema: Schema,
    labeller: Labeller,
    effort: Any,
    number: int,
    graph: Samples,
    tables: Sequence[LabelTable],
    ready: Mapping[str, Any] | Exception | None,
) -> tuple[Mapping[str, Any], str, Outcome | None]:
    """Return the label of one graph, the reason if the labeller failed, and the outcome if it is recorded.

    Args:
        schema: The schema of the labels.
        labeller: The labeller.
        effort: Its effort.
        number: Number of the graph, which seeds random numbers.
        graph: The graph.
        tables: Tables of recorded outcomes.
        ready: The label or the error, if the labeller was given many graphs together.
    """
    outcome: Outcome | None = None
    try:
        if isinstance(ready, Exception):
            raise ready
        if ready is not None:
            label = ready
        elif labeller.recorded is None:
            label = labeller.label(effort, number, graph)
        else:
            outcome = first_outcome(tables, labeller.recorded.key(graph))
            outcome = labeller.recorded.measure(effort, number, graph) if outcome is None else outcome
            label = labeller.recorded.label(effort, outcome)
        values = {**label, labeller.failed: 0}
        problems = _wrong_shapes(schema, graph, values) or labeller.check(graph, values)
    except _GENERAL_ERRORS:
        raise
    except Exception as error:
        if interrupted(error):
            raise KeyboardInterrupt from error
        problems = [described(error)]
    if not problems:
        return values, "", outcome
    none = {f.name: "" if f.kind is Kind.TEXT else np.full(_shape(f, graph), _NO_VALUE) for f in schema.features}
    return {**none, labeller.failed: 1}, problems[0], None


def _label_together(
    card: Card, labeller: Labeller, effort: Any, numbers: Sequence[int], graphs: Samples, places: NDArray[np.int64]
) -> Sequence[Mapping[str, Any] | Exception] | None:
    """Return the labels of all graphs; None if the labeller takes one graph at a time, or could not take these."""
    if labeller.label_many is None or labeller.recorded is not None:
        return None
    try:
        labels = labeller.label_many(effort, numbers, graphs.take(card.graph_schema, places))
    except _GENERAL_ERRORS:
        raise
    except Exception as error:
        if interrupted(error):
            raise KeyboardInterrupt from error
        return None
    return labels if len(labels) == len(numbers) else None


def _wrong_shapes(schema: Schema, graph: Samples, values: Mapping[str, Any]) -> list[str]:
    names = {f.name for f in schema.features}
    if names != set(values):
        return [f"the label has {', '.join(sorted(values))}; the card has {', '.join(sorted(names))}"]
    expected = {f.name: _shape(f, graph) for f in schema.features}
    return [
        f"{name} has the shape {np.shape(values[name])}, not {shape}"
        for name, shape in expected.items()
        if np.shape(values[name]) != shape
    ]


def _shape(feature: Feature, graph: Samples) -> tuple[int, ...]:
    """Return the shape of the label of one graph: one row per node or stored edge, or the shape of a single value."""
    if feature.location is Location.GRAPH:
        return feature.row_shape
    items = graph.num_nodes if feature.location is Location.NODE else graph.num_edges
    return int(items[0]), *feature.row_shape


def _column(feature: Feature, values: list[Any]) -> Any:
    if feature.kind is Kind.TEXT:
        return Texts.of(map(str, values))
    return np.asarray(values) if feature.location is Location.GRAPH else np.concatenate(values)
