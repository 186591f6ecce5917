"""Message passing with separate weights for every class of nodes, for example the types of devices in a circuit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.validation import StrictModel
from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout, add_rows
from graphbench.models.layers import Dropout, FeedForward
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import Context, Processed, Processor, State, read_options


class TypedOptions(StrictModel):
    """The settings of ``typed`` below ``options`` in a model's configuration.

    Attributes:
        by: Name of a categorical input of nodes.
        classes: Number of classes of the input.
        rounds: Number of times that the same stack of layers is applied, like an iterative solver of network equations.
    """

    by: str
    classes: int = Field(ge=2, le=64)
    rounds: int = Field(default=1, ge=1, le=32)


class TypedLinear(nn.Module):
    """One linear map without bias per class of rows."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(classes))

    def forward(self, rows: Tensor, members: Sequence[Tensor]) -> Tensor:
        """Return the mapped rows [N, d].

        Args:
            rows: [N, d].
            members: For every class the numbers of its rows, int64; every row belongs to one class.
        """
        parts = [linear(rows.index_select(0, index)) for linear, index in zip(self.maps, members, strict=True)]
        return torch.zeros_like(rows, dtype=parts[0].dtype).index_copy(0, torch.cat(list(members)), torch.cat(parts))


class TypedLayer(nn.Module):
    """One layer: ``X = X + dropout(V_c(v) h_v + sum over (u, v) of ReLU(W_c(u) h_u + e_uv))``, then ``X + FFN(LN(X))``.

    ``h`` is ``LN(X)``, and ``c`` is the class of a node.
    """

    def __init__(self, config: ModelConfig, classes: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.hidden)
        self.own = TypedLinear(config.hidden, classes)
        self.sent = TypedLinear(config.hidden, classes)
        self.dropout = Dropout(config.dropout)
        self.feed_forward = FeedForward(config.hidden, config.activation, config.dropout)

    def forward(self, nodes: Tensor, edges: Tensor, layout: Layout, members: Sequence[Tensor]) -> Tensor:
        """Return updated nodes [N, d]."""
        source, target = layout.edge_index
        normed = self.norm(nodes)
        messages = torch.relu(self.sent(normed, members).index_select(0, source) + edges)
        update = add_rows(self.own(normed, members), target, messages)
        result: Tensor = self.feed_forward(nodes + self.dropout(update))
        return result


@register_processor("typed")
class Typed(Processor):
    """One stack of ``layers`` :class:`TypedLayer`, applied ``options.rounds`` times."""

    @classmethod
    def reads(cls, config: ModelConfig) -> Sequence[Feature]:
        """Return the categorical input that the options name."""
        options = read_options(TypedOptions, config)
        return [Feature(options.by, Stage.INPUT, Location.NODE, Kind.CATEGORICAL, options.classes)]

    def __init__(self, config: ModelConfig, context: Context) -> None:
        """Create ``config.layers`` layers.

        Raises:
            ConfigError: If ``config.options`` do not fit :class:`TypedOptions`.
        """
        super().__init__(config, context)
        self.options = read_options(TypedOptions, config)
        self.layers = nn.ModuleList(TypedLayer(config, self.options.classes) for _ in range(config.layers))

    def prepare(self, inputs: Mapping[str, Tensor], layout: Layout) -> dict[str, Any]:
        """Return the nodes ordered by class, int64 [N], and the number of nodes of each class."""
        kinds = inputs[self.options.by].reshape(-1)
        counts = torch.bincount(kinds, minlength=self.options.classes)
        return {"nodes": torch.argsort(kinds, stable=True), "counts": tuple(counts.tolist())}

    def forward(self, state: State) -> Processed:
        """Return the processed nodes."""
        nodes = state.nodes
        assert state.edges is not None
        facts = self.facts(state)
        members = torch.split(facts["nodes"], facts["counts"])
        for _ in range(self.options.rounds):
            for layer in self.layers:
                nodes = layer(nodes, state.edges, state.layout, members)
        return Processed(nodes)
