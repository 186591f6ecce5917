"""Solvers of other packages behind the interface of `solvers`, for comparisons and for proofs of single graphs.

None is needed for the datasets. KaMIS and CHILS stop by the clock, and even with the same seed, two runs of
``online_mis`` or ``chils`` may differ (``ils_iterations`` of ``online_mis`` does not end it), so their labels depend on
the machine.
"""

from __future__ import annotations

import importlib
import math
import random
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import MissingDependency
from graphbench.domains.co.solvers import Edges, Label, checked_edges

_ALGORITHMS = ("redumis", "online_mis", "branch_reduce", "chils")
_ROUNDING = 1e-6


def kamis_independent_set(
    num_nodes: int, edges: Edges, algorithm: str = "redumis", seconds: float = 1.0, seed: int = 0
) -> Label:
    """Return an independent set of KaMIS (Lamm et al. 2016) or CHILS, from the package ``chszlablib``.

    Args:
        num_nodes: Number of nodes.
        edges: ``int32[m, 2]``.
        algorithm: redumis, online_mis, branch_reduce or chils. ``redumis`` takes 1 to 10 seconds for its first
            population whatever the limit; ``branch_reduce`` is exact if it ends in time, but does not say so.
        seconds: Limit of time.
        seed: Seed of the algorithm.

    Raises:
        MissingDependency: chszlablib is not installed.
        ValueError: The algorithm is unknown, or the limit of time is no number above 0.
    """
    if algorithm not in _ALGORITHMS:
        raise ValueError(f"algorithm {algorithm!r}; give one of {', '.join(_ALGORITHMS)}")
    limit = _checked_seconds(seconds)
    library = _load("chszlablib")
    edges = checked_edges(num_nodes, edges)
    graph = library.Graph(num_nodes=num_nodes)
    for u, v in edges.tolist():
        graph.add_edge(u, v)
    graph.finalize()
    options = {"num_concurrent": 1} if algorithm == "chils" else {}
    start = time.process_time()
    answer = getattr(library.IndependenceProblems, algorithm)(graph, time_limit=limit, seed=seed, **options)
    spent = time.process_time() - start
    member = np.zeros(num_nodes, np.int32)
    member[np.asarray(answer.vertices, np.int64)] = 1
    return Label(int(member.sum()), member, num_nodes, algorithm, spent)


def gcol_colouring(num_nodes: int, edges: Edges, iterations: int = 10_000, algorithm: int = 2, seed: int = 0) -> Label:
    """Return a colouring of the package ``gcol`` (Lewis 2025), after DSATUR; the same on every machine.

    Args:
        num_nodes: Number of nodes.
        edges: ``int32[m, 2]``.
        iterations: Iterations of the local search.
        algorithm: 2 for its TabuCol, 3 for its PartialCol, 1 for exact backtracking without limit.
        seed: Seed of Python's random numbers, which gcol uses; their state is put back.

    Raises:
        MissingDependency: gcol is not installed.
    """
    library, networkx = _load("gcol"), _load("networkx")
    edges = checked_edges(num_nodes, edges)
    graph = networkx.empty_graph(num_nodes)
    graph.add_edges_from(edges.tolist())
    state = random.getstate()
    random.seed(seed)
    try:
        start = time.process_time()
        answer = library.node_coloring(graph, strategy="dsatur", opt_alg=algorithm, it_limit=iterations)
        spent = time.process_time() - start
    finally:
        random.setstate(state)
    colour = np.array([answer[v] for v in range(num_nodes)], np.int32)
    value = int(colour.max()) + 1
    bound = value if algorithm == 1 else 1
    return Label(value, colour, bound, "gcol", spent, {"steps": iterations})


def scip_cut(num_nodes: int, edges: Edges, seconds: float = 60.0) -> Label:
    """Return a cut and its bound from the integer program, by SCIP (package ``pyscipopt``).

    Raises:
        MissingDependency: pyscipopt is not installed.
        ValueError: The limit of time is no number above 0.
    """
    library = _load("pyscipopt")
    edges = checked_edges(num_nodes, edges)
    model = library.Model()
    model.hideOutput()
    model.setParam("limits/time", _checked_seconds(seconds))
    side = [model.addVar(vtype="B") for _ in range(num_nodes)]
    is_cut = [model.addVar(vtype="B") for _ in range(len(edges))]
    for (u, v), cut in zip(edges.tolist(), is_cut, strict=True):
        model.addCons(cut <= side[u] + side[v])
        model.addCons(cut <= 2 - side[u] - side[v])
    model.setObjective(library.quicksum(is_cut), "maximize")
    start = time.process_time()
    model.optimize()
    spent = time.process_time() - start
    values = [model.getVal(variable) for variable in side] if model.getNSols() else [0.0] * num_nodes
    return _cut_label(edges, np.array(values), model.getDualbound(), "scip", spent)


def highs_cut(num_nodes: int, edges: Edges, seconds: float = 60.0) -> Label:
    """Return a cut and its bound from the integer program, by HiGHS (package ``highspy``).

    Raises:
        MissingDependency: highspy is not installed, or cannot be loaded any more.
        ValueError: The limit of time is no number above 0.
    """
    library = _load("highspy")
    edges = checked_edges(num_nodes, edges)
    model = library.Highs()
    model.silent()
    model.setOptionValue("time_limit", _checked_seconds(seconds))
    model.setOptionValue("threads", 1)
    side = [model.addBinary() for _ in range(num_nodes)]
    is_cut = [model.addBinary() for _ in range(len(edges))]
    for (u, v), cut in zip(edges.tolist(), is_cut, strict=True):
        model.addConstr(cut <= side[u] + side[v])
        model.addConstr(cut <= 2 - side[u] - side[v])
    start = time.process_time()
    model.maximize(sum(is_cut[1:], is_cut[0]) if is_cut else side[0])
    spent = time.process_time() - start
    values = np.array(model.getSolution().col_value[:num_nodes] or [0.0] * num_nodes)
    bound = model.getInfo().mip_dual_bound if len(edges) else 0.0
    return _cut_label(edges, values, bound, "highs", spent)


def _checked_seconds(seconds: float) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < math.inf:
        raise ValueError(f"seconds = {seconds!r}; give a number above 0, the limit of time")
    return float(seconds)


def _cut_label(edges: Edges, values: NDArray[np.float64], bound: float, solver: str, seconds: float) -> Label:
    side = (values > 0.5).astype(np.int32)
    value = int((side[edges[:, 0]] != side[edges[:, 1]]).sum())
    return Label(value, side, int(min(np.floor(bound + _ROUNDING), len(edges))), solver, seconds)


def _load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        loaded = [other for other in ("chszlablib", "ortools") if other in sys.modules]
        if name == "highspy" and loaded:
            raise MissingDependency(
                f"highspy cannot be loaded after {loaded[0]}, which brings another version of HiGHS; "
                "import highspy first, or use another process"
            ) from error
        raise MissingDependency(f"{name} is not installed; run: pip install 'graphbench[solvers]'") from error
