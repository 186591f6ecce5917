"""Memory networks (Sukhbaatar et al., 2015): nodes are queries, pairs of neighbours the memory, one hop per step."""

from __future__ import annotations

import torch
from torch import Tensor

from graphbench.models.processor_registry import register_processor
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.layers import linear
from graphbench.models.trajectory.processors.base import DenseProcessor, Step


@register_processor("memnet", consumes="dense")
class MemoryNetwork(DenseProcessor):
    """A node's query is matched with the keys of its pairs; their contents are added to it.

    As in the benchmark's paper, section 4.1, the memory of a node are its pairs, 0 where there is no neighbour, and
    the state before the step is not read.
    """

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden = config.hidden
        self.query, self.graph = linear(hidden, hidden), linear(hidden, hidden)
        self.key, self.content = linear(hidden, hidden), linear(hidden, hidden)
        self.keep, self.last = linear(hidden, hidden), linear(hidden, hidden)

    def forward(self, step: Step) -> Tensor:
        """Return the nodes after one look into memory, ``[B, n, h]``."""
        query = self.query(step.nodes[..., : self.config.hidden]) + self.graph(step.graph).unsqueeze(1)
        present = step.neighbours.to(query.dtype)
        matches = torch.einsum("bijd,bid->bij", step.pairs.project(self.key), query) * present
        weights = matches.softmax(2).to(query.dtype) * present
        read = torch.einsum("bij,bijd->bid", weights, step.pairs.project(self.content))
        new: Tensor = self.norm(self.last(torch.relu(read + self.keep(query))))
        return new
