"""Independent sets, vertex covers and cliques to which nodes are added."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from graphbench.models.graphs import segment_sum
from graphbench.models.stepwise.partial import PartialSolutions
from graphbench.models.stepwise.residual import Residual, best_peaks, ranks_within


class GrowingSets(PartialSolutions):
    """Sets to which nodes are added: 1 for a member, 0 for a node that no longer can become one."""

    def reveal(self, solution: Tensor, chosen: Tensor) -> None:
        """Let chosen nodes of a set join."""
        self.state[(solution.reshape(-1) > 0) & chosen] = 1
        self._block()

    def take_back(self, chosen: Tensor) -> None:
        """Take chosen members out of the set."""
        members = (self.state == 1) & ~chosen
        self.state = torch.where(members, 1, self.UNDECIDED)
        self._block()

    def values(self) -> Tensor:
        """Return the sizes of the sets."""
        return segment_sum((self.state == 1).long(), self.graph, self.num_graphs)

    @abstractmethod
    def _block(self) -> None:
        """Decide the nodes that can no longer join."""


class IndependentSets(GrowingSets):
    """Independent sets: no node joins that has a member beside it."""

    def decide(self, left: Residual, scores: Tensor, rounds_left: int) -> None:
        """Let nodes join the set whose scores are above those of all undecided neighbours, the highest scores first."""
        joining = best_peaks(left, scores, torch.ones_like(left.graph, dtype=torch.bool), 1 / rounds_left)
        tails, heads = left.edge_index
        self.state[left.nodes[heads[joining[tails]]]] = 0
        self.state[left.nodes[joining]] = 1

    def _block(self) -> None:
        tails, heads = self.edge_index
        self.state[heads[self.state[tails] == 1]] = 0


class VertexCovers(IndependentSets):
    """Vertex covers, by the independent set of the nodes outside: 1 for such a node, 0 for a member of the cover."""

    def logits(self, left: Residual, scores: Tensor) -> Tensor:
        """Return the logits of members of the cover; the scores of undecided nodes are those of staying outside."""
        return -super().logits(left, scores)

    def final(self, state: Tensor) -> Tensor:
        """Return positive scores for the members of the cover."""
        return -super().final(state)

    def reveal(self, solution: Tensor, chosen: Tensor) -> None:
        """Leave chosen nodes outside that a cover leaves outside."""
        super().reveal(1 - (solution.reshape(-1) > 0).long(), chosen)

    def values(self) -> Tensor:
        """Return minus the sizes of the covers."""
        return -segment_sum((self.state != 1).long(), self.graph, self.num_graphs)


class Cliques(GrowingSets):
    """Cliques: no node joins that is not joined to every member. One node joins each graph's clique in a round."""

    def decide(self, left: Residual, scores: Tensor, rounds_left: int) -> None:
        """Let the node of the highest score join."""
        self.state[left.nodes[ranks_within(scores, left.graph, left.num_graphs) == 0]] = 1
        self._block()

    def _block(self) -> None:
        tails, heads = self.edge_index
        members = self.state == 1
        joined = segment_sum(members[tails].long(), heads, self.graph.numel())
        wanted = segment_sum(members.long(), self.graph, self.num_graphs)[self.graph]
        self.state[~members & (joined < wanted)] = 0
