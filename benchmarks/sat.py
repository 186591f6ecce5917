"""SAT: formulas, graphs, features, runs of solvers and scores, beside plain Python, networkx, PyG, gbdc, python-sat."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, median, pvariance
from typing import Any

from benchmarks.common import (
    FOLDER,
    Row,
    Sizes,
    main,
    ours_at_most,
    ratio_at_least,
    row_or_failure,
    scratch_folder,
)
from benchmarks.isolated import in_fresh_process
from benchmarks.sat_runs import DATASET, FAMILIES

SOLVERS = ("kissat", "cadical195", "minisat22", "glucose42", "ergo", "mergesat3")
KINDS = {"vg": "variables", "vcg": "variables and clauses", "lcg": "literals and clauses", "cg": "clauses"}
TARGET, OVERHEAD_MS = 100.0, 20.0
BATCH_SIZE = 32
_UNSOLVED, _SHORTEST = 2, 0.03  # seconds of CPU time from which a run counts for the fit
SETTINGS = {
    "time": "CPU seconds, one thread, kernels compiled before; overheads of solvers and batches: wall time",
    "generators": "the paper's ranges, without preprocessing; peer: plain Python of benchmarks/sat_peers.py and "
    "sat_peer_hashes.py, clauses as lists; both sides rename variables and reorder clauses of circuits and preimages",
    "graphs": f"one call per formula; large: 3,000 variables and 13,500 clauses of 3 literals; small: {DATASET}, test; "
    "ours also counts occurrences and shared clauses; peers: plain Python loops that fill a networkx graph, or a set "
    "of edges for PyG's Data; the same edges",
    "features": f"{DATASET}, test; peer: the 58 base features of gbdc, its own process time, the file that it reads "
    "written before by us",
    "overhead": "wall time of run_solver less the solver's own CPU time, median",
    "fit": f"solved runs of at least {_SHORTEST} s CPU time; log10 of CPU time against log10 of the modelled time, "
    "whose coefficients are frozen; the mean difference (the speed of the machine) is taken out",
    "determinism": "every solver on small formulas of seven families, in several processes at once with different "
    "PYTHONHASHSEED, beside processes that only take time; status and effort of each run against the first process",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``sat.json``."""
    for family in FAMILIES:
        yield row_or_failure(family, "us/formula", partial(_generator, family, sizes))
    with scratch_folder() as root:
        for kind in KINDS:
            yield from _graphs(kind, None, sizes)
        for kind in KINDS:
            yield from _graphs(kind, str(root), sizes)
        yield from _features(str(root), sizes)
        yield from _overheads(sizes)
        yield from _labels(str(root), sizes)
        for instances in (400, 100_000):
            what = f"closed gap of {instances:,} choices"
            yield row_or_failure(what, "us", partial(_selection, what, instances, sizes))
        for variables, suffix in ((3_000, ""), (3_000, ".xz"), (sizes(100_000, 6_000), "")):
            what = f"reading {variables:,} variables, .cnf{suffix}"
            yield row_or_failure(what, "ms", partial(_reading, what, str(root), variables, suffix, sizes))
        for view in ("", "vg", "vcg", "lcg"):
            what = f"batches of {BATCH_SIZE} formulas" + (f", view {view}" if view else ", as stored")
            yield row_or_failure(what, "batches/s", partial(_batches, what, view, str(root), sizes))
    yield row_or_failure("runs that differ", "runs", partial(_determinism, sizes))


def _generator(family: str, sizes: Sizes) -> Row:
    counts = {"ours": sizes(2_000, 20), "peer": sizes(100, 2)}
    found = in_fresh_process(
        "benchmarks.sat_runs:generators", family=family, count=counts["ours"], peer_count=counts["peer"]
    ).value
    own, theirs = (found["literals"][side] for side in ("ours", "peer"))
    per_literal = {side: round(1e9 * found["seconds"][side] / found["literals"][side], 1) for side in ("ours", "peer")}
    return Row(
        family,
        "us/formula",
        1e6 * found["seconds"]["ours"],
        1e6 * found["seconds"]["peer"],
        target=ratio_at_least(TARGET),
        n=counts,
        note=f"mean number of literals {own:,.0f}, the peer's {theirs:,.0f}",
        details={"ns per literal": per_literal},
    )


def _graphs(kind: str, root: str | None, sizes: Sizes) -> Iterator[Row]:
    which = "large formulas" if root is None else f"{DATASET}, test"
    peers = sizes(20 if root is None else 100, 2)
    what = f"graph of {KINDS[kind]}, {which}"
    try:
        found = in_fresh_process(
            "benchmarks.sat_runs:graphs",
            kind=kind,
            root=root,
            limit=sizes(100 if root is None else 400, 4),
            peer_limit=peers,
            repeats=sizes(5, 1),
        ).value
    except Exception as error:
        yield Row(what, "graphs/s", None, note=f"failed: {error}", failed=True)
        return
    for peer in ("networkx", "PyG"):
        yield Row(
            f"{what}, peer: {peer}",
            "graphs/s",
            1 / found["ours"],
            1 / found[peer],
            lower_is_better=False,
            target=ratio_at_least(TARGET),
            n={"ours": found["formulas"], "peer": peers},
        )


def _features(root: str, sizes: Sizes) -> Iterator[Row]:
    try:
        found = in_fresh_process("benchmarks.sat_runs:measured_features", root=root, limit=sizes(400, 4)).value
    except Exception as error:
        yield Row("features", "formulas/s", None, note=f"failed: {error}", failed=True)
        return
    n = {"ours": found["formulas"]}
    peers = {
        "structure": ("gbdc", "the 58 base features of gbdc"),
        "all": ("satzilla", "348 features of SATzilla 2024 (those without a time limit), on 20 formulas"),
    }
    for which, (peer, what) in peers.items():
        label = "structural" if which == "structure" else "all"
        note = f"peer: {what}" if found[peer] else f"{peer} is not installed: no peer"
        note += "; ours with probes of solvers and local searches" if which == "all" else ""
        yield Row(
            f"{found['counts'][which]} {label} features",
            "formulas/s",
            1 / found[which],
            1 / found[peer] if found[peer] else None,
            lower_is_better=False,
            n=n,
            note=note,
        )


def _overheads(sizes: Sizes) -> Iterator[Row]:
    try:
        found = in_fresh_process("benchmarks.sat_runs:solver_overheads", repeats=sizes(50, 5)).value
    except Exception as error:
        yield Row("overhead of a run", "ms", None, note=f"failed: {error}", failed=True)
        return
    for solver, own in found.items():
        for formula, seconds in own.items():
            yield Row(
                f"overhead of a run, {solver}, {formula}",
                "ms",
                1e3 * median(seconds),
                target=ours_at_most(OVERHEAD_MS),
                n={"runs": len(seconds)},
                details={"least": 1e3 * min(seconds), "largest": 1e3 * max(seconds)},
            )


def _labels(root: str, sizes: Sizes) -> Iterator[Row]:
    """Yield how many labels a CPU hour gives, and how well the modelled time fits CPU time."""
    try:
        found = in_fresh_process("benchmarks.sat_runs:label_outcomes", root=root, limit=sizes(20, 2)).value
    except Exception as error:
        yield Row("labels", "labels/h", None, note=f"failed: {error}", failed=True)
        return
    where, outcomes = found["where"], found["outcomes"]
    hours = {name: sum(row[2] for row in rows) * 1e-6 / 3600 for name, rows in outcomes.items()}
    for name, rows in outcomes.items():
        solved = mean(row[0] != _UNSOLVED for row in rows)
        note = f"{where}; {solved:.0%} solved within the cutoff"
        yield Row(f"labels of {name}", "labels/h", len(rows) / hours[name], lower_is_better=False,
                  n={"runs": len(rows)}, note=note)  # fmt: skip
    formulas = min(map(len, outcomes.values()))
    total = sum(hours[name] / len(rows) for name, rows in outcomes.items())
    yield Row("formulas with the labels of all six", "formulas/h", 1 / total, lower_is_better=False,
              n={"formulas": formulas}, note=where)  # fmt: skip
    for name, rows in outcomes.items():
        yield _calibration(name, rows, where)


def _calibration(name: str, rows: Sequence[Sequence[int]], where: str) -> Row:
    """Return how well the modelled time of a solver fits its CPU time."""
    pairs = [(row[1] * 1e-9, row[2] * 1e-6) for row in rows if row[0] != _UNSOLVED]
    found = calibration([pair for pair in pairs if pair[1] >= _SHORTEST])
    what = f"modelled time of {name} against CPU time: residual"
    if found is None:
        return Row(what, "dex", None, note=f"{where}: fewer than three solved runs of {_SHORTEST} s")
    note = f"R2 of the logarithms {found['r2']:.3f}; CPU time is {found['factor']:.2f} times the modelled time; {where}"
    return Row(what, "dex", found["residual"], n={"runs": int(found["runs"])}, note=note, details=found)


def calibration(pairs: Sequence[tuple[float, float]]) -> dict[str, float] | None:
    """Return how modelled and measured seconds agree, given pairs of them; None for fewer than three.

    Returns:
        ``residual``, the standard deviation of ``log10(measured / modelled)``, in dex; ``r2``, the share of the
        variance of ``log10(measured)`` that the model explains with its one free factor; this ``factor``, measured over
        modelled seconds (geometric mean); and the number of ``runs``.
    """
    if len(pairs) < 3:
        return None
    measured = [math.log10(cpu) for _, cpu in pairs]
    differences = [math.log10(cpu / modelled) for modelled, cpu in pairs]
    variance, left = pvariance(measured), pvariance(differences)
    return {
        "residual": math.sqrt(left),
        "r2": 1 - left / variance if variance else 0.0,
        "factor": 10 ** mean(differences),
        "runs": len(pairs),
    }


def _selection(what: str, instances: int, sizes: Sizes) -> Row:
    repeats = sizes(20, 2)
    found = in_fresh_process("benchmarks.sat_runs:selection", instances=instances, repeats=repeats).value
    n = {"ours": repeats, "peer": repeats}
    note = "six algorithms; checks of the costs, the choices and the overhead included"
    return Row(what, "us", 1e6 * found["ours"], 1e6 * found["peer"], n=n, note=note)


def _reading(what: str, folder: str, variables: int, suffix: str, sizes: Sizes) -> Row:
    repeats = sizes(10, 1)
    arguments = {"folder": folder, "variables": variables, "suffix": suffix, "repeats": repeats}
    found = in_fresh_process("benchmarks.sat_runs:reading", **arguments).value
    return Row(
        what,
        "ms",
        1e3 * found["ours"],
        1e3 * found["peer"],
        n={"ours": repeats, "peer": repeats},
        note=f"peer: CNF(from_file=...) of python-sat; {found['bytes'] / 1e6:.3g} MB",
    )


def _batches(what: str, view: str, root: str, sizes: Sizes) -> Row:
    found = in_fresh_process(
        "benchmarks.sat_runs:batches",
        view=view,
        root=root,
        limit=sizes(400, 4),
        batch_size=BATCH_SIZE,
        repeats=sizes(10, 1),
    ).value
    return Row(
        what,
        "batches/s",
        found["per_second"],
        lower_is_better=False,
        n={"ours": found["formulas"]},
        note=f"shuffled; {found['edges']:,.0f} columns of edge_index on average",
    )


def _determinism(sizes: Sizes) -> Row:
    """Return how many runs have another status or effort than in the first process."""
    processes = sizes(5, 2)
    settings = {"formulas": sizes(17, 5), "repeats": sizes(2, 1), "effort": 0.1 if sizes.quick else 0.3}
    found = _in_processes("benchmarks.sat_runs:run_outcomes", processes, settings)
    per_formula = settings["repeats"]
    expected = [found[0][i - i % per_formula] for i in range(len(found[0]))]
    differences = sum(run != wanted for runs in found for run, wanted in zip(runs, expected, strict=True))
    unsolved = mean(run[0] == "unsolved" for run in found[0])
    return Row(
        "runs of solvers whose status or effort differs",
        "runs",
        differences,
        target=ours_at_most(0),
        n={"runs": sum(map(len, found))},
        note=f"{processes} processes, {len(SOLVERS)} solvers; {unsolved:.0%} unsolved at {settings['effort']} s",
    )


def _in_processes(function: str, count: int, settings: dict[str, Any]) -> list[Any]:
    """Return what a function returns in each of some processes at once, beside as many that only take time."""
    command = [sys.executable, "-m", "benchmarks.isolated", function]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    started = []
    try:
        for seed in range(count):
            environment = {**os.environ, "PYTHONHASHSEED": str(seed + 1)}
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            started.append(subprocess.Popen(command, cwd=Path(FOLDER).parent, env=environment, **pipes))
            assert started[-1].stdin is not None
            started[-1].stdin.write(json.dumps(settings))
            started[-1].stdin.close()
            started[-1].stdin = None
        answers = [process.communicate()[0] for process in started]
    finally:
        for process in (*busy, *started):
            if process.poll() is None:
                process.kill()
                process.wait()
    if any(process.returncode for process in started):
        raise RuntimeError(f"{function} failed in one of {count} processes; its messages are above")
    return [json.loads(answer) for answer in answers]


if __name__ == "__main__":
    main("sat", "SAT", measure, SETTINGS)
