"""A recurrent processor whose states are the arcs of a graph, in both directions of every edge.

A step sends messages along arcs and takes, at each arc u -> v, the largest message of the other arcs into u: the
update of belief propagation for matchings (Bayati, Shah and Sharma, 2008), with learned messages. One set of weights
is applied as often as the size of a graph asks for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from graphbench.core.errors import ConfigError
from graphbench.core.validation import StrictModel
from graphbench.models.arc_maxima import max_of_others, reversed_arcs
from graphbench.models.arcs import Arcs, occurrences
from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout
from graphbench.models.noise import GraphNoise
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import Context, Processed, Processor, State, read_options


class ArcOptions(StrictModel):
    steps: float = Field(default=8, ge=0)
    steps_per_doubling: float = Field(default=4, ge=0)
    least: float = Field(default=1 / 3, gt=0, le=1)
    supervised: int = Field(default=0, ge=0)
    noise: int = Field(default=0, ge=0)
    norm: bool = False
    message: int = 0
    inner: float = 1.0
    shape: int = 0


class ArcStep(nn.Module):
    def __init__(self, width: int, options: ArcOptions) -> None:
        super().__init__()
        self.width, self.inner = width, int(options.inner * width)
        self.message_hidden = options.message * width
        self.recall = nn.Linear(width, (self.message_hidden or width) + self.inner)
        self.states = nn.Linear(width, (self.message_hidden or width) + 2 * self.inner, bias=False)
        self.others = nn.Linear(width, 2 * self.inner, bias=False)
        self.gaps = nn.Linear(width, self.inner, bias=False)
        self.message = nn.Linear(self.message_hidden, width) if self.message_hidden else None
        self.out = nn.Linear(self.inner, 2 * width)
        self.norm = nn.LayerNorm(width) if options.norm else nn.Identity()

    def constants(self, start: Tensor) -> Tensor:
        return self.recall(start)

    def forward(self, states: Tensor, constants: Tensor, arcs: Arcs) -> Tensor:
        first = self.message_hidden or self.width
        constant_message, constant_inner = constants.split([first, self.inner], dim=1)
        message, direct, back = self.states(states).split([first, self.inner, self.inner], dim=1)
        message = message + constant_message
        if self.message is not None:
            message = self.message(torch.relu(message))
        others = max_of_others(message, arcs)
        gaps = torch.relu(others - reversed_arcs(message))
        direct_others, back_others = self.others(others).split(self.inner, dim=1)
        hidden = constant_inner + direct + direct_others + self.gaps(gaps) + reversed_arcs(back + back_others)
        value, gate = self.out(torch.relu(hidden)).chunk(2, dim=1)
        return torch.lerp(states, self.norm(value), torch.sigmoid(gate))


@register_processor("arcs")
class ArcProcessor(Processor):
    supports_edge_tokens = True

    def __init__(self, config: ModelConfig, context: Context) -> None:
        super().__init__(config, context)
        self.options = read_options(ArcOptions, config)
        width = config.hidden
        self.directed = context.directed
        self.tails, self.heads = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.edges = nn.Linear(width, width)
        self.inverse = nn.Linear(width, width) if context.directed else None
        self.noise = nn.Linear(self.options.noise, width, bias=False) if self.options.noise else None
        self.draws_noise = self.noise is not None
        self.step = ArcStep(width, self.options)
        self.of_nodes = nn.Linear(2 * width, width)
        self.of_edges = nn.Linear(2 * width, width) if context.edge_tokens else None

    def prepare(self, inputs: Mapping[str, Tensor], layout: Layout, noise: GraphNoise) -> dict[str, Any]:
        if not self.draws_noise:
            return {}
        counts = occurrences(layout.graph[layout.edges[0]], layout.num_graphs)
        return {"noise": noise.normal(counts.numpy(), self.options.noise)}

    def rows(self, nodes: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
        return 8 * (nodes + 2 * edges)

    def forward(self, state: State) -> Processed:
        layout = state.layout
        arcs = _both_ways(layout) if layout.directed else layout.arcs
        states = self._first(state, arcs)
        trail = self._repeated(states, arcs, layout)
        last, *earlier = [Processed(self._nodes(state, x, arcs), self._edges(state, x)) for x in trail]
        return dataclasses.replace(last, earlier=tuple(earlier))

    def _first(self, state: State, arcs: Arcs) -> Tensor:
        assert state.edges is not None
        edges = self.edges(state.edges)
        if self.inverse is not None and state.layout.directed:
            edges = torch.stack([edges, self.inverse(state.edges)], 1).flatten(0, 1)
            if len(state.edges) == 1:
                edges = edges.repeat(arcs.ends.shape[1] // 2, 1)
        if self.noise is not None:
            edges = edges + self.noise(self.facts(state)["noise"]).repeat_interleave(2, dim=0)
        tails, heads = arcs.ends
        nodes = state.nodes
        return edges + self.tails(nodes).index_select(0, tails) + self.heads(nodes).index_select(0, heads)

    def _repeated(self, states: Tensor, arcs: Arcs, layout: Layout) -> list[Tensor]:
        constants = self.step.constants(states)
        steps = self._steps(layout)
        most = int(steps.max()) if steps.numel() else 0
        same = int(steps.min()) == most if steps.numel() else True
        stops = None if same else steps[layout.graph[arcs.ends[0]]].unsqueeze(1)
        trail = [states]
        for step in range(most):
            after = self.step(states, constants, arcs)
            states = after if stops is None else torch.where(step < stops, after, states)
            trail = [*trail, states] if self.training else [states]
        count = min(self.options.supervised, len(trail) - 1) if self.training else 0
        places = np.linspace(len(trail) - 1, 0, count + 1, endpoint=False).round().astype(int)
        return [trail[place] for place in places]

    def _steps(self, layout: Layout) -> Tensor:
        doublings = torch.log2(layout.sizes.clamp(min=1).float())
        share = 1.0
        if self.training:
            share = self.options.least + (1 - self.options.least) * float(torch.rand(()))
        return torch.ceil(share * (self.options.steps + self.options.steps_per_doubling * doublings)).long()

    def _nodes(self, state: State, states: Tensor, arcs: Arcs) -> Tensor:
        heads = arcs.ends[1]
        index = heads.unsqueeze(1).expand_as(states)
        best = states.new_zeros(state.nodes.shape).scatter_reduce(0, index, states, "amax", include_self=False)
        mean = states.new_zeros(state.nodes.shape).scatter_reduce(0, index, states, "mean", include_self=False)
        return state.nodes + self.of_nodes(torch.cat([best, mean], dim=1))

    def _edges(self, state: State, states: Tensor) -> Tensor | None:
        if self.of_edges is None or state.edge_tokens is None:
            return None
        both = states.view(-1, 2, states.shape[1])
        if state.layout.directed:
            read = both.flatten(1)
        else:
            read = torch.cat([both.sum(1), both.amax(1)], dim=1)
        return state.edge_tokens + self.of_edges(read)


def _both_ways(layout: Layout) -> Arcs:
    both = torch.stack([layout.edge_index, layout.edge_index.flip(0)], dim=2).flatten(1)
    return Arcs(both, layout.num_nodes, layout.num_nodes, symmetric=True)
