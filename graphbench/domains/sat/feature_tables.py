"""Tools that all groups of features share: the relations of a formula and the statistics of its counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.graph_kernels import (
    Relation,
    literal_codes,
    occurrences,
    sign_counts,
    transposed,
)

KEY = np.uint64(0x5A7_FEA7)
"""Seed of every random choice of a feature; it is fixed, so features are functions of the formula alone."""

STATISTICS = ("mean", "cv", "min", "max", "entropy")
LOG_STATISTICS = ("log_mean", "cv", "log_min", "log_max", "entropy")


class Group(NamedTuple):
    """A group of features.

    Attributes:
        names: The names of the features.
        measure: Returns the values of the features, in the order of the names, and the number of elementary steps.
    """

    names: tuple[str, ...]
    measure: Callable[[Tables], tuple[list[float], int]]


@dataclass(frozen=True, eq=False)
class Tables:
    """A formula as relations, in the codes of `graph_kernels`. A literal that is repeated in a clause counts once.

    Attributes:
        cnf: The formula.
        holders: The clauses that hold each of the 2n literals.
        members: The literals of each clause.
        signs: int32 ``[m, 2]``, how many positive and negative literals each clause holds.
        degrees: int64 ``[n, 2]``, how many clauses hold the positive and the negative literal of each variable.
    """

    cnf: Cnf
    holders: Relation
    members: Relation
    signs: NDArray[np.int32]
    degrees: NDArray[np.int64]

    @classmethod
    def of(cls, cnf: Cnf) -> Tables:
        """Return the tables of a formula.

        Raises:
            ArgumentError: If a literal has no variable.
        """
        literals, ptr = cnf.checked()
        n, m = cnf.num_variables, cnf.num_clauses
        codes, _ = literal_codes(np.array([n]), np.array([m]), ptr, literals)
        holders = occurrences(codes, ptr, 2 * n)
        degrees = np.diff(holders[0]).reshape(-1, 2)
        return cls(cnf, holders, transposed(*holders, m), sign_counts(*holders, m), degrees)

    @property
    def size(self) -> int:
        """The number of variables, clauses and literals together, which counts the steps of building the tables."""
        return self.cnf.num_variables + self.cnf.num_clauses + len(self.cnf.literals)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """int64 ``[m]``: the number of distinct literals of every clause."""
        return np.diff(self.members[0])

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """Bool ``[n]``: whether each variable occurs in a clause."""
        return self.degrees.sum(axis=1) > 0


def names(prefix: str, statistics: tuple[str, ...] = STATISTICS) -> tuple[str, ...]:
    """Return the names of the statistics of one count."""
    return tuple(f"{prefix}_{statistic}" for statistic in statistics)


def statistics(values: NDArray[Any], logs: bool = False) -> list[float]:
    """Return the mean, coefficient of variation, minimum, maximum and entropy of an array; zeros if it is empty.

    The entropy of the distribution of the distinct values is in bits. The coefficient of variation is the population
    standard deviation over the mean, 0 if the mean is 0. The sums are rounded once, so they do not depend on the order
    of the values.

    Args:
        values: Numbers of at least 0.
        logs: Whether the mean, minimum and maximum are transformed by `log`.
    """
    if len(values) == 0:
        return [0.0] * 5
    distinct, counts = np.unique(values, return_counts=True)
    size = len(values)
    mean = math.fsum((distinct * counts).tolist()) / size
    variance = math.fsum((counts * (distinct - mean) ** 2).tolist()) / size
    entropy = -math.fsum((share * math.log2(share)) for share in (counts / size).tolist())
    scale = log if logs else float
    ends = scale(float(distinct[0])), scale(float(distinct[-1]))
    return [scale(mean), math.sqrt(variance) / mean if mean else 0.0, *ends, abs(entropy)]


def variation(values: NDArray[Any]) -> float:
    """Return the coefficient of variation as in `statistics`."""
    return statistics(values)[1]


def log(value: float) -> float:
    """Return log10(1 + value), which is 0 for a count of 0."""
    return math.log10(1.0 + value)


def ratio(part: float, whole: float) -> float:
    """Return ``part / whole``, or 0 where ``whole`` is 0."""
    return float(part) / float(whole) if whole else 0.0


def restricted(relation: Relation, kept: NDArray[np.bool_]) -> Relation:
    """Return the relation without the pairs for which ``kept`` bool ``[pairs]`` is False."""
    first, items = relation
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])[first], items[kept]
