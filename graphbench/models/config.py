"""Model configurations, checked before anything is built. This module loads no torch."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from graphbench.core.validation import ExtensibleModel, StrictModel

MOST_NUMBERS = 10**10
"""Bound on the estimated size of a model, 40 GB of weights."""

_MODULE_NUMBERS = 10_000  # memory of a layer's Python objects, in numbers of four bytes


class ArchitectureConfig(ExtensibleModel):
    """Base class of the configurations of models."""

    @property
    def estimated_size(self) -> int:
        """A lower bound on the number of weights of a model, valid for settings of any size."""
        return 0

    @model_validator(mode="after")
    def _bounded(self) -> ArchitectureConfig:
        if self.estimated_size > MOST_NUMBERS:
            raise ValueError(
                f"the model would have more than 10^{len(str(self.estimated_size)) - 1} weights, and "
                f"10^{len(str(MOST_NUMBERS)) - 1} are allowed; lower its widths (hidden) or its layers"
            )
        return self


def layers_size(layers: int, numbers: int) -> int:
    """Return the size of ``layers`` layers with ``numbers`` weights each, including their Python objects."""
    return layers * (numbers + _MODULE_NUMBERS)


class PositionalConfig(StrictModel):
    """The positional encoding that is added to the node embeddings, and the networks that embed it.

    Attributes:
        type: ``none``, ``rwse`` (random-walk return probabilities) or ``lpe`` (Laplacian eigenpairs).
        k: Number of walk lengths (rwse) or of eigenpairs (lpe).
        hidden: Width of the embedding networks' inner layers.
        self_loops: rwse only: add a loop to every node before walking. Without loops no walk on an acyclic directed
            graph returns, and the encoding of such a graph is all zeros.
    """

    type: Literal["none", "rwse", "lpe"] = "none"
    k: int = Field(default=16, ge=1)
    hidden: int = Field(default=768, ge=1)
    self_loops: bool = False


class ModelConfig(ArchitectureConfig):
    """The architecture of an encoder-processor-decoder model (GraphBench paper, appendix B).

    Attributes:
        processor: ``gin``, ``gt``, ``gat``, ``bipartite``, ``mlp``, ``deepsets`` or a name registered with
            ``register_processor``.
        layers: Number of processor layers; for bipartite, the number of rounds, which share their weights.
        hidden: Embedding width ``d``.
        heads: Number of attention heads of gt (they divide ``hidden``) and of gat (every head has the full width).
        dropout: Dropout rate on the output of each residual branch.
        activation: Activation of the feed-forward networks and decoders.
        positional: Positional encoding of the nodes.
        input_network: Whether a residual feed-forward network stands between the encoder and the processor.
        degrees: Whether the degree of a node is an input. In directed graphs, true is the number of outgoing arcs, and
            ``both`` are the numbers of outgoing and of incoming arcs.
        stochastic_depth: gt: layer ``i`` of ``L`` skips a branch with probability ``stochastic_depth * (i + 1) / L``.
        pooling: How graph-level outputs read the nodes. ``mean``: from the mean of the nodes. ``cls``: from a graph
            token. ``sum``: every node has an output, and the graph's output is their sum, which can grow with the
            graph. ``classes``: from the mean of the nodes of every class of ``pooled_by``, through a linear map per
            class, so that nodes of a rare class are not lost among all others. ``auto``: ``cls`` if the processor has a
            graph token, else ``mean``.
        pooled_by: Name of the categorical input of nodes whose classes ``pooling: classes`` tells apart.
        graph_size: Whether outputs of graphs also read the logarithms of the number of nodes and of the mean degree,
            which the mean of the nodes does not show; that mean is normalised first.
        readout: How graph-level outputs are read. ``pooled``: from the pooled nodes alone. ``query``: from the pooled
            nodes and the state of every node that a mask_one input marks, concatenated in the card's order.
            ``marked``: from the marked nodes alone, so that no sum over all nodes bypasses the path between the
            marked nodes. ``cut``: the smallest cut between two marked nodes that potentials of the nodes describe
            (:class:`graphbench.models.cuts.CutDecoder`).
        inverse_edges: Directed graphs: every arc is also added in reverse, with separate encoders, so that a class
            and its inverse are two classes.
        ignore: Inputs that the model does not read.
        fixed: Categorical inputs and masks whose embeddings keep their random initial values.
        edge_tokens: gt: whether edges are tokens in addition to nodes; ``auto``: if an output lies on edges.
        attention: gt: ``sdpa`` (dense bias), ``chunked`` (slices of queries; memory linear in the number of tokens),
            ``pairs`` (biases added to single scores inside the kernel; CPU only, memory linear in tokens and pairs),
            ``flex`` (compiled flex_attention; CUDA and edge tokens only), or ``auto``: pairs on the CPU where
            graphs are large and few pairs have a bias, else sdpa while the dense bias fits, else chunked.
        decoder_norm: Whether a layer normalisation stands before the last layer of every decoder. Without it, outputs
            can grow with the states, for targets that grow with the graph.
        pair_scores: Links: whether the logit of a candidate pair also reads common neighbours, paths of length three
            and the other scores that follow from the edges alone.
        options: Settings specific to the processor: ``GATOptions`` for gat, ``BipartiteOptions`` for bipartite, or the
            settings of a user's processor.
    """

    processor: str = "gin"
    layers: int = Field(default=6, ge=1)
    hidden: int = Field(default=384, ge=1)
    heads: int = Field(default=16, ge=1)
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    activation: Literal["gelu", "relu"] = "gelu"
    positional: PositionalConfig = PositionalConfig()
    input_network: bool = True
    degrees: bool | Literal["both"] = False
    stochastic_depth: float = Field(default=0.1, ge=0.0, lt=1.0)
    pooling: Literal["auto", "mean", "sum", "cls", "classes"] = "auto"
    pooled_by: str = ""
    graph_size: bool = False
    readout: Literal["pooled", "query", "marked", "cut"] = "pooled"
    inverse_edges: bool = False
    ignore: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    edge_tokens: bool | Literal["auto"] = "auto"
    attention: Literal["auto", "sdpa", "chunked", "pairs", "flex"] = "auto"
    decoder_norm: bool = True
    pair_scores: bool = False
    options: dict[str, Any] = Field(default_factory=dict)

    added: ClassVar[frozenset[str]] = frozenset({"decoder_norm", "pair_scores", "graph_size", "pooled_by"})

    @property
    def estimated_size(self) -> int:
        """A lower bound on the number of weights of a model."""
        positional = self.positional
        encoding = 0 if positional.type == "none" else positional.hidden * (positional.k + positional.hidden)
        return encoding + self.heads * self.hidden + layers_size(self.layers, self.hidden**2)

    @model_validator(mode="after")
    def _heads_divide_hidden(self) -> ModelConfig:
        if self.processor == "gt" and self.hidden % self.heads:
            raise ValueError(f"hidden={self.hidden} is not divisible by heads={self.heads}; change one of them")
        return self

    @model_validator(mode="after")
    def _pools_by_an_input(self) -> ModelConfig:
        if (self.pooling == "classes") != bool(self.pooled_by):
            raise ValueError(
                f"pooling={self.pooling} and pooled_by={self.pooled_by!r} do not fit; pooling=classes needs the name "
                "of a categorical input of nodes in pooled_by, and no other pooling reads it"
            )
        return self
