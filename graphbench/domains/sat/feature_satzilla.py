"""The features of the package satzilla (Shavit and Hoos 2024, "Revisiting SATZilla features in 2024"), if installed.

The package states no licence and contains programs that are not free, so no extra of this project installs it:
``pip install --no-binary satzilla satzilla`` compiles it (g++).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from graphbench.core.errors import ArgumentError, MissingDependency, SolverError
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.feature_base import formula_file

SATZILLA_PREFIX = "satzilla_"
SATZILLA_GROUPS = ("base", "unit", "dia", "structure", "sp", "ncnf-graphs", "ncnf-constraints", "ncnf-rwh")
"""The groups that take at most a second on small formulas and give the same features in every run."""
_SLOW = ("cl", "ls", "lp", "lobjois")
_TIME = "featuretime"


def satzilla_features(
    cnf: Cnf, groups: Iterable[str] = SATZILLA_GROUPS, seconds_per_group: int = 60
) -> dict[str, float]:
    """Return features of the package satzilla, with `SATZILLA_PREFIX` before their names.

    The package simplifies the formula with SatELite first. The times that the package reports are left out, so the
    features of `SATZILLA_GROUPS` are the same in every run. The groups ``cl``, ``ls`` and ``lp`` are stopped by the
    clock, so their features depend on the machine, and the group ``lobjois`` takes several seconds; these four groups
    are measured only if they are named.

    Args:
        cnf: The formula.
        groups: Names of groups of the package.
        seconds_per_group: Limit of CPU time for each group, and for the simplification.

    Raises:
        MissingDependency: If the package is not installed.
        ArgumentError: If a group is unknown, or the formula has no clause or an empty clause.
        SolverError: If the package fails on the formula.
    """
    wanted = tuple(groups)
    if unknown := sorted(set(wanted) - {*SATZILLA_GROUPS, *_SLOW}):
        raise ArgumentError(
            f"unknown group of features {unknown[0]!r}; give some of {', '.join((*SATZILLA_GROUPS, *_SLOW))}"
        )
    limits = {"group_timeout": seconds_per_group, "preprocess_timeout": seconds_per_group}
    with formula_file(cnf) as path:
        package = _package()
        try:
            measured = package.extract_features_from_path(str(path), groups=list(wanted), **limits)
        except package.FeatureExtractionError as error:
            raise SolverError(f"the package satzilla failed on the formula: {error}") from error
    return {SATZILLA_PREFIX + name: float(value) for name, value in measured.items() if not name.endswith(_TIME)}


def _package() -> Any:
    try:
        return importlib.import_module("satzilla_features")
    except ImportError as error:
        raise MissingDependency(
            "the features of SATzilla need the package satzilla, which is not wholly free: "
            "pip install --no-binary satzilla satzilla (needs g++)"
        ) from error
