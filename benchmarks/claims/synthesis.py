"""Circuits that ABC makes of random functions: tables 4 and 5 and the AIG row of table 2."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import mean, median, stdev
from typing import Any

import numpy as np

from benchmarks.claims.registry import Outcome, check
from benchmarks.claims.running import outcome_of
from graphbench.records.published import published

_SHAPES = [(n, m) for n in (6, 7, 8) for m in (1, 2)]
_ROUNDED = 0.011
_ERRORS = 3.0
_NEAR = 0.02


def _functions(count: int) -> list[tuple[tuple[int, int], Any]]:
    """Return uniformly random truth tables, so many of every number of inputs and outputs."""
    source = np.random.default_rng(2026)
    return [((n, m), source.integers(0, 2, (m, 2**n), np.uint8)) for _ in range(count) for n, m in _SHAPES]


@check
def sizes_of_reference_circuits(printed: Mapping[str, float], count: int = 150) -> Outcome:
    """Nodes and edges of reference circuits of random functions, near printed means but not within their error.

    Nodes are inputs, ANDs and outputs; edges two of every AND and one of every output. Functions of every shape (number
    of inputs and outputs) are equally many, so the standard error is that of a stratified sample. The printed means are
    over 1.2 million circuits.

    Args:
        printed: ``nodes`` and ``edges`` as printed.
        count: Functions of each shape.
    """
    from graphbench.domains.chip_design.synthesis import synthesise

    functions = _functions(count)
    circuits = synthesise([table for _, table in functions], "reference")
    nodes = [n + m + circuit.num_ands for ((n, m), _), circuit in zip(functions, circuits, strict=True)]
    edges = [2 * circuit.num_ands + m for ((_, m), _), circuit in zip(functions, circuits, strict=True)]
    by_shape = {shape: [n for n, (own, _) in zip(nodes, functions, strict=True) if own == shape] for shape in _SHAPES}
    error = math.sqrt(sum(stdev(own) ** 2 / len(own) for own in by_shape.values())) / len(by_shape)
    apart, apart_edges = mean(nodes) / printed["nodes"] - 1, mean(edges) / printed["edges"] - 1
    middle, shapes = median(nodes), sorted(mean(own) for own in by_shape.values())
    return Outcome(
        abs(mean(nodes) - printed["nodes"]) > _ERRORS * error and max(abs(apart), abs(apart_edges)) < _NEAR,
        {
            "circuits": len(nodes),
            "nodes": mean(nodes),
            "edges": mean(edges),
            "apart": apart,
            "apart_edges": apart_edges,
            "error": error,
            "median": middle,
            "max": max(nodes),
            "below": max(own for own in shapes if own <= middle),
            "above": min(own for own in shapes if own > middle),
        },
        f"{mean(nodes):.1f} ± {error:.2f} nodes, {mean(edges):.1f} edges",
    )


@check
def overall_of_scripts() -> Outcome:
    """The last column of table 5 beside the means of its other columns."""
    scores: dict[str, dict[str, float]] = {}
    for score in published("chip_design/aig:generate"):
        scores.setdefault(score.model, {})[score.split] = score.value or 0.0
    problems, largest = [], 0.0
    for script, columns in scores.items():
        own = mean(columns[f"test_n{n}m{m}"] for n, m in _SHAPES)
        largest = max(largest, abs(own - columns["test"]))
        if abs(own - columns["test"]) > _ROUNDED:
            problems.append(f"{script}: {own:.2f}, printed {columns['test']}")
    return outcome_of(problems, rows=len(scores), largest=largest)


@check
def scores_of_scripts(scripts: Sequence[str], agree: bool, cells: Sequence[str] = (), count: int = 120) -> Outcome:
    """Scores of ABC's scripts by numbers of inputs and outputs beside table 5.

    The score of a circuit is the number of ANDs of the reference circuit over its own, in percent. A row agrees if all
    its numbers are within three standard errors of ours.

    Args:
        scripts: The scripts.
        agree: Whether all rows are to agree; else none is to.
        cells: Columns, such as ``test_n6m1``; all seven by default.
        count: Functions of each number of inputs and outputs.
    """
    from graphbench.domains.chip_design.synthesis import synthesise

    functions = _functions(count)
    tables = [table for _, table in functions]
    reference = [circuit.num_ands for circuit in synthesise(tables, "reference")]
    problems, scores, worst = [], {}, {}
    for script in scripts:
        own = [100 * a / c.num_ands for a, c in zip(reference, synthesise(tables, script), strict=True)]
        columns = {
            f"test_n{n}m{m}": [v for (shape, _), v in zip(functions, own, strict=True) if shape == (n, m)]
            for n, m in _SHAPES
        }
        columns["test"] = own
        chosen = cells or list(columns)
        printed = {s.split: s.value for s in published("chip_design/aig:generate") if s.model == script}
        off = {name: mean(columns[name]) - (printed[name] or 0.0) for name in chosen}
        errors = {name: stdev(columns[name]) / math.sqrt(len(columns[name])) for name in chosen}
        inside = all(abs(off[name]) <= _ERRORS * errors[name] for name in chosen)
        scores[script] = mean(columns[chosen[-1]])
        worst[script] = max(abs(value) for value in off.values())
        if inside != agree:
            problems.append(f"{script}: { ({name: round(off[name] / errors[name], 1) for name in off}) } errors")
    return outcome_of(problems, functions=len(functions), **scores, worst=max(worst.values()))
