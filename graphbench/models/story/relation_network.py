"""Relation networks (Santoro et al., 2017) with the sentences of a story as objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphbench.models.graphs import segment_sum
from graphbench.models.story.base import Setting, StoryEncoder, mean_state, mentions_of, perceptron, query_states
from graphbench.models.story.config import StoryModelConfig
from graphbench.models.story.lstm import WordReader
from graphbench.models.story.vocabulary import Padded


@dataclass(frozen=True, slots=True)
class Sentences:
    """The sentences of a batch of stories.

    Attributes:
        tokens: The sentences, padded like stories.
        story: int64 [S], the story of each sentence, non-decreasing.
        places: int64 [2, T]: the number of the sentence of every token and its position there, in reading order.
    """

    tokens: Padded
    story: Tensor
    places: Tensor


class RelationNetworkEncoder(StoryEncoder):
    """``f(sum over pairs of sentences of g(o_i, o_j, q))``.

    The vector of a sentence is the mean of the states of an LSTM that reads only this sentence. The query ``q`` holds
    the mean states of the queried entities over all their mentions, and is an input of ``g`` only. Pairs are ordered
    and include the pair of a sentence with itself. Hidden layers are followed by a layer normalisation (a batch
    normalisation in the authors' code), so that no story depends on the other stories of its batch.
    """

    def __init__(self, config: StoryModelConfig, setting: Setting) -> None:
        super().__init__()
        self.words = WordReader(config, setting)
        pair, total = config.relation.pair, config.relation.total
        # the first layer of g on [o_i, o_j, q], in three parts that are computed once per sentence or story
        self.first = nn.Linear(self.words.width, pair[0])
        self.second = nn.Linear(self.words.width, pair[0], bias=False)
        self.asked = nn.Linear(setting.queried * self.words.width, pair[0], bias=False)
        self.pair = nn.Sequential(nn.LayerNorm(pair[0]), nn.ReLU(), *perceptron(pair[0], pair[1:]))
        self.total = perceptron(pair[-1], total)
        self.width = total[-1]

    def forward(self, stories: Sequence[str], query: Tensor) -> Tensor:
        """Return float32 [B, width]; see :class:`StoryEncoder`."""
        words = self.words
        whole = words.vocabulary.padded(stories, query.device)
        sentences = cut_into_sentences(whole, words.vocabulary.sentence_ends())
        states = words.reader(words.embedding(sentences.tokens.ids), sentences.tokens.lengths)
        objects = mean_state(states, sentences.tokens.mask)
        sentence, position = sentences.places
        again = states.new_zeros(*whole.ids.shape, words.width)
        again[whole.mask] = states[sentence, position]
        mentions = mentions_of(whole.ids, query + words.vocabulary.first_entity)
        query_part = self.asked(query_states(again, mentions).flatten(1))
        first, second = ordered_pairs(sentences.story, len(stories))
        owner = sentences.story[first]
        related = self.pair(self.first(objects)[first] + self.second(objects)[second] + query_part[owner]).float()
        encoded: Tensor = self.total(segment_sum(related, owner, len(stories)))
        return encoded


def cut_into_sentences(whole: Padded, ends: Sequence[int]) -> Sentences:
    """Return the sentences of stories; a sentence ends at a token in ``ends`` and at the end of the story."""
    device, ids, mask = whole.ids.device, whole.ids, whole.mask
    is_end = torch.isin(ids, torch.tensor(list(ends), device=device, dtype=torch.long)) & mask
    is_start = torch.cat([torch.ones_like(is_end[:, :1]), is_end[:, :-1]], dim=1)[mask]
    flat, owner = ids[mask], mask.nonzero()[:, 0]
    sentence = is_start.cumsum(0) - 1
    begin = is_start.nonzero().squeeze(1)
    position = torch.arange(flat.numel(), device=device) - begin[sentence]
    lengths = torch.bincount(sentence)
    cut = ids.new_zeros(lengths.numel(), int(lengths.max()))
    cut[sentence, position] = flat
    return Sentences(Padded(cut, lengths.cpu()), owner[begin], torch.stack([sentence, position]))


def ordered_pairs(owner: Tensor, owners: int) -> tuple[Tensor, Tensor]:
    """Return all ordered pairs of items that have the same owner, two int64 [pairs]; ``owner`` is non-decreasing."""
    counts = torch.bincount(owner, minlength=owners)
    before = counts.cumsum(0) - counts
    partners = counts[owner]
    first = torch.repeat_interleave(torch.arange(owner.numel(), device=owner.device), partners)
    rank = torch.arange(first.numel(), device=owner.device) - (partners.cumsum(0) - partners)[first]
    return first, before[owner[first]] + rank
