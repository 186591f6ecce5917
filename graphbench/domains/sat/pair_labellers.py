"""The labellers of pairs of formulas: which are satisfiable, and which assignment satisfies most clauses.

The labels do not depend on the solver that finds them. Before a label is stored, another solver gives a model or a
refutation, whose steps a checker follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.rng import seed, uniform
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.generators import Labeller
from graphbench.domains.sat.assignments import (
    SignedGraphs,
    best_assignment,
    checked_graphs,
    greedy_assignments,
    satisfied_clauses,
)
from graphbench.domains.sat.formulas import IS_CLAUSE, NEGATED, formula_of
from graphbench.domains.sat.incremental import is_satisfiable
from graphbench.domains.sat.proofs import contradiction

NAME = "assignment"
SATISFIABLE, STATUS_FAILED = "satisfiable", "status_failed"
_SHARD_FORMULAS = 256
_RANDOM = np.uint64(0x72616E64)


class NoEffort(StrictModel):
    """Nothing limits the search: every formula is solved."""


def _label_status(effort: NoEffort, number: int, graph: Samples) -> dict[str, Any]:
    return {SATISFIABLE: int(is_satisfiable(formula_of(graph)))}


def _check_status(graph: Samples, values: Mapping[str, Any]) -> list[str]:
    fault = contradiction(formula_of(graph), bool(values[SATISFIABLE]))
    return [] if fault is None else [f"{SATISFIABLE} is {values[SATISFIABLE]}, but {fault}"]


def _statistics_of_status(samples: Samples) -> dict[str, NDArray[np.float64]]:
    labelled = samples.values[STATUS_FAILED] == 0
    return {f"share_{SATISFIABLE}": np.where(labelled, samples.values[SATISFIABLE], np.nan)}


def _no_baselines(samples: Samples) -> dict[str, NDArray[np.float64]]:
    return {}


def _label(effort: NoEffort, number: int, graph: Samples) -> dict[str, Any]:
    graphs = _graphs_of(graph)
    solution, violated = best_assignment(graphs)
    most = int(graphs.is_clause.sum()) - violated
    return {NAME: solution, f"{NAME}_value": most, f"{NAME}_bound": most}


def _check(graph: Samples, values: Mapping[str, Any]) -> list[str]:
    """Return what is wrong: clauses are counted anew, and another solver proves that not all clauses can hold."""
    cnf = formula_of(graph)
    value, bound = int(values[f"{NAME}_value"]), int(values[f"{NAME}_bound"])
    solution = np.asarray(values[NAME], np.int64)
    reached = int(satisfied_clauses(_graphs_of(graph), solution)[0])
    problems = []
    if value != reached:
        problems.append(f"value {value}, but the assignment satisfies {reached} clauses")
    if value != bound or not cnf.num_clauses - 1 <= value <= cnf.num_clauses:
        problems.append(f"value {value} and bound {bound} of a formula of {cnf.num_clauses} clauses")
    elif (fault := contradiction(cnf, value == cnf.num_clauses)) is not None:
        problems.append(f"value {value} of {cnf.num_clauses} clauses: {fault}")
    return problems


def _graphs_of(samples: Samples) -> SignedGraphs:
    """Return the graphs of samples with both directions of every edge, as problems take them."""
    first = np.repeat(samples.node_ptr[:-1], samples.num_edges)
    edges = np.asarray(samples.edges, np.int64) + first[:, None]
    both = np.stack([edges, edges[:, ::-1]], axis=1).reshape(-1, 2).T
    fields = {IS_CLAUSE: samples.values[IS_CLAUSE], NEGATED: np.repeat(samples.values[NEGATED], 2)}
    return checked_graphs(np.asarray(samples.node_ptr, np.int64), both, fields)


def _statistics(samples: Samples) -> dict[str, NDArray[np.float64]]:
    labelled = samples.values[f"{NAME}_failed"] == 0
    return {f"mean_{NAME}_value": np.where(labelled, samples.values[f"{NAME}_value"], np.nan)}


def _baselines(samples: Samples) -> dict[str, NDArray[np.float64]]:
    """Return the clauses that conditional expectations and fair coins satisfy."""
    graphs = _graphs_of(samples)
    coins = np.zeros(len(graphs.is_clause), np.int32)
    for g in range(len(graphs)):
        state = seed(_RANDOM, g, 0, 0)
        for node in range(graphs.ptr[g], graphs.ptr[g + 1]):
            coins[node] = uniform(state) < 0.5
    coins[graphs.is_clause] = 0
    return {
        "greedy": satisfied_clauses(graphs, greedy_assignments(graphs)).astype(np.float64),
        "random": satisfied_clauses(graphs, coins).astype(np.float64),
    }


def _shard_size(effort: NoEffort) -> int:
    return _SHARD_FORMULAS


STATUS = Labeller(
    name="sat.status",
    version=1,
    effort=NoEffort,
    label=_label_status,
    check=_check_status,
    failed=STATUS_FAILED,
    statistics=_statistics_of_status,
    baselines=_no_baselines,
    shard_size=_shard_size,
)

ASSIGNMENT = Labeller(
    name=f"sat.{NAME}",
    version=1,
    effort=NoEffort,
    label=_label,
    check=_check,
    failed=f"{NAME}_failed",
    statistics=_statistics,
    baselines=_baselines,
    shard_size=_shard_size,
)
