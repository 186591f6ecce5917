"""Checks by name, and what they return."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MODULES = (
    "arithmetic",
    "circuit_labels",
    "cliques",
    "clrs_tables",
    "cuts",
    "kinship",
    "label_recipes",
    "parameters",
    "records",
    "sat_scores",
    "settings",
    "sizes",
    "solver_rows",
    "structure",
    "synthesis",
    "weather_tables",
)


@dataclass(frozen=True)
class Outcome:
    """What a check found.

    Attributes:
        holds: Whether the statement and its verdict are still true.
        values: What was measured, by the names that the row's texts use.
        problem: If it does not hold, what is different.
    """

    holds: bool
    values: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


class CheckSkipped(Exception):
    """The check needs something that is not there; the message says what."""


Check = Callable[..., Outcome]
_CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    """Register a check under the name of its function."""
    assert function.__name__ not in _CHECKS, function.__name__
    _CHECKS[function.__name__] = function
    return function


def checks() -> dict[str, Check]:
    """Return all checks by name."""
    for module in MODULES:
        importlib.import_module(f"benchmarks.claims.{module}")
    return _CHECKS
