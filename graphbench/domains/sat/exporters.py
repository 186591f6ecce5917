"""Exporters of formula datasets to the formats of other tools: DIMACS files and ASlib scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphbench.catalog.cards import CORE_SPLITS, Card
from graphbench.core.errors import ArgumentError
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.domain import find
from graphbench.data.components.exporters import Exporter
from graphbench.domains.sat.aslib_files import write_scenario
from graphbench.domains.sat.feature_labellers import COLUMNS
from graphbench.domains.sat.formula_files import write_formulas
from graphbench.domains.sat.formulas import IS_CLAUSE, formula_of
from graphbench.domains.sat.labellers import UNSOLVED
from graphbench.domains.sat.scenarios import FEATURE_STATUSES, OK, STATUSES, Floats, Scenario
from graphbench.domains.sat.solvers import SOLVERS

_FOLDS = {"test": 1, "val": 2, "train": 3}  # the reader tests on the first fold and validates on the second


def _write_cnf(card: Card, splits: Mapping[str, Samples], folder: Path) -> list[Path]:
    """Write every split to a sub-folder with the split's name; the source ``files`` reads such a folder."""
    _require_formulas(card)
    for split, samples in splits.items():
        write_formulas((formula_of(samples, i) for i in range(len(samples))), folder / split)
    return [folder / split for split in splits]


def _write_aslib(card: Card, splits: Mapping[str, Samples], folder: Path) -> list[Path]:
    return write_scenario(scenario_of(card, splits), folder)


def scenario_of(card: Card, splits: Mapping[str, Samples]) -> Scenario:
    """Return solver labels and features of formulas as an ASlib scenario.

    Instances are named by `gbdhash`. Times are modelled seconds; if a labeller failed on a formula, the run has the
    status ``crash``. The folds are 1 for ``test``, 2 for ``val`` and 3 for ``train``.

    Args:
        card: The card of a task with solver labels.
        splits: Split -> labelled samples.

    Raises:
        ArgumentError: If the task has no solver labels, a split is out of distribution, solvers have different cutoffs,
            or a formula is in two splits.
    """
    _require_formulas(card)
    shorts = [name.partition(".")[2] for name in card.labellers]
    solvers, steps = [s for s in shorts if s in SOLVERS], {s: COLUMNS[s] for s in shorts if s in COLUMNS}
    if not solvers:
        raise ArgumentError(f"{card.address} has no labels of solvers; name a task that has, such as sat/small:select")
    if others := [split for split in splits if split not in CORE_SPLITS]:
        raise ArgumentError(
            f"an ASlib scenario has the folds train, val and test; the split {others[0]!r} is out of distribution, and "
            "would be trained on: leave it out"
        )
    instances = [formula_of(part, i).gbdhash for part in splits.values() for i in range(len(part))]
    if len(set(instances)) < len(instances):
        raise ArgumentError(f"a formula is in two splits of {card.address}, but an ASlib scenario names it once")
    cutoff = _cutoff(card, solvers, list(splits))
    runs = [_runs(splits, solver, cutoff) for solver in solvers]
    tables = [_features(splits, step) for step in steps]
    count = len(instances)
    return Scenario(
        name=card.id.replace("/", "_"),
        instances=tuple(instances),
        algorithms=tuple(solvers),
        cutoff=cutoff,
        seconds=np.stack([seconds for seconds, _ in runs], axis=1)[:, :, None],
        status=np.stack([status for _, status in runs], axis=1)[:, :, None],
        feature_names=tuple(name for names in steps.values() for name in names),
        features=np.concatenate([np.empty((count, 0)), *(values for values, _, _ in tables)], axis=1),
        steps=steps,
        step_seconds=np.stack([seconds for _, seconds, _ in tables], axis=1) if tables else None,
        step_status=np.stack([status for _, _, status in tables], axis=1) if tables else None,
        default_steps=tuple(steps),
        folds=np.concatenate([np.full(len(part), _FOLDS[split], np.int64) for split, part in splits.items()]),
    ).check()


def _require_formulas(card: Card) -> None:
    if IS_CLAUSE not in {f.name for f in card.graph_features}:
        raise ArgumentError(f"{card.address} holds no formulas, so there is nothing to write")


def _cutoff(card: Card, solvers: Sequence[str], splits: Sequence[str]) -> float:
    cutoffs = {
        float(find("labeller", name).parse(card, split).cutoff)
        for name in (f"sat.{solver}" for solver in solvers)
        for split in splits
    }
    if len(cutoffs) > 1:
        raise ArgumentError(f"solvers of {card.address} have the cutoffs {sorted(cutoffs)}; an ASlib scenario has one")
    return cutoffs.pop()


def _column(splits: Mapping[str, Samples], name: str) -> Any:
    return np.concatenate([np.asarray(part.values[name]) for part in splits.values()])


def _runs(splits: Mapping[str, Samples], solver: str, cutoff: float) -> tuple[Floats, Any]:
    """Return the times and statuses of a solver's runs, float64 ``[S]`` and int8 ``[S]``."""
    failed = _column(splits, f"{solver}_failed") != 0
    unsolved = _column(splits, f"{solver}_status") == UNSOLVED
    seconds = np.where(failed | unsolved, cutoff, _column(splits, f"{solver}_seconds").astype(np.float64))
    status = np.where(failed, STATUSES.index("crash"), np.where(unsolved, STATUSES.index("timeout"), OK))
    return seconds, status.astype(np.int8)


def _features(splits: Mapping[str, Samples], step: str) -> tuple[Floats, Floats, Any]:
    """Return the features of a labeller, their times and their statuses; nan where the labeller failed."""
    failed = _column(splits, f"{step}_failed") != 0
    values = _column(splits, step).astype(np.float64)
    seconds = _column(splits, f"{step}_seconds").astype(np.float64)
    status = np.where(failed, FEATURE_STATUSES.index("crash"), OK).astype(np.int8)
    return np.where(failed[:, None], np.nan, values), np.where(failed, np.nan, seconds), status


EXPORTERS: Mapping[str, Exporter] = {
    "aslib": Exporter("sat.aslib", "an ASlib scenario with the runs of solvers and the features", _write_aslib),
    "cnf": Exporter("sat.cnf", "one DIMACS file per formula, in a sub-folder per split", _write_cnf, labels=False),
}
