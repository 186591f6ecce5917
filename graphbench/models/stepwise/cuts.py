"""Cuts of which some nodes have a side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from graphbench.catalog.features import Feature
from graphbench.models.arcs import occurrences
from graphbench.models.graphs import segment_sum
from graphbench.models.stepwise.partial import PartialSolutions
from graphbench.models.stepwise.residual import Residual, best_peaks, ranks_within

_PULL = Feature.parse("pull", ("input", "node", "scalar(3)"))


class Cuts(PartialSolutions):
    """Cuts: the side of a node, 0 or 1. The first decision of a graph is side 0 for a node of the highest degree."""

    features: ClassVar[tuple[Feature, ...]] = (_PULL,)
    kept: ClassVar[float] = 0.9

    def __init__(self, edge_index: Tensor, graph: Tensor, num_graphs: int, classes: int = 2) -> None:
        super().__init__(edge_index, graph, num_graphs, classes)
        degrees = occurrences(edge_index[0], graph.numel())
        self.state[ranks_within(degrees.double(), graph, num_graphs) == 0] = 0

    def inputs(self, left: Residual) -> Mapping[str, Tensor]:
        """Return ``pull``, float32 [n, 3].

        With a and b decided neighbours on side 0 and on side 1, it is log(1 + a), log(1 + b) and (a - b) / sqrt(1 + a +
        b); the last one is about as large for nodes of any degree if their neighbours have random sides.
        """
        tails, heads = self.edge_index
        sides = torch.stack([self.state == 0, self.state == 1], dim=1).float()
        counts = segment_sum(sides[tails], heads, self.graph.numel())[left.nodes]
        lead = (counts[:, 0] - counts[:, 1]) / (1 + counts.sum(1)).sqrt()
        return {_PULL.name: torch.cat([torch.log1p(counts), lead.unsqueeze(1)], dim=1)}

    def mirrored(self, inputs: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return ``pull`` with the two sides exchanged."""
        return {_PULL.name: inputs[_PULL.name][:, [1, 0, 2]] * inputs[_PULL.name].new_tensor([1, 1, -1])}

    def decide(self, left: Residual, scores: Tensor, rounds_left: int) -> None:
        """Give nodes their sides that are more certain than all undecided neighbours, and all nodes in the last round.

        Neighbours that decided at once, by equal scores, would have the same side.
        """
        chosen = torch.ones_like(left.graph, dtype=torch.bool)
        if rounds_left > 1:
            chosen = best_peaks(left, scores.abs(), chosen, 1)
        self.state[left.nodes[chosen]] = (scores[chosen] > 0).long()

    def reveal(self, solution: Tensor, chosen: Tensor) -> None:
        """Give chosen nodes the sides of a cut, which is turned so that the first decision is on side 0."""
        sides = (solution.reshape(-1) > 0).long()
        anchor = self.state == 0
        turned = segment_sum(sides * anchor, self.graph, self.num_graphs)[self.graph]
        self.state = torch.where(chosen, sides ^ turned, self.state)

    def take_back(self, chosen: Tensor) -> None:
        """Make chosen nodes undecided."""
        self.state = torch.where(chosen, self.UNDECIDED, self.state)

    def values(self) -> Tensor:
        """Return the numbers of edges between the sides."""
        tails, heads = self.edge_index
        cut = (self.state[tails] != self.state[heads]).long()
        return segment_sum(cut, self.graph[tails], self.num_graphs) // 2
