"""Message passing with separate weights for every class of nodes, for example the types of devices in a circuit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.validation import ExtensibleModel
from graphbench.models.config import ModelConfig
from graphbench.models.fused import is_compiled, relu_messages
from graphbench.models.graphs import Layout, add_rows
from graphbench.models.layers import Dropout, FeedForward
from graphbench.models.noise import GraphNoise
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import Context, Processed, Processor, State, read_options, repeated
from graphbench.models.processors.recurrence import repeated_states, repeats, share_of_steps


class TypedOptions(ExtensibleModel):
    """The settings of ``typed`` below ``options`` in a model's configuration.

    The same stack of layers is applied in rounds, as one iterates the equations of a network. A graph of n nodes takes
    ``ceil(rounds + rounds_per_doubling * log2(n))`` rounds when it is scored.

    Attributes:
        by: Name of a categorical input of nodes.
        classes: Number of classes of the input.
        rounds: Rounds of a graph of one node.
        rounds_per_doubling: Further rounds for every doubling of the nodes.
        least_share: In training, the rounds of every batch are a random share of these numbers, uniform from
            ``least_share`` to 1. A model that was trained with many numbers of rounds can take more of them on larger
            graphs.
    """

    by: str
    classes: int = Field(ge=2, le=64)
    rounds: int = Field(default=1, ge=1, le=32)
    rounds_per_doubling: float = Field(default=0.0, ge=0.0, le=32)
    least_share: float = Field(default=1.0, gt=0.0, le=1.0)

    added: ClassVar[frozenset[str]] = frozenset({"rounds_per_doubling", "least_share"})


@dataclass(frozen=True, slots=True)
class Classes:
    """The nodes of a batch ordered by class, which layers read in place of copies of rows per class.

    Attributes:
        nodes: int64 [N], the nodes in the order of their classes; within a class in their order in the batch.
        places: int64 [N], the place of every node in this order.
        counts: The number of nodes of every class.
        ends: int64 [2, E], the places of the senders of the arcs, and the receiving nodes.
    """

    nodes: Tensor
    places: Tensor
    counts: tuple[int, ...]
    ends: Tensor

    @classmethod
    def of(cls, kinds: Tensor, edge_index: Tensor, classes: int) -> Classes:
        """Return the order of nodes of the classes ``kinds`` int64 [N], with arcs int64 [2, E]."""
        nodes = torch.argsort(kinds, stable=True)
        places = torch.empty_like(nodes).index_copy(0, nodes, torch.arange(len(nodes), device=nodes.device))
        counts = torch.bincount(kinds, minlength=classes).tolist()
        source, target = edge_index
        return cls(nodes, places, tuple(counts), torch.stack([places.index_select(0, source), target]))


class TypedLinear(nn.Module):
    """One linear map without bias per class of rows."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(classes))

    def forward(self, rows: Tensor, counts: Sequence[int]) -> Tensor:
        """Return the mapped rows [N, d].

        Args:
            rows: [N, d], ordered by class.
            counts: Number of rows of every class.
        """
        parts = torch.split(rows, list(counts))
        return torch.cat([linear(part) for linear, part in zip(self.maps, parts, strict=True)])


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

    def forward(self, nodes: Tensor, edges: Tensor, classes: Classes) -> Tensor:
        """Return updated nodes [N, d]; ``edges`` are [R, d], where R divides E (see :func:`.relu_messages`)."""
        ordered = self.norm(nodes).index_select(0, classes.nodes)
        kept = self.own(ordered, classes.counts).index_select(0, classes.places)
        update = _add_messages(kept, self.sent(ordered, classes.counts), edges, classes.ends)
        result: Tensor = self.feed_forward(nodes + self.dropout(update))
        return result


def _add_messages(start: Tensor, sent: Tensor, edges: Tensor, ends: Tensor) -> Tensor:
    """Return ``start[v] + sum over arcs a = (u, v) of ReLU(sent[u] + edges[a % R])`` for every v, [N, d]."""
    if is_compiled(start.shape[1], start, sent, edges):
        return relu_messages(sent, edges, ends, start)
    source, target = ends
    messages = torch.relu(sent.index_select(0, source) + repeated(edges, len(source)))
    return add_rows(start, target, messages)


@register_processor("typed")
class Typed(Processor):
    """One stack of ``layers`` :class:`TypedLayer`, applied as often as :class:`TypedOptions` say."""

    reads_shared_edges: ClassVar[bool] = True

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

    def prepare(self, inputs: Mapping[str, Tensor], layout: Layout, noise: GraphNoise) -> dict[str, Any]:
        """Return the attributes of :class:`Classes`."""
        classes = Classes.of(inputs[self.options.by].reshape(-1), layout.edge_index, self.options.classes)
        return {field.name: getattr(classes, field.name) for field in fields(classes)}

    def forward(self, state: State) -> Processed:
        """Return the processed nodes."""
        edges, options = state.edges, self.options
        assert edges is not None
        classes = Classes(**self.facts(state))

        def one_round(nodes: Tensor) -> Tensor:
            for layer in self.layers:
                nodes = layer(nodes, edges, classes)
            return nodes

        share = share_of_steps(options.least_share, training=self.training)
        rounds, stops = repeats(options.rounds, options.rounds_per_doubling, share, state.layout)
        of_nodes = None if stops is None else stops[state.layout.graph].unsqueeze(1)
        return Processed(repeated_states(one_round, state.nodes, rounds, of_nodes, keep=False)[-1])
