"""The configuration of story models. This module loads no torch."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import Field

from graphbench.core.validation import StrictModel
from graphbench.models.config import ArchitectureConfig, layers_size


class RelationConfig(StrictModel):
    """The networks of a relation network.

    Attributes:
        pair: Widths of the layers of ``g``, which sees two sentences and the query.
        total: Widths of the layers of ``f``, which sees the sum over all pairs.
    """

    pair: tuple[int, ...] = Field(default=(64, 64, 64, 64), min_length=1)
    total: tuple[int, ...] = Field(default=(256, 64), min_length=1)


class MACConfig(StrictModel):
    """The cell of a MAC network.

    Attributes:
        iterations: Number of times that the cell is applied.
        share_question: Whether all iterations read the question through the same weights.
        dropout: Dropout rate on the memory and on the outputs of the read unit and the write unit.
    """

    iterations: int = Field(default=6, ge=1)
    share_question: bool = True
    dropout: float = Field(default=0.2, ge=0.0, lt=1.0)


class FrozenConfig(StrictModel):
    """A pretrained encoder whose weights never change.

    Attributes:
        path: Local folder with the weights and the tokenizer, as ``save_pretrained`` of ``transformers`` writes them.
            Nothing is ever downloaded.
        placeholders: Whether separate vectors of entities replace the encoder's states of entities.
        remember: Memory in GiB for a cache of encoded stories, which later epochs reuse.
    """

    path: str = ""
    placeholders: bool = False
    remember: float = Field(default=8.0, ge=0.0)


class StoryModelConfig(ArchitectureConfig):
    """A model that reads a story as tokens (CLUTRR paper, section 4.1 and appendix 1.1).

    Attributes:
        kind: Always ``story``, which selects this kind of model.
        encoder: ``lstm``, ``relation_network``, ``mac`` or ``frozen`` (a pretrained encoder, an LSTM on top).
        reading: lstm, frozen: the pooling of states into one vector: ``mean``, or ``attention`` that reads the query.
        embedding: Width of the vectors of words and entities; frozen uses the pretrained encoder's width instead.
        entities: Vectors of entities (appendix 1.5): ``fixed`` as drawn, ``learned``, or ``random``: regenerated for
            every batch in training, and fixed in evaluation.
        hidden: Width of an LSTM's state, per direction.
        layers: Layers of the LSTM; 0 for none.
        bidirectional: Whether the LSTM reads both ways.
        dropout: Rate of dropout on the vectors of tokens and between the LSTM's layers.
        decoder_hidden: Width of the hidden layer of the decoder.
        relation: Settings of a relation network.
        mac: Settings of a MAC network.
        frozen: Settings of a pretrained encoder.
        text: Input that holds the stories: tokens between single spaces, entities as ``@ent7``. None for the only text
            of graphs among the inputs.
        entity: Categorical input of nodes that holds the number of each node's entity in the story. None for the only
            categorical input of nodes.
        vocabulary: The words that have a vector; empty to take the words of the training split when training begins.
            The vocabulary is written to the run's ``config.json``, so that the model can be rebuilt without the data.
    """

    kind: Literal["story"] = "story"
    encoder: Literal["lstm", "relation_network", "mac", "frozen"] = "lstm"
    reading: Literal["mean", "attention"] = "mean"
    embedding: int = Field(default=100, ge=1)
    entities: Literal["fixed", "learned", "random"] = "fixed"
    hidden: int = Field(default=100, ge=1)
    layers: int = Field(default=2, ge=0)
    bidirectional: bool = True
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    decoder_hidden: int = Field(default=200, ge=1)
    relation: RelationConfig = RelationConfig()
    mac: MACConfig = MACConfig()
    frozen: FrozenConfig = FrozenConfig()
    text: str | None = None
    entity: str | None = None
    vocabulary: tuple[str, ...] = ()

    @property
    def estimated_size(self) -> int:
        """A lower bound on the number of weights of a model."""
        widths = [*self.relation.pair, *self.relation.total]
        networks = sum(first * second for first, second in pairwise(widths))
        heads = self.hidden * self.decoder_hidden + self.embedding
        return heads + networks + layers_size(self.layers, 4 * self.hidden**2) + layers_size(self.mac.iterations, 0)

    @property
    def reads_words(self) -> bool:
        """Whether the model has vectors of words, and hence needs a vocabulary."""
        return self.encoder != "frozen"
