"""Colourings with a limited number of colours, in which some nodes have none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import torch
from torch import Tensor

from graphbench.catalog.features import Feature
from graphbench.models.arcs import occurrences
from graphbench.models.graphs import segment_argmax, segment_log_softmax, segment_sum
from graphbench.models.stepwise.partial import CERTAIN, PartialSolutions
from graphbench.models.stepwise.residual import Residual, best_peaks, ranks_within

_ROOM = Feature.parse("room", ("input", "node", "scalar(2)"))
_LEAST_LIMIT = 0.7  # in training: of the colours of the first colouring
_NEARBY = 2.0  # how many times the mean share a repair takes back of the nodes beside one without a colour


class Colourings(PartialSolutions):
    """Colourings with a limited number of colours; what can be decided are pairs of a node and a colour.

    The first colouring is greedy: nodes by falling degree take the first free colour. Then one colour less is allowed,
    the nodes of the rarest colour lose it, and when all nodes have colours again, the next colour goes. The pairs are
    the nodes of the graph that a network reads: two pairs are joined if they give neighbours the same colour.

    Attributes:
        limit: int64 [G], the number of colours that each graph may use.
        whole: int64 [N], the last complete colouring, which has more than ``limit`` colours unless it was revealed.
    """

    features: ClassVar[tuple[Feature, ...]] = (_ROOM,)
    kept: ClassVar[float] = 0.75
    varied: ClassVar[float] = 0.5

    def __init__(self, edge_index: Tensor, graph: Tensor, num_graphs: int, classes: int = 2) -> None:
        super().__init__(edge_index, graph, num_graphs, classes)
        self.whole = self.state = _greedy_colouring(edge_index, graph, num_graphs)
        self.limit = _largest(self.state, graph, num_graphs) + 1
        self._ask_for_fewer(self.limit - 1)

    def undecided(self) -> Residual:
        """Return the pairs of a node without a colour and a colour that it may have."""
        tails, heads = self.edge_index
        device = self.graph.device
        nodes = (self.state == self.UNDECIDED).nonzero().squeeze(1)
        number = torch.full_like(self.graph, -1).index_copy(0, nodes, torch.arange(len(nodes), device=device))
        colours = torch.arange(int(self.limit.max()), device=device)
        free = colours < self.limit[self.graph[nodes]][:, None]
        blocking = (number[heads] >= 0) & (self.state[tails] >= 0)
        free[number[heads[blocking]], self.state[tails[blocking]]] = False
        row, colour = free.nonzero().unbind(1)
        pair = (free.flatten().cumsum(0) - 1).view(free.shape)
        first, second = number[self.edge_index[:, ::2]]
        inside = (first >= 0) & (second >= 0)
        first, second = first[inside], second[inside]
        edge, shared = (free[first] & free[second]).nonzero().unbind(1)
        ends = torch.stack([pair[first[edge], shared], pair[second[edge], shared]])
        both_ways = torch.stack([ends, ends.flip(0)], dim=2).flatten(1)
        return Residual(nodes[row], both_ways, self.graph[nodes[row]], self.num_graphs, colour)

    def remaining(self, left: Residual) -> Residual:
        """Return the pairs that no decision since has excluded."""
        assert left.option is not None
        taken = self.state[left.nodes] == left.option
        tails, heads = left.edge_index
        possible = self.state[left.nodes] == self.UNDECIDED
        possible[heads[taken[tails]]] = False
        return left.narrowed(possible)

    def inputs(self, left: Residual) -> Mapping[str, Tensor]:
        """Return ``room``, float32 [n, 2]: log(k) for k colours, and log(1 + b) for b neighbours without one."""
        colours = occurrences(left.nodes, len(self.graph))[left.nodes]
        beside = self._bare_neighbours()[left.nodes]
        return {_ROOM.name: torch.stack([colours.float().log(), beside.float().log1p()], dim=1)}

    def logits(self, left: Residual, scores: Tensor) -> Tensor:
        """Return logits of colours, [N, K]: the scores of pairs; nodes that may have no colour could have any."""
        assert left.option is not None
        colours = max(self.classes, int(self.limit.max()))
        number = torch.arange(colours, device=scores.device)
        stuck = (self.state == self.UNDECIDED) & (occurrences(left.nodes, len(self.graph)) == 0)
        possible = (number == self.state[:, None]) | (stuck[:, None] & (number < self.limit[self.graph][:, None]))
        rows = torch.where(possible, CERTAIN, -CERTAIN).to(scores.dtype)
        return rows.index_put((left.nodes, left.option), scores)

    def answers(self) -> Tensor:
        """Return the state of complete colourings, and for the others the last complete colouring, int64 [N]."""
        return torch.where(self._is_complete()[self.graph], self.state, self.whole)

    def final(self, state: Tensor) -> Tensor:
        """Return 1 for the colour of a node and 0 for all others, float32 [N, K]."""
        return torch.nn.functional.one_hot(state, max(self.classes, int(state.max()) + 1)).float()

    def decide(self, left: Residual, scores: Tensor, rounds_left: int) -> None:
        """Give nodes their best colours, where these are not the best colours of neighbours that go first.

        The first one to go is the node whose choice is most probable and has the fewest rivals: the logarithm of the
        probability of its colour, less the expected number of neighbours that take the same colour.
        """
        assert left.option is not None
        if not len(left):
            return
        count = len(self.graph)
        logarithms = segment_log_softmax(scores, left.nodes, count)
        tails, heads = left.edge_index
        rivals = segment_sum(logarithms.exp()[tails], heads, len(left))
        best = segment_argmax(scores, left.nodes, count)
        is_best = torch.zeros(len(left), dtype=torch.bool, device=scores.device)
        is_best[best[best < len(left)]] = True
        chosen = best_peaks(left, logarithms - rivals, is_best, 1)
        self.state = self.state.index_put((left.nodes[chosen],), left.option[chosen])

    def vary(self) -> None:
        """Allow a random number of colours, from 70 % of those of the greedy colouring on, and take a part back."""
        share = _LEAST_LIMIT + (1 - _LEAST_LIMIT) * torch.rand(self.num_graphs, device=self.graph.device)
        self._ask_for_fewer(torch.minimum(self.limit, (share * (self.limit + 1)).long().clamp(min=1)))
        self.take_back(self.random_nodes())

    def reveal(self, solution: Tensor, chosen: Tensor) -> None:
        """Give chosen nodes the colours of a solution, and allow as many colours as it has."""
        self.whole = solution.reshape(-1).long()
        self.state = torch.where(chosen, self.whole, self.UNDECIDED)
        self.limit = _largest(self.whole, self.graph, self.num_graphs) + 1

    def shares_kept(self, shares: Tensor) -> Tensor:
        """Return shares with which twice as many nodes are taken back beside one without colour, and half elsewhere."""
        near = self._bare_neighbours() > 0
        return 1 - (1 - shares[self.graph]) * torch.where(near, _NEARBY, 1 / _NEARBY)

    def take_back(self, chosen: Tensor) -> None:
        """Take the colours of chosen nodes back; where all nodes had one, allow one colour less at first."""
        complete = self._is_complete()
        if bool(complete.any()):
            self.whole = torch.where(complete[self.graph], self.state, self.whole)
            self._ask_for_fewer(torch.where(complete, self.limit - 1, self.limit))
        self.state = torch.where(chosen, self.UNDECIDED, self.state)

    def values(self) -> Tensor:
        """Return minus the numbers of colours of the complete colourings."""
        return -1 - _largest(self.answers(), self.graph, self.num_graphs)

    def merits(self) -> Tensor:
        """Return what orders colourings: fewer colours allowed, then more nodes that have one of them."""
        coloured = segment_sum((self.state != self.UNDECIDED).long(), self.graph, self.num_graphs)
        return coloured - self.limit * (occurrences(self.graph, self.num_graphs) + 1)

    def take(self, other: Self, graphs: Tensor) -> None:
        """Take the decisions of some graphs from other colourings of the same batch."""
        super().take(other, graphs)
        self.limit = torch.where(graphs, other.limit, self.limit)
        self.whole = torch.where(graphs[self.graph], other.whole, self.whole)

    def _bare_neighbours(self) -> Tensor:
        """Return how many neighbours without a colour every node has, int64 [N]."""
        tails, heads = self.edge_index
        bare = (self.state == self.UNDECIDED).long()
        return segment_sum(bare[tails], heads, len(self.graph))

    def _is_complete(self) -> Tensor:
        bare = segment_sum((self.state == self.UNDECIDED).long(), self.graph, self.num_graphs)
        return bare == 0

    def _ask_for_fewer(self, limit: Tensor) -> None:
        """Lower the limits, int64 [G]: colours by falling number of their nodes are numbered anew, the last ones go."""
        most = max(1, int(self.limit.max()))
        has_colour = self.state != self.UNDECIDED
        key = (self.graph * most + self.state)[has_colour]
        sizes = occurrences(key, self.num_graphs * most)
        owner = torch.arange(self.num_graphs, device=key.device).repeat_interleave(most)
        ranks = ranks_within(sizes.double(), owner, self.num_graphs)
        lowered = (limit < self.limit)[owner]
        renamed = torch.where(lowered, ranks, torch.arange(len(ranks), device=key.device) % most)
        renamed = renamed.masked_fill(renamed >= limit[owner], self.UNDECIDED)
        self.state = self.state.masked_scatter(has_colour, renamed[key])
        self.limit = limit


def _largest(values: Tensor, graph: Tensor, num_graphs: int) -> Tensor:
    """Return the largest value of each graph, int64 [G]; -1 for a graph without nodes."""
    return values.new_full((num_graphs,), -1).scatter_reduce(0, graph, values, "amax")


def _greedy_colouring(edge_index: Tensor, graph: Tensor, num_graphs: int) -> Tensor:
    """Return the colouring that gives nodes by falling degree the first free colour, int64 [N].

    A node takes its colour as soon as all neighbours that precede it have theirs (Jones and Plassmann, 1993).
    """
    count = len(graph)
    tails, heads = edge_index
    rank = ranks_within(occurrences(tails, count).double(), graph, num_graphs)
    waits_for = rank[tails] < rank[heads]
    tails, heads = tails[waits_for], heads[waits_for]
    colours = torch.full_like(graph, -1)
    while True:
        waiting = torch.zeros_like(colours, dtype=torch.bool)
        waiting[heads[colours[tails] < 0]] = True
        ready = (colours < 0) & ~waiting
        if not bool(ready.any()):
            return colours
        used = torch.zeros((count, int(colours.max()) + 2), dtype=torch.bool, device=graph.device)
        into_ready = ready[heads]
        used[heads[into_ready], colours[tails[into_ready]]] = True
        colours = torch.where(ready, used.long().argmin(1), colours)
        open_arcs = ~into_ready
        tails, heads = tails[open_arcs], heads[open_arcs]
