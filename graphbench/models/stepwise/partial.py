"""Partial solutions of combinatorial problems: what is decided, what follows from it, and the next decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import ClassVar, Self

import torch
from torch import Tensor

from graphbench.catalog.features import Feature
from graphbench.models.stepwise.residual import Residual

CERTAIN = 20.0
"""Logit of a decision: its probability is 1 within 1e-8."""


class PartialSolutions(ABC):
    """The partial solutions of the graphs of a batch, one per graph.

    Attributes:
        features: Inputs of undecided nodes that a network reads beside the graph that these nodes induce.
        kept: Mean share of the decisions that a repair keeps, unless the model's configuration says another.
        varied: Largest share of the decisions that a training step takes back.
        edge_index: int64 [2, E], both directions of every edge.
        graph: int64 [N], the graph of each node.
        num_graphs: Number of graphs.
        classes: Number of values that a decision can have, the classes of the output.
        state: int64 [N], the decisions; ``UNDECIDED`` for nodes that have none.
    """

    features: ClassVar[tuple[Feature, ...]] = ()
    kept: ClassVar[float] = 0.5
    varied: ClassVar[float] = 1.0
    UNDECIDED: ClassVar[int] = -1

    def __init__(self, edge_index: Tensor, graph: Tensor, num_graphs: int, classes: int = 2) -> None:
        self.edge_index, self.graph, self.num_graphs, self.classes = edge_index, graph, num_graphs, classes
        self.state = torch.full_like(graph, self.UNDECIDED)

    def copy(self) -> Self:
        """Return a copy with its own decisions."""
        copied = copy(self)
        copied.state = self.state.clone()
        return copied

    def undecided(self) -> Residual:
        """Return the undecided nodes, and the graphs that they induce."""
        return Residual.whole(self.edge_index, self.graph, self.num_graphs).narrowed(self.state == self.UNDECIDED)

    def remaining(self, left: Residual) -> Residual:
        """Return what is undecided of the nodes that were undecided before the last decisions."""
        return left.narrowed(self.state[left.nodes] == self.UNDECIDED)

    def take(self, other: Self, graphs: Tensor) -> None:
        """Take the decisions of some graphs, bool [G], from other solutions of the same batch."""
        self.state = torch.where(graphs[self.graph], other.state, self.state)

    def inputs(self, left: Residual) -> Mapping[str, Tensor]:
        """Return the values of :attr:`features` of the undecided nodes."""
        return {}

    def mirrored(self, inputs: Mapping[str, Tensor]) -> Mapping[str, Tensor] | None:
        """Return the inputs for the mirror image of the decisions, with scores of the other sign, if there is one."""
        return None

    def logits(self, left: Residual, scores: Tensor) -> Tensor:
        """Return the logits of all nodes: from the scores of the undecided ones, and ±``CERTAIN`` for decisions.

        They have the shape of the task's output: [N] for a mask, the logits of 1, and [N, K] for K classes.
        """
        certain = torch.where(self.state == 1, CERTAIN, -CERTAIN).to(scores.dtype)
        return certain.index_copy(0, left.nodes, scores)

    def answers(self) -> Tensor:
        """Return the decisions that make up the solution of every graph, int64 [N]."""
        return self.state

    def final(self, state: Tensor) -> Tensor:
        """Return scores that decode to decisions of all nodes, int64 [N]; they have the shape of the output."""
        return torch.where(state == 1, 1.0, -1.0)

    @abstractmethod
    def decide(self, left: Residual, scores: Tensor, rounds_left: int) -> None:
        """Decide at least one undecided node of every graph that has any.

        Args:
            left: The undecided nodes.
            scores: Their scores, [n], without a gradient.
            rounds_left: Number of rounds in which all nodes should be decided, this one included; 1 where it has
                passed.
        """

    def vary(self) -> None:  # noqa: B027 - most solutions begin with no decision
        """Make the decisions with which a training step begins, where a prediction begins with others."""

    @abstractmethod
    def reveal(self, solution: Tensor, chosen: Tensor) -> None:
        """Decide some nodes, bool [N], as a solution does, [N] as the data has it."""

    def shares_kept(self, shares: Tensor) -> Tensor:
        """Return the probability that a repair keeps the decision on a node, [N], from a mean per graph, [G]."""
        return shares[self.graph]

    def random_nodes(self) -> Tensor:
        """Return random nodes of every graph, bool [N], of which each graph has another expected share."""
        shares = self.varied * torch.rand(self.num_graphs, device=self.graph.device)
        return torch.rand(self.graph.shape, device=self.graph.device) < shares[self.graph]

    @abstractmethod
    def take_back(self, chosen: Tensor) -> None:
        """Make decisions on some nodes, bool [N], undone, with all that followed from them."""

    @abstractmethod
    def values(self) -> Tensor:
        """Return the objective of every graph's decisions, int64 [G]; larger is better."""

    def merits(self) -> Tensor:
        """Return what orders whole solutions, int64 [G]: the objective, and among equal ones how promising they are."""
        return self.values()
