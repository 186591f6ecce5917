"""Processors of sparse graphs as steps of a recurrent model."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Extent, Layout
from graphbench.models.processors import Context, Processor, State, inputs_read, require_processed
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.layers import linear
from graphbench.models.trajectory.processors import DenseProcessor, Step


class SparseAdapter(DenseProcessor):
    """A processor of sparse graphs, applied to the neighbours of each step.

    The node vectors are a linear map of the encoded nodes and the previous state, plus the graph's vector. The arcs are
    the pairs of neighbours, including the loops of all nodes, with the vectors of these pairs.
    """

    def __init__(self, config: TrajectoryModelConfig, processor: type[Processor]) -> None:
        """Create a processor of class ``processor`` and the layer that feeds it.

        Raises:
            ConfigError: If the processor reads values of inputs, which a step does not have.
        """
        super().__init__(config)
        self.name = config.processor
        processor_config = sparse_config(config)
        inputs_read(processor, processor_config, ())
        self.embed = linear(2 * config.hidden, config.hidden)
        self.processor = processor(processor_config, Context(directed=True, edge_tokens=False, graph_token=False))

    def forward(self, step: Step) -> Tensor:
        """Return the nodes after the step, ``[B, n, h]``."""
        nodes = self.embed(step.nodes) + step.graph.unsqueeze(1)
        samples, size = nodes.shape[:2]
        waits = nodes.device.type != "cpu" or torch.compiler.is_compiling()  # for the number of neighbours
        made = self._all_pairs if waits else self._neighbours
        state = made(step, nodes.flatten(0, 1).float())
        processed = self.processor(state)
        require_processed(self.processor, self.name, state, processed)
        new: Tensor = self.norm(processed.nodes[: samples * size].view(samples, size, -1))
        return new

    def _neighbours(self, step: Step, nodes: Tensor) -> State:
        """Return the state whose arcs are the pairs of neighbours; ``nodes`` is ``[B * n, h]``."""
        samples, size = step.neighbours.shape[:2]
        graphs, tails, heads = step.neighbours.nonzero(as_tuple=True)
        edges = step.pairs.at(graphs, tails, heads).float() if self.processor.uses_edges else None
        ends = torch.stack([graphs * size + tails, graphs * size + heads])
        return State(nodes, edges, None, _layout(ends, samples, size))

    def _all_pairs(self, step: Step, nodes: Tensor) -> State:
        """Return the state with one arc per pair, so that no shape depends on the neighbours.

        Pairs that are no neighbours are loops of one more node, which is a graph by itself.
        """
        samples, size = step.neighbours.shape[:2]
        numbers = torch.arange(samples * size, device=nodes.device).view(samples, size)
        ends = torch.stack(
            [
                torch.where(step.neighbours, numbers.unsqueeze(2), samples * size),
                torch.where(step.neighbours, numbers.unsqueeze(1), samples * size),
            ]
        )
        edges = step.pairs.full().float().flatten(0, 2) if self.processor.uses_edges else None
        layout = _layout(ends.flatten(1), samples, size, spare=True)
        return State(torch.cat([nodes, nodes.new_zeros(1, nodes.shape[1])]), edges, None, layout)


def _layout(ends: Tensor, samples: int, size: int, *, spare: bool = False) -> Layout:
    """Return the layout of graphs of one size; ``spare`` adds a graph of one node behind them."""
    ptr = torch.arange(0, (samples + 1) * size, size, device=ends.device)
    owner = torch.arange(samples, device=ends.device).repeat_interleave(size, output_size=samples * size)
    if spare:
        ptr, owner = F.pad(ptr, (0, 1), value=samples * size + 1), F.pad(owner, (0, 1), value=samples)
    extent = Extent(1 if spare else size, size)
    return Layout(ends, owner, ptr, samples + spare, True, extent)


def sparse_config(config: TrajectoryModelConfig) -> ModelConfig:
    """Return the configuration of a processor of sparse graphs, made from the settings that both classes share."""
    shared = ModelConfig.model_fields.keys() & TrajectoryModelConfig.model_fields.keys()
    return ModelConfig(**{name: getattr(config, name) for name in shared})
