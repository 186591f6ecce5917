"""Labellers of formula features: the inputs of tabular models, and the cost of measuring them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import SolverError
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.generators import Labeller
from graphbench.domains.sat.feature_groups import FEATURE_GROUPS, SOLVED, STRUCTURAL_GROUPS, feature_report
from graphbench.domains.sat.formulas import formula_of
from graphbench.domains.sat.solvers import find_solver

PROBING_GROUPS = tuple(name for name in FEATURE_GROUPS if name not in STRUCTURAL_GROUPS)
_PROBED_WITH = "minisat22"
_SHARD_SIZE = 64


class FeatureEffort(StrictModel):
    """Settings of the measurement of features.

    Attributes:
        solver_version: Version of the solvers of the probes, for features that are measured by solvers.
    """

    solver_version: str | None = None


def columns_of(groups: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the features of some groups, in the order of the columns."""
    return tuple(name for group in groups for name in FEATURE_GROUPS[group])


def _label(name: str, groups: tuple[str, ...], effort: FeatureEffort, number: int, graph: Samples) -> Mapping[str, Any]:
    if effort.solver_version is not None and find_solver(_PROBED_WITH).version != effort.solver_version:
        raise SolverError(
            f"the features are measured by solvers of {find_solver(_PROBED_WITH).package} {effort.solver_version}, but "
            f"{find_solver(_PROBED_WITH).version} is installed; install that version"
        )
    report = feature_report(formula_of(graph), groups)
    values = np.array([report.values[column] for column in columns_of(groups)], np.float32)
    return {name: values, f"{name}_seconds": math.fsum(report.seconds.values())}


def _check(name: str, groups: tuple[str, ...], graph: Samples, values: Mapping[str, Any]) -> list[str]:
    """Return the problems of a label: features that are not finite, and counts that differ from the graph's counts."""
    row, seconds = np.asarray(values[name], np.float64), float(values[f"{name}_seconds"])
    columns = columns_of(groups)
    if not np.isfinite(row).all() or not 0 < seconds < math.inf:
        return [f"the features {name} or their cost of {seconds} seconds are not finite"]
    features = dict(zip(columns, row.tolist(), strict=True))
    cnf = formula_of(graph)
    counts = {"log_variables": cnf.num_variables, "log_clauses": cnf.num_clauses, "log_literals": len(cnf.literals)}
    wrong = [
        f"{column} is {features[column]:.6g}, but the formula has {count}"
        for column, count in counts.items()
        if column in features and not math.isclose(features[column], math.log10(1 + count), rel_tol=1e-6)
    ]
    shares = [column for column in columns if column.endswith("_share") or column.startswith(SOLVED)]
    return wrong + [f"{column} is {features[column]}" for column in shares if not 0 <= features[column] <= 1 + 1e-6]


def _statistics(name: str, groups: tuple[str, ...], samples: Samples) -> Mapping[str, NDArray[np.float64]]:
    succeeded = samples.values[f"{name}_failed"] == 0
    nothing = np.full(len(samples), math.nan)
    columns = {f"{name}_seconds": np.where(succeeded, samples.values[f"{name}_seconds"], nothing)}
    solved = [i for i, column in enumerate(columns_of(groups)) if column.startswith(SOLVED)]
    if solved:
        columns[f"{name}_solved"] = np.where(succeeded, samples.values[name][:, solved].max(axis=1), nothing)
    return columns


def _baselines(samples: Samples) -> Mapping[str, NDArray[np.float64]]:
    return {}


def _make(name: str, groups: tuple[str, ...]) -> Labeller:
    return Labeller(
        name=f"sat.{name}",
        version=1,
        effort=FeatureEffort,
        label=partial(_label, name, groups),
        check=partial(_check, name, groups),
        failed=f"{name}_failed",
        statistics=partial(_statistics, name, groups),
        baselines=_baselines,
        shard_size=lambda effort: _SHARD_SIZE,
    )


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "structure": columns_of(STRUCTURAL_GROUPS),
    "probes": columns_of(PROBING_GROUPS),
}
"""Labeller -> the names of its features, in the order of the columns."""

FEATURE_LABELLERS: Mapping[str, Labeller] = {
    "structure": _make("structure", STRUCTURAL_GROUPS),
    "probes": _make("probes", PROBING_GROUPS),
}
