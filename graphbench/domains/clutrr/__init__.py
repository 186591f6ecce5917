"""CLUTRR: kinship puzzles on graphs and in stories (Sinha et al., 2019)."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphbench.domains.clutrr.families import Family, FamilyParameters, draw_family
    from graphbench.domains.clutrr.puzzles import Puzzle, PuzzleParameters, Puzzles, draw_puzzles
    from graphbench.domains.clutrr.reasoning import answer, closure, compose, solve

_HOMES = {
    **dict.fromkeys(("Family", "FamilyParameters", "draw_family"), "families"),
    **dict.fromkeys(("Puzzle", "PuzzleParameters", "Puzzles", "draw_puzzles"), "puzzles"),
    **dict.fromkeys(("answer", "closure", "compose", "solve"), "reasoning"),
}
__all__ = [
    "Family",
    "FamilyParameters",
    "Puzzle",
    "PuzzleParameters",
    "Puzzles",
    "answer",
    "closure",
    "compose",
    "draw_family",
    "draw_puzzles",
    "solve",
]


def __dir__() -> list[str]:
    """Return the names of the package, including the names that are imported on first use."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import a name on first use: the generators import this package without needing its functions."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
