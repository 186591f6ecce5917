"""Variety of a split: numbers of different paths and answers, and words that no training story can hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from graphbench.data.arrays.samples import Samples
from graphbench.domains.clutrr.hold_outs import frames_of
from graphbench.domains.clutrr.relations import WORDS

_PERSON = "@ent"


def different_ones(samples: Samples) -> dict[str, int]:
    """Return how many different walks, clauses and answers puzzles have.

    A walk is the words along the path, a clause the same without genders.
    """
    walks = set(walks_of(samples))
    return {
        "walks": len(walks),
        "clauses": len({tuple(word // 2 for word in walk) for walk in walks}),
        "answers": len(np.unique(samples.values["answer"])),
    }


def walks_of(samples: Samples) -> list[tuple[int, ...]]:
    """Return the words by number along the path of every puzzle."""
    step, relation = np.asarray(samples.values["step"]), np.asarray(samples.values["relation"])
    on_path = np.flatnonzero(step >= 0)
    owner = np.repeat(np.arange(len(samples)), samples.num_edges)[on_path]
    words = relation[on_path[np.lexsort((step[on_path], owner))]].tolist()
    ends = np.cumsum(np.bincount(owner, minlength=len(samples))).tolist()
    return [tuple(words[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]


def unseen_shares(tokens: Sequence[str], wording_seed: int = 0) -> NDArray[np.float64]:
    """Return the share of every story's tokens that no story of training holds; float64 ``[stories]``.

    Args:
        tokens: Stories in lower case, tokens between single spaces, people as ``@ent7``.
        wording_seed: Seed of the choice of the templates kept for test.
    """
    training_words = _words_of_training(wording_seed)
    shares = np.empty(len(tokens))
    for i, text in enumerate(tokens):
        words = text.split(" ")
        shares[i] = sum(word not in training_words and not word.startswith(_PERSON) for word in words) / len(words)
    return shares


@lru_cache(maxsize=8)
def _words_of_training(wording_seed: int) -> frozenset[str]:
    return frozenset(word for frame in frames_of("train", wording_seed) for word in frame).union(WORDS)
