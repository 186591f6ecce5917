"""The processor ``hub``: every node hears the mean of its neighbours and of its graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import graphbench
from graphbench.models.processors import Context, Processed, Processor, State


@graphbench.register_processor("hub")
class Hub(Processor):
    """Layers ``X = X + W relu([sum of neighbours, mean of the graph])``."""

    def __init__(self, config: Any, context: Context) -> None:
        super().__init__(config, context)
        self.layers = nn.ModuleList(nn.Linear(2 * config.hidden, config.hidden) for _ in range(config.layers))

    def forward(self, state: State) -> Processed:
        nodes, layout = state.nodes, state.layout
        source, target = layout.edge_index
        graphs = layout.num_graphs
        sizes = layout.sizes.unsqueeze(1)
        for layer in self.layers:
            heard = torch.zeros_like(nodes).index_add(0, target, nodes[source] + state.edges)
            hub = nodes.new_zeros(graphs, nodes.shape[1]).index_add(0, layout.graph, nodes) / sizes
            nodes = nodes + layer(torch.cat([heard, hub[layout.graph]], dim=1).relu())
        return Processed(nodes)
