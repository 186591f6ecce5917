"""The vocabulary of stories: words of the training split, entities, padding, and one token for all other words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphbench.core.errors import ConfigError

PAD, UNKNOWN = 0, 1
SENTENCE_ENDS = (".", "!", "?")
_FIRST_WORD = 2
_MAX_CACHED = 1 << 17  # stories in the cache
_ENTITY = re.compile(r"@ent(\d+)")


@dataclass(frozen=True, slots=True)
class Padded:
    """Stories of a batch as numbers, padded to the longest.

    Attributes:
        ids: int64 [B, L], 0 on padding.
        lengths: int64 [B], on the CPU.
    """

    ids: Tensor
    lengths: Tensor

    @property
    def mask(self) -> Tensor:
        """Bool [B, L], False on padding."""
        return self.ids != PAD


class Vocabulary:
    """Numbers of tokens: 0 padding, 1 any unknown word, then the words, then the entities.

    Args:
        words: The words, without entities.
        entities: Number of entities.

    Raises:
        ConfigError: If a word occurs twice or is an entity.
    """

    def __init__(self, words: Sequence[str], entities: int) -> None:
        wrong = [word for word in words if _ENTITY.fullmatch(word)]
        if wrong or len(set(words)) < len(words):
            raise ConfigError(f"the vocabulary's words must be distinct and no entities ({wrong}); leave it empty")
        self.words, self.entities = tuple(words), entities
        self.first_entity = _FIRST_WORD + len(words)
        self._numbers = {word: number for number, word in enumerate(words, _FIRST_WORD)}
        self._numbers |= {f"@ent{number}": self.first_entity + number for number in range(entities)}
        self._cache: dict[str, NDArray[np.int64]] = {}

    def ids(self, story: str) -> NDArray[np.int64]:
        """Return the numbers of a story's tokens, int64 [tokens]; cached per story.

        Raises:
            ConfigError: If the story is empty or names an entity beyond the last.
        """
        ids = self._cache.get(story)
        if ids is None:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            ids = self._cache[story] = self._read(story)
        return ids

    def padded(self, stories: Sequence[str], device: torch.device) -> Padded:
        """Return the stories of a batch as numbers on a device."""
        rows = [self.ids(story) for story in stories]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        ids = np.full((len(rows), int(lengths.max())), PAD, np.int64)
        ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.concatenate(rows)
        return Padded(torch.from_numpy(ids).to(device), torch.from_numpy(lengths))

    def sentence_ends(self) -> list[int]:
        """Return the numbers of the tokens that end a sentence."""
        return [self._numbers[mark] for mark in SENTENCE_ENDS if mark in self._numbers]

    def _read(self, story: str) -> NDArray[np.int64]:
        tokens = story.split()
        if not tokens:
            raise ConfigError("a story is empty, so there is nothing to read; leave such samples out")
        for token in tokens:
            check_entity(token, self.entities)
        return np.array([self._numbers.get(token, UNKNOWN) for token in tokens], np.int64)


def words_of(stories: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct words of stories, sorted; entities are left out."""
    tokens: set[str] = set()
    for story in stories:
        tokens.update(story.split())
    return tuple(sorted(token for token in tokens if not _ENTITY.fullmatch(token)))


def entity_number(token: str) -> int | None:
    """Return the number of the entity that a token represents; None for a word."""
    match = _ENTITY.fullmatch(token)
    return None if match is None else int(match.group(1))


def check_entity(token: str, entities: int) -> None:
    """Raise an error for an entity that has no vector.

    Raises:
        ConfigError: If the token is an entity beyond the last.
    """
    number = entity_number(token)
    if number is not None and number >= entities:
        raise ConfigError(f"a story names {token}, but the data have {entities} entities; correct the story")
