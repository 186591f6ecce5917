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
from graphbench.models.layers import FullPrecisionLinear
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

    The model reads three inputs of a batch: the stories, the entity numbers of the people in the stories, and the marks
    of the people in the question. It does not read the graph's edges.
    """

    def __init__(self, config: StoryModelConfig, features: Sequence[Feature]) -> None:
        """Create the model; see :func:`graphbench.models.build.build_model`.

        Raises:
            ConfigError: If the features do not describe stories, or the configuration has no vocabulary.
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
        """Return the numbers of the entities in the questions, int64 [B, Q]."""
        layout = Layout.of(batch, directed=True)
        numbers = feature_values(batch, self.entity).reshape(-1, 1).long()
        marks = torch.cat([feature_values(batch, mark).reshape(-1, 1).long() for mark in self.marks], dim=1)
        return segment_sum(marks * numbers, layout.graph, layout.num_graphs)


def completed(config: StoryModelConfig, features: Sequence[Feature], batches: Iterable[Any]) -> StoryModelConfig:
    """Return the configuration, completed with the names of its inputs and the words of the training data.

    Args:
        config: The configuration. Its settings are kept; words are added only if its encoder needs a vocabulary.
        features: The dataset's features.
        batches: Batches of the training split.

    Raises:
        ConfigError: If an input is missing, or several inputs qualify and the configuration does not name one.
    """
    text, entity = text_feature(config, features).name, _entity_feature(config, features).name
    words = config.vocabulary
    if config.reads_words and not words:
        words = words_of(story for batch in batches for story in batch[text])
    return config.model_copy(update={"text": text, "entity": entity, "vocabulary": words})


def text_feature(config: StoryModelConfig, features: Sequence[Feature]) -> Feature:
    """Return the input that holds the stories.

    Raises:
        ConfigError: If there is no text, or there are several texts and the configuration does not name one.
    """
    texts = [f for f in select(features, Stage.INPUT, Location.GRAPH) if f.kind is Kind.TEXT]
    return _select_input(texts, config.text, "text", "a text of graphs")


def _entity_feature(config: StoryModelConfig, features: Sequence[Feature]) -> Feature:
    classes = [f for f in select(features, Stage.INPUT, Location.NODE) if f.kind is Kind.CATEGORICAL]
    return _select_input(classes, config.entity, "entity", "a class of nodes")


def _select_input(candidates: Sequence[Feature], name: str | None, key: str, description: str) -> Feature:
    """Return the candidate with the given name; if the name is None, return the only candidate."""
    named = [feature for feature in candidates if name in (None, feature.name)]
    if len(named) == 1:
        return named[0]
    available = ", ".join(f.name for f in candidates) or "none"
    wanted = f"no input {name!r} that is" if name is not None else f"{len(named)} inputs, where one is needed, that are"
    raise ConfigError(f"the data have {wanted} {description} (there: {available}); set model.{key}")


def _decoder(feature: Feature, width: int, config: StoryModelConfig) -> nn.Module:
    if feature.kind is not Kind.CATEGORICAL or feature.location is not Location.GRAPH:
        raise ConfigError(
            f"output {feature.name!r} is a {feature.type_name} at {feature.location} level; "
            "story models predict classes of graphs"
        )
    return nn.Sequential(
        nn.Linear(width, config.decoder_hidden), nn.ReLU(), FullPrecisionLinear(config.decoder_hidden, feature.classes)
    )
