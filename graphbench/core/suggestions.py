"""Suggestions for names that do not exist: the ``did you mean`` of error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_CUTOFF = 0.6


def closest(
    name: Any, known: Iterable[Any], *, aliases: Mapping[str, str] | None = None, cutoff: float = _CUTOFF
) -> str:
    """Return the suggestion for an unknown name, to be appended to a message, e.g. ``"; did you mean 'mst'?"``.

    Args:
        name: The given name; other values than strings are converted.
        known: The names that exist, e.g. the keys of a registry. A dotted name also matches by its last part alone:
            ``lr`` for ``training.lr``.
        aliases: Other spelling -> the name that is suggested for it.
        cutoff: Similarity from 0 to 1 that a name needs to be suggested.

    Returns:
        An empty string if no name is similar, so that callers write ``closest(name, known) or "; use one of ..."``.
    """
    return did_you_mean(nearest(name, known, aliases=aliases, cutoff=cutoff))


def nearest(
    name: Any,
    known: Iterable[Any],
    most: int = 1,
    *,
    aliases: Mapping[str, str] | None = None,
    cutoff: float = _CUTOFF,
) -> list[str]:
    """Return the names most similar to a given name, the most similar first; upper and lower case count as equal.

    Args:
        name: The given name.
        known: As for :func:`closest`.
        most: Most names to return.
        aliases: As for :func:`closest`.
        cutoff: Similarity from 0 to 1 that a name needs.
    """
    names = {text: text for text in map(str, known)} | dict(aliases or {})
    similar = _similar(name, names, most, cutoff)
    return similar or _similar(
        name, {spelling.rpartition(".")[2]: suggestion for spelling, suggestion in names.items()}, most, cutoff
    )


def did_you_mean(names: Sequence[str]) -> str:
    """Return names as a suggestion, ``"; did you mean 'a' or 'b'?"``; an empty string without names."""
    return f"; did you mean {' or '.join(map(repr, names))}?" if names else ""


def _similar(name: Any, names: Mapping[str, str], most: int, cutoff: float) -> list[str]:
    spellings: dict[str, str] = {}
    for spelling, suggestion in names.items():
        spellings.setdefault(spelling.lower(), suggestion)
    matches = difflib.get_close_matches(str(name).lower(), spellings, n=most, cutoff=cutoff)
    return list(dict.fromkeys(spellings[spelling] for spelling in matches))
