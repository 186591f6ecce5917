"""The rows that checks of a dataset report, and the samples they examine."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card


@dataclass(frozen=True)
class Row:
    """One row of the report: a check and its outcome.

    Attributes:
        split: The split, or splits, that were checked.
        check: Name of the check.
        passed: Whether the check succeeded.
        detail: Description of the outcome.
        mark: ``skipped`` if there was nothing to compare with, ``noted`` for findings that are no failure, e.g.
            wrong labels of published files.
    """

    split: str
    check: str
    passed: bool
    detail: str
    mark: Literal["", "skipped", "noted"] = ""


class CheckFailed(Exception):
    """A check that did not pass; the message is the detail of its row."""


class CheckSkipped(Exception):
    """A check without data, or without anything to compare with; the message is the detail of its row."""


def random_numbers(card: Card, split: str, population: int, size: int) -> NDArray[np.int64]:
    """Return distinct pseudorandom numbers below ``population``, int64 ``[size]``; they are the same in every call."""
    seed = zlib.crc32(f"{card.id}|{split}|verify".encode())
    return np.random.default_rng(seed).choice(population, size, replace=False).astype(np.int64)
