"""The base class of story encoders, and functions that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphbench.core.errors import ConfigError
from graphbench.models.story.vocabulary import Vocabulary


class StoryEncoder(nn.Module):
    """Base class of encoders, which map stories and queries to the vector that a decoder reads.

    Attributes:
        width: Width of the vector.
    """

    width: int

    def forward(self, stories: Sequence[str], query: Tensor) -> Tensor:
        """Return float32 [B, width].

        Args:
            stories: B stories, tokens between single spaces.
            query: int64 [B, Q], the numbers of the entities in the question.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Setting:
    """The properties of the data on which an encoder depends.

    Attributes:
        vocabulary: The vocabulary of words and entities.
        queried: Number of entities in a question.
    """

    vocabulary: Vocabulary
    queried: int


def mean_state(states: Tensor, mask: Tensor) -> Tensor:
    """Return the mean [B, w] of the states [B, L, w] where ``mask`` bool [B, L] holds."""
    weights = mask.to(states.dtype)
    return (weights.unsqueeze(1) @ states).squeeze(1) / weights.sum(1, keepdim=True)


def query_states(states: Tensor, mentions: Tensor) -> Tensor:
    """Return the mean state of each queried entity over the tokens that name it, [B, Q, w].

    An entity that a story does not name has the state 0; published stories may lack one.

    Args:
        states: [B, L, w].
        mentions: Bool [B, Q, L].

    Raises:
        ConfigError: If a story names none of the queried entities.
    """
    weights = mentions.to(states.dtype)
    counts = weights.sum(2, keepdim=True)
    unnamed = (counts == 0).all(1).flatten()
    if bool(unnamed.any()):
        story = int(unnamed.nonzero()[0])
        raise ConfigError(f"story {story} of the batch names none of the queried entities; correct the data")
    means: Tensor = weights @ states / counts.clamp(min=1)
    return means


def mentions_of(ids: Tensor, tokens: Tensor) -> Tensor:
    """Return whether each of ``ids`` int64 [B, L] equals each of ``tokens`` int64 [B, Q], bool [B, Q, L]."""
    return ids.unsqueeze(1) == tokens.unsqueeze(2)


def perceptron(width: int, layers: Sequence[int]) -> nn.Sequential:
    """Return Linear, LayerNorm and ReLU for each of the widths ``layers``, on inputs of width ``width``."""
    parts: list[nn.Module] = []
    for after in layers:
        parts += [nn.Linear(width, after), nn.LayerNorm(after), nn.ReLU()]
        width = after
    return nn.Sequential(*parts)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax of ``scores`` [B, L] over the positions where ``mask`` holds, float32 [B, L], 0 elsewhere."""
    return torch.softmax(scores.float().masked_fill(~mask, -torch.inf), dim=1)
