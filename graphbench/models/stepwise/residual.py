"""The part of a batch whose nodes are undecided, the best of its nodes, and random numbers by the graph alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphbench.models.arcs import occurrences
from graphbench.models.hashing import hashed

_BITS = 24
_MOST_EDGES = 12  # of the paths along which regions grow
_FAR = 512.0  # farther than any node that such a path reaches: no length is above 17.4 (-log of 0.5 / 2^24)


@dataclass(frozen=True)
class Residual:
    """The graphs that some nodes of a batch induce.

    Attributes:
        nodes: int64 [n], the nodes in the batch, rising.
        edge_index: int64 [2, e], arcs between these nodes, which are numbered from 0 to n - 1; the two directions of an
            edge are neighbouring columns, as in the batch.
        graph: int64 [n], the graph of each node in the batch.
        num_graphs: Number of graphs of the batch; some may have no node here.
        option: int64 [n], where a node stands for one of the decisions that are possible for a node of the batch: which
            one. ``nodes`` then has a node of the batch once for each of them.
    """

    nodes: Tensor
    edge_index: Tensor
    graph: Tensor
    num_graphs: int
    option: Tensor | None = None

    @classmethod
    def whole(cls, edge_index: Tensor, graph: Tensor, num_graphs: int) -> Residual:
        """Return all nodes of a batch."""
        return cls(torch.arange(graph.numel(), device=graph.device), edge_index, graph, num_graphs)

    def __len__(self) -> int:
        """Return the number of nodes."""
        return self.nodes.numel()

    @property
    def ptr(self) -> Tensor:
        """int64 [G + 1], the first node of each graph."""
        counts = occurrences(self.graph, self.num_graphs)
        return torch.cat([counts.new_zeros(1), counts.cumsum(0)])

    def narrowed(self, kept: Tensor) -> Residual:
        """Return the part that some of the nodes induce; ``kept`` is bool [n]."""
        number = kept.cumsum(0) - 1
        tails, heads = self.edge_index
        arcs = self.edge_index[:, kept[tails] & kept[heads]]
        option = None if self.option is None else self.option[kept]
        return Residual(self.nodes[kept], number[arcs], self.graph[kept], self.num_graphs, option)


def uniform_numbers(seeds: Tensor, *numbers: Tensor | int) -> Tensor:
    """Return numbers above 0 and below 1 that are functions of the arguments, float32, shaped as ``seeds`` int64."""
    mixed = hashed(seeds)
    for number in numbers:
        mixed = hashed(mixed ^ hashed(torch.as_tensor(number, device=seeds.device)))
    return ((mixed & ((1 << _BITS) - 1)).float() + 0.5) / (1 << _BITS)


def gumbel_numbers(seeds: Tensor, *numbers: Tensor | int) -> Tensor:
    """Return standard Gumbel noise that is a function of the arguments, float32, shaped as ``seeds``."""
    return -torch.log(-torch.log(uniform_numbers(seeds, *numbers)))


def ranks_within(keys: Tensor, graph: Tensor, num_graphs: int) -> Tensor:
    """Return the rank of every item within its graph, int64 [n]: 0 for the largest key, equal keys in the order given.

    Args:
        keys: float [n].
        graph: int64 [n], not falling.
        num_graphs: Number of graphs.
    """
    falling = torch.argsort(keys, descending=True, stable=True)
    order = falling[torch.argsort(graph[falling], stable=True)]
    counts = occurrences(graph, num_graphs)
    first = counts.cumsum(0) - counts
    ranks = torch.empty_like(graph)
    ranks[order] = torch.arange(len(order), device=graph.device) - first[graph[order]]
    return ranks


def nearest_nodes(edge_index: Tensor, graph: Tensor, first: Tensor, lengths: Tensor, shares: Tensor) -> Tensor:
    """Return a share of each graph's nodes, bool [N], that are nearest to the node with the largest ``first``.

    The distance of a node is the smallest sum of lengths over the nodes of a path of at most 12 edges, without the
    length of its beginning. Nodes without such a path come last, nodes of large ``first`` before others.

    Args:
        edge_index: int64 [2, E], both directions of every edge.
        graph: int64 [N], the graph of each node.
        first: float32 [N].
        lengths: float32 [N], above 0.
        shares: float32 [G], rounded up to whole nodes.
    """
    count = shares.numel()
    tails, heads = edge_index
    centre = ranks_within(first, graph, count) == 0
    distance = torch.where(centre, 0.0, torch.inf)
    for _ in range(_MOST_EDGES):
        beside = torch.full_like(distance, torch.inf).scatter_reduce(0, heads, distance[tails], "amin")
        distance = torch.minimum(distance, beside + lengths)
    nearness = torch.where(distance.isinf(), first - _FAR, -distance)
    wanted = torch.ceil(shares * occurrences(graph, count))
    return ranks_within(nearness, graph, count) < wanted[graph]


def best_peaks(left: Residual, scores: Tensor, allowed: Tensor, share: float) -> Tensor:
    """Return the allowed nodes, bool [n], with scores above those of all allowed neighbours, a share of each graph's.

    No two of them are neighbours. At least one node of every graph is among them, if one is allowed. Of equal scores,
    the node that comes first has the higher one.
    """
    order = torch.argsort(scores, descending=True, stable=True)
    height = torch.empty_like(order)
    height[order] = torch.arange(len(order), 0, -1, device=order.device)
    height = height.masked_fill(~allowed, 0)
    tails, heads = left.edge_index
    beside = height.new_zeros(len(left)).scatter_reduce(0, heads, height[tails], "amax")
    peaks = height > beside
    count = occurrences(left.graph[peaks], left.num_graphs)
    rank = torch.full_like(height, len(left))
    rank[peaks] = ranks_within(scores[peaks], left.graph[peaks], left.num_graphs)
    return peaks & (rank < torch.ceil(share * count)[left.graph])
