"""The words of kinship: eleven relations without gender and the twenty-two words for them (Sinha et al., 2019).

A fact ``(x, y, relation)`` reads "y is the relation of x". The word for it tells the gender of y. Relations and words
are stored as numbers: their positions in ``NEUTRAL`` and ``WORDS``, so that ``word // 2`` is the relation and
``word % 2`` the gender of y.
"""

from __future__ import annotations

from types import MappingProxyType

from graphbench.core.errors import UnknownName
from graphbench.core.suggestions import closest

NEUTRAL = (
    *("inv-child", "child", "SO", "sibling", "inv-grand", "grand"),
    *("inv-in-law", "in-law", "sibling-in-law", "inv-un", "un"),
)
WORDS = (
    *("father", "mother", "son", "daughter", "husband", "wife", "brother", "sister"),
    *("grandfather", "grandmother", "grandson", "granddaughter"),
    *("father-in-law", "mother-in-law", "son-in-law", "daughter-in-law", "brother-in-law", "sister-in-law"),
    *("uncle", "aunt", "nephew", "niece"),
)
GENDERS = ("male", "female")
NUM_RELATIONS, NUM_WORDS = len(NEUTRAL), len(WORDS)
NUM_ENTITIES = 32
"""People of a story are numbered below this."""
NO_WORD = -1
"""Stands for the relation of two people for whom none of the words fits."""

(INV_CHILD, CHILD, SO, SIBLING, INV_GRAND, GRAND, INV_IN_LAW, IN_LAW, SIBLING_IN_LAW, INV_UN, UN) = range(NUM_RELATIONS)
SYMMETRIC = frozenset({"SO", "sibling", "sibling-in-law"})
_PAIRS = (("child", "inv-child"), ("grand", "inv-grand"), ("in-law", "inv-in-law"), ("un", "inv-un"))
INVERSE = MappingProxyType({name: name for name in SYMMETRIC} | dict(_PAIRS) | {b: a for a, b in _PAIRS})
"""Relation of y to x -> relation of x to y."""

_NUMBER_OF_RELATION = {name: number for number, name in enumerate(NEUTRAL)}
_NUMBER_OF_WORD = {word: number for number, word in enumerate(WORDS)}


class UnknownRelation(UnknownName):
    """A relation or word of kinship that the benchmark does not know."""


def relation_number(relation: str) -> int:
    """Return the position of a relation without gender in ``NEUTRAL``.

    Raises:
        UnknownRelation: If the relation is unknown; for a word with gender the message names its relation.
    """
    number = _NUMBER_OF_RELATION.get(relation) if isinstance(relation, str) else None
    if number is None:
        raise UnknownRelation(f"unknown relation {relation!r}{_remedy(relation)}")
    return number


def word_number(word: str) -> int:
    """Return the position of a word in ``WORDS``: its class number.

    Raises:
        UnknownRelation: If the word is unknown.
    """
    number = _NUMBER_OF_WORD.get(word) if isinstance(word, str) else None
    if number is None:
        remedy = closest(word, WORDS) or f"; the words are {', '.join(WORDS)}"
        raise UnknownRelation(f"unknown word {word!r}{remedy}")
    return number


def relation_of_word(word: str) -> str:
    """Return the relation without gender that a word stands for: ``uncle`` -> ``inv-un``.

    Raises:
        UnknownRelation: If the word is unknown.
    """
    return NEUTRAL[word_number(word) // 2]


def gender_of_word(word: str) -> str:
    """Return ``male`` or ``female``: the gender of the person that a word denotes.

    Raises:
        UnknownRelation: If the word is unknown.
    """
    return GENDERS[word_number(word) % 2]


def word_for(relation: str, gender: str) -> str:
    """Return the word for a relation and the gender of the person: ``un``, ``female`` -> ``niece``.

    Raises:
        UnknownRelation: If the relation or the gender is unknown.
    """
    if gender not in GENDERS:
        raise UnknownRelation(f"unknown gender {gender!r}; give {' or '.join(map(repr, GENDERS))}")
    return WORDS[2 * relation_number(relation) + GENDERS.index(gender)]


def inverse(relation: str) -> str:
    """Return the relation of x to y if y is the ``relation`` of x.

    Raises:
        UnknownRelation: If the relation is unknown.
    """
    return INVERSE[NEUTRAL[relation_number(relation)]]


def _remedy(relation: object) -> str:
    if isinstance(relation, str) and relation in _NUMBER_OF_WORD:
        return f"; write it without gender: {relation_of_word(str(relation))!r}"
    return closest(relation, NEUTRAL) or f"; the relations are {', '.join(NEUTRAL)}"
