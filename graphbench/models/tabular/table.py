"""From graphs to tables: columns of nodes, edges and graphs, derived from the types of the card's features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind, Location, Stage, select
from graphbench.catalog.links import PAIRS
from graphbench.core.errors import ConfigError
from graphbench.data.arrays.link_heuristics import Heuristics
from graphbench.models.base import TaskFeatures
from graphbench.models.tabular.config import SelectorModelConfig, TabularModelConfig

Table = NDArray[np.float32]
TableConfig = TabularModelConfig | SelectorModelConfig


def table_of_model(batch: Any, task: TaskFeatures, location: Location, config: TableConfig) -> Table:
    """Return the table that a tabular model reads, float32 ``[items, columns]``.

    Args:
        batch: A PyG ``Batch``.
        task: The task's features.
        location: The items that rows represent: nodes, edges or graphs.
        config: The model's configuration: its columns, the inputs that it ignores, and its hops.

    Raises:
        ConfigError: If ``ignore`` names something other than an input, or an input is a pointer, or the model reads
            graph-level inputs alone and there are none or its outputs are of nodes or edges.
    """
    inputs = {f.name for f in select(task.features, Stage.INPUT)}
    unknown = [name for name in config.ignore if name not in inputs]
    if unknown:
        raise ConfigError(
            f"model.ignore names {unknown[0]!r}, which is no input (inputs: {', '.join(sorted(inputs)) or 'none'})"
        )
    features = [f for f in task.features if f.name not in config.ignore]
    if config.columns == "all":
        return table_of(batch, features, location, config.hops, task.directed)
    if location is not Location.GRAPH:
        raise ConfigError(f"model.columns is inputs, but the outputs are of {location}s; set it to all")
    return graph_inputs(batch, features)


def table_of(batch: Any, features: Sequence[Feature], location: Location, hops: int, directed: bool) -> Table:
    """Return the table of a batch's nodes, edges or graphs, float32 ``[items, columns]``.

    The columns of a node are its inputs, its degrees, and for each hop the mean and the maximum of the preceding
    columns over its neighbours. The columns of an edge are its inputs and the sum and the absolute difference of its
    ends' columns (for arcs, the columns of tail and head); a candidate pair has the same columns without inputs, and
    the scores of :class:`~graphbench.data.arrays.link_heuristics.Heuristics`. The columns of a graph are the mean,
    standard deviation and maximum of its nodes' columns and of its edges' inputs. All rows also have the graph-level
    inputs, the numbers of nodes and edges, and the density. Texts are left out.

    Args:
        batch: A PyG ``Batch``.
        features: The features of the card.
        location: The items that rows represent: nodes, edges, graphs or candidate pairs.
        hops: Number of times that neighbours are aggregated.
        directed: Whether each column of ``edge_index`` is a separate arc.

    Raises:
        ConfigError: If an input is a pointer, which has no columns.
    """
    graph, ends = batch.batch.numpy(), batch.edge_index.numpy()
    count = int(batch.num_graphs)
    edges = _inputs(batch, features, Location.EDGE, ends.shape[1])
    graphs = np.hstack([_inputs(batch, features, Location.GRAPH, count), _sizes(graph, ends, count)])
    nodes = _node_columns(batch, features, ends, len(graph), hops)
    if location is Location.NODE:
        return np.hstack([nodes, graphs[graph]])
    if location in (Location.EDGE, Location.PAIR):
        pairs, of_pairs = ends, edges
        if location is Location.PAIR:
            pairs = batch[PAIRS].numpy()
            of_pairs = Heuristics(ends.T, len(graph), directed=directed).table(pairs).astype(np.float32)
        tails, heads = nodes[pairs[0]], nodes[pairs[1]]
        joined = (tails, heads) if directed else (tails + heads, np.abs(tails - heads))
        return np.hstack([*joined, of_pairs, graphs[graph[pairs[0]]]])
    return np.hstack([_summary(nodes, graph, count), _summary(edges, graph[ends[0]], count), graphs])


def graph_inputs(batch: Any, features: Sequence[Feature]) -> Table:
    """Return the inputs of a batch's graphs alone, float32 ``[graphs, columns]``, without texts.

    Raises:
        ConfigError: If the graphs have no inputs, or one of the inputs is a pointer.
    """
    table = _inputs(batch, features, Location.GRAPH, int(batch.num_graphs))
    if not table.shape[1]:
        raise ConfigError("no input is located at graphs, and model.columns is inputs; set model.columns to all")
    return table


def _inputs(batch: Any, features: Sequence[Feature], location: Location, rows: int) -> Table:
    """Return the columns of the inputs at a location: scalars and masks unchanged, classes one-hot."""
    columns: list[Table] = [np.empty((rows, 0), np.float32)]
    for feature in select(features, Stage.INPUT, location):
        if feature.kind is Kind.TEXT:
            continue
        if feature.is_pointer:
            raise ConfigError(f"the input {feature.name!r} is a {feature.kind.value}, which tabular models do not read")
        values = batch[feature.name].numpy()
        if feature.kind is Kind.CATEGORICAL:
            columns.append(np.eye(feature.classes, dtype=np.float32)[values.reshape(-1)])
        else:
            columns.append(values.astype(np.float32).reshape(rows, -1))
    return np.hstack(columns)


def _node_columns(batch: Any, features: Sequence[Feature], ends: NDArray[np.int64], nodes: int, hops: int) -> Table:
    degrees = [np.bincount(end, minlength=nodes).astype(np.float32)[:, None] for end in ends]
    columns = np.hstack([_inputs(batch, features, Location.NODE, nodes), *degrees])
    edges = _inputs(batch, features, Location.EDGE, ends.shape[1])
    receives = sp.csr_matrix(
        (np.ones(ends.shape[1], np.float32), (ends[1], np.arange(ends.shape[1]))), (nodes, ends.shape[1])
    )
    columns = np.hstack([columns, receives @ edges]) if edges.shape[1] else columns
    parts, last = [columns], columns
    for _ in range(hops):
        last = _over_neighbours(last, ends, nodes)
        parts.append(last)
    return np.hstack(parts)


def _over_neighbours(columns: Table, ends: NDArray[np.int64], nodes: int) -> Table:
    """Return mean and maximum of the columns over the neighbours of every node; 0 without neighbours."""
    adjacency = sp.csr_matrix((np.ones(ends.shape[1], np.float32), (ends[1], ends[0])), (nodes, nodes))
    counts = np.maximum(np.bincount(ends[1], minlength=nodes), 1).astype(np.float32)[:, None]
    highest = np.full(columns.shape, -np.inf, np.float32)
    np.maximum.at(highest, ends[1], columns[ends[0]])
    return np.hstack([(adjacency @ columns) / counts, np.where(np.isfinite(highest), highest, 0.0)])


def _sizes(graph: NDArray[np.int64], ends: NDArray[np.int64], count: int) -> Table:
    nodes = np.bincount(graph, minlength=count).astype(np.float32)
    edges = np.bincount(graph[ends[0]], minlength=count).astype(np.float32)
    return np.stack([nodes, edges, edges / np.maximum(nodes * (nodes - 1), 1)], axis=1)


def _summary(rows: Table, graph: NDArray[np.int64], count: int) -> Table:
    """Return mean, standard deviation and maximum of the rows of every graph, ``[graphs, 3 * columns]``."""
    sums = sp.csr_matrix((np.ones(len(graph), np.float32), (graph, np.arange(len(graph)))), (count, len(graph)))
    sizes = np.maximum(np.bincount(graph, minlength=count), 1).astype(np.float32)[:, None]
    mean = (sums @ rows) / sizes
    spread = np.sqrt(np.maximum((sums @ np.square(rows)) / sizes - np.square(mean), 0.0))
    highest = np.full((count, rows.shape[1]), -np.inf, np.float32)
    np.maximum.at(highest, graph, rows)
    return np.hstack([mean, spread, np.where(np.isfinite(highest), highest, 0.0)]).astype(np.float32)
