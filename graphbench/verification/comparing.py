"""Shared by the checks of graphs and of labels: run checks, and compare hashes and statistics with the card."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from graphbench.catalog.cards import Card
from graphbench.core.errors import GraphBenchError
from graphbench.core.foreign import described
from graphbench.data.components.checks import CheckFailed, CheckSkipped, Row
from graphbench.evaluation.shares import means_text
from graphbench.verification.measuring import Statistics

_SIGMAS = 5.0
_UPDATE = " yet; `graphbench verify --update` writes it"
_ROUNDING = 1e-6  # the card's numbers have six digits

Check = tuple[str, Callable[[], str]]
"""The name of a check, and a function that runs it and returns the detail of its row."""


def rows_of(split: str, checks: Iterable[Check]) -> Iterator[Row]:
    """Run the checks of a split, and yield one row per check."""
    for name, check in checks:
        try:
            yield Row(split, name, True, check())
        except CheckSkipped as reason:
            yield Row(split, name, True, str(reason), "skipped")
        except (CheckFailed, GraphBenchError) as failure:
            yield Row(split, name, False, str(failure))


def ask(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function that a domain brings.

    Args:
        what: Name of the function for messages, e.g. ``check of algoreas.mst``.
        function: The function.
        arguments: Its arguments.

    Raises:
        CheckFailed: If the function raises an exception.
    """
    try:
        return function(*arguments)
    except GraphBenchError:
        raise
    except Exception as error:
        raise CheckFailed(f"the {what} raised {described(error)}") from error


def compare_hash(recomputed: str, pinned: str | None, count: int, may_follow: bool) -> str:
    """Compare the hash of the first graphs, or of their labels, with the hash on the card.

    Args:
        recomputed: The hash of the samples that were drawn.
        pinned: The hash on the card, if there is one.
        count: Number of graphs.
        may_follow: Whether ``graphbench verify --update`` would write a hash that is missing.
    """
    if pinned is None:
        raise CheckSkipped(f"{count} graphs, no hash on the card{_UPDATE if may_follow else ''}")
    if pinned != recomputed:
        raise CheckFailed(f"hash {recomputed[:12]} of the first {count} graphs, the card has {pinned[:12]}")
    return f"{count} graphs, bit for bit as on the card ({recomputed[:12]})"


def compare_statistics(
    card: Card, recomputed: Statistics, count: int, known: Statistics | None, known_count: int
) -> str:
    """Compare mean statistics with the card's, in standard errors."""
    means = means_text(card.features, {name: mean for name, (mean, _) in recomputed.items()})
    if known is None:
        raise CheckSkipped(f"{means}; nothing on the card to compare with")
    for name, (mean, deviation) in known.items():
        if name not in recomputed:
            raise CheckFailed(f"{name}: no graph has a value, the card has {mean:.5g}")
        error = deviation * np.sqrt(1 / known_count + 1 / count) + _ROUNDING * abs(mean)
        if abs(recomputed[name][0] - mean) > _SIGMAS * error:
            raise CheckFailed(
                f"{name} is {recomputed[name][0]:.5g}, the card has {mean:.5g} (standard error {error:.2g})"
            )
    return means
