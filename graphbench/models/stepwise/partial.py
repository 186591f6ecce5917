"""Partial solutions of combinatorial problems: what is decided, what follows for the other nodes, and the next steps.

================  ==========================================  =========================================================
problem           a node is decided when                      what the network reads of the undecided nodes
================  ==========================================  =========================================================
independent_set   it is in the set, or a neighbour is         the graph that they induce: a set of it may be added
vertex_cover      as for the set of the nodes outside         the same
clique            it is in the clique, or is not joined to    the graph of the nodes that are joined to all members
                  a member
max_cut           it has a side                               this graph, and how many decided neighbours have each side
coloring          it has a colour                             this graph, and which nodes may have the present colour:
                                                              colours are filled one after the other
================  ==========================================  =========================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import ClassVar, Self

import torch
from torch import Tensor

from graphbench.catalog.features import Feature
from graphbench.core.errors import ConfigError
from graphbench.models.arcs import occurrences
from graphbench.models.graphs import segment_sum
from graphbench.models.stepwise.residual import Residual, ranks_within

CERTAIN = 20.0
"""Logit of a decision: its probability is 1 within 1e-8."""


class PartialSolutions(ABC):
    """The partial solutions of the graphs of a batch, one per graph.

    Attributes:
        features: Inputs of undecided nodes that a network reads beside the graph that these nodes induce.
        kept: Mean share of the decisions that a repair keeps, unless the model's configuration says another.
        edge_index: int64 [2, E], both directions of every edge.
        graph: int64 [N], the graph of each node.
        num_graphs: Number of graphs.
        classes: Number of values that a decision can have, the classes of the output.
        state: int64 [N], the decisions; ``UNDECIDED`` for nodes that have none.
    """

    features: ClassVar[tuple[Feature, ...]] = ()
    kept: ClassVar[float] = 0.5
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

    @abstractmethod
    def reveal(self, solution: Tensor, chosen: Tensor) -> None:
        """Decide some nodes, bool [N], as a solution does, [N] as the data has it."""

    @abstractmethod
    def take_back(self, chosen: Tensor) -> None:
        """Make decisions on some nodes, bool [N], undone, with all that followed from them."""

    @abstractmethod
    def values(self) -> Tensor:
        """Return the objective of every graph's decisions, int64 [G]; larger is better."""

    def merits(self) -> Tensor:
        """Return what orders whole solutions, int64 [G]: the objective, and among equal ones how promising they are."""
        return self.values()


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
        joining = _best_peaks(left, scores, torch.ones_like(left.graph, dtype=torch.bool), 1 / rounds_left)
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
            chosen = _best_peaks(left, scores.abs(), chosen, 1)
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


_OPEN = Feature.parse("open", ("input", "node", "mask"))
_SHARE = 0.5  # of the nodes that could have the present colour at once and do, the highest scores


class Colourings(PartialSolutions):
    """Colourings: colours are filled one after the other, and a node is open that may have the present one.

    Attributes:
        colour: int64 [G], the present colour of each graph.
        open: bool [N], the undecided nodes that may have the present colour; every graph with undecided nodes has one.
    """

    features: ClassVar[tuple[Feature, ...]] = (_OPEN,)
    kept: ClassVar[float] = 0.8

    def __init__(self, edge_index: Tensor, graph: Tensor, num_graphs: int, classes: int = 2) -> None:
        super().__init__(edge_index, graph, num_graphs, classes)
        self.colour = torch.zeros(num_graphs, dtype=torch.long, device=graph.device)
        self.open = torch.ones_like(graph, dtype=torch.bool)

    def inputs(self, left: Residual) -> Mapping[str, Tensor]:
        """Return ``open``, bool [n]."""
        return {_OPEN.name: self.open[left.nodes]}

    def logits(self, left: Residual, scores: Tensor) -> Tensor:
        """Return logits of colours, [N, K]: a score belongs to the present colour, and 0 to all later ones together."""
        number = torch.arange(self.classes, device=scores.device)
        present = self.colour[self.graph][:, None]
        later = (self.classes - 1 - present).clamp(min=1).to(scores.dtype).log()
        rows = torch.where(number > present, -later, torch.full_like(later, -CERTAIN))
        decided = torch.where(number == self.state[:, None], CERTAIN, -CERTAIN).to(scores.dtype)
        rows = torch.where((self.state == self.UNDECIDED)[:, None], rows, decided)
        of_open = torch.where(self.open[left.nodes], scores, torch.full_like(scores, -CERTAIN))
        return rows.index_put((left.nodes, self.colour[left.graph]), of_open)

    def final(self, state: Tensor) -> Tensor:
        """Return 1 for the colour of a node and 0 for all others, float32 [N, K]."""
        return torch.nn.functional.one_hot(state, max(self.classes, int(state.max()) + 1)).float()

    def decide(self, left: Residual, scores: Tensor, rounds_left: int) -> None:
        """Give open nodes the present colour whose scores are above those of all open neighbours, the highest first."""
        chosen = _best_peaks(left, scores, self.open[left.nodes], _SHARE)
        self.state[left.nodes[chosen]] = self.colour[left.graph[chosen]]
        self._open_nodes()

    def reveal(self, solution: Tensor, chosen: Tensor) -> None:
        """Give nodes the colours of a solution up to a random colour, which is then the present one.

        Of the nodes of the present colour, the chosen ones are decided.
        """
        colours = solution.reshape(-1).long()
        most = colours.new_zeros(self.num_graphs).scatter_reduce(0, self.graph, colours, "amax")
        self.colour = (torch.rand(self.num_graphs, device=colours.device) * (most + 1)).long()
        present = self.colour[self.graph]
        self.state = torch.where((colours < present) | (chosen & (colours == present)), colours, self.state)
        self._open_nodes()

    def take_back(self, chosen: Tensor) -> None:
        """Take the colours of the chosen first nodes of colours from all their nodes; the others are numbered anew."""
        nodes, key, most = self._coloured()
        first = nodes.new_full((self.num_graphs * most,), len(chosen)).scatter_reduce(0, key, nodes, "amin")
        kept = (first < len(chosen)) & ~chosen[first.clamp(max=len(chosen) - 1)]
        kept = kept.view(self.num_graphs, most)
        renamed = (kept.cumsum(1) - 1).masked_fill(~kept, self.UNDECIDED)
        self.state = self.state.index_put((nodes,), renamed.flatten()[key])
        self.colour = kept.sum(1)
        self._open_nodes()

    def values(self) -> Tensor:
        """Return minus the numbers of colours."""
        most = self.state.new_full((self.num_graphs,), -1).scatter_reduce(0, self.graph, self.state, "amax")
        return -(most + 1)

    def merits(self) -> Tensor:
        """Return what orders colourings: fewer colours, then unequal ones, by the sum of the squares of their sizes.

        A colour of few nodes is the next one to disappear, so this order leads to fewer colours.
        """
        _, key, most = self._coloured()
        squares = occurrences(key, self.num_graphs * most).view(self.num_graphs, most).square().sum(1)
        return self.values() * (occurrences(self.graph, self.num_graphs).square() + 1) + squares

    def take(self, other: Self, graphs: Tensor) -> None:
        """Take the decisions of some graphs from other colourings of the same batch."""
        super().take(other, graphs)
        self.colour = torch.where(graphs, other.colour, self.colour)
        self.open = torch.where(graphs[self.graph], other.open, self.open)

    def _coloured(self) -> tuple[Tensor, Tensor, int]:
        """Return the nodes that have colours [k], the key of the colour of each among all graphs [k], and K colours."""
        most = max(1, int(self.state.max()) + 1)
        nodes = (self.state != self.UNDECIDED).nonzero().squeeze(1)
        return nodes, self.graph[nodes] * most + self.state[nodes], most

    def _open_nodes(self) -> None:
        """Set the open nodes; a graph with undecided nodes, of which none may have the present colour, begins the next.

        No node has a colour after the present one, so all undecided nodes may have the next colour.
        """
        tails, heads = self.edge_index
        undecided = self.state == self.UNDECIDED
        present = self.state == self.colour[self.graph]
        self.open = undecided.clone()
        self.open[heads[present[tails]]] = False
        is_full = segment_sum(self.open.long(), self.graph, self.num_graphs) == 0
        begins = is_full & (segment_sum(undecided.long(), self.graph, self.num_graphs) > 0)
        self.colour = self.colour + begins.long()
        self.open |= undecided & begins[self.graph]


def _best_peaks(left: Residual, scores: Tensor, allowed: Tensor, share: float) -> Tensor:
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


PARTIAL_SOLUTIONS: Mapping[str, type[PartialSolutions]] = {
    "independent_set": IndependentSets,
    "vertex_cover": VertexCovers,
    "clique": Cliques,
    "max_cut": Cuts,
    "coloring": Colourings,
}
"""Name of a loss without targets (``Problem.surrogate``) -> the partial solutions of its problem."""


def partial_solutions(problem: str, surrogate: str | None) -> type[PartialSolutions]:
    """Return the partial solutions of a problem.

    Raises:
        ConfigError: If the problem has none.
    """
    if surrogate is None or surrogate not in PARTIAL_SOLUTIONS:
        raise ConfigError(
            f"models of kind stepwise build solutions of {', '.join(PARTIAL_SOLUTIONS)}, and {problem} is none of "
            "these; choose a model of another kind, such as gin_small"
        )
    return PARTIAL_SOLUTIONS[surrogate]
