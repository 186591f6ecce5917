"""Algorithm selection and times of solvers: tables 7 to 10."""

from __future__ import annotations

import csv
import lzma
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

import graphbench
from benchmarks.claims.registry import Outcome, check
from graphbench.catalog.resources import datasets_dir
from graphbench.tasks.select import closed_gap

_CUTOFF = 2.0  # modelled seconds, of the labels in datasets/sat/labels
_UNSOLVED = 2


@cache
def _costs() -> tuple[list[str], NDArray[np.float64]]:
    """Return the solvers and the PAR10 of each on every formula that all have a label of, ``[formulas, solvers]``."""
    tables: dict[str, dict[str, float]] = {}
    for path in sorted((datasets_dir() / "sat" / "labels").glob("*.csv.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            rows = csv.DictReader(line for line in lines if not line.startswith("#"))
            tables[path.name.split("-")[0].removeprefix("sat.")] = {
                row["key"]: 10 * _CUTOFF if int(row["status"]) == _UNSOLVED else float(row["nanoseconds"]) / 1e9
                for row in rows
            }
    keys = sorted(set.intersection(*(set(table) for table in tables.values())))
    return list(tables), np.array([[max(table[key], 1e-6) for table in tables.values()] for key in keys])


@check
def closed_gap_by_order_of_columns() -> Outcome:
    """The closed gap of the same choices where the first column is taken for the single best solver.

    So the public package 0.2.0 takes it. The paper's formula has the solver that is best over the instances.
    """
    solvers, costs = _costs()
    source = np.random.default_rng(0)
    best = costs.mean(axis=0).argmin()
    choices = np.where(source.random(len(costs)) < 0.5, costs.argmin(axis=1), best)  # half of them right, else the SBS
    spent, ideal = costs[np.arange(len(costs)), choices].mean(), costs.min(axis=1).mean()
    by_first = {}
    for first, name in enumerate(solvers):
        baseline = costs[:, first].mean()
        by_first[name] = float((baseline - spent) / (baseline - ideal))
    right = closed_gap(costs, choices, train_costs=costs)
    formula = float((costs.mean(axis=0).min() - spent) / (costs.mean(axis=0).min() - ideal))
    return Outcome(
        max(by_first.values()) - min(by_first.values()) > 0.05 and abs(right - formula) < 1e-9,
        {
            "formulas": len(costs),
            "solvers": len(solvers),
            "least": min(by_first.values()),
            "most": max(by_first.values()),
            "right": right,
        },
        f"{by_first}",
    )


@check
def labels_differ_from_printed(solvers: Sequence[str], printed_formulas: int, printed_cutoff: float) -> Outcome:
    """What our labels of SAT formulas have in common with the printed ones.

    Args:
        solvers: Printed names of solvers, in lower case.
        printed_formulas: Printed number of small formulas.
        printed_cutoff: Printed cutoff in CPU seconds.
    """
    card = graphbench.card("sat/small")
    own = [name.removeprefix("sat.") for name in card.labels if name not in ("sat.structure", "sat.probes")]
    cutoffs = {card.labels[f"sat.{name}"].effort["cutoff"] for name in own}
    formulas = sum(card.split(split).count for split in ("train", "val", "test"))
    common = sorted(set(own) & set(solvers))
    return Outcome(
        common == ["kissat"] and formulas < printed_formulas and max(cutoffs) < printed_cutoff,
        {
            "common": ", ".join(common).capitalize(),
            "solvers": len(own),
            "printed_solvers": len(solvers),
            "cutoff": max(cutoffs),
            "printed_cutoff": printed_cutoff,
            "formulas": formulas,
            "printed_formulas": printed_formulas,
        },
        f"common solvers {common}, {formulas} formulas, cutoff {cutoffs}",
    )
