"""Classes by their names, where a card gives them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphbench.errors import EvaluationError

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card


def class_numbers(card: Card, feature: str, words: Sequence[str], where: str = "line {}") -> NDArray[np.int64]:
    """Return the numbers of classes that are given by name; int64 ``[items]``.

    Spaces around a name and capitals in it do not count.

    Args:
        card: The dataset's card.
        feature: A categorical feature whose classes have names: a key of ``card.classes``.
        words: One name per item.
        where: What a message calls an item, ``{}`` for its number from 1 on.

    Raises:
        EvaluationError: If the classes of the feature have no names, or a word is none of them.
    """
    names = card.classes.get(feature)
    if names is None:
        raise EvaluationError(f"the classes of {feature!r} of {card.id} have no names; give their numbers")
    numbers = {name.lower(): number for number, name in enumerate(names)}
    found = np.empty(len(words), np.int64)
    for i, word in enumerate(words):
        number = numbers.get(word.strip().lower())
        if number is None:
            near = difflib.get_close_matches(word.strip().lower(), numbers, n=1)
            remedy = f"did you mean {near[0]!r}?" if near else f"it is one of {', '.join(names)}"
            raise EvaluationError(f"{where.format(i + 1)}: {word[:80]!r} is no class of {feature!r}; {remedy}")
        found[i] = number
    return found
