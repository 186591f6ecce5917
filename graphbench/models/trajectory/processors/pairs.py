"""States of all ordered pairs of nodes that are kept from step to step, combined in semirings.

The update of a step is :class:`graphbench.models.processors.pairs.PairLayer`, the layer of the processor of graphs. It
reads the states of the step before, the current inputs and hints (the recall), and their products with other pairs. The
processors of messages are not written in terms of it: they keep no states of pairs, and would compute other bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from graphbench.core.errors import ConfigError
from graphbench.core.validation import StrictModel
from graphbench.models.pair_layout import PairLayout
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import read_options
from graphbench.models.processors.pairs import LAYER_OF_PAIRS, MOST_CHANNELS, PairLayer, PairOptions
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.layers import linear
from graphbench.models.trajectory.processors.base import DenseProcessor, Step


class TracePairOptions(StrictModel):
    """The settings of ``pairs`` below ``options`` in the configuration of a model of trajectories.

    Attributes:
        closure: Channels that are closed under walks.
        triangle: Channels of one product of pairs.
        minima: Share of these channels in the semiring (max, min); the others are in (max, +).
        pools: How the pairs that end at a node are pooled for the pairs of this node.
    """

    closure: int = Field(default=0, ge=0, le=MOST_CHANNELS)
    triangle: int = Field(default=16, ge=0, le=MOST_CHANNELS)
    minima: float = Field(default=0.5, ge=0.0, le=1.0)
    pools: tuple[Literal["mean", "max"], ...] = ("max",)


@register_processor("pairs", consumes="dense")
class TracePairs(DenseProcessor):
    """States of all ordered pairs of nodes, see :class:`TracePairOptions`; ``layers`` rounds per step share weights."""

    makes_messages: ClassVar[bool] = True

    def __init__(self, config: TrajectoryModelConfig) -> None:
        super().__init__(config)
        if config.history == "gated":
            raise ConfigError(
                "model.history is 'gated', but the processor 'pairs' has a gate of its own between the states of two "
                "steps; set model.history to 'kept' or 'forgotten'"
            )
        chosen: Any = read_options(TracePairOptions, config)  # type: ignore[arg-type]
        options = PairOptions(recurrent=True, **chosen.model_dump())
        hidden = config.hidden
        self.tails, self.heads, self.loops = (linear(2 * hidden, hidden) for _ in range(3))
        self.pair, self.graph = linear(hidden, hidden), linear(hidden, hidden)
        self.start = nn.Sequential(nn.ReLU(), linear(hidden, hidden))
        self.layer = PairLayer(hidden, options, recall=True)
        self.normalised: nn.Module = nn.LayerNorm(hidden) if config.use_layer_norm else nn.Identity()
        self.of_nodes = linear(3 * hidden, hidden)

    def forward(self, step: Step) -> Tensor:
        """Return the nodes after the step ``[B, n, h]``, and leave the new states of pairs in ``step.pair_states``."""
        samples, nodes = step.pairs.columns.shape[:2]
        layout = PairLayout(np.full(samples, nodes), step.pairs.columns.device)
        start = self._start(step).flatten(0, 2).float()
        kept = start if step.pair_states is None else step.pair_states.flatten(0, 2)
        for _ in range(self.config.layers):
            kept = self.normalised(self.layer(kept, layout, start))
        step.pair_states = kept.float().view(samples, nodes, nodes, -1)
        pooled = [layout.pooled(kept, kind) for kind in ("mean", "max")]
        read = torch.cat([kept.index_select(0, layout.loops), *pooled], -1)
        new: Tensor = self.norm(torch.relu(self.of_nodes(read)).view(samples, nodes, -1))
        return new

    def messages(self, step: Step) -> Tensor:
        """Return the states of pairs after the step, ``[B, n, n, h]``."""
        assert step.pair_states is not None
        return step.pair_states

    def cores(self) -> Mapping[str, nn.Module]:
        """Return the layer of pairs."""
        return {LAYER_OF_PAIRS: self.layer}

    def _start(self, step: Step) -> Tensor:
        """Return vectors of the current inputs and hints of all pairs, ``[B, n, n, h]``."""
        tails, heads, loops = step.project(self.tails, self.heads, self.loops)
        pairs = step.pairs.project(self.pair) + tails.unsqueeze(2) + heads.unsqueeze(1)
        pairs = pairs + torch.diag_embed(loops.transpose(1, 2), dim1=1, dim2=2)
        start: Tensor = self.start(pairs + self.graph(step.graph)[:, None, None])
        return start
