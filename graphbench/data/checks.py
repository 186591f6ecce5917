"""What checks of a dataset report, and which samples they look at."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card


@dataclass(frozen=True)
class Row:
    """One line of the report: a check, what it looked at, and what it found.

    Attributes:
        split: What was looked at.
        check: Name of the check.
        passed: Whether nothing is wrong.
        detail: What was found, in words.
        mark: ``skipped`` where there was nothing to check against, ``noted`` where what was found is to be known but is
            no failure, as false labels of published files are.
    """

    split: str
    check: str
    passed: bool
    detail: str
    mark: Literal["", "skipped", "noted"] = ""


class CheckFailed(Exception):
    """A check that did not pass; the message is the detail of its row."""


class CheckSkipped(Exception):
    """A check that had nothing to look at or to compare with; the message is the detail of its row."""


def random_numbers(card: Card, split: str, population: int, size: int) -> NDArray[np.int64]:
    """Return different numbers below ``population``, int64 ``[size]``: the same ones every time."""
    seed = zlib.crc32(f"{card.id}|{split}|verify".encode())
    return np.random.default_rng(seed).choice(population, size, replace=False).astype(np.int64)
