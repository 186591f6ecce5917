"""Classes by their names, where a card gives them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Location
from graphbench.core.errors import EvaluationError
from graphbench.core.suggestions import closest
from graphbench.evaluation.evaluator import FeatureEvaluator
from graphbench.evaluation.score import Score
from graphbench.tasks.files import logger, read_texts, require_lines

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card

NO_CLASS = -1
_BETWEEN = re.compile(r"[\W_]+")


def class_numbers(card: Card, feature: str, words: Sequence[str], where: str = "line {}") -> NDArray[np.int64]:
    """Return the numbers of classes that are given by name; int64 ``[items]``.

    Spaces around a name and capitals in it do not count.

    Args:
        card: The dataset's card.
        feature: A categorical feature whose classes have names: a key of ``card.classes``.
        words: One name per item.
        where: The noun for an item in messages, ``{}`` for its number from 1 on.

    Raises:
        EvaluationError: If the classes of the feature have no names, or a word is none of them.
    """
    names = _names(card, feature)
    numbers = {name.lower(): number for number, name in enumerate(names)}
    classes = np.empty(len(words), np.int64)
    for i, word in enumerate(words):
        number = numbers.get(word.strip().lower())
        if number is None:
            remedy = closest(word.strip(), numbers) or f"; it is one of {', '.join(names)}"
            raise EvaluationError(f"{where.format(i + 1)}: {word[:80]!r} is no class of {feature!r}{remedy}")
        classes[i] = number
    return classes


def answered_classes(card: Card, feature: str, answers: Sequence[str]) -> NDArray[np.int64]:
    """Return the numbers of the classes that answers name; int64 ``[items]``, -1 for an answer that names none.

    Capitals, spaces and punctuation do not count: ``**Mother in law.**`` is mother-in-law. Words may have the other
    spellings that the card knows.

    Args:
        card: The dataset's card.
        feature: A categorical feature whose classes have names: a key of ``card.classes``.
        answers: One answer per item.

    Raises:
        EvaluationError: If the classes of the feature have no names.
    """
    numbers = {_plain(name, card): number for number, name in enumerate(_names(card, feature))}
    return np.array([numbers.get(_plain(answer, card), NO_CLASS) for answer in answers], np.int64)


def score_answers(card: Card, truth: NDArray[np.int64], answered: NDArray[np.int64]) -> Score:
    """Return the score of answers to the graphs of a split; one that names no class is wrong.

    Metrics over classes are means over the classes that occur in the targets or in the answers.

    Args:
        card: The dataset's card, whose output is a class of the graph.
        truth: int64 ``[graphs]``, classes by number.
        answered: int64 ``[graphs]``, the same, or -1.

    Raises:
        EvaluationError: If there is no graph, or not one answer per graph.
    """
    output = card.outputs[0]
    names = (card.metrics.primary, *card.metrics.also)
    is_none = answered == NO_CLASS
    more = replace(output, classes=output.classes + 1)  # a separate class for answers that name no class
    score = FeatureEvaluator(more, names[0], names[1:]).evaluate(truth, np.where(is_none, output.classes, answered))
    values = score.to_dict()
    if is_none.any() and "macro_f1" in values:  # the separate class has an F1 score of 0
        occurring = len(np.union1d(truth, answered[~is_none]))
        values["macro_f1"] *= (occurring + 1) / occurring
    return Score(values, score.primary_name, items=score.items_scored, graphs=score.graphs)


def _names(card: Card, feature: str) -> tuple[str, ...]:
    names = card.classes.get(feature)
    if names is None:
        raise EvaluationError(f"the classes of {feature!r} of {card.address} have no names; give their numbers")
    return names


def _plain(text: str, card: Card) -> str:
    words = _BETWEEN.sub(" ", text).strip().lower().split(" ")
    return " ".join(card.class_aliases.get(word, word) for word in words)


def has_named_classes(card: Card) -> bool:
    """Return whether the only output of a card is a class of the graph whose values have names."""
    output = card.outputs[0]
    return len(card.outputs) == 1 and output.location is Location.GRAPH and output.name in card.classes


def classes_of_words(card: Card, path: Path, count: int, split: str) -> NDArray[np.int64]:
    """Return the classes that the lines of a file name; int64 ``[graphs]``, -1 for a line that names none.

    Args:
        card: The card, whose output is a class of the graph that has a name.
        path: The file.
        count: Number of graphs of the split.
        split: Name of the split.

    Raises:
        EvaluationError: If the file cannot be read, the card's output is no class of a graph or has no names, no line
            names any, or there is not one line per graph.
    """
    output = card.outputs[0]
    if not has_named_classes(card):
        mismatch = f"{card.address} asks for {output.location.value} {output.type_name}, whose values have no names"
        raise EvaluationError(f"{path} holds words, but {mismatch}; write numbers with numpy.save into a .npy file")
    texts = read_texts(path)
    answered = answered_classes(card, output.name, texts)
    if (answered == NO_CLASS).all():
        names = ", ".join(card.classes[output.name])
        raise EvaluationError(
            f"{path}: no answer names a class of {output.name!r}, such as {texts[0][:80]!r}; it is one of {names}"
        )
    require_lines(path, len(texts), count, f"{card.address} {split}", "graph")
    nameless = np.flatnonzero(answered == NO_CLASS)
    if len(nameless):
        first = int(nameless[0])
        logger.warning(
            "%d of %d answers name no class and count as wrong, the first in line %d of %s: %r",
            *(len(nameless), len(answered), first + 1, path, texts[first][:80]),
        )
    return answered
