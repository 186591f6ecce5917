"""The labellers of combinatorial optimisation: solutions, bounds and steps, from the solvers of `solving`.

Labels ``mis``, ``max_cut`` and ``coloring`` each have features that begin with their name: the solution itself at nodes
(members of the set, sides, colours), ``_value``, the proved ``_bound``, whether value and bound are the same
(``_proved``), the steps spent by kind, and ``_failed``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.data.arrays.samples import Samples
from graphbench.data.components.generators import Labeller
from graphbench.domains.co.cut_elimination import LANES
from graphbench.domains.co.graph_checks import graphs_of
from graphbench.domains.co.problems import PROBLEMS
from graphbench.domains.co.solvers import Label
from graphbench.domains.co.solving import SOLVERS, Solver

_SHARD_GRAPHS = 32


def _label(name: str, solver: Solver, effort: Any, number: int, graph: Samples) -> dict[str, Any]:
    label = solver.solve(int(graph.num_nodes[0]), graph.edges, effort, number)
    spent = {**label.effort}
    if "batches" in spent:  # a word that PyG reserves
        spent["branches"] = LANES * spent.pop("batches")
    facts = {"value": label.value, "bound": label.bound, "proved": int(label.proved), **spent}
    return {name: label.solution, **{f"{name}_{key}": value for key, value in facts.items()}}


def _check(name: str, solver: Solver, graph: Samples, values: Mapping[str, Any]) -> list[str]:
    solution = np.asarray(values[name], np.int32)
    label = Label(int(values[f"{name}_value"]), solution, int(values[f"{name}_bound"]), "stored")
    problems = solver.check(int(graph.num_nodes[0]), graph.edges, label)
    if label.proved != bool(values[f"{name}_proved"]):
        problems.append(f"value {label.value} and bound {label.bound} do not go with {name}_proved")
    return problems


def _statistics(name: str, maximise: bool, samples: Samples) -> dict[str, NDArray[np.float64]]:
    labelled = samples.values[f"{name}_failed"] == 0
    value, bound, proved = (
        np.where(labelled, samples.values[f"{name}_{key}"], np.nan) for key in ("value", "bound", "proved")
    )
    smaller, larger = (value, bound) if maximise else (bound, value)
    ratio = np.divide(smaller, larger, out=np.ones_like(larger), where=larger != 0)
    return {f"mean_{name}_value": value, f"mean_{name}_bound": bound, "proved": proved, "value_to_bound": ratio}


def _baselines(solver: Solver, samples: Samples) -> dict[str, NDArray[np.float64]]:
    graphs = list(graphs_of(samples))
    return {
        "greedy": np.array([solver.greedy(nodes, edges).value for nodes, edges in graphs], np.float64),
        "random": np.array(
            [solver.random(nodes, edges, i).value for i, (nodes, edges) in enumerate(graphs)], np.float64
        ),
    }


def _shard_size(effort: Any) -> int:
    return _SHARD_GRAPHS


def _make(name: str) -> Labeller:
    solver = SOLVERS[name]
    return Labeller(
        name=f"co.{name}",
        version=1,
        effort=solver.effort,
        label=partial(_label, name, solver),
        check=partial(_check, name, solver),
        failed=f"{name}_failed",
        statistics=partial(_statistics, name, PROBLEMS[name].maximise),
        baselines=partial(_baselines, solver),
        shard_size=_shard_size,
        compile_jobs=solver.compile_jobs,
    )


LABELLERS: Mapping[str, Labeller] = {name: _make(name) for name in SOLVERS}
