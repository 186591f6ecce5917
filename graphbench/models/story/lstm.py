"""LSTMs over the tokens of a story, and the pooling of their states (CLUTRR paper, appendix 1.1)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from graphbench.models.layers import Dropout
from graphbench.models.story.base import (
    Setting,
    StoryEncoder,
    masked_softmax,
    mean_state,
    mentions_of,
    query_states,
)
from graphbench.models.story.config import StoryModelConfig
from graphbench.models.story.embedding import TokenEmbedding


class Reader(nn.Module):
    """An LSTM over packed sequences; without layers, dropout alone."""

    def __init__(self, width: int, config: StoryModelConfig) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)
        self.width = width
        self.lstm: nn.LSTM | None = None
        if config.layers:
            between = config.dropout if config.layers > 1 else 0.0
            settings = {"batch_first": True, "bidirectional": config.bidirectional, "dropout": between}
            self.lstm = nn.LSTM(width, config.hidden, config.layers, **settings)
            self.width = config.hidden * (2 if config.bidirectional else 1)

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Return states [B, L, width], 0 on padding.

        Args:
            vectors: [B, L, w].
            lengths: int64 [B], on the CPU; the longest is L.
        """
        vectors = self.dropout(vectors)
        if self.lstm is None:
            return vectors
        device = vectors.device.type
        with torch.autocast(device, enabled=device != "cpu" and torch.is_autocast_enabled(device)):
            # only some CPUs have an LSTM in bfloat16, so that CPUs compute it in float32
            packed = pack_padded_sequence(vectors.float(), lengths, batch_first=True, enforce_sorted=False)
            states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return states.float()


class QueryAttention(nn.Module):
    """Additive attention that depends on the query: weights ``softmax_t of v . tanh(W [state_t, query])``."""

    def __init__(self, width: int, query_width: int) -> None:
        super().__init__()
        self.states = nn.Linear(width, width)
        self.query = nn.Linear(query_width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, states: Tensor, query: Tensor, mask: Tensor) -> Tensor:
        """Return the weighted mean [B, w] of ``states`` [B, L, w] where ``mask`` [B, L] holds; ``query`` [B, q]."""
        hidden = torch.tanh(self.states(states) + self.query(query).unsqueeze(1))
        weights = masked_softmax(self.score(hidden).squeeze(2), mask)
        return (weights.unsqueeze(1) @ states).squeeze(1)


class Reading(nn.Module):
    """One vector of a story: the mean of its states or an attention over them, concatenated with the query's states."""

    def __init__(self, width: int, queried: int, kind: str) -> None:
        super().__init__()
        self.attention = QueryAttention(width, queried * width) if kind == "attention" else None
        self.width = width * (1 + queried)

    def forward(self, states: Tensor, mask: Tensor, mentions: Tensor) -> Tensor:
        """Return [B, width] of ``states`` [B, L, w], ``mask`` [B, L] and ``mentions`` [B, Q, L]."""
        query = query_states(states, mentions).flatten(1)
        story = mean_state(states, mask) if self.attention is None else self.attention(states, query, mask)
        return torch.cat([story, query], dim=1)


class WordReader(nn.Module):
    """The shared part of LSTM, relation network and MAC: vectors of the tokens, read by an LSTM."""

    def __init__(self, config: StoryModelConfig, setting: Setting) -> None:
        super().__init__()
        self.vocabulary = setting.vocabulary
        self.embedding = TokenEmbedding(
            len(self.vocabulary.words), self.vocabulary.entities, config.embedding, config.entities
        )
        self.reader = Reader(config.embedding, config)
        self.width = self.reader.width

    def forward(self, stories: Sequence[str], query: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return states [B, L, width], the mask of tokens, bool [B, L], and of queried entities, bool [B, Q, L]."""
        padded = self.vocabulary.padded(stories, query.device)
        states = self.reader(self.embedding(padded.ids), padded.lengths)
        return states, padded.mask, mentions_of(padded.ids, query + self.vocabulary.first_entity)


class LSTMEncoder(StoryEncoder):
    """A (bidirectional) LSTM over the whole story."""

    def __init__(self, config: StoryModelConfig, setting: Setting) -> None:
        super().__init__()
        self.words = WordReader(config, setting)
        self.reading = Reading(self.words.width, setting.queried, config.reading)
        self.width = self.reading.width

    def forward(self, stories: Sequence[str], query: Tensor) -> Tensor:
        """Return float32 [B, width]; see :class:`StoryEncoder`."""
        read: Tensor = self.reading(*self.words(stories, query))
        return read
