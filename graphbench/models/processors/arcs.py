"""A recurrent processor whose states are the arcs of a graph, in both directions of every edge.

One step is repeated as often as the size of a graph asks for. An arc u -> v receives the largest of the messages along
the other arcs into u, as in belief propagation for matchings of maximum weight (Bayati, Shah and Sharma, 2008): there
the message along v -> w is ``weight(v, w) - max(0, max of the others)``. Here messages and updates are learned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from graphbench.core.errors import ConfigError
from graphbench.core.validation import StrictModel
from graphbench.models.arc_steps import gated, max_of_others, relu_of_directions, reversed_arcs
from graphbench.models.arcs import Arcs
from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout
from graphbench.models.noise import GraphNoise
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import Context, Processed, Processor, State, read_options
from graphbench.models.processors.recurrence import (
    repeated_states,
    repeats,
    require_one_layer,
    share_of_steps,
    supervised_states,
)

MOST_STEPS = 4096
MOST_CHANNELS = 4096
_MATRICES = 16  # rows per arc that bound a scored batch: the arrays of a step then stay in the cache of a core


class ArcOptions(StrictModel):
    """The settings of ``arcs`` below ``options`` in a model's configuration.

    A graph of n nodes takes ``ceil(steps + steps_per_doubling * log2(n))`` steps when it is scored.

    Attributes:
        steps: Steps of a graph of one node.
        steps_per_doubling: Further steps for every doubling of the nodes.
        least_share: In training, the steps of every batch are a random share of these numbers, uniform from
            ``least_share`` to 1.
        inner: Width of the hidden layer of a step, in multiples of ``model.hidden``.
        noise: Random numbers that both directions of every edge receive.
        circulations: Random flows along the edges that neither begin nor end anywhere, see
            :func:`~graphbench.models.circulations.circulations`. They are zero on bridges alone, in graphs of any size,
            and the two directions of an edge receive opposite numbers.
        supervised: Earlier states whose decodings share the loss in training, evenly spaced over the steps.
    """

    steps: float = Field(default=8.0, ge=0.0, le=MOST_STEPS)
    steps_per_doubling: float = Field(default=4.0, ge=0.0, le=MOST_STEPS)
    least_share: float = Field(default=1 / 3, gt=0.0, le=1.0)
    inner: int = Field(default=1, ge=1, le=64)
    noise: int = Field(default=0, ge=0, le=MOST_CHANNELS)
    circulations: int = Field(default=0, ge=0, le=MOST_CHANNELS)
    supervised: int = Field(default=0, ge=0)


class ArcStep(nn.Module):
    """One step: messages, the largest of the others, and a gated update; ``x0`` are the first states.

    ``m = A x + B x0``, ``o[u -> v] = max of m[w -> u] over w != v`` (0 if there are none), ``y = ReLU(C x + D o + E x0
    + reverse of (F x + G o + H x0))``, ``x <- x + sigmoid(J y) (K y - x)``. The terms of ``x0`` are computed once.
    """

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.width, self.inner = width, inner
        self.of_start = nn.Linear(width, width + 2 * inner)
        self.message = nn.Linear(width, width, bias=False)
        self.of_states = nn.Linear(width, 2 * inner, bias=False)
        self.of_others = nn.Linear(width, 2 * inner, bias=False)
        self.out = nn.Linear(inner, 2 * width)

    def constants(self, start: Tensor) -> tuple[Tensor, Tensor]:
        """Return the terms of the first states ``start`` [A, h] in messages [A, h] and in hidden layers [A, inner]."""
        message, ahead, back = self.of_start(start).split([self.width, self.inner, self.inner], dim=1)
        return message, ahead + reversed_arcs(back)

    def forward(self, states: Tensor, constants: tuple[Tensor, Tensor], arcs: Arcs) -> Tensor:
        """Return the states [A, h] after one more step."""
        of_message, of_hidden = constants
        others = max_of_others(torch.addmm(of_message, states, self.message.weight.t()), arcs)
        terms = torch.addmm(self.of_states(states), others, self.of_others.weight.t())
        return gated(states, self.out(relu_of_directions(of_hidden, terms)))


@register_processor("arcs")
class ArcProcessor(Processor):
    """States of both directions of every edge of a graph, see :class:`ArcOptions`.

    The arcs of directed graphs have reverse arcs as well, whose first states come from other weights.
    """

    supports_edge_tokens = True

    def __init__(self, config: ModelConfig, context: Context) -> None:
        """Create the processor.

        Raises:
            ConfigError: If ``config.options`` do not fit :class:`ArcOptions`, or a setting would not be read.
        """
        super().__init__(config, context)
        _require_readable(config)
        self.options = read_options(ArcOptions, config)
        width = config.hidden
        self.tails, self.heads = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.arcs = nn.Linear(width, width)
        self.inverse_arcs = nn.Linear(width, width) if context.directed else None
        self.noise = nn.Linear(self.options.noise, width, bias=False) if self.options.noise else None
        flows = self.options.circulations
        self.circulations = nn.Linear(flows, width, bias=False) if flows else None
        self.draws_noise = self.noise is not None or self.circulations is not None
        self.step = ArcStep(width, self.options.inner * width)
        self.of_nodes = nn.Linear(2 * width, width)
        self.of_edges = nn.Linear(2 * width, width) if context.edge_tokens else None

    def prepare(self, inputs: Mapping[str, Tensor], layout: Layout, noise: GraphNoise) -> dict[str, Any]:
        """Return the random numbers and the random circulations of every edge, float32 [M, k] each."""
        facts = {"noise": noise.of_edges(self.options.noise)} if self.noise is not None else {}
        if self.circulations is not None:
            facts["circulations"] = noise.circulations(self.options.circulations)
        return facts

    def rows(self, nodes: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the nodes and arcs of each graph, times a number that keeps the arrays of a step in the cache."""
        return _MATRICES * (nodes + 2 * edges)

    def forward(self, state: State) -> Processed:
        """Return the processed nodes, and the processed edges where they are tokens."""
        layout = state.layout
        arcs = _both_ways(layout) if layout.directed else layout.arcs
        states = self._repeated(self._first(state, arcs), arcs, layout)
        last, *earlier = [Processed(self._nodes(state, x, arcs), self._edges(state, x)) for x in states]
        return replace(last, earlier=tuple(earlier))

    def _first(self, state: State, arcs: Arcs) -> Tensor:
        """Return the first states, [A, h]."""
        assert state.edges is not None
        layout, (tails, heads) = state.layout, arcs.ends
        edges = self.arcs(state.edges)
        if self.inverse_arcs is not None and layout.directed:
            edges = torch.stack([edges, self.inverse_arcs(state.edges)], dim=1).flatten(0, 1)
        edges = edges if len(edges) == len(tails) else edges.repeat(len(tails) // max(len(edges), 1), 1)
        if self.noise is not None:
            edges = edges + self.noise(self.facts(state)["noise"]).repeat_interleave(2, dim=0)
        if self.circulations is not None:
            ahead = self.circulations(self.facts(state)["circulations"])
            edges = edges + torch.stack([ahead, -ahead], dim=1).flatten(0, 1)
        ends = self.tails(state.nodes).index_select(0, tails) + self.heads(state.nodes).index_select(0, heads)
        first: Tensor = edges + ends
        return first

    def _repeated(self, start: Tensor, arcs: Arcs, layout: Layout) -> list[Tensor]:
        """Return the states after as many steps as the size of each graph asks for, and earlier states likewise."""
        options = self.options
        share = share_of_steps(options.least_share, training=self.training)
        steps, of_graphs = repeats(options.steps, options.steps_per_doubling, share, layout)
        stops = None if of_graphs is None else of_graphs[layout.graph[arcs.ends[0]]].unsqueeze(1)
        constants = self.step.constants(start)
        states = repeated_states(
            lambda states: self.step(states, constants, arcs), start, steps, stops, keep=self.training
        )
        return supervised_states(states, options.supervised if self.training else 0)

    def _nodes(self, state: State, states: Tensor, arcs: Arcs) -> Tensor:
        """Return nodes [N, h], which read the mean and the maximum of the states of the arcs into them."""
        heads, zeros = arcs.ends[1].unsqueeze(1).expand_as(states), states.new_zeros(state.nodes.shape)
        read = [zeros.scatter_reduce(0, heads, states, kind, include_self=False) for kind in ("mean", "amax")]
        nodes: Tensor = state.nodes + self.of_nodes(torch.cat(read, dim=1))
        return nodes

    def _edges(self, state: State, states: Tensor) -> Tensor | None:
        """Return edge tokens [M, h], which read both directions of an edge; of undirected edges in no order."""
        if self.of_edges is None or state.edge_tokens is None:
            return None
        both = states.view(-1, 2, states.shape[1])
        read = both.flatten(1) if state.layout.directed else torch.cat([both.sum(1), both.amax(1)], dim=1)
        edges: Tensor = state.edge_tokens + self.of_edges(read)
        return edges


def _require_readable(config: ModelConfig) -> None:
    """Raise an error for settings that the processor would not read.

    Raises:
        ConfigError: If the configuration has several layers, or inverse edges.
    """
    require_one_layer(config, "steps", "steps_per_doubling")
    if config.inverse_edges:
        raise ConfigError("model.inverse_edges is set, but 'arcs' adds inverse arcs by itself; set it to false")


def _both_ways(layout: Layout) -> Arcs:
    """Return the arcs of directed graphs, each followed by its inverse."""
    both = torch.stack([layout.edge_index, layout.edge_index.flip(0)], dim=2).flatten(1)
    return Arcs(both, layout.num_nodes, layout.num_nodes, symmetric=True)
