"""What the SAT benchmark runs in fresh processes; :mod:`benchmarks.sat` makes rows of it."""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

DATASET, SPLIT = "sat/small", "test"
FAMILIES: dict[str, dict[str, Any]] = {  # GraphBench, section 3.3.1
    "community attachment": {
        "family": "community", "variables": (1000, 3000), "communities": (5, 100), "ratio": (3.7, 4.5),
        "modularity": (0.3, 0.9),
    },
    "fuzz circuits, t = 2": {
        "family": "fuzz", "inputs": (50, 150), "references": (2, 2), "clause_length": (3, 8), "clause_ratio": (0.3, 1.0)
    },
    **{
        f"preimages of {name.upper()}": {
            "family": "preimage", "hash": name, "rounds": (16, 30), "fixed_bits": (0, 384)
        }
        for name in ("md4", "sha1", "sha256")
    },
}  # fmt: skip
MIXED: tuple[dict[str, Any], ...] = (  # formulas whose runs are repeated
    {"family": "community", "variables": (200, 300), "communities": (5, 20), "ratio": (4.0, 4.3), "modularity": (0, 1)},
    {"family": "fuzz", "inputs": (50, 60), "references": (1, 1), "clause_length": (3, 4), "clause_ratio": (0.8, 1.2)},
    {"family": "preimage", "hash": "md4", "rounds": (16, 17), "fixed_bits": (440, 480)},
    {"family": "uniform", "variables": (120, 180), "ratio": (4.2, 4.3)},
    {"family": "parity", "variables": (30, 40), "ratio": (1.01, 1.1), "width": (3, 3)},
    {"family": "coloring", "nodes": (60, 100), "ratio": (2.2, 2.3), "colors": 3},
    {"family": "pigeonhole", "holes": (6, 7)},
)
_EASY = {"family": "uniform", "variables": (3000, 3000), "ratio": (3.0, 3.0)}
_LARGE = {"family": "uniform", "variables": (3000, 3000), "ratio": (4.5, 4.5)}


def drawn(parameters: dict[str, Any], index: int) -> Any:
    """Return a formula of a family, not preprocessed."""
    import numpy as np
    from pydantic import TypeAdapter

    from graphbench.domains.sat.instances import FormulaParameters, draw_formula

    return draw_formula(TypeAdapter(FormulaParameters).validate_python(parameters), np.uint64(1), index, 0)


def plain_formula(parameters: dict[str, Any], rng: random.Random) -> Any:
    """Return a formula of a family, drawn by the peer."""
    from benchmarks import sat_peer_hashes, sat_peers

    own = {name: value for name, value in parameters.items() if name != "family"}
    if parameters["family"] == "preimage":
        return sat_peer_hashes.preimage(rng, own["hash"], own["rounds"], own["fixed_bits"])
    return getattr(sat_peers, parameters["family"])(rng, **own)


def _cpu_seconds(function: Callable[[Any], Any], arguments: Sequence[Any]) -> float:
    """Return the mean CPU seconds of a call, after one call that compiles and loads."""
    function(arguments[0])
    started = _cpu_clock()
    for argument in arguments:
        function(argument)
    return (_cpu_clock() - started) / len(arguments)


def _cpu_clock() -> float:
    """Return the CPU seconds of this process and of the ended processes that it started."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in used)


def generators(family: str, count: int, peer_count: int) -> dict[str, Any]:
    """Return CPU seconds per formula and the mean number of literals, ours and the peer's."""
    import numpy as np
    from pydantic import TypeAdapter

    from graphbench.domains.sat.instances import FormulaParameters, draw_formula

    parameters = TypeAdapter(FormulaParameters).validate_python(FAMILIES[family])
    key, sizes = np.uint64(1), {"ours": 0, "peer": 0}

    def ours(index: int) -> None:
        sizes["ours"] += len(draw_formula(parameters, key, index, 0).literals)

    def theirs(index: int) -> None:
        sizes["peer"] += sum(map(len, plain_formula(FAMILIES[family], random.Random(index))[1]))

    seconds = {"ours": _cpu_seconds(ours, range(count)), "peer": _cpu_seconds(theirs, range(peer_count))}
    counts = {"ours": count, "peer": peer_count}
    return {"seconds": seconds, "literals": {side: sizes[side] / (counts[side] + 1) for side in sizes}}


def dataset_formulas(root: str, limit: int | None) -> list[Any]:
    """Return the formulas of the test split; the split is drawn if the folder does not hold it."""
    from graphbench import Loader, card
    from graphbench.data.store.shards import stored_samples
    from graphbench.domains.sat.formulas import formula_of

    dataset = Loader(DATASET, root=root, limit=limit, progress=False, unlabelled=SPLIT).load(SPLIT)[SPLIT]
    samples = stored_samples(card(DATASET).graphs, dataset.path)
    return [formula_of(samples, i) for i in range(len(samples))]


def graphs(kind: str, root: str | None, limit: int, peer_limit: int, repeats: int) -> dict[str, Any]:
    """Return CPU seconds per graph: ours, networkx and PyG; all must have the same edges."""
    import torch

    from benchmarks.sat_peers import networkx_graph, pyg_graph
    from graphbench.domains.sat.graphs import graph

    torch.set_num_threads(1)
    formulas = [drawn(_LARGE, i) for i in range(limit)] if root is None else dataset_formulas(root, limit)
    plain = [(cnf.num_variables, list(cnf.clauses())) for cnf in formulas[:peer_limit]]
    for cnf, formula in zip(formulas, plain[:3], strict=False):
        edges = set(map(tuple, graph(cnf, kind).edges.tolist()))
        theirs = {(min(edge), max(edge)) for edge in networkx_graph(formula, kind).edges}
        both = set(map(tuple, pyg_graph(formula, kind).edge_index.t().tolist()))
        assert edges == theirs and both == edges | {(b, a) for a, b in edges}, f"{kind}: the edges differ"
    return {
        "formulas": len(formulas),
        "ours": _cpu_seconds(lambda cnf: graph(cnf, kind), formulas * repeats),
        "networkx": _cpu_seconds(lambda formula: networkx_graph(formula, kind), plain),
        "PyG": _cpu_seconds(lambda formula: pyg_graph(formula, kind), plain),
    }


def measured_features(root: str, limit: int) -> dict[str, Any]:
    """Return CPU seconds per formula of the features; of those of gbdc and SATzilla None where it is not installed."""
    from importlib.util import find_spec

    from graphbench.domains.sat.feature_base import base_features
    from graphbench.domains.sat.feature_groups import FEATURES, STRUCTURAL_GROUPS, features
    from graphbench.domains.sat.feature_satzilla import satzilla_features

    formulas = dataset_formulas(root, limit)
    return {
        "formulas": len(formulas),
        "counts": {"structure": len(features(formulas[0], STRUCTURAL_GROUPS)), "all": len(FEATURES)},
        "structure": _cpu_seconds(lambda cnf: features(cnf, STRUCTURAL_GROUPS), formulas),
        "all": _cpu_seconds(features, formulas),
        "gbdc": _cpu_seconds(base_features, formulas) if find_spec("gbdc") else None,
        "satzilla": _cpu_seconds(satzilla_features, formulas[:20]) if find_spec("satzilla_features") else None,
    }


def solver_overheads(repeats: int) -> dict[str, dict[str, list[float]]]:
    """Return solver -> formula -> for each run the seconds of wall time beyond the solver's own CPU time."""
    from graphbench.domains.sat import SOLVERS, Cnf, run_solver

    formulas = {"one clause": Cnf.from_clauses([[1, 2]]), "3,000 variables, 9,000 clauses": drawn(_EASY, 0)}
    found: dict[str, dict[str, list[float]]] = {name: {} for name in SOLVERS}
    for name, own in found.items():
        for which, cnf in formulas.items():
            own[which] = []
            run_solver(name, cnf)
            for _ in range(repeats):
                started = time.perf_counter()
                run = run_solver(name, cnf)
                own[which].append(time.perf_counter() - started - run.cpu_seconds)
                assert run.status == "sat"
    return found


def label_outcomes(root: str, limit: int) -> dict[str, Any]:
    """Return solver -> outcomes, rows of status, nanoseconds of effort and microseconds of CPU time, and where from.

    Recorded tables of the dataset are taken if there are any; else the first formulas of the test split are labelled.
    """
    from graphbench import card
    from graphbench.data.build.label_tables import find_tables
    from graphbench.data.components.domain import find
    from graphbench.domains.sat.solvers import SOLVERS, run_solver

    chosen = card(f"{DATASET}:select")
    found: dict[str, list[Any]] = {}
    efforts = {}
    for labeller in (find("labeller", name) for name in chosen.labellers):
        if labeller.recorded is not None:
            effort = efforts[labeller.name.partition(".")[2]] = labeller.parse(chosen, SPLIT)
            rows = {key: row for table in find_tables(labeller, effort, None) for key, row in table.rows.items()}
            found[labeller.name.partition(".")[2]] = list(rows.values())
    if all(found.values()):
        return {"outcomes": found, "where": "recorded labels"}
    formulas = dataset_formulas(root, limit)
    for name in SOLVERS:
        runs = [run_solver(name, cnf, efforts[name].cutoff) for cnf in formulas]
        found[name] = [
            (("sat", "unsat", "unsolved").index(run.status), round(run.effort * 1e9), round(run.cpu_seconds * 1e6))
            for run in runs
        ]
    return {"outcomes": found, "where": f"the first {len(formulas)} formulas of the test split, labelled in this run"}


def selection(instances: int, repeats: int) -> dict[str, Any]:
    """Return CPU seconds of scoring the choices of one algorithm out of six, ours and the peer's, and both scores."""
    import numpy as np

    from benchmarks.sat_peers import closed_gap as plain_closed_gap
    from graphbench.tasks.select import closed_gap

    rng = np.random.default_rng(0)
    costs, choices = 10 ** rng.uniform(-2, 1, (instances, 6)), rng.integers(0, 6, instances)
    overhead, train_costs = rng.uniform(0, 0.1, instances), costs.mean(axis=0) * rng.uniform(0.9, 1.1, 6)
    plain = (costs.tolist(), choices.tolist(), train_costs.tolist(), overhead.tolist())
    scores = closed_gap(costs, choices, train_costs, overhead), plain_closed_gap(*plain)
    assert abs(scores[0] - scores[1]) < 1e-9, f"closed gaps differ: {scores}"
    runs: Iterable[int] = range(repeats)
    return {
        "ours": _cpu_seconds(lambda _: closed_gap(costs, choices, train_costs, overhead), list(runs)),
        "peer": _cpu_seconds(lambda _: plain_closed_gap(*plain), list(runs)),
        "score": scores[0],
    }


def reading(folder: str, variables: int, suffix: str, repeats: int) -> dict[str, Any]:
    """Return CPU seconds of reading a file of 4.5 clauses per variable, ours and python-sat's, and its bytes."""
    from pysat.formula import CNF

    from graphbench.domains.sat import read_dimacs

    path = Path(folder) / f"formula{variables}.cnf{suffix}"
    drawn({**_LARGE, "variables": (variables, variables)}, 0).to_dimacs(path)
    own, theirs = read_dimacs(path), CNF(from_file=str(path))
    assert theirs.nv == own.num_variables and theirs.clauses == list(own.clauses())
    paths = [str(path)] * repeats
    return {
        "bytes": path.stat().st_size,
        "ours": _cpu_seconds(read_dimacs, paths),
        "peer": _cpu_seconds(lambda name: CNF(from_file=name), paths),
    }


def run_outcomes(formulas: int, repeats: int, effort: float) -> list[list[Any]]:
    """Return status and nanoseconds of effort of every run: of each formula, each solver, each repeat."""
    from graphbench.domains.sat import SOLVERS, run_solver

    found = []
    for i in range(formulas):
        cnf = drawn(MIXED[i % len(MIXED)], i)
        for name in SOLVERS:
            for _ in range(repeats):
                run = run_solver(name, cnf, effort)
                found.append([run.status, round(run.effort * 1e9)])
    return found


def batches(view: str, root: str, limit: int, batch_size: int, repeats: int) -> dict[str, Any]:
    """Return batches per second of wall time, and the mean number of columns of ``edge_index``."""
    import torch

    from graphbench import Loader

    torch.set_num_threads(1)
    name = f"{DATASET}:kissat@{view}" if view else f"{DATASET}:kissat"
    dataset = Loader(name, root=root, limit=limit, progress=False, unlabelled=SPLIT).load(SPLIT)[SPLIT]
    edges = [batch.edge_index.shape[1] for batch in dataset.batches(batch_size, shuffle=True)]  # compiles
    started = time.perf_counter()
    for epoch in range(repeats):
        for _ in dataset.batches(batch_size, shuffle=True, epoch=epoch):
            pass
    seconds = time.perf_counter() - started
    return {"per_second": repeats * len(edges) / seconds, "edges": sum(edges) / len(edges), "formulas": len(dataset)}
