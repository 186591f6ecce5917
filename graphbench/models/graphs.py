"""The layout of the graphs of a batch in flat arrays, and sums over their nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from graphbench.core.errors import ArgumentError
from graphbench.data.batches.batching import facts_of
from graphbench.models.arcs import Arcs, arc_sums, occurrences

_T = TypeVar("_T")

EXTENT = "graph_extent"
"""Attribute of a prepared batch: the :class:`Extent` of its graphs."""

WHOLE_DEGREES = "whole_degrees"
"""Attribute of a part of a graph: int64 [N, 2], the outgoing and the incoming arcs of its nodes in the whole graph."""

_CACHED = "_graphbench_layout"  # attribute of a batch


@dataclass(frozen=True)
class Extent:
    """Sizes of the graphs of a batch as Python numbers, which a step would have to wait for on a device.

    Attributes:
        fewest_nodes: Nodes of the smallest graph; 0 without graphs.
        most_nodes: Nodes of the largest graph; 0 without graphs.
        most_items: As :attr:`Layout.most_items`; None if the model has no edge tokens, so that nobody reads it.
        nodes: int64 [B], the nodes of every graph, on the CPU; None if the sizes were read on another device.
    """

    fewest_nodes: int
    most_nodes: int
    most_items: int | None = None
    nodes: NDArray[np.int64] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, layout: Layout) -> Extent:
        """Return the sizes of a layout's graphs without their edges; on a device, the caller waits for them."""
        sizes = layout.sizes
        if not sizes.numel():
            return cls(0, 0)
        fewest, most = (int(bound) for bound in torch.stack([sizes.min(), sizes.max()]).tolist())
        return cls(fewest, most, nodes=sizes.numpy() if sizes.device.type == "cpu" else None)


@dataclass(frozen=True)
class Layout:
    """The positions of each graph's nodes and edges in a batch.

    Attributes:
        edge_index: int64 [2, E]. Undirected graphs: columns ``2j`` and ``2j + 1`` are the two directions of edge ``j``.
        graph: int64 [N], the graph of each node, non-decreasing.
        ptr: int64 [B+1], first node of each graph.
        num_graphs: B.
        directed: Whether each column of ``edge_index`` is a separate arc.
        given_extent: The sizes of the graphs, where the batch says them.
        given_degrees: int64 [N, 2], the outgoing and the incoming arcs of the nodes in the graph that the batch is a
            part of, where the batch says them (``whole_degrees``).
    """

    edge_index: Tensor
    graph: Tensor
    ptr: Tensor
    num_graphs: int
    directed: bool
    given_extent: Extent | None = None
    given_degrees: Tensor | None = None

    @classmethod
    def of(cls, batch: Data, directed: bool) -> Layout:
        """Return the layout of a PyG ``Batch``; a plain ``Data`` is a batch of one graph.

        A batch keeps its layout, so that a batch that is used repeatedly (for example a large graph) is sorted once.
        Batches that share their arcs (times of a series) share the layout.
        """
        edge_index: Tensor = batch.edge_index
        graph = getattr(batch, "batch", None)
        if torch.compiler.is_compiling():
            return cls._made(batch, edge_index, graph, directed)
        cached = batch.__dict__.get(_CACHED)
        if cached is not None and cached[0] is edge_index and cached[1] is graph and cached[2].directed == directed:
            kept: Layout = cached[2]
            return kept
        facts = facts_of(edge_index)
        shared = None if facts is None else facts.get((_CACHED, directed))
        layout = shared if shared is not None and shared.graph is graph else None
        if layout is None:
            layout = cls._made(batch, edge_index, graph, directed)
            if facts is not None:
                facts[_CACHED, directed] = layout
        batch.__dict__[_CACHED] = (edge_index, graph, layout)
        return layout

    @classmethod
    def _made(cls, batch: Data, edge_index: Tensor, graph: Tensor | None, directed: bool) -> Layout:
        if graph is None:
            graph = torch.zeros(int(batch.num_nodes or 0), dtype=torch.long, device=edge_index.device)
        ptr = getattr(batch, "ptr", None)
        if ptr is None:
            counts = occurrences(graph, int(getattr(batch, "num_graphs", 1)))
            ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        if graph.numel() == 0:
            raise ArgumentError("the batch has no nodes; models need graphs with at least one node")
        if edge_index.device.type == "cpu" and not torch.compiler.is_compiling():
            require_nodes(edge_index, graph.numel())
        degrees = getattr(batch, WHOLE_DEGREES, None)
        if degrees is not None and degrees.shape != (graph.numel(), 2):
            raise ArgumentError(
                f"{WHOLE_DEGREES} has the shape {tuple(degrees.shape)}, and the batch has {graph.numel()} nodes"
            )
        said = (getattr(batch, EXTENT, None), degrees)
        layout = cls(edge_index, graph, ptr, ptr.numel() - 1, directed, *said)
        if not directed and not torch.compiler.is_compiling() and edge_index.device.type == "cpu":
            require_edges_in_pairs(edge_index)
        return layout

    @property
    def extent(self) -> Extent:
        """The sizes of the graphs as Python numbers."""
        return self.given_extent or self._kept("extent", lambda: Extent.of(self))

    @property
    def most_items(self) -> int:
        """Most nodes and edges together of one graph of the batch; an undirected edge counts once."""
        if self.given_extent is not None and self.given_extent.most_items is not None:
            return self.given_extent.most_items
        return self._kept("most_items", self._count_most_items)

    def _count_most_items(self) -> int:
        items = self.sizes + occurrences(self.graph[self.edges[0]], self.num_graphs)
        return int(items.max()) if items.numel() else 0

    @property
    def arcs(self) -> Arcs:
        """The columns of ``edge_index``; all layers of a model share the sorted lists."""
        size = self.num_nodes
        return self._kept("arcs", lambda: Arcs(self.edge_index, size, size, symmetric=not self.directed))

    @property
    def in_degrees(self) -> Tensor:
        """int64 [N], the number of columns of ``edge_index`` that point at each node, counted once for all layers."""
        return self._kept("in_degrees", lambda: occurrences(self.edge_index[1], self.num_nodes))

    def _kept(self, name: str, make: Callable[[], _T]) -> _T:
        """Return a value that is made once; in compiled graphs it is made at every use, for want of an object."""
        if torch.compiler.is_compiling():  # functools.cached_property has a lock, which ends a graph
            return make()
        if name not in self.__dict__:
            self.__dict__[name] = make()
        value: _T = self.__dict__[name]
        return value

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.graph.numel()

    @property
    def sizes(self) -> Tensor:
        """int64 [B], nodes per graph."""
        return self.ptr[1:] - self.ptr[:-1]

    @property
    def degrees(self) -> Tensor:
        """int64 [N], the number of columns of ``edge_index`` that start at each node: neighbours, or outgoing arcs.

        Of a part of a graph that says them, the degrees in the whole graph.
        """
        if self.given_degrees is not None:
            return self.given_degrees[:, 0]
        return occurrences(self.edge_index[0], self.num_nodes)

    @property
    def both_degrees(self) -> Tensor:
        """int64 [N, 2], :attr:`degrees` and the number of arcs that point at each node, of parts in the whole graph."""
        if self.given_degrees is not None:
            return self.given_degrees
        return torch.stack([self.degrees, self.in_degrees], dim=1)

    @property
    def edges(self) -> Tensor:
        """int64 [2, M], every undirected edge once, or every arc of directed graphs."""
        return self.edge_index if self.directed else self.edge_index[:, ::2]

    def once_per_edge(self, values: Tensor) -> Tensor:
        """Return ``values`` [E, ...] as [M, ...]: the mean of an undirected edge's two directions."""
        return values if self.directed else (values[::2] + values[1::2]) / 2

    def both_directions(self, values: Tensor) -> Tensor:
        """Return ``values`` [M, ...] as [E, ...], one row per column of ``edge_index``."""
        return values if self.directed else values.repeat_interleave(2, dim=0)

    @property
    def numbers(self) -> Tensor:
        """int64 [N], the number of each node within its graph, from 0."""
        return torch.arange(self.num_nodes, device=self.graph.device) - self.ptr[self.graph]

    def local(self, nodes: Tensor) -> Tensor:
        """Return node ids counted within their graph; ``nodes`` int64 [...] counts through the batch."""
        return nodes - self.ptr[self.graph[nodes]]


def segment_sum(values: Tensor, segment: Tensor, count: int) -> Tensor:
    """Return the sums [count, ...] of the rows of ``values`` [items, ...] that share a segment id, int64 [items]."""
    return values.new_zeros(count, *values.shape[1:]).index_add(0, segment, values)


def require_nodes(edge_index: Tensor, num_nodes: int) -> None:
    """Raise an error for arcs to nodes outside the batch, where compiled functions would read foreign memory.

    Raises:
        ArgumentError: If ``edge_index`` is not int64 [2, E], or holds an id that is not a node of the batch.
    """
    _require_arc_form(edge_index)
    if edge_index.numel():
        low, high = (int(bound) for bound in edge_index.aminmax())
        if low < 0 or high >= num_nodes:
            raise ArgumentError(f"edge_index names the node {low if low < 0 else high}; the batch has {num_nodes}")


def require_edges_in_pairs(edge_index: Tensor) -> None:
    """Raise an error unless every edge has its two directions in neighbouring columns, as the suite's batches have.

    Models read an undirected edge from every second column, and the reverse of an arc from the column beside it.

    Args:
        edge_index: int64 [2, E], on the CPU.

    Raises:
        ArgumentError: If a column is not followed by its reverse; the message names the column.
    """
    columns = edge_index.shape[1]
    if columns % 2 == 0 and torch.equal(edge_index[:, ::2], edge_index[:, 1::2].flip(0)):
        return
    even = columns - columns % 2
    apart = (edge_index[:, 0:even:2] != edge_index[:, 1:even:2].flip(0)).any(dim=0)
    first = 2 * int(apart.long().argmax()) if bool(apart.any()) else even
    raise ArgumentError(
        f"column {first} of edge_index, {edge_index[:, first].tolist()}, is not followed by its reverse, but the "
        "graphs are undirected: models read both directions of an edge from neighbouring columns, u to v and then v "
        "to u, with equal features. Use the batches as the data gives them, without a transform that sorts or drops "
        "columns, or put the columns into this order"
    )


def _require_arc_form(edge_index: Tensor) -> None:
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.dtype != torch.long:
        raise ArgumentError(f"edge_index is {edge_index.dtype} {list(edge_index.shape)}; give int64 [2, E]")


def require_arcs(edge_index: Tensor, ptr: Tensor) -> None:
    """Raise an error for arcs that lead out of their graph: functions compiled graph by graph would follow them.

    Args:
        edge_index: int64 [2, E], on the CPU.
        ptr: int64 [B+1], first node of each graph.

    Raises:
        ArgumentError: If ``edge_index`` is not int64 [2, E], ``ptr`` does not rise from 0, or an arc leads to an id
            that is not a node or joins two graphs.
    """
    from graphbench.core.neighbours import first_foreign_arc

    if ptr.ndim != 1 or not len(ptr) or int(ptr[0]) != 0 or bool((ptr.diff() < 0).any()):
        raise ArgumentError(f"ptr is {ptr.tolist()!s:.60}; the first nodes of graphs rise from 0")
    _require_arc_form(edge_index)
    source, target = edge_index.contiguous().numpy()
    arc = first_foreign_arc(source, target, ptr.numpy())
    if arc >= 0:
        require_nodes(edge_index, int(ptr[-1]))
        raise ArgumentError(f"the arc {edge_index[:, arc].tolist()} joins two graphs of the batch")


def add_rows(sums: Tensor, index: Tensor, rows: Tensor) -> Tensor:
    """Return ``sums`` [N, ...] with row ``e`` of ``rows`` [E, ...] added to row ``index[e]``; ``index`` is int64 [E].

    Under autocast one may be bfloat16 and the other float32, which ``index_add`` rejects; the sum has the wider type.
    """
    dtype = torch.promote_types(sums.dtype, rows.dtype)
    return sums.to(dtype).index_add(0, index, rows.to(dtype))


def neighbour_sums(values: Tensor, layout: Layout) -> Tensor:
    """Return the sum over arcs (u, v) of ``values[u]`` for every v, shaped as ``values`` [N, d] or [N]."""
    return arc_sums(values, layout.arcs)


def segment_mean(values: Tensor, segment: Tensor, sizes: Tensor) -> Tensor:
    """Return the mean [count, d] of each segment of ``values`` [items, d]; ``sizes`` int64 [count] are the lengths."""
    return segment_sum(values, segment, sizes.numel()) / sizes.clamp(min=1).unsqueeze(1)


def segment_max(values: Tensor, segment: Tensor, count: int) -> Tensor:
    """Return the maxima [count, ...] of the rows of ``values`` [items, ...] that share a segment; -inf without rows."""
    rows = segment.view(-1, *[1] * (values.ndim - 1)).expand_as(values)
    return values.new_full((count, *values.shape[1:]), -torch.inf).scatter_reduce(0, rows, values, "amax")


def segment_log_softmax(logits: Tensor, segment: Tensor, count: int) -> Tensor:
    """Return the log-softmax of ``logits`` [items] within each segment, float [items]."""
    shifted = logits - segment_max(logits.detach(), segment, count)[segment]
    return shifted - segment_sum(shifted.exp(), segment, count).log()[segment]


def segment_argmax(values: Tensor, segment: Tensor, count: int) -> Tensor:
    """Return the position int64 [count] of each segment's first maximum among ``values`` [items]."""
    highest = segment_max(values, segment, count)
    positions = torch.arange(values.numel(), device=values.device)
    positions = positions.masked_fill(values < highest[segment], values.numel())
    best = positions.new_full((count,), values.numel())
    return best.scatter_reduce(0, segment, positions, "amin")
