"""The model of graphs: an encoder, a processor and decoders (GraphBench paper, appendix B)."""

from __future__ import annotations

import copy
import dataclasses
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphbench.catalog.features import Feature, Kind, Location, Stage, node_marks, select
from graphbench.catalog.links import PAIRS, QUERIES
from graphbench.core.errors import ArgumentError, ConfigError
from graphbench.data.arrays.link_heuristics import Heuristics
from graphbench.models.base import Decoded, TaskModel, graphs_at_once, predicted_features
from graphbench.models.config import ModelConfig, PositionalConfig
from graphbench.models.cuts import CutDecoder
from graphbench.models.decoders import ClassMeans, Decoder, EdgeReadout, PairDecoder
from graphbench.models.demands import require_fit, require_readout
from graphbench.models.encoders import (
    DegreeEncoder,
    GraphSize,
    InputEncoder,
    feature_values,
)
from graphbench.models.graphs import EXTENT, Layout, segment_mean, segment_sum
from graphbench.models.layers import FeedForward
from graphbench.models.noise import GraphNoise
from graphbench.models.pair_scores import SCORES, heuristics_of, pair_scores
from graphbench.models.positional import positional_encoder
from graphbench.models.processor_registry import processor_class
from graphbench.models.processors import Context, Processed, Processor, State, inputs_read, require_processed
from graphbench.models.story.config import StoryModelConfig
from graphbench.models.story.model import StoryModel
from graphbench.models.transfer import Part, distinct, named_by, processor_parts

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset

logger = logging.getLogger(__name__)

_FACT = "_processor_"  # prefix of the attributes of a prepared batch that the processor reads
PREPARED = "_graphbench_prepared"
"""Attribute of a batch: its prepared copy."""

_PREPARED_FOR = "_graphbench_prepared_for"  # attribute of a prepared batch: the model
_HEURISTICS = "_graphbench_heuristics"  # attribute of a prepared batch: the heuristics of its graphs

__all__ = ["Model", "ModelConfig", "PositionalConfig", "StoryModelConfig", "build_model", "count_parameters"]


class Model(TaskModel):
    """A model for one dataset: ``model(batch)`` returns the raw value of every output feature.

    Input features and, if configured, degrees are embedded and summed, the positional encoding is added, and a
    residual feed-forward network (LN, d -> d -> d) follows unless the configuration leaves it out. The text of the
    paper does not mention this network. With its 2 d^2 weights the parameter counts of tables 24 and 25 are reproduced
    within 1 %; without it, they are 11 % (GIN) and 2 % (GT) too low. The counts of table 26 are reproduced without it.
    """

    def __init__(
        self,
        config: ModelConfig,
        features: Sequence[Feature],
        *,
        directed: bool,
        shared: Context | None = None,
    ) -> None:
        """Create the model; see :func:`build_model`.

        Args:
            config: The architecture.
            features: The features of the task.
            directed: Whether the graphs of the task are directed.
            shared: Context of the processor that the model shares with other models; None creates a new processor.
        """
        super().__init__()
        outputs = predicted_features(features)
        processor: type[Processor] = processor_class(config.processor, "sparse")
        context, self.pooling = context_of(config, processor, features, directed)
        context = shared or context
        edge_output = any(f.location is Location.EDGE for f in outputs)
        uses_edges = processor.uses_edges or edge_output or context.edge_tokens
        self.config, self.directed, self.edge_tokens = config, directed, context.edge_tokens
        self.read_by_processor = inputs_read(processor, config, features)
        require_readout(config.readout, features)
        # the decoder of cuts reads the marks from the batch
        self.marks = node_marks(features) if config.readout in ("query", "marked") else ()
        self.reads_pooled = config.readout not in ("marked", "cut")
        self.sums_nodes = self.pooling == "sum" and self.reads_pooled
        self.class_means = _class_means(config, features) if self.pooling == "classes" else None
        self.reads_graph_token = self.pooling == "cls" and any(f.location is Location.GRAPH for f in outputs)
        inputs = _inputs_read(config, features)
        self.single_marks = node_marks(inputs)
        _warn_of_unmarked_query(config, features, outputs)
        self.encoder = InputEncoder(
            inputs, config.hidden, edges=uses_edges, inverse=config.inverse_edges, fixed=config.fixed
        )
        self.degrees = DegreeEncoder(config.hidden, both=config.degrees == "both") if config.degrees else None
        self.sizes = GraphSize(config.hidden) if config.graph_size else None
        self.positional = positional_encoder(config.positional, config.hidden)
        network = FeedForward(config.hidden, config.activation, config.dropout) if config.input_network else None
        self.input_network: nn.Module = network or nn.Identity()
        if shared is None:
            self.processor: Processor = processor(config, context)
        self.edge_readout = EdgeReadout(config.hidden, directed) if edge_output and not context.edge_tokens else None
        self.decoders = nn.ModuleList(self._decoder(f, features) for f in outputs)

    def _decoder(self, feature: Feature, features: Sequence[Feature]) -> nn.Module:
        """Return the decoder of an output."""
        activation, norm = self.config.activation, self.config.decoder_norm
        if feature.location is Location.PAIR:
            scores = Heuristics.count(directed=self.directed) if self.config.pair_scores else 0
            return PairDecoder(
                feature, self.config.hidden, activation, directed=self.directed, norm=norm, scores=scores
            )
        if self.config.readout == "cut" and feature.location is Location.GRAPH:
            return CutDecoder(feature, features, self.config.hidden, activation, norm=norm)
        summed = self.sums_nodes and _is_of_graph(feature)
        return Decoder(feature, self._row_width(feature), activation, summed=summed, norm=norm)

    def forward(self, batch: Data, task_id: str | None = None, processor: Processor | None = None) -> dict[str, Tensor]:
        """Return the raw value of every output feature.

        Args:
            batch: A PyG ``Batch`` with ``edge_index``, ``batch``, ``ptr`` and one attribute per input feature. Both
                directions of an undirected edge are neighbouring columns of ``edge_index``, and edges are ordered by
                graph.
            task_id: Not read: the model has one task.
            processor: The processor that a model of several tasks shares; None for :attr:`processor` of this model.

        Returns:
            Per feature float32 [items] (logits of masks, values of scalars) or [items, k] (logits of classes); edges
            have one row per column of ``edge_index``, equal on both directions of an undirected edge; candidate pairs
            have one per column of ``pair_index``. In training a
            processor may add the outputs of earlier states, see :class:`graphbench.models.base.Decoded`.
        """
        layout = Layout.of(batch, self.directed)
        seen = _both_ways(layout) if self.config.inverse_edges else layout
        used = self.processor if processor is None else processor
        copies = self.encoder.shared_edges(batch, layout) if self._shares_edges(used) else 1
        nodes, edges = self.encoder(batch, layout, copies=copies)
        nodes, edges = nodes.float(), None if edges is None else edges.float()
        nodes = nodes if self.degrees is None else nodes + self.degrees.of(layout).float()
        encoding = None if self.positional is None else self.positional(batch, seen).float()
        tokens = self._edge_tokens(edges, encoding, layout) if self.edge_tokens else None
        nodes = self.input_network(nodes if encoding is None else nodes + encoding)
        state = State(nodes, edges, tokens, seen, self._values_read(batch), self._facts(batch))
        processed = used(state)
        require_processed(used, self.config.processor, state, processed, graph_token=self.reads_graph_token)
        edges = edges[::2] if edges is not None and self.encoder.inverse else edges
        earlier = processed.earlier if self.training else ()
        decoded = [self._decoded(one, edges, layout, batch) for one in (processed, *earlier)]
        return Decoded(decoded[0], decoded[1:]) if earlier else decoded[0]

    def _decoded(self, processed: Processed, edges: Tensor | None, layout: Layout, batch: Data) -> dict[str, Tensor]:
        """Return the raw value of every output feature of one state."""
        if "seeds" in batch:  # a part of a large graph: the loss covers its first nodes
            processed = dataclasses.replace(processed, nodes=processed.nodes[: batch.seeds])
        outputs = {}
        for decoder in self.decoders:
            if isinstance(decoder, PairDecoder):
                scores = self._pair_scores(batch) if self.config.pair_scores else None
                outputs[decoder.feature.name] = decoder(processed.nodes, batch[PAIRS], scores)
                continue
            if isinstance(decoder, CutDecoder):
                outputs[decoder.feature.name] = decoder(processed.nodes, batch, layout)
                continue
            assert isinstance(decoder, Decoder)
            location = decoder.feature.location
            rows = self._rows(location, processed, edges, batch, layout, decoder)
            if _is_of_graph(decoder.feature):
                rows = self._with_query(rows, processed.nodes, batch, layout)
            raw = decoder(rows, layout)
            outputs[decoder.feature.name] = layout.both_directions(raw) if location is Location.EDGE else raw
        return outputs

    def prepare(
        self,
        batch: Any,
        task_id: str | None = None,
        generator: torch.Generator | None = None,
        *,
        training: bool = False,
        processor: Processor | None = None,
    ) -> Any:
        """Return a copy of the batch with all that follows from its graphs alone, computed on the CPU.

        These are positional encodings (encodings that the batch has already are kept), the extent of the graphs, and
        the facts that the processor prepares. The batch keeps its copy, so that a batch that is used repeatedly, for
        example a large graph, is prepared once. A batch on another device is returned unchanged: ``forward`` then
        computes the missing facts, and waits for the device.

        Args:
            batch: The batch.
            task_id: Not read: the model has one task.
            generator: Draws the random numbers of a training step, where the processor reads any.
            training: Whether random numbers are drawn anew.
            processor: As in :meth:`forward`.

        Raises:
            ArgumentError: If an input that marks one node of every graph marks none or several; not in training.
        """
        if batch.edge_index.device.type != "cpu":
            return batch
        used = self.processor if processor is None else processor
        anew = training and used.draws_noise
        made = batch.__dict__.get(PREPARED)
        if not anew and made is not None and made[0] is self and made[1] is batch.edge_index:
            return made[2] if PAIRS not in batch else self._with_pairs_of(made[2], batch)
        layout = Layout.of(batch, self.directed)
        if not training:
            _require_one_mark(self.single_marks, batch, layout)
        seen = _both_ways(layout) if self.config.inverse_edges else layout
        prepared = copy.copy(batch)
        prepared.__dict__.pop(PREPARED, None)
        items = layout.most_items if self.edge_tokens else None
        prepared[EXTENT] = dataclasses.replace(layout.extent, most_items=items)
        encodings = {} if self.positional is None else self.positional.encodings(batch, seen)
        draw = int(torch.randint(1, 1 << 62, (), generator=generator)) if anew else 0
        facts = used.prepare(self._values_read(batch), seen, GraphNoise(seen, draw))
        for name, value in (*encodings.items(), *((_FACT + name, value) for name, value in facts.items())):
            prepared[name] = value
        if self.config.pair_scores:
            prepared.__dict__[_HEURISTICS] = heuristics = heuristics_of(batch, self.directed)
            prepared[SCORES] = pair_scores(batch, heuristics)
        prepared.__dict__[_PREPARED_FOR] = self
        if not anew:
            batch.__dict__[PREPARED] = (self, batch.edge_index, prepared)
        return prepared

    def _with_pairs_of(self, prepared: Any, batch: Any) -> Any:
        """Return a prepared batch with the candidate pairs of another batch of the same graphs."""
        if prepared[PAIRS] is batch[PAIRS]:
            return prepared
        renewed = copy.copy(prepared)
        outputs = [one.feature.name for one in self.decoders if isinstance(one, PairDecoder)]
        for name in (PAIRS, QUERIES, "y", *outputs):
            renewed[name] = batch[name]
        if self.config.pair_scores:
            renewed[SCORES] = pair_scores(batch, prepared.__dict__[_HEURISTICS])
        return renewed

    def _pair_scores(self, batch: Any) -> Tensor:
        """Return the scores of the candidate pairs of a batch, as it was prepared or from its edges."""
        if SCORES in batch:
            prepared: Tensor = batch[SCORES]
            return prepared
        return pair_scores(batch, heuristics_of(batch, self.directed))

    def largest_batch(self, dataset: GraphDataset) -> int:
        """Return the number of graphs that fit the memory budget of the processor."""
        return graphs_at_once(dataset, self.processor.rows)

    def fit_normalisation(self, batch: Data, task_id: str | None = None) -> None:
        """Standardise scalar inputs and targets by their means and standard deviations in a sample of training data.

        Inputs are standardised before they are embedded. For targets, the network predicts the deviation from the mean
        in units of the standard deviation, and the outputs are converted back to the target's unit. Means and standard
        deviations are buffers, saved with the weights; before this method is called they are 0 and 1.

        Args:
            batch: Training graphs, a few thousand at most; never validation or test data.
            task_id: Not read: the model has one task.
        """
        self.encoder.fit_normalisation(batch)
        if self.sums_nodes:
            _warn_of_one_size(Layout.of(batch, self.directed).sizes)
        if self.degrees is not None:
            self.degrees.fit(Layout.of(batch, self.directed))
        if self.sizes is not None:
            self.sizes.fit(Layout.of(batch, self.directed))
        for decoder in self.decoders:
            if isinstance(decoder, Decoder):
                decoder.fit_normalisation(batch)
            elif isinstance(decoder, PairDecoder) and decoder.scale is not None:
                decoder.scale.fit(self._pair_scores(batch))

    def parts(self) -> list[Part]:
        """Return the processor, where the model has one of its own, and what reads and writes features."""
        has_processor = getattr(self, "processor", None) is not None
        parts = processor_parts(self.config.processor, self.processor, self.processor.cores()) if has_processor else []
        parts += self.encoder.parts()
        for name, module in (
            ("degrees", self.degrees),
            ("encodings", self.positional),
            ("network", self.input_network),
            ("sizes", self.sizes),
        ):
            if module is not None:
                parts.append(Part("encoders", f"{name} of the inputs", module))
        if self.class_means is not None:
            parts.append(Part("decoders", named_by([self.class_means.feature], "means by class"), self.class_means))
        if self.edge_readout is not None:
            parts.append(Part("decoders", "readout of edges", self.edge_readout))
        for decoder in self.decoders:
            assert isinstance(decoder, Decoder | PairDecoder | CutDecoder)
            parts.append(Part("decoders", named_by([decoder.feature], "decoder"), decoder))
        return distinct(parts)

    def _shares_edges(self, processor: Processor) -> bool:
        """Return whether nothing but the processor reads edges, and the processor takes those of copies of a graph."""
        shared = processor.reads_shared_edges and not torch.compiler.is_compiling()
        return shared and self.edge_readout is None and not self.edge_tokens and not self.config.inverse_edges

    def _facts(self, batch: Data) -> dict[str, Any]:
        """Return the facts that the processor prepared for a batch; none for a batch that was not prepared.

        Raises:
            ConfigError: If the batch was prepared for another model.
        """
        if batch.__dict__.get(_PREPARED_FOR, self) is not self:
            raise ConfigError("the batch was prepared for another model; pass the batch as it comes from the data")
        names = [name for name in batch.keys() if name.startswith(_FACT)]  # noqa: SIM118  iteration yields pairs
        return {name[len(_FACT) :]: batch[name] for name in names}

    def _values_read(self, batch: Data) -> dict[str, Tensor]:
        """Return the values of the inputs that the processor reads; an inverse arc has the values of its arc."""
        values = {f.name: feature_values(batch, f) for f in self.read_by_processor}
        if self.config.inverse_edges:
            on_edges = [f.name for f in self.read_by_processor if f.location is Location.EDGE]
            values |= {name: values[name].repeat_interleave(2, dim=0) for name in on_edges}
        return values

    def _edge_tokens(self, edges: Tensor | None, encoding: Tensor | None, layout: Layout) -> Tensor:
        """Return [M, d]: an edge's embedding plus the encodings of its endpoints, taken on the original graph.

        The token graph of a test graph with hundreds of nodes has thousands of nodes, so no encoding is computed on it.
        """
        assert edges is not None
        tails, heads = layout.edges
        rows = edges.expand(tails.numel(), -1) if edges.shape[0] == 1 else layout.once_per_edge(edges)
        if encoding is not None:
            rows = rows + encoding.index_select(0, tails) + encoding.index_select(0, heads)
        tokens: Tensor = self.input_network(rows)
        return tokens

    def _row_width(self, feature: Feature) -> int:
        """Return the width of the rows that the decoder of an output reads."""
        return self.config.hidden * (self.reads_pooled + len(self.marks) if _is_of_graph(feature) else 1)

    def _with_query(self, rows: Tensor, nodes: Tensor, batch: Data, layout: Layout) -> Tensor:
        """Return ``rows`` [B, d] or [N, d] (if they are read) concatenated with the states of the marked nodes."""
        masks = [feature_values(batch, feature).reshape(-1, 1).to(nodes.dtype) for feature in self.marks]
        marked = [segment_sum(nodes * mask, layout.graph, layout.num_graphs) for mask in masks]
        if self.sums_nodes:
            marked = [states.index_select(0, layout.graph) for states in marked]
        parts = [rows, *marked] if self.reads_pooled else marked
        return torch.cat(parts, dim=1)

    def _rows(
        self,
        location: Location,
        processed: Processed,
        edges: Tensor | None,
        batch: Data,
        layout: Layout,
        decoder: Decoder,
    ) -> Tensor:
        """Return the rows [items, d] that a decoder reads; [N, d] if the outputs of a graph's nodes are summed."""
        if decoder.reads_nodes:
            return processed.nodes
        if location is Location.EDGE:
            if self.edge_readout is None:
                assert processed.edge_tokens is not None
                return processed.edge_tokens
            assert edges is not None
            rows: Tensor = self.edge_readout(processed.nodes, edges, layout)
            return rows
        if self.pooling == "sum":
            return processed.nodes
        pooled = processed.graph
        if self.class_means is not None:
            pooled = self.class_means(processed.nodes, feature_values(batch, self.class_means.feature), layout)
        elif self.pooling != "cls":
            pooled = segment_mean(processed.nodes, layout.graph, layout.sizes)
        assert pooled is not None
        return pooled if self.sizes is None else self.sizes(pooled, layout)


@overload
def build_model(config: ModelConfig, features: Sequence[Feature], *, directed: bool) -> Model: ...


@overload
def build_model(
    config: ModelConfig | StoryModelConfig, features: Sequence[Feature], *, directed: bool
) -> Model | StoryModel: ...


def build_model(
    config: ModelConfig | StoryModelConfig, features: Sequence[Feature], *, directed: bool
) -> Model | StoryModel:
    """Return a model for data with the given features, initialised from torch's random generator.

    Args:
        config: The architecture. A configuration for stories reads texts and ignores the graphs.
        features: The features of the dataset, from its card.
        directed: Whether its graphs are directed.

    Raises:
        UnknownModel: If no processor has the configuration's name.
        ConfigError: If the configuration does not fit the processor, or a feature has no encoder or decoder.
    """
    if isinstance(config, StoryModelConfig):
        return StoryModel(config, features)
    return Model(config, features, directed=directed)


def count_parameters(model: nn.Module) -> int:
    """Return the number of trainable parameters of a model."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def _is_of_graph(feature: Feature) -> bool:
    return feature.location is Location.GRAPH and feature.kind is not Kind.POINTER


def context_of(
    config: ModelConfig, processor: type[Processor], features: Sequence[Feature], directed: bool
) -> tuple[Context, str]:
    """Return the context of a model's processor for one task, and the pooling of graph-level outputs.

    Raises:
        ConfigError: If the configuration asks for something that the processor or the graphs do not support.
    """
    outputs = select(features, Stage.OUTPUT)
    if config.edge_tokens is True and not processor.supports_edge_tokens:
        raise ConfigError(f"processor {config.processor!r} knows no edge tokens; set edge_tokens to auto or false")
    require_fit(config, features, directed)
    if config.pooling == "cls" and not processor.supports_graph_token:
        raise ConfigError(f"processor {config.processor!r} has no graph token; set pooling to auto, mean or sum")
    if config.graph_size and (config.pooling == "sum" or config.readout not in ("pooled", "query")):
        raise ConfigError(
            f"graph_size adds the size of a graph to its pooled nodes, but pooling is {config.pooling} and readout is "
            f"{config.readout}; set graph_size to false, or pooling to mean and readout to pooled"
        )
    on_edges = any(f.location is Location.EDGE for f in outputs)
    edge_tokens = config.edge_tokens if config.edge_tokens != "auto" else on_edges and processor.supports_edge_tokens
    if edge_tokens and config.inverse_edges:
        raise ConfigError("edge tokens stand for arcs one way; set edge_tokens or inverse_edges to false")
    pooling = config.pooling
    if pooling == "auto":
        pooling = "cls" if processor.supports_graph_token else "mean"
    pooled = any(f.location is Location.GRAPH for f in outputs)
    return Context(directed, bool(edge_tokens), pooling == "cls" and pooled), pooling


def _inputs_read(config: ModelConfig, features: Sequence[Feature]) -> list[Feature]:
    """Return the inputs that a model reads, after checking that every name in the configuration is an input."""
    inputs = select(features, Stage.INPUT)
    classes = {f.name for f in inputs if f.kind in (Kind.CATEGORICAL, Kind.MASK, Kind.MASK_ONE)}
    for key, names, allowed in (
        ("ignore", config.ignore, {f.name for f in inputs}),
        ("fixed", config.fixed, classes - set(config.ignore)),
    ):
        unknown = set(names) - allowed
        if unknown:
            raise ConfigError(f"{key} names {sorted(unknown)}; the inputs it may name are {sorted(allowed)}")
    return [f for f in inputs if f.name not in config.ignore]


def _class_means(config: ModelConfig, features: Sequence[Feature]) -> ClassMeans:
    """Return the means of the nodes of every class of the input that the configuration names."""
    inputs = {f.name: f for f in select(features, Stage.INPUT) if f.location is Location.NODE and f.classes}
    if config.pooled_by not in inputs:
        names = ", ".join(inputs) or "there is none"
        raise ConfigError(
            f"model.pooled_by is {config.pooled_by!r}, which is no categorical input of nodes ({names}); name one, or "
            "set model.pooling to mean and leave model.pooled_by out"
        )
    if not any(_is_of_graph(f) for f in predicted_features(features)):
        raise ConfigError("model.pooling is classes, but the task has no outputs of graphs; set it to auto")
    return ClassMeans(inputs[config.pooled_by], config.hidden)


def _warn_of_unmarked_query(config: ModelConfig, features: Sequence[Feature], outputs: Sequence[Feature]) -> None:
    """Warn if a model ignores every input that marks the queried nodes and pools all nodes."""
    marks = [f.name for f in node_marks(features)]
    queries = [f.name for f in outputs if _is_of_graph(f)]
    if config.readout == "pooled" and queries and marks and set(marks) <= set(config.ignore):
        logger.warning(
            "the model ignores %s and pools all nodes: nothing marks the nodes that %s asks for; set model.readout to "
            "query or marked, or take a mark out of model.ignore",
            " and ".join(marks),
            " and ".join(queries),
        )


def _require_one_mark(marks: Sequence[Feature], batch: Data, layout: Layout) -> None:
    """Raise an error if an input that marks one node of every graph marks none or several of one.

    Raises:
        ArgumentError: With the input, the graph and the number of its marks.
    """
    for feature in marks:
        counts = segment_sum(feature_values(batch, feature).reshape(-1, 1).float(), layout.graph, layout.num_graphs)
        wrong = (counts.squeeze(1) != 1).nonzero()
        if len(wrong):
            first = int(wrong[0])
            raise ArgumentError(
                f"the input {feature.name!r} marks {counts[first].item():g} nodes of graph {first}; mark exactly one "
                "node of every graph"
            )


def _warn_of_one_size(sizes: Tensor) -> None:
    """Warn if every training graph has one number of nodes, so that training cannot tell a sum from a mean."""
    if len(sizes) > 1 and bool((sizes == sizes[0]).all()):
        logger.warning(
            "model.pooling is sum, but all training graphs have %d nodes: a node may learn its share of the target "
            "divided by %d, which is wrong on graphs of other sizes; train on several sizes, or sum where the sum is "
            "meant (model.readout marked, with edges in node_pools of the processor pairs)",
            int(sizes[0]),
            int(sizes[0]),
        )


def _both_ways(layout: Layout) -> Layout:
    """Return the layout with every arc followed by its inverse."""
    both = torch.stack([layout.edge_index, layout.edge_index.flip(0)], dim=2).flatten(1, 2)
    return dataclasses.replace(layout, edge_index=both)
