"""MLP: a dummy baseline that processes every node separately and ignores the edges."""

from __future__ import annotations

from torch import nn

from graphbench.models.config import ModelConfig
from graphbench.models.layers import FeedForward
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import Context, Processed, Processor, State


@register_processor("mlp")
class MLP(Processor):
    """Layers ``X = X + FFN(LN(X))``: equation 3 of the paper without its first line."""

    uses_edges = False

    def __init__(self, config: ModelConfig, context: Context) -> None:
        super().__init__(config, context)
        self.layers = nn.Sequential(
            *(FeedForward(config.hidden, config.activation, config.dropout) for _ in range(config.layers))
        )

    def forward(self, state: State) -> Processed:
        """Return the processed nodes."""
        return Processed(self.layers(state.nodes))
