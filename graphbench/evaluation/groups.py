"""Names of the scores of parts of a split that differ in one quantity: a problem size, or how far ahead is forecast."""

from __future__ import annotations

import re
from collections.abc import Mapping

QUANTITIES: Mapping[str, str] = {"n": "problem size", "h": "hours ahead"}
"""Meaning of the number after a letter: ``test_n16`` has the texts of size 16, ``test_h24`` forecasts of 24 hours."""

_SIZED = re.compile(rf"(.+)_([{''.join(QUANTITIES)}])(\d+)")


def split_and_size(name: str) -> tuple[str, int | None]:
    """Return split and number of a name such as ``test_n16``; the number of a whole split is None."""
    match = _SIZED.fullmatch(name)
    return (match[1], int(match[3])) if match else (name, None)


def quantity_of(name: str) -> str:
    """Return the meaning of the number in a name such as ``test_h24``; empty for the name of a whole split."""
    match = _SIZED.fullmatch(name)
    return QUANTITIES[match[2]] if match else ""


def by_size(
    scores: Mapping[str, Mapping[str, float]],
) -> tuple[dict[str, Mapping[str, float]], dict[int, dict[str, Mapping[str, float]]]]:
    """Return the scores of whole splits by name, and the scores of their parts as size -> split -> score, ascending."""
    whole: dict[str, Mapping[str, float]] = {}
    sizes: dict[int, dict[str, Mapping[str, float]]] = {}
    for name, values in scores.items():
        split, size = split_and_size(name)
        if size is None or split not in scores:
            whole[name] = values
        else:
            sizes.setdefault(size, {})[split] = values
    return whole, dict(sorted(sizes.items()))
