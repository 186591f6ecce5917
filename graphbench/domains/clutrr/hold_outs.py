"""Checks of held-out content on stored puzzles: clauses by their paths, templates by their sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from graphbench.data.arrays.samples import Samples
from graphbench.domains.clutrr.clauses import held_out
from graphbench.domains.clutrr.reading import path_and_facts
from graphbench.domains.clutrr.relations import NEUTRAL, WORDS
from graphbench.domains.clutrr.templates import PARTS, templates_of

if TYPE_CHECKING:
    from graphbench.domains.clutrr.parameters import StoryParameters

_WHO, _KIN = "<who>", "<kin>"
_ENTITY = re.compile(r"@ent\d+")
_ENDS = frozenset(".!?")
_WORDS = frozenset(WORDS)
_CLAIMS = {"avoid": "no path is of a clause held out of training", "only": "every path is of one held out of training"}

Frame = tuple[str, ...]
"""The tokens of a sentence without its people and words of kinship."""


def check_hold_outs(parameters: StoryParameters, samples: Samples) -> Mapping[str, tuple[str, list[str]]]:
    """Return the hold-out claims of a split: name -> the claim on all samples, and the samples that violate it.

    Clauses of two facts are told apart by their words, longer ones by their relations without gender.
    """
    claims = {}
    if parameters.held_out != "any":
        claims["held-out clauses"] = _CLAIMS[parameters.held_out], list(_wrong_clauses(parameters, samples))
    claim = f"every sentence is of a template kept for {parameters.wording}"
    return claims | {"held-out sentences": (claim, list(_wrong_sentences(parameters, samples)))}


def _wrong_clauses(parameters: StoryParameters, samples: Samples) -> Iterator[str]:
    step, relation = np.asarray(samples.values["step"]), np.asarray(samples.values["relation"])
    for i in range(len(samples)):
        edges = samples.edge_ptr[i] + np.argsort(step[samples.edge_ptr[i] : samples.edge_ptr[i + 1]], kind="stable")
        words = [WORDS[number] for number in relation[edges[step[edges] >= 0]].tolist()]
        clause = tuple(words) if len(words) == 2 else tuple(NEUTRAL[WORDS.index(word) // 2] for word in words)
        if (clause in held_out_clauses(parameters, len(words))) != (parameters.held_out == "only"):
            yield f"sample {i}: {clause} is drawn though held_out is {parameters.held_out}"


@lru_cache(maxsize=16)
def held_out_clauses(parameters: StoryParameters, k: int) -> frozenset[tuple[str, ...]]:
    """Return the clauses of k facts that are held out of training, as words for two facts, as relations for more."""
    family = parameters.puzzles(k).families
    return frozenset(held_out(parameters.rules, k, parameters.share, parameters.held_out_seed, family))


def _wrong_sentences(parameters: StoryParameters, samples: Samples) -> Iterator[str]:
    allowed = frames_of(parameters.wording, parameters.wording_seed)
    others = [frames_of(part, parameters.wording_seed) for part in PARTS if part != parameters.wording]
    for i, tokens in enumerate(samples.values["tokens"].strings()):
        for frame in sentence_frames_of(tokens):
            if frame not in allowed or any(frame in other for other in others):
                yield f"sample {i}: {' '.join(frame)!r} is no sentence of {parameters.wording} alone"


def sentence_frames_of(tokens: str) -> Iterator[Frame]:
    """Yield the frames of a story's sentences.

    Args:
        tokens: The story in lower case, tokens between single spaces, people as ``@ent7``.
    """
    sentence: list[str] = []
    for token in tokens.split():
        sentence.append(_WHO if _ENTITY.fullmatch(token) else _KIN if token in _WORDS else token)
        if token in _ENDS:
            yield tuple(sentence)
            sentence = []
    if sentence:
        yield tuple(sentence)


@lru_cache(maxsize=8)
def frames_of(part: str, seed: int) -> frozenset[Frame]:
    """Return the frames of all sentences that the stories of a part may hold.

    Args:
        part: ``train`` or ``test``.
        seed: Seed of the choice of the templates of ``test``.
    """
    frames: set[Frame] = set()
    for template in templates_of(part, seed):
        for genders, form in template.forms():
            keys, _ = path_and_facts(template, genders, form)
            words = ["@ent0" if isinstance(key, int) else WORDS[0] if key.startswith("<") else key for key in keys]
            frames.update(sentence_frames_of(" ".join(words)))
    return frozenset(frames)
