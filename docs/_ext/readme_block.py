"""Replace what stands between two markers of the README."""

from __future__ import annotations

from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def block(name: str, text: str) -> str:
    """Return the content of the block ``name`` in a text.

    Raises:
        ValueError: If the text has no such markers.
    """
    return text[slice(*_place(name, text))].strip("\n")


def replaced(name: str, content: str, text: str) -> str:
    """Return the text with another content between ``<!-- name -->`` and ``<!-- /name -->``."""
    first, last = _place(name, text)
    return f"{text[:first]}\n{content}\n{text[last:]}"


def _place(name: str, text: str) -> tuple[int, int]:
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if text.count(start) != 1 or text.count(end) != 1:
        raise ValueError(f"the README must hold {start} and {end} once each")
    return text.index(start) + len(start), text.index(end)
