"""All ordered pairs of nodes of the graphs of a batch, packed: one row per pair, row by row and graph after graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphbench.core.ragged import offsets
from graphbench.data.batches.batching import move
from graphbench.models.fused import is_compiled, with_reverse
from graphbench.models.graphs import Layout


@dataclass(frozen=True)
class PairLayout:
    """The positions of the pairs of nodes of each graph; ``P`` is the sum of the squared numbers of nodes.

    The pair (u, v) of a graph with n nodes, whose nodes are counted from 0 and whose pairs begin at row p, has the row
    ``p + u * n + v``.

    Attributes:
        counts: int64 [B], nodes per graph, on the CPU.
        device: Where the positions are.
    """

    counts: NDArray[np.int64]
    device: torch.device

    @classmethod
    def of(cls, layout: Layout) -> PairLayout:
        """Return the pairs of a batch; on a device the caller waits for the sizes of graphs that were not prepared."""
        nodes = layout.extent.nodes
        return cls(layout.sizes.cpu().numpy() if nodes is None else nodes, layout.edge_index.device)

    @property
    def most_nodes(self) -> int:
        """Nodes of the largest graph; 0 without graphs."""
        return int(self.counts.max()) if len(self.counts) else 0

    @property
    def size(self) -> int:
        """P."""
        return int((self.counts**2).sum())

    @property
    def same_size(self) -> int | None:
        """The number of nodes of every graph; None if graphs differ."""
        return int(self.counts[0]) if len(self.counts) and bool((self.counts == self.counts[0]).all()) else None

    @cached_property
    def _arrays(self) -> dict[str, Tensor]:
        squares = self.counts**2
        first = np.repeat(offsets(squares)[:-1], squares)
        sizes = np.repeat(self.counts, squares)
        inside = np.arange(self.size) - first
        rows, columns = inside // np.maximum(sizes, 1), inside % np.maximum(sizes, 1)
        nodes = np.repeat(offsets(self.counts)[:-1], squares)
        arrays = {
            "first_of_graph": first,
            "sizes": sizes,
            "columns": columns,
            "first_of_row": first + rows * sizes,
            "tails": nodes + rows,
            "heads": nodes + columns,
            "transposed": first + columns * sizes + rows,
        }
        if self.device.type == "cpu":
            return {name: torch.from_numpy(array) for name, array in arrays.items()}
        return dict(zip(arrays, move(torch.from_numpy(np.stack(list(arrays.values()))), self.device), strict=True))

    @property
    def first_of_graph(self) -> Tensor:
        """int64 [P], the first row of each pair's graph."""
        return self._arrays["first_of_graph"]

    @property
    def sizes(self) -> Tensor:
        """int64 [P], the number of nodes of each pair's graph."""
        return self._arrays["sizes"]

    @property
    def columns(self) -> Tensor:
        """int64 [P], the second node of each pair, counted within its graph."""
        return self._arrays["columns"]

    @property
    def first_of_row(self) -> Tensor:
        """int64 [P], the row of the pair (u, 0) for every pair (u, v)."""
        return self._arrays["first_of_row"]

    @property
    def tails(self) -> Tensor:
        """int64 [P], the first node of each pair, counted through the batch."""
        return self._arrays["tails"]

    @property
    def heads(self) -> Tensor:
        """int64 [P], the second node of each pair, counted through the batch."""
        return self._arrays["heads"]

    @cached_property
    def loops(self) -> Tensor:
        """int64 [N], the row of the pair (v, v) of every node."""
        ptr, sizes = offsets(self.counts), np.repeat(self.counts, self.counts)
        inside = np.arange(ptr[-1]) - np.repeat(ptr[:-1], self.counts)
        loops = np.repeat(offsets(self.counts**2)[:-1], self.counts) + inside * (sizes + 1)
        return move(torch.from_numpy(loops), self.device)

    def rows_of(self, ends: Tensor, layout: Layout) -> Tensor:
        """Return the rows int64 [E] of pairs ``ends`` int64 [2, E] of nodes, which are counted through the batch."""
        graph = layout.graph[ends[0]]
        sizes = layout.sizes
        firsts = torch.cumsum(sizes**2, 0) - sizes**2
        tails, heads = layout.local(ends[0]), layout.local(ends[1])
        return firsts[graph] + tails * sizes[graph] + heads

    def of_edges(self, values: Tensor, layout: Layout) -> Tensor:
        """Return ``values`` [P, d] of the pairs of every edge: the mean of both directions, [M, d].

        Edges of directed graphs have the value in their direction, followed by the value in the other, [M, 2 d].
        """
        ahead = values.index_select(0, self.rows_of(layout.edges, layout))
        back = values.index_select(0, self.rows_of(layout.edges.flip(0), layout))
        return torch.cat([ahead, back], dim=1) if layout.directed else (ahead + back) / 2

    def of_graphs(self, values: NDArray[np.int64]) -> Tensor:
        """Return ``values`` [B] repeated for the pairs of each graph, [P]."""
        return move(torch.from_numpy(np.repeat(values, self.counts**2)), self.device)

    def transposed(self, values: Tensor) -> Tensor:
        """Return ``values`` [P, d] with the row of (v, u) in the place of (u, v)."""
        n = self.same_size
        if n is not None:
            return values.view(-1, n, n, values.shape[1]).transpose(1, 2).reshape(values.shape)
        return values.index_select(0, self._arrays["transposed"])

    def with_reverse(self, values: Tensor) -> Tensor:
        """Return ``values`` [P, d] of the pairs (u, v) and (v, u) beside each other, [P, 2 d]."""
        if is_compiled(values.shape[1], values):
            return with_reverse(values, self.counts)
        return torch.cat([values, self.transposed(values)], dim=1)

    def with_ends(self, values: Tensor, tails: Tensor, heads: Tensor) -> Tensor:
        """Return ``values`` [P, d], or [d], plus ``tails`` [N, d] of first nodes and ``heads`` [N, d] of second nodes.

        The pair (u, v) receives ``tails[u]`` and ``heads[v]``; the result is [P, d].
        """
        n, width = self.same_size, tails.shape[1]
        if n is None:
            return values + tails.index_select(0, self.tails) + heads.index_select(0, self.heads)
        square = values.view(-1, n, n, width) if values.ndim > 1 else values
        return (square + tails.view(-1, n, 1, width) + heads.view(-1, 1, n, width)).view(-1, width)

    def through(self, w: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return for every pair (u, v) the rows of (u, w) and (w, v), int64 [P], and whether its graph has a node w."""
        there = self.sizes > w
        first = torch.where(there, self.first_of_row + w, 0)
        second = torch.where(there, self.first_of_graph + w * self.sizes + self.columns, 0)
        return first, second, there

    def summed(self, values: Tensor, arcs: Tensor) -> Tensor:
        """Return for every node the sum [N, d] of ``values`` [P, d] in the rows ``arcs`` int64 [A] that end at it."""
        total = values.new_zeros(int(self.counts.sum()), values.shape[1])
        return total.index_add(0, self.heads.index_select(0, arcs), values.index_select(0, arcs))

    def pooled(self, values: Tensor, kind: str) -> Tensor:
        """Return the ``mean`` or ``max`` of the pairs that end at every node, [N, d], of ``values`` [P, d]."""
        n = self.same_size
        if n is not None:
            square = values.view(-1, n, n, values.shape[1])
            result = square.amax(1) if kind == "max" else square.mean(1)
            return result.reshape(-1, values.shape[1])
        nodes = int(self.counts.sum())
        if kind == "max":
            low = values.new_full((nodes, values.shape[1]), -torch.inf)
            return low.scatter_reduce(0, self.heads.unsqueeze(1).expand_as(values), values, "amax")
        total = values.new_zeros(nodes, values.shape[1]).index_add(0, self.heads, values)
        sizes = move(torch.from_numpy(np.repeat(self.counts, self.counts)), values.device).to(values.dtype)
        return total / sizes.unsqueeze(1)
