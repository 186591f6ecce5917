"""Memory networks (Sukhbaatar et al., 2015): every node reads the others as its memory, once per step."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.processors.base import Processor, Step


class MemoryNetwork(Processor):
    """One hop: a node's query is matched with the keys of all nodes and pairs; their contents are added to it."""

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        hidden = config.hidden
        self.query, self.key = nn.Linear(2 * hidden, hidden), nn.Linear(2 * hidden, hidden)
        self.pair_key, self.pair_content = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.content, self.graph = nn.Linear(2 * hidden, hidden), nn.Linear(hidden, hidden)
        self.keep, self.last = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)

    def update(self, step: Step) -> tuple[Tensor, Tensor | None]:
        """Return the nodes after one look into memory."""
        query = self.query(step.nodes) + self.graph(step.graph).unsqueeze(1)
        keys = self.key(step.nodes).unsqueeze(2) + step.pairs.project(self.pair_key)
        weights = torch.einsum("bijd,bjd->bij", keys, query).softmax(1)
        contents = self.content(step.nodes).unsqueeze(2) + step.pairs.project(self.pair_content)
        read = torch.einsum("bij,bijd->bjd", weights, contents)
        return self.last(torch.relu(read + self.keep(query))), None
