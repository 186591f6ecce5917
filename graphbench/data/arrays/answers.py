"""Answers in texts: the last array-like object of a model's output (Markeeva et al., 2024, section 4)."""

from __future__ import annotations

import re

_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_LIST = rf"\[\s*(?:{_NUMBER}(?:[\s,]+{_NUMBER})*)?\s*\]"
_NESTED = rf"\[\s*{_LIST}(?:[\s,]*{_LIST})*\s*\]"
_PAIR = rf"\(\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)"
STOP = "\n\n"
"""The end of an answer: references end with an empty line."""

_ROOM_FACTOR = 2  # an output may be this many times as long as the reference,
_ROOM = 64  # and this many characters longer
_OBJECT = re.compile(rf"{_NESTED}|{_LIST}|{_PAIR}|(?<![\w.-]){_NUMBER}(?!\w|\.\d)")


def answer_of(text: str, objects: int = 1) -> str | None:
    """Return the final answer of a model's output: its last array-like objects, as written.

    An array-like object is a number, a list of numbers, a list of lists, or a pair in parentheses. The text between
    the objects is part of the answer.

    Args:
        text: The output.
        objects: How many objects make up the answer: 2 for ``[0 2 0 1 3], 4``, where an algorithm has two outputs.

    Returns:
        The answer, or None if the output has fewer objects.
    """
    matches = list(_OBJECT.finditer(text))
    return text[matches[-objects].start() : matches[-1].end()] if 0 < objects <= len(matches) else None


def final_answer(reference: str) -> str:
    """Return the answer at the end of a reference, behind the trace if there is one."""
    return reference.rpartition("|")[2].strip()


def exact_match(answer_text: str, reference: str) -> bool:
    """Return whether the final answer of a model's output is the reference's, character for character.

    A reference without array-like objects must be the whole output, spaces around it aside.

    Args:
        answer_text: The model's output, with or without a trace or other words before the answer.
        reference: The reference, e.g. as :func:`graphbench.domains.clrs_text.render` returns it.
    """
    expected = final_answer(reference)
    objects = len(_OBJECT.findall(expected))
    return (answer_of(answer_text, objects) if objects else answer_text.strip()) == expected


def room_for(reference: int) -> int:
    """Return how many characters a model may write where the longest reference has ``reference`` of them."""
    return _ROOM_FACTOR * reference + _ROOM
