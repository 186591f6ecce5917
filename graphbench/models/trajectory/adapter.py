"""Processors of sparse graphs as steps of a recurrent model."""

from __future__ import annotations

import torch
from torch import Tensor

from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout
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
        graphs, tails, heads = step.neighbours.nonzero(as_tuple=True)
        edges = step.pairs.at(graphs, tails, heads).float() if self.processor.uses_edges else None
        ptr = torch.arange(0, (samples + 1) * size, size, device=nodes.device)
        owner = torch.arange(samples, device=nodes.device).repeat_interleave(size)
        layout = Layout(torch.stack([graphs * size + tails, graphs * size + heads]), owner, ptr, samples, True)
        state = State(nodes.flatten(0, 1).float(), edges, None, layout)
        processed = self.processor(state)
        require_processed(self.processor, self.name, state, processed)
        new: Tensor = self.norm(processed.nodes.view(samples, size, -1))
        return new


def sparse_config(config: TrajectoryModelConfig) -> ModelConfig:
    """Return the configuration of a processor of sparse graphs, made from the settings that both classes share."""
    shared = ModelConfig.model_fields.keys() & TrajectoryModelConfig.model_fields.keys()
    return ModelConfig(**{name: getattr(config, name) for name in shared})
