"""The interface of processors of sparse graphs.

A custom processor is a subclass of :class:`Processor`, registered by name::

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
common encoder and decoders. ``config.options`` holds the processor's settings; :func:`read_options` checks them against
a schema. Some processors need values of inputs in addition to embeddings, for example a mask that divides the nodes
into two kinds. They name these inputs in :meth:`Processor.reads` and read the values from ``State.inputs``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError
from torch import Tensor, nn

from graphbench.catalog.features import Feature, Stage, select
from graphbench.core.errors import ConfigError
from graphbench.core.validation import explain, section_below
from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout
from graphbench.models.noise import GraphNoise

_Options = TypeVar("_Options", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Context:
    """The properties of the data and the outputs on which the construction of a processor depends.

    Attributes:
        directed: Whether each column of ``edge_index`` is a separate arc; if tasks share the processor, whether this
            holds for any of the tasks (``State.layout.directed`` describes the batch).
        edge_tokens: Whether :attr:`State.edge_tokens` are set and must be processed.
        graph_token: Whether :attr:`Processed.graph` is read (``pooling: cls``).
    """

    directed: bool
    edge_tokens: bool
    graph_token: bool


@dataclass(frozen=True, slots=True)
class State:
    """The embeddings of a batch, of width ``d``, which a processor receives.

    Attributes:
        nodes: [N, d], with positional encodings.
        edges: [E, d], one row per column of ``edge_index``, or [1, d], the same for all edges; None unless
            ``uses_edges``. With ``reads_shared_edges`` also [E / B, d], the rows of one of B copies of a graph.
        edge_tokens: [M, d], one row per undirected edge (per arc of directed graphs), with positional encodings, or
            None.
        layout: The positions of each graph in the arrays.
        inputs: Values of the inputs that :meth:`Processor.reads` names, by name, as the batch holds them: [N, ...] for
            nodes, [E, ...] for edges (one row per column of ``edge_index``), or [B, ...] for graphs.
        prepared: The facts that :meth:`Processor.prepare` returned for the batch; none if it was not prepared.
    """

    nodes: Tensor
    edges: Tensor | None
    edge_tokens: Tensor | None
    layout: Layout
    inputs: Mapping[str, Tensor] = field(default_factory=dict)
    prepared: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Processed:
    """The embeddings that a processor returns.

    Attributes:
        nodes: [N, d].
        edge_tokens: [M, d] if the state has edge tokens.
        graph: [B, d] if ``Context.graph_token`` is set.
        earlier: States of earlier steps. In training they are decoded as well, and the loss is the mean over all
            states (deep supervision); a model that is scored does not read them.
    """

    nodes: Tensor
    edge_tokens: Tensor | None = None
    graph: Tensor | None = None
    earlier: tuple[Processed, ...] = ()


class Processor(nn.Module):
    """Base class of processors: a map from :class:`State` to :class:`Processed`.

    Attributes:
        uses_edges: Whether the processor reads ``State.edges``.
        supports_edge_tokens: Whether the processor can process edges as tokens in addition to nodes.
        supports_graph_token: Whether the processor can return ``Processed.graph``.
        reads_shared_edges: Whether the processor reads the edges of B copies of one graph once, in place of [E, d];
            :func:`every_edge` repeats them.
        draws_noise: Whether :meth:`prepare` reads random numbers, so that a batch is prepared anew for every step.
    """

    uses_edges: ClassVar[bool] = True
    supports_edge_tokens: ClassVar[bool] = False
    supports_graph_token: ClassVar[bool] = False
    reads_shared_edges: ClassVar[bool] = False
    draws_noise: bool = False

    def __init__(self, config: ModelConfig, context: Context) -> None:
        """Create the processor from a model's configuration."""
        super().__init__()

    @classmethod
    def reads(cls, config: ModelConfig) -> Sequence[Feature]:
        """Return the input features that the processor reads from ``State.inputs``; none by default.

        The model rejects data without them. They are embedded like all inputs unless ``config.ignore`` names them.
        """
        return ()

    def prepare(self, inputs: Mapping[str, Tensor], layout: Layout, noise: GraphNoise) -> dict[str, Any]:
        """Return facts that follow from the inputs of :meth:`reads`, the layout and random numbers; none by default.

        They are computed on the CPU before a batch is moved to a device, so that no step waits for the device, and
        moved with the batch; :meth:`facts` reads them.

        Args:
            inputs: As :attr:`State.inputs`, on the CPU.
            layout: As :attr:`State.layout`, on the CPU.
            noise: Random numbers, one generator per graph; other ones in every training step.

        Returns:
            Name -> tensor, or a number or tuple of numbers.
        """
        return {}

    def facts(self, state: State) -> Mapping[str, Any]:
        """Return the facts that :meth:`prepare` made for a batch; without them, make them now."""
        return state.prepared or self.prepare(state.inputs, state.layout, GraphNoise(state.layout))

    def rows(self, nodes: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[Any]:
        """Return the rows of the model's width that the largest array of each graph takes; they bound scored batches.

        By default it is nodes and edges. A processor of all pairs of nodes returns ``nodes**2``, and one that needs the
        time of that many rows may do so as well. A batch holds at most 2^17 rows.

        Args:
            nodes: int64 [graphs], the nodes of each graph.
            edges: int64 [graphs], its edges; an undirected edge counts once.
        """
        return nodes + edges

    def cores(self) -> Mapping[str, nn.Module]:
        """Return modules, by name, that processors of other kinds have too; none by default.

        A model takes them from another one whose processor as a whole has other tensors.
        """
        return {}

    def forward(self, state: State) -> Processed:
        """Return the processed embeddings."""
        raise NotImplementedError


class LayerStack(Processor):
    """A stack of layers ``(nodes, edges, layout) -> nodes``, each made from the configuration alone."""

    layer: ClassVar[type[nn.Module]]

    def __init__(self, config: ModelConfig, context: Context) -> None:
        super().__init__(config, context)
        self.layers = nn.ModuleList(self.layer(config) for _ in range(config.layers))

    def forward(self, state: State) -> Processed:
        """Return the processed nodes."""
        nodes = state.nodes
        for layer in self.layers:
            nodes = layer(nodes, state.edges, state.layout)
        return Processed(nodes)


def every_edge(edges: Tensor, layout: Layout) -> Tensor:
    """Return edges [E, d] or [1, d] as they are, and the edges [E / B, d] of copies of a graph repeated, [E, d]."""
    return repeated(edges, layout.edge_index.shape[1])


def repeated(edges: Tensor, count: int) -> Tensor:
    """Return edges [count, d] or [1, d] as they are, and fewer edges, whose number divides ``count``, repeated."""
    return edges if edges.shape[0] in (1, count) else edges.repeat(count // edges.shape[0], 1)


def read_options(schema: type[_Options], config: ModelConfig) -> _Options:
    """Return ``config.options``, validated against a schema.

    Raises:
        ConfigError: If the options do not fit the schema; the message names the keys of the configuration.
    """
    section = section_below(schema, "model", "options")
    try:
        validated: Any = section.model_validate({"model": {"options": config.options}})
    except ValidationError as error:
        raise ConfigError(explain(error, section)) from error
    options: _Options = validated.model.options
    return options


def inputs_read(processor: type[Processor], config: ModelConfig, features: Sequence[Feature]) -> tuple[Feature, ...]:
    """Return the inputs that a processor reads, after checking that the data has them.

    Args:
        processor: The class of the processor.
        config: The model's configuration.
        features: The features of the data.

    Raises:
        ConfigError: If an input is missing, or has another location or type.
    """
    wanted = tuple(processor.reads(config))
    inputs = select(features, Stage.INPUT)
    for feature in wanted:
        if feature not in inputs:
            raise ConfigError(
                f"the processor {config.processor!r} reads the input {_typed(feature)}, which the data does not have; "
                f"its inputs are {', '.join(_typed(f) for f in inputs) or 'none'}. Change model.options, or take data "
                "that has it"
            )
    return wanted


def _typed(feature: Feature) -> str:
    return f"{feature.name} ({feature.location} {feature.type_name})"


def require_processed(
    processor: nn.Module, name: str, state: State, processed: Any, *, graph_token: bool = False
) -> None:
    """Refuse a value of a processor that has not the type and the shapes of :class:`Processed`.

    Args:
        processor: The processor.
        name: Its name in configurations.
        state: The argument of the processor.
        processed: The value that the processor returned.
        graph_token: Whether ``Processed.graph`` is read.

    Raises:
        ConfigError: If the value is no :class:`Processed`, or has missing rows or another width than the model's.
    """
    if not isinstance(processed, Processed):
        what = f"{_described(processor, name)} returned a value of type {type(processed).__name__}"
        raise ConfigError(f"{what}; return Processed(nodes)")
    for earlier in processed.earlier:
        require_processed(processor, name, state, earlier, graph_token=graph_token)
    require_shape(processor, name, "nodes", processed.nodes, state.nodes.shape)
    if state.edge_tokens is not None:
        require_shape(processor, name, "edge_tokens", processed.edge_tokens, state.edge_tokens.shape)
    if graph_token:
        require_shape(processor, name, "graph", processed.graph, (state.layout.num_graphs, state.nodes.shape[1]))


def require_shape(processor: nn.Module, name: str, what: str, value: Any, expected: Sequence[int]) -> None:
    """Raise an error if a value that a processor returned is not a tensor of the expected shape.

    Args:
        processor: The processor.
        name: The processor's name in configurations.
        what: Description of the value, e.g. ``nodes``.
        value: The value.
        expected: The expected shape; its last number is the model's width.

    Raises:
        ConfigError: If the shapes differ; the message names both.
    """
    if isinstance(value, Tensor) and value.shape == tuple(expected):
        return
    actual = f"of shape {list(value.shape)}" if isinstance(value, Tensor) else f"= {value!r:.80}"
    raise ConfigError(
        f"{_described(processor, name)} returned {what} {actual}; expected a tensor of shape {list(expected)}, whose "
        "rows have the model's width (model.hidden)"
    )


def _described(processor: nn.Module, name: str) -> str:
    return f"the processor {name!r} ({type(processor).__module__}.{type(processor).__qualname__})"
