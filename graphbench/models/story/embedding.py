"""Vectors of words and entities, and policies for the vectors of entities (CLUTRR paper, appendix 1.5)."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbench.models.story.vocabulary import PAD, UNKNOWN

EntityPolicy = Literal["fixed", "learned", "random"]


class EntityTable(nn.Module):
    """One vector per entity, drawn from N(0, 1): fixed, learned, or regenerated at every step of training.

    Fixed vectors, and the vectors that a ``random`` table uses in evaluation, are saved with the weights.
    """

    vectors: Tensor

    def __init__(self, entities: int, width: int, policy: EntityPolicy) -> None:
        super().__init__()
        self.policy = policy
        drawn = torch.randn(entities, width)
        if policy == "learned":
            self.vectors = nn.Parameter(drawn)
        else:
            self.register_buffer("vectors", drawn)

    def forward(self) -> Tensor:
        """Return the vectors of all entities, float32 [entities, width]."""
        if self.policy == "random" and self.training:
            return torch.randn_like(self.vectors)
        return self.vectors


class TokenEmbedding(nn.Module):
    """Vectors of all tokens of a vocabulary; zeros for padding and for the unknown word, which is never trained."""

    def __init__(self, words: int, entities: int, width: int, policy: EntityPolicy) -> None:
        """Create vectors for ``words`` words, padding, the unknown word, and ``entities`` entities."""
        super().__init__()
        self.words = nn.Embedding(words + 2, width, padding_idx=PAD)
        with torch.no_grad():
            self.words.weight[UNKNOWN] = 0.0
        self.entities = EntityTable(entities, width, policy)

    def forward(self, ids: Tensor) -> Tensor:
        """Return vectors [..., width] of token numbers ``ids`` int64 [...]."""
        return F.embedding(ids, torch.cat([self.words.weight, self.entities()]), padding_idx=PAD)
