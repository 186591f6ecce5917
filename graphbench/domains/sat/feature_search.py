"""Features of two local searches with a limited number of flips (Nudelman et al. 2004, group 6).

Empty clauses are violated under every assignment: they count as violated, and the searches leave them out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from graphbench.domains.sat.feature_search_kernels import COLUMNS, breakout, walksat
from graphbench.domains.sat.feature_tables import KEY, Group, Tables, log, ratio, variation
from graphbench.domains.sat.graph_kernels import transposed

RUNS = 4
WALKSAT_FLIPS = 10_000
BREAKOUT_FLIPS = 5_000  # a flip takes about four times as long as a flip of WalkSAT


def _measure(search: Callable[..., Any], limit: int, tables: Tables) -> tuple[list[float], int]:
    number = np.cumsum(tables.lengths > 0, dtype=np.int32) - np.int32(1)
    first, clauses = tables.holders
    holders = first, number[clauses]
    m = int(number[-1]) + 1 if len(number) else 0
    rows, *_, steps = search(*holders, *transposed(*holders, m), RUNS, limit, KEY)
    empty = tables.cnf.num_clauses - m
    column = {name: rows[:, i] + empty * (name in _VIOLATED) for i, name in enumerate(COLUMNS)}
    mean = {name: float(values.mean()) for name, values in column.items()}
    gain = mean["initial"] - mean["best"]
    values = [
        log(mean["best"]),
        ratio(mean["best"], tables.cnf.num_clauses),
        variation(column["best"]),
        log(mean["best_flip"]),
        variation(column["best_flip"]),
        ratio(gain, mean["best_flip"]),
        log(mean["first_minimum"]),
        log(mean["first_minimum_flip"]),
        ratio(mean["initial"] - mean["first_minimum"], gain),
        variation(column["final"]),
        log(mean["flips"]),
        float((column["final"] == 0).any()),
    ]
    return values, int(steps) + tables.size


_VIOLATED = ("initial", "best", "first_minimum", "final")
_NAMES = (
    "log_best",
    "best_share",
    "best_cv",
    "log_best_flip",
    "best_flip_cv",
    "gain_per_flip",
    "log_first_minimum",
    "log_first_minimum_flip",
    "first_minimum_gain_share",
    "final_cv",
    "log_flips",
)


def _group(prefix: str, search: Callable[..., Any], limit: int) -> Group:
    names = (*(f"{prefix}_{name}" for name in _NAMES), f"solved_by_probe_{prefix}")
    return Group(names, partial(_measure, search, limit))


WALKSAT = _group("walksat", walksat, WALKSAT_FLIPS)
BREAKOUT = _group("breakout", breakout, BREAKOUT_FLIPS)
