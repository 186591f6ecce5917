"""What a processor of sparse graphs receives and returns.

A processor of your own is a subclass of :class:`Processor`, registered by name::

    @register_processor("my_gnn")
    class MyGNN(Processor):
        def __init__(self, config: ModelConfig, context: Context) -> None:
            super().__init__(config, context)
            self.layers = nn.ModuleList(...)

        def forward(self, state: State) -> Processed:
            nodes = state.nodes                      # [N, d]
            ...
            return Processed(nodes)

``build_model(ModelConfig(processor="my_gnn", options={...}), features, directed=False)`` then builds it between the
common encoder and decoders. ``config.options`` is free for its own settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout


@dataclass(frozen=True, slots=True)
class Context:
    """What a processor must know of the data and the outputs when it is built.

    Attributes:
        directed: Whether each column of ``edge_index`` is an arc of its own; where tasks share the processor, whether
            it is in any of them (``State.layout.directed`` is of the batch).
        edge_tokens: Whether :attr:`State.edge_tokens` will be given and must be processed.
        graph_token: Whether :attr:`Processed.graph` is read (``pooling: cls``).
    """

    directed: bool
    edge_tokens: bool
    graph_token: bool


@dataclass(frozen=True, slots=True)
class State:
    """Embeddings of a batch, of width ``d``.

    Attributes:
        nodes: [N, d], with positional encodings.
        edges: [E, d], one row per column of ``edge_index``, or [1, d], the same for all edges; None unless
            ``uses_edges``.
        edge_tokens: [M, d], one row per undirected edge (per arc of directed graphs), with positional encodings, or
            None.
        layout: Where each graph lies in these arrays.
    """

    nodes: Tensor
    edges: Tensor | None
    edge_tokens: Tensor | None
    layout: Layout


@dataclass(frozen=True, slots=True)
class Processed:
    """What a processor returns.

    Attributes:
        nodes: [N, d].
        edge_tokens: [M, d] if it was given them.
        graph: [B, d] if ``Context.graph_token`` asks for it.
    """

    nodes: Tensor
    edge_tokens: Tensor | None = None
    graph: Tensor | None = None


class Processor(nn.Module):
    """Base class of processors: a map from :class:`State` to :class:`Processed`.

    Attributes:
        uses_edges: Whether it reads ``State.edges``.
        supports_edge_tokens: Whether it can process edges as tokens in addition to nodes.
        supports_graph_token: Whether it can return ``Processed.graph``.
    """

    uses_edges: ClassVar[bool] = True
    supports_edge_tokens: ClassVar[bool] = False
    supports_graph_token: ClassVar[bool] = False

    def __init__(self, config: ModelConfig, context: Context) -> None:
        """Create the processor from a model's configuration."""
        super().__init__()

    def forward(self, state: State) -> Processed:
        """Return the processed embeddings."""
        raise NotImplementedError
