"""Scoring: the last array-like object of a model's output against the reference (Markeeva et al., 2024, section 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_LIST = rf"\[\s*(?:{_NUMBER}(?:[\s,]+{_NUMBER})*)?\s*\]"
_NESTED = rf"\[\s*{_LIST}(?:[\s,]*{_LIST})*\s*\]"
_PAIR = rf"\(\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)"
_OBJECT = re.compile(rf"{_NESTED}|{_LIST}|{_PAIR}|(?<![\w.-]){_NUMBER}(?!\w|\.\d)")


def answer_of(text: str, objects: int = 1) -> str | None:
    """Return the final answer of a model's output: its last array-like objects, as written, with what is between them.

    Array-like are a number, a list of numbers, a list of lists, and a pair in parentheses.

    Args:
        text: The output.
        objects: How many objects make up the answer: 2 for ``[0 2 0 1 3], 4``, where an algorithm has two outputs.

    Returns:
        The answer, or None if the output has fewer objects.
    """
    found = list(_OBJECT.finditer(text))
    return text[found[-objects].start() : found[-1].end()] if 0 < objects <= len(found) else None


def final_answer(reference: str) -> str:
    """Return the answer at the end of a reference, behind the trace if there is one."""
    return reference.rpartition("|")[2].strip()


def exact_match(answer_text: str, reference: str) -> bool:
    """Return whether the final answer of a model's output is the reference's, character for character.

    A reference without array-like objects must be the whole output, spaces around it aside.

    Args:
        answer_text: The model's output, with or without a trace or other words before the answer.
        reference: The reference, as :func:`graphbench.domains.clrs_text.render` returns it.
    """
    expected = final_answer(reference)
    objects = len(_OBJECT.findall(expected))
    return (answer_of(answer_text, objects) if objects else answer_text.strip()) == expected


def accuracies(scored: Iterable[tuple[str, int, bool]]) -> dict[tuple[str, int], float]:
    """Return the accuracy of every algorithm at every size.

    Args:
        scored: Algorithm, size and whether the answer is right, of every prompt.

    Returns:
        (algorithm, size) -> share of right answers, in alphabetical order.
    """
    right: dict[tuple[str, int], list[bool]] = {}
    for algorithm, size, correct in scored:
        right.setdefault((algorithm, size), []).append(correct)
    return {key: sum(values) / len(values) for key, values in sorted(right.items())}
