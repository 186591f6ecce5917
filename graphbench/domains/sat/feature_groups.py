"""Features of formulas for predicting the effort of solvers, in compiled code of this package.

The set follows SATzilla: Nudelman et al. 2004, "Understanding random SAT: beyond the clauses-to-variables ratio"; Xu
et al. 2008, "SATzilla: portfolio-based algorithm selection for SAT"; Shavit and Hoos 2024, "Revisiting SATZilla
features in 2024". The features belong to the same groups, but their definitions are new, so their values differ.

Every feature is finite and a function of the formula alone: random choices have fixed seeds, and limits are numbers of
steps, never seconds. A feature whose name begins with ``log_`` is log10(1 + x). A ratio is 0 if its denominator is 0,
and statistics of an empty array are 0.

Some groups may decide a formula while they measure it, so their features may reveal the answer to a benchmark's
question. The features whose names begin with `SOLVED` tell for which formulas this happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import ArgumentError
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.feature_base import base_features
from graphbench.domains.sat.feature_graphs import CLAUSE_GRAPH, COMMUNITY, DISTANCE, VARIABLE_GRAPH
from graphbench.domains.sat.feature_propagation import PROPAGATION
from graphbench.domains.sat.feature_search import BREAKOUT, WALKSAT
from graphbench.domains.sat.feature_solvers import PROBES
from graphbench.domains.sat.feature_structure import BALANCE, DEGREES, HORN, SIZE
from graphbench.domains.sat.feature_tables import Group, Tables

__all__ = [
    "FEATURES",
    "FEATURE_GROUPS",
    "SOLVED",
    "STRUCTURAL_GROUPS",
    "FeatureReport",
    "base_features",
    "feature_array",
    "feature_report",
    "feature_seconds",
    "features",
]

_GROUPS: Mapping[str, Group] = MappingProxyType(
    {
        "size": SIZE,
        "balance": BALANCE,
        "horn": HORN,
        "degrees": DEGREES,
        "variable_graph": VARIABLE_GRAPH,
        "clause_graph": CLAUSE_GRAPH,
        "distance": DISTANCE,
        "community": COMMUNITY,
        "propagation": PROPAGATION,
        "walksat": WALKSAT,
        "breakout": BREAKOUT,
        "probes": PROBES,
    }
)

FEATURE_GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType({name: group.names for name, group in _GROUPS.items()})
"""The names of the features of every group, in order."""

FEATURES: tuple[str, ...] = tuple(name for names in FEATURE_GROUPS.values() for name in names)
"""The names of all features, in order."""

STRUCTURAL_GROUPS = ("size", "balance", "horn", "degrees", "variable_graph", "clause_graph", "distance", "community")
"""The groups that search for no solution."""

SOLVED = "solved_by_probe_"
"""Prefix of the names of features that are 1 if a group decided the formula while it measured it, else 0."""

_SECONDS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {  # seconds per formula, seconds per step; comments: R2 of the seconds over 44 formulas of 100 to 10,000 variables
        "size": (2.6e-5, 8.1e-9),  # .92
        "balance": (6.7e-5, 2.2e-8),  # .98
        "horn": (6.4e-5, 1.1e-8),  # .95
        "degrees": (4.3e-5, 7.9e-9),  # .91
        "variable_graph": (4.0e-5, 3.05e-9),  # .99
        "clause_graph": (1.3e-5, 4.11e-9),  # .97
        "distance": (3.8e-5, 3.84e-9),  # .91
        "community": (4.7e-5, 6.23e-9),  # .97
        "propagation": (6.5e-5, 5.32e-9),  # .92
        "walksat": (1.9e-5, 9.92e-9),  # .96
        "breakout": (5.6e-5, 4.82e-9),  # .99
        "probes": (4.7e-5, 3.73e-8),  # .98
    }
)


@dataclass(frozen=True, eq=False)
class FeatureReport:
    """The features of a formula and the cost of measuring them.

    Attributes:
        values: The features by name.
        steps: Number of elementary steps of every group, a function of the formula alone.
        seconds: Modelled seconds of every group, from `feature_seconds`.
    """

    values: Mapping[str, float]
    steps: Mapping[str, int]
    seconds: Mapping[str, float]


def features(cnf: Cnf, groups: Iterable[str] = tuple(FEATURE_GROUPS)) -> dict[str, float]:
    """Return the features of some groups of a formula, by name.

    Args:
        cnf: The formula.
        groups: Names of groups, from `FEATURE_GROUPS`.

    Raises:
        ArgumentError: If a group is unknown, or a literal of the formula has no variable.
        MissingDependency: If ``groups`` has the group ``probes`` and python-sat is not installed.
    """
    return dict(feature_report(cnf, groups).values)


def feature_array(cnf: Cnf, groups: Iterable[str] = tuple(FEATURE_GROUPS)) -> NDArray[np.float64]:
    """Return the features as float64 ``[F]``, in the order of `FEATURE_GROUPS`; see `features`."""
    return np.array(list(features(cnf, groups).values()), np.float64)


def feature_report(cnf: Cnf, groups: Iterable[str] = tuple(FEATURE_GROUPS)) -> FeatureReport:
    """Return the features of some groups with their costs; see `features` for the arguments and errors."""
    if isinstance(groups, str):
        raise ArgumentError(f"groups is {groups!r}; give a list of groups of features, e.g. [{groups!r}]")
    wanted = set(groups)
    if unknown := sorted(wanted - set(_GROUPS)):
        raise ArgumentError(f"unknown group of features {unknown[0]!r}; give some of {', '.join(_GROUPS)}")
    tables = Tables.of(cnf)
    values: dict[str, float] = {}
    steps: dict[str, int] = {}
    for name, group in _GROUPS.items():
        if name in wanted:
            row, steps[name] = group.measure(tables)
            values.update(zip(group.names, row, strict=True))
    return FeatureReport(values, steps, feature_seconds(steps))


def feature_seconds(steps: Mapping[str, int]) -> dict[str, float]:
    """Return the modelled CPU time of groups of features in seconds.

    The model is a constant per group plus a time per step. Its coefficients are fixed, so a formula has the same cost
    on every machine. Each group is charged as if it were measured alone, including the tables that groups share.

    Args:
        steps: Steps by group, from `FeatureReport.steps`.
    """
    return {name: _SECONDS[name][0] + _SECONDS[name][1] * count for name, count in steps.items()}
