"""Rules that divide graphs, or the nodes of one graph, into splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import CORE_SPLITS
from graphbench.core.errors import DataImportError
from graphbench.core.words import counted

RULES = ("random", "group", "time", "size")
"""Names of the rules: at random, whole groups, earlier times before later ones, smaller graphs before larger ones."""

_LEAST_FOLDS = 3

Numbers = NDArray[np.int64]

_NAMES = {"validation": "val", "valid": "val", "dev": "val"}


def usual_split(name: str) -> str:
    """Return the name that a split has here: ``val`` for the names that others give the validation split."""
    small = name.lower()
    return _NAMES.get(small, small if small in CORE_SPLITS else name)


@dataclass(frozen=True)
class SplitRule:
    """How samples are divided.

    Attributes:
        how: One of :data:`RULES`.
        fractions: Shares of training, validation and test samples, of their sum.
        seed: Seed of the random rules.
        folds: Number of folds; None for one division. Fold k has the k-th part for its test and the next one for
            validation.
    """

    how: str = "random"
    fractions: Sequence[float] = (0.8, 0.1, 0.1)
    seed: int = 0
    folds: int | None = None

    def check(self) -> None:
        """Refuse settings that divide nothing.

        Raises:
            DataImportError: If the rule is unknown, a share is not positive, or there are too few folds.
        """
        if self.how not in RULES:
            raise DataImportError(f"split={self.how!r} is unknown; use one of {', '.join(RULES)}")
        if len(self.fractions) != len(CORE_SPLITS) or not all(0 < part < float("inf") for part in self.fractions):
            raise DataImportError(
                f"fractions={tuple(self.fractions)} must be three positive shares, such as 0.8 0.1 0.1"
            )
        if self.folds is not None and (self.folds < _LEAST_FOLDS or self.how in ("time", "size")):
            raise DataImportError(
                f"folds={self.folds} with split={self.how!r} is refused: there are at least {_LEAST_FOLDS} folds, at "
                "random or of whole groups; one fold is for testing and another for validation"
            )


def divided(
    rule: SplitRule, count: int, by: Sequence[Any] | NDArray[Any] | None = None, noun: str = "sample"
) -> list[dict[str, Numbers]]:
    """Return, for every fold, split -> numbers of its samples, ascending.

    Args:
        rule: The rule.
        count: Number of samples.
        by: Group, time or size of every sample. Samples of one group, or of one time, are in one split. With the rule
            ``random``, groups are drawn at random; with ``group``, the largest groups come first, as in scaffold splits
            of molecules.
        noun: How messages name a sample.

    Raises:
        DataImportError: If the rule is wrong, or a split would be empty.
    """
    rule.check()
    if by is not None and not hasattr(by, "__len__"):
        by = list(by)
    if by is not None and len(by) != count:
        raise DataImportError(f"by= has {len(by)} values for {counted(count, noun)}; give one per {noun}")
    if by is None and rule.how != "random":
        raise DataImportError(f"split={rule.how!r} needs by=: the {rule.how} of every {noun}, or a column that has it")
    groups = np.arange(count) if by is None else numbered(rule, by, noun)
    sizes = np.bincount(groups)
    order = _order(rule, groups, sizes)
    if rule.folds is not None:
        return _folds(rule, groups, sizes, order, noun)
    part_of_group = np.empty(len(sizes), np.int64)
    part_of_group[order] = _parts(np.cumsum(sizes[order]), rule, count)
    return [_named(part_of_group[groups], rule, noun)]


def numbered(rule: SplitRule, by: Sequence[Any] | NDArray[Any], noun: str) -> Numbers:
    """Return the number of every sample's group, time or size; times and sizes are numbered in ascending order.

    Args:
        rule: The rule.
        by: Group, time or size of every sample. Times are numbers, dates and times of day of Python or NumPy, or texts
            in ISO 8601, which are in UTC where they name no zone.
        noun: How messages name a sample.

    Raises:
        DataImportError: If a time or size is missing, or a text is no time.
    """
    values = np.asarray(by).reshape(len(by), -1)[:, 0] if len(by) else np.empty(0)
    if rule.how == "time" and values.dtype.kind in "OUS":
        values = np.array([_instant(value, noun) for value in values.tolist()])
    elif rule.how == "size" and values.dtype.kind not in "iuf":
        raise DataImportError(f"by= has {values.tolist()[0]!r:.60}, which is no size; give a number for every {noun}")
    if values.dtype.kind == "O":
        missing = np.flatnonzero([value is None or value != value for value in values.tolist()])
    elif values.dtype.kind in "fmM":
        missing = np.flatnonzero(np.isnat(values) if values.dtype.kind in "mM" else np.isnan(values))
    else:
        missing = np.empty(0, np.int64)
    if missing.size:
        what = "group" if rule.how == "random" else rule.how
        raise DataImportError(
            f"by= has no {what} for {counted(missing.size, noun)} (the first is number {missing[0]}); give one for "
            f"every {noun}, or leave these out"
        )
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _instant(value: Any, noun: str) -> float:
    """Return a time as a number that orders times: seconds since 1970 of dates and texts."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, np.datetime64):
        value = value.item()
    try:
        if isinstance(value, bytes | str):
            value = datetime.fromisoformat(value.decode() if isinstance(value, bytes) else value)
        elif isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        return float((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())
    except (AttributeError, ValueError):
        raise DataImportError(
            f"by= has {value!r:.60}, which is no time; give a number or a text in ISO 8601, such as 2026-03-31 or "
            f"2026-03-31T18:00, for every {noun}"
        ) from None


def _parts(ends: Numbers, rule: SplitRule, count: int) -> Numbers:
    """Return the split of every group, in the order in which groups fill the splits.

    A split ends with the group whose end is nearest to its share, and has at least one group where there are enough.

    Args:
        ends: Number of samples up to and with every group.
        rule: The rule.
        count: Number of samples.
    """
    shares = np.cumsum(rule.fractions) / np.sum(rule.fractions) * count
    after, parts = 0, np.zeros(len(ends), np.int64)
    for k in range(1, len(CORE_SPLITS)):
        last = len(ends) - len(CORE_SPLITS) + k  # one group is left for every further split
        if last <= after:
            break
        after += 1 + int(np.abs(ends[after:last] - shares[k - 1]).argmin())
        parts[after:] = k
    return parts


def _order(rule: SplitRule, groups: Numbers, sizes: Numbers) -> Numbers:
    """Return the groups in the order in which they fill the splits."""
    if rule.how == "random":
        return np.random.default_rng(rule.seed).permutation(len(sizes))
    if rule.how == "group":
        first = np.full(len(sizes), len(groups))
        np.minimum.at(first, groups, np.arange(len(groups)))
        return np.lexsort((first, -sizes))
    return np.arange(len(sizes))  # of times and sizes, which are numbered in ascending order


def _folds(rule: SplitRule, groups: Numbers, sizes: Numbers, order: Numbers, noun: str) -> list[dict[str, Numbers]]:
    count = rule.folds or _LEAST_FOLDS
    fold_of_group, filled = np.empty(len(sizes), np.int64), np.zeros(count, np.int64)
    for group in order:
        fold_of_group[group] = filled.argmin()
        filled[fold_of_group[group]] += sizes[group]
    fold = fold_of_group[groups]
    part_of_fold = [np.full(count, CORE_SPLITS.index("train")) for _ in range(count)]
    for k, parts in enumerate(part_of_fold):
        parts[k], parts[(k + 1) % count] = CORE_SPLITS.index("test"), CORE_SPLITS.index("val")
    return [_named(parts[fold], rule, noun) for parts in part_of_fold]


def _named(part: Numbers, rule: SplitRule, noun: str) -> dict[str, Numbers]:
    splits = {name: np.flatnonzero(part == i) for i, name in enumerate(CORE_SPLITS)}
    empty = [name for name, numbers in splits.items() if not numbers.size]
    if empty:
        raise DataImportError(
            f"the split {empty[0]!r} would be empty: {counted(len(part), noun)} divided by {rule.how!r}; change "
            "fractions=, or give the splits yourself"
        )
    return splits
