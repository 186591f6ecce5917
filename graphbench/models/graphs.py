"""The layout of the graphs of a batch in flat arrays, and sums over their nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphbench.core.errors import ArgumentError
from graphbench.models.arcs import Arcs, arc_sums

_CACHED = "_graphbench_layout"  # attribute of a batch


@dataclass(frozen=True)
class Layout:
    """The positions of each graph's nodes and edges in a batch.

    Attributes:
        edge_index: int64 [2, E]. Undirected graphs: columns ``2j`` and ``2j + 1`` are the two directions of edge ``j``.
        graph: int64 [N], the graph of each node, non-decreasing.
        ptr: int64 [B+1], first node of each graph.
        num_graphs: B.
        directed: Whether each column of ``edge_index`` is a separate arc.
    """

    edge_index: Tensor
    graph: Tensor
    ptr: Tensor
    num_graphs: int
    directed: bool

    @classmethod
    def of(cls, batch: Data, directed: bool) -> Layout:
        """Return the layout of a PyG ``Batch``; a plain ``Data`` is a batch of one graph.

        A batch keeps its layout, so that a batch that is used repeatedly (for example a large graph) is sorted once.
        """
        edge_index: Tensor = batch.edge_index
        graph = getattr(batch, "batch", None)
        if torch.compiler.is_compiling():
            return cls._made(batch, edge_index, graph, directed)
        cached = batch.__dict__.get(_CACHED)
        if cached is not None and cached[0] is edge_index and cached[1] is graph and cached[2].directed == directed:
            kept: Layout = cached[2]
            return kept
        layout = cls._made(batch, edge_index, graph, directed)
        batch.__dict__[_CACHED] = (edge_index, graph, layout)
        return layout

    @classmethod
    def _made(cls, batch: Data, edge_index: Tensor, graph: Tensor | None, directed: bool) -> Layout:
        if graph is None:
            graph = torch.zeros(int(batch.num_nodes or 0), dtype=torch.long, device=edge_index.device)
        ptr = getattr(batch, "ptr", None)
        if ptr is None:
            counts = torch.bincount(graph, minlength=int(getattr(batch, "num_graphs", 1)))
            ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        if edge_index.device.type == "cpu" and not torch.compiler.is_compiling():
            require_nodes(edge_index, graph.numel())
        return cls(edge_index, graph, ptr, ptr.numel() - 1, directed)

    @cached_property
    def arcs(self) -> Arcs:
        """The columns of ``edge_index``; all layers of a model share the sorted lists."""
        return Arcs(self.edge_index, self.num_nodes, self.num_nodes, symmetric=not self.directed)

    @cached_property
    def in_degrees(self) -> Tensor:
        """int64 [N], the number of columns of ``edge_index`` that point at each node, counted once for all layers."""
        return torch.bincount(self.edge_index[1], minlength=self.num_nodes)

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
        """int64 [N], the number of columns of ``edge_index`` that start at each node: neighbours, or outgoing arcs."""
        return torch.bincount(self.edge_index[0], minlength=self.num_nodes)

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
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.dtype != torch.long:
        raise ArgumentError(f"edge_index is {edge_index.dtype} {list(edge_index.shape)}; give int64 [2, E]")
    if edge_index.numel():
        low, high = (int(bound) for bound in edge_index.aminmax())
        if low < 0 or high >= num_nodes:
            raise ArgumentError(f"edge_index names the node {low if low < 0 else high}; the batch has {num_nodes}")


def require_arcs(edge_index: Tensor, ptr: Tensor) -> None:
    """Raise an error for arcs that lead out of their graph: functions compiled graph by graph would follow them.

    Args:
        edge_index: int64 [2, E].
        ptr: int64 [B+1], first node of each graph.

    Raises:
        ArgumentError: If ``edge_index`` is not int64 [2, E], ``ptr`` does not rise from 0, or an arc leads to an id
            that is not a node or joins two graphs.
    """
    sizes = ptr.diff()
    if ptr.ndim != 1 or not len(ptr) or int(ptr[0]) != 0 or bool((sizes < 0).any()):
        raise ArgumentError(f"ptr is {ptr.tolist()!s:.60}; the first nodes of graphs rise from 0")
    require_nodes(edge_index, int(ptr[-1]))
    source, target = torch.repeat_interleave(sizes)[edge_index]
    if not torch.equal(source, target):
        arc = int((source != target).nonzero()[0])
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


def segment_log_softmax(logits: Tensor, segment: Tensor, count: int) -> Tensor:
    """Return the log-softmax of ``logits`` [items] within each segment, float [items]."""
    highest = logits.detach().new_full((count,), -torch.inf)
    highest = highest.scatter_reduce(0, segment, logits.detach(), "amax")
    shifted = logits - highest[segment]
    return shifted - segment_sum(shifted.exp(), segment, count).log()[segment]


def segment_argmax(values: Tensor, segment: Tensor, count: int) -> Tensor:
    """Return the position int64 [count] of each segment's first maximum among ``values`` [items]."""
    highest = values.new_full((count,), -torch.inf).scatter_reduce(0, segment, values, "amax")
    positions = torch.arange(values.numel(), device=values.device)
    positions = positions.masked_fill(values < highest[segment], values.numel())
    best = positions.new_full((count,), values.numel())
    return best.scatter_reduce(0, segment, positions, "amin")
