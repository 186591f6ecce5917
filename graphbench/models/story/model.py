"""Story models: an encoder of texts, and one decoder per output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphbench.catalog.features import Feature, Kind, Location, Stage, select
from graphbench.core.errors import ConfigError
from graphbench.models.base import TaskModel, module_key
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


class StoryModel(TaskModel):
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
            raise ConfigError("the story model has no vocabulary; take the words of training data: completed")
        setting = Setting(Vocabulary(config.vocabulary, self.entity.classes), len(self.marks))
        self.encoder: StoryEncoder = _ENCODERS[config.encoder](config, setting)
        self.outputs = select(features, Stage.OUTPUT)
        self.decoders = nn.ModuleDict(
            {module_key(f.name): _decoder(f, self.encoder.width, config) for f in self.outputs}
        )

    def forward(self, batch: Data, task_id: str | None = None) -> dict[str, Tensor]:
        """Return the logits of every output, float32 [B, classes].

        Args:
            batch: A PyG ``Batch`` with the stories as a list of strings, and the node inputs.
            task_id: Not read: the model has one task.
        """
        stories = getattr(batch, self.text.name, None)
        if stories is None:
            raise ConfigError(f"the batch has no {self.text.name!r}; build the model with the features of the data")
        encoded = self.encoder([stories] if isinstance(stories, str) else stories, self._query(batch)).float()
        return {f.name: self.decoders[module_key(f.name)](encoded).float() for f in self.outputs}

    def _query(self, batch: Data) -> Tensor:
        """Return the numbers of the entities that the questions are about, int64 [B, Q]."""
        layout = Layout.of(batch, directed=True)
        numbers = feature_values(batch, self.entity).reshape(-1, 1).long()
        marks = torch.cat([feature_values(batch, mark).reshape(-1, 1).long() for mark in self.marks], dim=1)
        return segment_sum(marks * numbers, layout.graph, layout.num_graphs)


def completed(config: StoryModelConfig, features: Sequence[Feature], batches: Iterable[Any]) -> StoryModelConfig:
    """Return a configuration completed from the data: with the names of its inputs, and the words of training data.

    Args:
        config: The configuration. What it specifies is kept; one that needs no words gets none.
        features: The dataset's features.
        batches: Batches of the training split.

    Raises:
        ConfigError: If the features hold no such inputs, or several and the configuration names none.
    """
    text, entity = text_feature(config, features).name, _entity_feature(config, features).name
    words = config.vocabulary
    if config.reads_words and not words:
        words = words_of(story for batch in batches for story in batch[text])
    return config.model_copy(update={"text": text, "entity": entity, "vocabulary": words})


def text_feature(config: StoryModelConfig, features: Sequence[Feature]) -> Feature:
    """Return the input that holds the stories.

    Raises:
        ConfigError: If there is no such text, or there are several and the configuration names none.
    """
    texts = [f for f in select(features, Stage.INPUT, Location.GRAPH) if f.kind is Kind.TEXT]
    return _chosen(texts, config.text, "text", "a text of graphs")


def _entity_feature(config: StoryModelConfig, features: Sequence[Feature]) -> Feature:
    classes = [f for f in select(features, Stage.INPUT, Location.NODE) if f.kind is Kind.CATEGORICAL]
    return _chosen(classes, config.entity, "entity", "a class of nodes")


def _chosen(candidates: Sequence[Feature], name: str | None, key: str, description: str) -> Feature:
    """Return the candidate of a name, or the only one where none is named."""
    named = [feature for feature in candidates if name in (None, feature.name)]
    if len(named) == 1:
        return named[0]
    known = ", ".join(f.name for f in candidates) or "none"
    wanted = f"no input {name!r} that is" if name is not None else f"{len(named)} inputs, where one is needed, that are"
    raise ConfigError(f"the data have {wanted} {description} (there: {known}); set model.{key}")


def _decoder(feature: Feature, width: int, config: StoryModelConfig) -> nn.Module:
    if feature.kind is not Kind.CATEGORICAL or feature.location is not Location.GRAPH:
        raise ConfigError(
            f"output {feature.name!r} is a {feature.type_name} at {feature.location} level; "
            "story models predict classes of graphs"
        )
    return nn.Sequential(
        nn.Linear(width, config.decoder_hidden), nn.ReLU(), nn.Linear(config.decoder_hidden, feature.classes)
    )
