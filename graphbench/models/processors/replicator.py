"""A recurrent processor whose nodes compete for mass, many times side by side, as in searches for dense subgraphs.

A *copy* is a distribution of mass 1 over the nodes of a graph. In every step a node gains mass if its neighbours hold
more mass than those of the other nodes. Replicator dynamics multiply the mass x_v by (A x)_v; with 1/2 on the diagonal
of A their stable fixed points are the uniform distributions on maximal cliques, at which x^T A x = 1 - 1/(2 k) for k
nodes (Motzkin and Straus, 1965; Bomze, 1997; Pelillo, 1999). Here a learned network adds to the gain of every node.
Copies start from different random distributions, and the output of a node is read from the copies with the most nodes.
A graph that is scored is searched in rounds: the best copies of a round survive, and the others start again near them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from graphbench.core.validation import StrictModel
from graphbench.models.config import ModelConfig
from graphbench.models.fused import flat, is_compiled
from graphbench.models.graphs import Layout, neighbour_sums, segment_max, segment_sum
from graphbench.models.noise import GraphNoise
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import Context, Processed, Processor, State, read_options
from graphbench.models.processors.recurrence import require_one_layer, share_of_steps

_LEAST = -20.0  # logarithm of the smallest mass, compared with the largest one of a copy
_LARGEST_GAIN = 4.0  # standard deviations
_MOST_STEPS = 4096
_RANGE = (0.03, 1.5)  # standard deviations of the first logarithms of masses, of the first and the last copy
_MEMBER = 0.2  # a node belongs to the nodes of a copy from this share of the largest mass on
_OFFSPRING = 8  # copies of a round per copy that survives
_FIRST_CHANGES = 0.01  # standard deviation of the first weights of changes: the dynamics hardly change
_MOST_RANKS = 8.0  # sets of nodes that are told apart by their order
_WORD = 62  # nodes in a number of 64 bits


class ReplicatorOptions(StrictModel):
    """The settings of ``replicator`` below ``options`` in a model's configuration.

    A graph of n nodes takes ``ceil(steps + steps_per_node * n)`` steps per round when it is scored.

    Attributes:
        copies: Copies in training.
        scored_copies: Copies of a graph that is scored.
        rounds: Rounds of a graph that is scored; a graph in training has one.
        carried: What the members of a surviving copy add to the scores that the next round starts from.
        steps: Steps of a round, whatever the number of nodes.
        steps_per_node: Further steps per node.
        least_share: In training, the steps of every batch are a random share of these numbers, uniform from
            ``least_share`` to 1.
        pace: The gains of all steps are divided by the number of steps and multiplied by this number, so that more
            steps follow the same path more finely.
        memory: Further numbers that every node keeps in every copy.
        inner: Width of the hidden layer of a step.
        order: Whether the numbers of the nodes are read: by every step, the share of the nodes with smaller numbers;
            by the choice among copies of one size, the lexicographic order of their nodes.
    """

    copies: int = Field(default=32, ge=1, le=4096)
    scored_copies: int = Field(default=128, ge=1, le=4096)
    rounds: int = Field(default=4, ge=1, le=64)
    carried: float = Field(default=1.0, ge=0.0)
    steps: float = Field(default=24.0, ge=1.0, le=_MOST_STEPS)
    steps_per_node: float = Field(default=0.5, ge=0.0, le=_MOST_STEPS)
    least_share: float = Field(default=0.5, gt=0.0, le=1.0)
    pace: float = Field(default=24.0, gt=0.0, le=_MOST_STEPS)
    memory: int = Field(default=4, ge=1, le=64)
    inner: int = Field(default=16, ge=1, le=256)
    order: bool = False


@register_processor("replicator")
class ReplicatorProcessor(Processor):
    """Copies of masses of the nodes, see :class:`ReplicatorOptions`.

    In directed graphs a node sees the mass of the nodes with an arc to it.
    """

    draws_noise = True
    uses_edges = False

    def __init__(self, config: ModelConfig, context: Context) -> None:
        """Create the processor.

        Raises:
            ConfigError: If ``config.options`` do not fit :class:`ReplicatorOptions`, or the model has several layers.
        """
        super().__init__(config, context)
        require_one_layer(config, "steps", "steps_per_node")
        options = self.options = read_options(ReplicatorOptions, config)
        width, memory = config.hidden, options.memory
        self.of_start = nn.Linear(width, 1 + memory + options.inner)
        least, most = (math.log(bound) for bound in _RANGE)
        self.spread = nn.Parameter(torch.tensor([least, most - least]))
        self.slope = nn.Parameter(torch.ones(())) if options.order else None
        self.gain = nn.Parameter(torch.full((), 0.5))
        self.seen = nn.Linear(3 + options.order + memory, options.inner, bias=False)
        self.out = nn.Linear(options.inner, 1 + memory)
        nn.init.normal_(self.out.weight, std=_FIRST_CHANGES)
        nn.init.zeros_(self.out.bias)
        self.choice = nn.Parameter(torch.tensor([8.0, 2.0] if options.order else [8.0]))
        self.of_nodes = nn.Linear(3 + memory, width)

    def prepare(self, inputs: Mapping[str, Tensor], layout: Layout, noise: GraphNoise) -> dict[str, Any]:
        """Return standard normal numbers for the copies of all rounds, float32 [N, copies * rounds]."""
        options = self.options  # scoring draws with number 0
        copies = options.copies if noise.draw else options.scored_copies * options.rounds
        return {"noise": noise.normal(layout.sizes.numpy(), copies)}

    def rows(self, nodes: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the copies of the nodes of each graph; a row of the model's width holds one."""
        return nodes * self.options.scored_copies

    def forward(self, state: State) -> Processed:
        """Return the processed nodes."""
        layout, noise = state.layout, self.facts(state)["noise"]
        of_nodes = self.of_start(state.nodes).float()  # autocast returns bfloat16
        first, memory, hidden = of_nodes.split([1, self.options.memory, self.options.inner], dim=1)
        places = layout.numbers / layout.sizes[layout.graph] if self.slope is not None else None
        rounds = 1 if self.training else self.options.rounds
        of_first_round, *others = noise.chunk(rounds, dim=1)

        def run(start: Tensor) -> tuple[Tensor, Tensor]:
            return self._run(start, memory.unsqueeze(2).expand(-1, -1, start.shape[1]), hidden, places, layout)

        scores, kept = run(first + self._spread(of_first_round, places))
        for drawn in others:
            survivors = self._survivors(scores, layout)
            start = first + self._spread(drawn, places)[:, survivors.shape[1] :]
            scores, kept = run(torch.cat([survivors, self._near(survivors, start)], dim=1))
        return Processed(state.nodes + self.of_nodes(self._read(scores, kept, layout)))

    def _spread(self, noise: Tensor, places: Tensor | None) -> Tensor:
        """Return the random part of first scores, [N, K], which grows from the first to the last copy."""
        scales = torch.exp(self.spread[0] + self.spread[1] * torch.linspace(0, 1, noise.shape[1], device=noise.device))
        return scales * (noise if self.slope is None or places is None else noise - self.slope * places.unsqueeze(1))

    def _survivors(self, scores: Tensor, layout: Layout) -> Tensor:
        """Return the scores of the best copies of every graph, one in eight, [N, E]."""
        best = self._merits(*_masses(scores, layout), layout).topk(-(-scores.shape[1] // _OFFSPRING), dim=1).indices
        return scores.gather(1, best[layout.graph])

    def _near(self, survivors: Tensor, start: Tensor) -> Tensor:
        """Return first scores [N, K - E]: random ones, and what the members of the surviving copies [N, E] add."""
        parents = torch.arange(start.shape[1], device=start.device) % survivors.shape[1]
        return start + self.options.carried * _members(survivors)[:, parents]

    def _run(
        self, scores: Tensor, memory: Tensor, hidden: Tensor, places: Tensor | None, layout: Layout
    ) -> tuple[Tensor, Tensor]:
        """Return the scores [N, K] and the memory [N, m, K] after all steps, see :meth:`_step`.

        A compiled kernel takes them where nobody needs gradients.
        """
        steps, most = self._steps(layout)
        if not torch.is_grad_enabled() and is_compiled(scores.shape[1], scores, memory):
            return self._run_compiled(scores, memory, hidden, places, layout, steps)
        for number in range(most):
            rates = torch.where(number < steps, self.options.pace / steps, 0.0)[layout.graph].unsqueeze(1)
            scores, memory = self._step(scores, memory, hidden, places, rates, layout)
        return scores, memory

    def _run_compiled(
        self,
        scores: Tensor,
        memory: Tensor,
        hidden: Tensor,
        places: Tensor | None,
        layout: Layout,
        steps: Tensor,
    ) -> tuple[Tensor, Tensor]:
        from graphbench.models._replicator_cpu import Network, run_copies

        scores, memory = scores.clone(), memory.clone(memory_format=torch.contiguous_format)
        network = Network(
            hidden=flat(hidden.contiguous()),
            places=np.empty(0, np.float32) if places is None else places.numpy(),
            seen=self.seen.weight.detach().numpy(),
            out=self.out.weight.detach().numpy(),
            bias=self.out.bias.detach().numpy(),
            gain=float(self.gain),
        )
        arcs = layout.arcs.arriving
        order = (arcs.rows.numpy(), arcs.offsets.numpy(), layout.ptr.numpy(), steps.numpy())
        run_copies(flat(scores), flat(memory), network, self.options.pace, *order)
        return scores, memory

    def _steps(self, layout: Layout) -> tuple[Tensor, int]:
        """Return the steps of every graph, int64 [B], and of the largest one; in training a random share of them."""
        options = self.options
        share = share_of_steps(options.least_share, training=self.training)

        def steps(nodes: Any) -> Any:
            return share * (options.steps + options.steps_per_node * nodes)

        return steps(layout.sizes).ceil().long(), math.ceil(steps(layout.extent.most_nodes))

    def _step(
        self, scores: Tensor, memory: Tensor, hidden: Tensor, places: Tensor | None, rates: Tensor, layout: Layout
    ) -> tuple[Tensor, Tensor]:
        """Return the scores [N, K] and the memory [N, m, K] after one more step.

        Args:
            scores: Logarithms of masses, up to a constant per graph and copy.
            memory: The numbers that nodes keep.
            hidden: [N, inner], what the hidden layer reads of the node itself.
            places: [N], the share of the nodes of the graph with smaller numbers; None if they are not read.
            rates: [N, 1], factors of the changes; 0 where a graph has taken its steps.
            layout: The batch.
        """
        scores, mass = _masses(scores, layout)
        around = _around(mass, layout)
        graph, count = layout.graph, layout.num_graphs
        apart = around - segment_sum(mass * around, graph, count)[graph]
        deviation = torch.sqrt(segment_sum(mass * apart.square(), graph, count) + 1e-6)[graph]
        gain = (apart / deviation).clamp(-_LARGEST_GAIN, _LARGEST_GAIN)
        seen = [scores / 5, gain, around]
        seen = seen if places is None else [*seen, places.unsqueeze(1).expand_as(scores)]
        rows = torch.cat([torch.stack(seen, dim=1), memory], dim=1)  # [N, s + m, K]
        inner = torch.relu(self.seen.weight @ rows + hidden.unsqueeze(2))
        change = (self.out.weight @ inner).float() + self.out.bias.unsqueeze(1)
        scores = scores + rates * (self.gain * gain + change[:, 0])
        return scores, torch.lerp(memory, torch.tanh(change[:, 1:]), rates.clamp(max=1.0).unsqueeze(2))

    def _read(self, scores: Tensor, memory: Tensor, layout: Layout) -> Tensor:
        """Return what the nodes' outputs read, [N, 3 + m]: means over the chosen copies, and over all copies."""
        scores, mass = _masses(scores, layout)
        members = _members(scores)
        chosen = torch.softmax(self._merits(scores, mass, layout), dim=1)[layout.graph]
        means = [(chosen * values).sum(dim=1, keepdim=True) for values in (members, scores / 5)]
        return torch.cat([*means, members.mean(dim=1, keepdim=True), (memory * chosen.unsqueeze(1)).sum(dim=2)], dim=1)

    def _merits(self, scores: Tensor, mass: Tensor, layout: Layout) -> Tensor:
        """Return the merit of every copy of a graph, [B, K]: copies of more nodes have more."""
        graph, count = layout.graph, layout.num_graphs
        within = segment_sum(mass * _around(mass, layout), graph, count)
        sizes = 0.5 / (1.0 - within).clamp(min=1e-4)  # of a uniform distribution on a clique, its nodes
        facts = [sizes + (sizes.round() - sizes).detach()]
        if self.slope is not None:
            ranks = _ranks(facts[0].detach(), scores.detach() > math.log(_MEMBER), layout)
            facts.append(-ranks.clamp(max=_MOST_RANKS))
        merits = torch.zeros_like(sizes)
        for weight, fact in zip(self.choice, facts, strict=True):
            merits = merits + weight * (fact - fact.amax(dim=1, keepdim=True))
        return merits


def _members(scores: Tensor) -> Tensor:
    """Return how far every node belongs to a copy, from 0 to 1, by its score below the largest one."""
    return torch.sigmoid(4.0 * (scores - math.log(_MEMBER)))


def _around(mass: Tensor, layout: Layout) -> Tensor:
    """Return the mass of the neighbours of every node and half of its own mass, [N, K]."""
    return neighbour_sums(mass, layout) + 0.5 * mass


def _masses(scores: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """Return scores [N, K], the largest of a graph 0 and the least ``_LEAST``, and the masses, which add up to 1."""
    highest = segment_max(scores.detach(), layout.graph, layout.num_graphs)
    scores = (scores - highest[layout.graph]).clamp(min=_LEAST)
    mass = scores.exp()
    return scores, mass / segment_sum(mass, layout.graph, layout.num_graphs)[layout.graph]


def _ranks(sizes: Tensor, members: Tensor, layout: Layout) -> Tensor:
    """Return the rank of the nodes of every copy among those of the copies of the same size, float32 [B, K].

    Rank 0 has the lexicographically smallest set; copies of one set share its rank.

    Args:
        sizes: float [B, K], whole numbers.
        members: bool [N, K].
        layout: The batch.
    """
    count, copies = sizes.shape
    words = -(-max(layout.extent.most_nodes, 1) // _WORD)
    numbers = layout.numbers
    bits = members.long() << (_WORD - 1 - numbers % _WORD).unsqueeze(1)
    sets = bits.new_zeros(count * words, copies).index_add(0, layout.graph * words + numbers // _WORD, bits)
    keys = torch.cat([sizes.long().unsqueeze(1), sets.view(count, words, copies)], dim=1)  # the larger set comes first
    order = torch.arange(copies, device=sizes.device).expand(count, copies)
    for word in range(words, -1, -1):
        column = keys[:, word].gather(1, order)
        order = order.gather(1, column.argsort(dim=1, stable=True, descending=True))
    keys = keys.gather(2, order.unsqueeze(1).expand_as(keys))
    differs = torch.nn.functional.pad(keys[:, :, 1:] != keys[:, :, :-1], (1, 0))
    number = differs.any(dim=1).long().cumsum(dim=1)
    first = torch.where(differs[:, 0], number, 0).cummax(dim=1).values
    return torch.empty_like(sizes).scatter(1, order, (number - first).to(sizes.dtype))
