"""Features of a formula's sizes, signs, Horn clauses and degrees (Nudelman et al. 2004, groups 1 to 3 and 5).

The features do not change when variables are renamed or when clauses or literals are reordered.
Statistics over variables cover the variables that occur.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.sat.feature_tables import (
    LOG_STATISTICS,
    Group,
    Tables,
    log,
    names,
    ratio,
    statistics,
)

_LENGTHS = ("empty", "unit", "binary", "ternary")


def _size(tables: Tables) -> tuple[list[float], int]:
    n, m, size = tables.cnf.num_variables, tables.cnf.num_clauses, int(tables.lengths.sum())
    shares = [ratio(int((tables.lengths == length).sum()), m) for length in range(len(_LENGTHS))]
    unused = ratio(n - int(tables.used.sum()), n)
    ratios = [ratio(m, n), ratio(n, m), ratio(size, n), ratio(size, m)]
    return [log(n), log(m), log(size), *ratios, unused, *shares], tables.size


SIZE = Group(
    (
        "log_variables",
        "log_clauses",
        "log_literals",
        "clauses_per_variable",
        "variables_per_clause",
        "literals_per_variable",
        "literals_per_clause",
        "unused_variable_share",
        *(f"{length}_clause_share" for length in _LENGTHS),
    ),
    _size,
)


def _balance(tables: Tables) -> tuple[list[float], int]:
    of_variables = tables.degrees[tables.used]
    positive = ratio(int(tables.signs[:, 0].sum()), int(tables.signs.sum()))
    pure = ratio(int((of_variables.min(axis=1, initial=1 << 62) == 0).sum()), len(of_variables))
    of_clauses = statistics(_balances(tables.signs[tables.lengths > 0]))
    return [positive, pure, *of_clauses, *statistics(_balances(of_variables))], tables.size


def _balances(counts: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the smaller of two counts over the larger one, for each row."""
    result: NDArray[np.float64] = counts.min(axis=1) / counts.max(axis=1) if len(counts) else np.zeros(0)
    return result


BALANCE = Group(
    ("positive_literal_share", "pure_variable_share", *names("clause_balance"), *names("variable_balance")), _balance
)


def _horn(tables: Tables) -> tuple[list[float], int]:
    m = tables.cnf.num_clauses
    positive, negative = tables.signs[:, 0], tables.signs[:, 1]
    kinds = [positive <= 1, negative <= 1, positive == 0, negative == 0]
    shares = [ratio(int(kind.sum()), m) for kind in kinds]
    per_variable = [statistics(_occurrences_in(tables, kind), logs=True) for kind in kinds[:2]]
    return [*shares, *per_variable[0], *per_variable[1]], tables.size


def _occurrences_in(tables: Tables, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of occurrences of each used variable in the chosen clauses."""
    first, clauses = tables.holders
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(chosen[clauses])])
    result: NDArray[np.int64] = np.diff(before[first[::2]])[tables.used]
    return result


HORN = Group(
    (
        "horn_clause_share",
        "reverse_horn_clause_share",
        "negative_clause_share",
        "positive_clause_share",
        *names("horn_occurrences", LOG_STATISTICS),
        *names("reverse_horn_occurrences", LOG_STATISTICS),
    ),
    _horn,
)


def _degrees(tables: Tables) -> tuple[list[float], int]:
    of_variables = tables.degrees.sum(axis=1)[tables.used]
    return [*statistics(of_variables, logs=True), *statistics(tables.lengths, logs=True)], tables.size


DEGREES = Group((*names("variable_degree", LOG_STATISTICS), *names("clause_degree", LOG_STATISTICS)), _degrees)
"""Degrees in the variable-clause graph; a clause with both literals of a variable counts twice."""
