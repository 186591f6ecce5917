"""Story models: an encoder of texts, and one decoder per output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphbench.catalog.features import Feature, Kind, Location, Stage, select
from graphbench.core.errors import ConfigError
from graphbench.models.encoders import feature_values
from graphbench.models.graphs import Layout, segment_sum
from graphbench.models.story.base import Setting, StoryEncoder
from graphbench.models.story.config import StoryModelConfig
from graphbench.models.story.frozen import FrozenEncoder
from graphbench.models.story.lstm import LSTMEncoder
from graphbench.models.story.mac import MACEncoder
from graphbench.models.story.relation_network import RelationNetworkEncoder
from graphbench.models.story.vocabulary import Vocabulary, words_of

_ENCODERS: dict[str, type[Any]] = {
    "lstm": LSTMEncoder,
    "relation_network": RelationNetworkEncoder,
    "mac": MACEncoder,
    "frozen": FrozenEncoder,
}


class StoryModel(nn.Module):
    """A model for one dataset of stories: ``model(batch)`` returns the logits of every output.

    It reads three things of a batch: the stories, the numbers that stand for people in them, and which people the
    question is about. The graph's edges are not read.
    """

    def __init__(self, config: StoryModelConfig, features: Sequence[Feature]) -> None:
        """Create the model; see :func:`graphbench.models.build.build_model`.

        Raises:
            ConfigError: If the features are not those of stories, or the configuration has no vocabulary.
        """
        super().__init__()
        self.config = config
        self.text = text_feature(config, features)
        self.entity = _entity_feature(config, features)
        marked = select(features, Stage.INPUT, Location.NODE)
        self.marks = tuple(f for f in marked if f.kind is Kind.MASK_ONE)
        if not self.marks:
            raise ConfigError("a story model answers a question on marked nodes, but no input is a mask_one of nodes")
        if config.reads_words and not config.vocabulary:
            raise ConfigError("the story model has no vocabulary; take the words of training data: with_vocabulary")
        setting = Setting(Vocabulary(config.vocabulary, self.entity.classes), len(self.marks))
        self.encoder: StoryEncoder = _ENCODERS[config.encoder](config, setting)
        outputs = select(features, Stage.OUTPUT)
        self.decoders = nn.ModuleDict({f.name: _decoder(f, self.encoder.width, config) for f in outputs})

    def forward(self, batch: Data) -> dict[str, Tensor]:
        """Return the logits of every output, float32 [B, classes].

        Args:
            batch: A PyG ``Batch`` with the stories as a list of strings, and the node inputs.
        """
        stories = getattr(batch, self.text.name, None)
        if stories is None:
            raise ConfigError(f"the batch has no {self.text.name!r}; build the model with the features of the data")
        encoded = self.encoder([stories] if isinstance(stories, str) else stories, self._query(batch)).float()
        return {name: decoder(encoded).float() for name, decoder in self.decoders.items()}

    def fit_normalisation(self, batch: Data) -> None:
        """Do nothing: these models read and predict no scalars."""

    def _query(self, batch: Data) -> Tensor:
        """Return the numbers of the entities that the questions are about, int64 [B, Q]."""
        layout = Layout.of(batch, directed=True)
        numbers = feature_values(batch, self.entity).reshape(-1, 1).long()
        marks = torch.cat([feature_values(batch, mark).reshape(-1, 1).long() for mark in self.marks], dim=1)
        return segment_sum(marks * numbers, layout.graph, layout.num_graphs)


def with_vocabulary(config: StoryModelConfig, features: Sequence[Feature], batches: Iterable[Any]) -> StoryModelConfig:
    """Return a configuration with the words of training data, or as it is where it has words or needs none.

    Args:
        config: The configuration.
        features: The dataset's features.
        batches: Batches of the training split.

    Raises:
        ConfigError: If the features hold no text of the configured name.
    """
    name = text_feature(config, features).name
    if config.vocabulary or not config.reads_words:
        return config
    words = words_of(story for batch in batches for story in batch[name])
    return config.model_copy(update={"vocabulary": words})


def text_feature(config: StoryModelConfig, features: Sequence[Feature]) -> Feature:
    """Return the input that holds the stories.

    Raises:
        ConfigError: If there is no such text.
    """
    texts = [f for f in select(features, Stage.INPUT, Location.GRAPH) if f.kind is Kind.TEXT]
    return _named(texts, config.text, "text", "a text of graphs")


def _entity_feature(config: StoryModelConfig, features: Sequence[Feature]) -> Feature:
    classes = [f for f in select(features, Stage.INPUT, Location.NODE) if f.kind is Kind.CATEGORICAL]
    return _named(classes, config.entity, "entity", "a class of nodes")


def _named(candidates: Sequence[Feature], name: str, key: str, description: str) -> Feature:
    for feature in candidates:
        if feature.name == name:
            return feature
    known = ", ".join(f.name for f in candidates) or "none"
    raise ConfigError(f"the data have no input {name!r} that is {description} (there: {known}); set model.{key}")


def _decoder(feature: Feature, width: int, config: StoryModelConfig) -> nn.Module:
    if feature.kind is not Kind.CATEGORICAL or feature.location is not Location.GRAPH:
        raise ConfigError(
            f"output {feature.name!r} is a {feature.type_name} at {feature.location} level; "
            "story models predict classes of graphs"
        )
    return nn.Sequential(
        nn.Linear(width, config.decoder_hidden), nn.ReLU(), nn.Linear(config.decoder_hidden, feature.classes)
    )
