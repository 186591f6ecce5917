"""Counts and mean sizes of datasets: tables 1, 2, 4, 11, 14 and 15 of GraphBench."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from functools import cache
from itertools import pairwise
from typing import Any

import yaml

import graphbench
from benchmarks.claims.recipe import (
    DIFFICULTIES,
    TASKS,
    edges_drawn,
    mixture_of,
    models_of,
    nodes_of,
    printed_parameters,
)
from benchmarks.claims.registry import Outcome, check
from benchmarks.claims.running import measured, outcome_of
from graphbench.catalog.resources import baselines_dir
from graphbench.records.files import load_records

_TRAIN, _HELD_OUT = 1_000_000, 10_000  # printed: one million training graphs, 10,000 for validation and test
_DRAWN = {"train": 3000, "test": 60}  # graphs of each model of a mixture
_ERRORS = 3.0  # standard errors within which two means agree


@cache
def _printed() -> dict[str, Any]:
    path = baselines_dir() / "published" / "statistics" / "graphbench_statistics.yaml"
    rows: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))["rows"]
    return rows


def _printed_edges(task: str, difficulty: str, split: str) -> float:
    row = _printed()[f"algoreas/{task}_{difficulty}"]
    return float(row[split]["edges"]) / int(row.get("edge_directions", 1))


def _deviation(task: str, difficulty: str, split: str) -> tuple[float, float]:
    """Return how far a printed mean is from the drawn one: relative to the printed, and in standard errors."""
    centre, error, spread = edges_drawn(task, difficulty, split, _DRAWN[split])
    printed = _printed_edges(task, difficulty, split)
    graphs = _TRAIN if split == "train" else _HELD_OUT
    return centre / printed - 1, (centre - printed) / math.hypot(error, spread / math.sqrt(graphs))


@check
def mean_edges_of_recipe(split: str, datasets: Sequence[str], agree: bool) -> Outcome:
    """Printed mean numbers of edges beside those of graphs that networkx draws from tables 14 and 15.

    Args:
        split: ``train`` or ``test``.
        datasets: Names such as ``mst_medium``.
        agree: Whether all means are to agree within three standard errors; else none is to.
    """
    problems, relative, errors = [], [], []
    for name in datasets:
        task, _, difficulty = name.rpartition("_")
        off, in_errors = _deviation(task, difficulty, split)
        relative.append(abs(off))
        errors.append(abs(in_errors))
        if (abs(in_errors) <= _ERRORS) != agree:
            problems.append(f"{name}, {split}: {off:+.1%}, {in_errors:+.1f} standard errors")
    return outcome_of(
        problems,
        means=len(datasets),
        largest=max(relative),
        smallest=min(relative),
        most_errors=max(errors),
        least_errors=min(errors),
    )


@check
def counts_of_graphs(exception: str) -> Outcome:
    """1,020,000 graphs of 16, 16 and 128 (flow: 64) nodes per algorithmic reasoning dataset.

    Args:
        exception: The dataset for which 1,000,000 is printed.
    """
    problems, counted = [], 0
    for task in TASKS:
        for difficulty in DIFFICULTIES:
            card = graphbench.card(f"algoreas/{task}_{difficulty}")
            splits = {split: card.split(split) for split in ("train", "val", "test")}
            total = sum(spec.count for spec in splits.values())
            if total != _TRAIN + 2 * _HELD_OUT:
                problems.append(f"{card.id} has {total} graphs")
            for split, spec in splits.items():
                printed = _printed()[card.id][split]["nodes"]
                if not spec.parameters["nodes"] == nodes_of(task, split) == printed:
                    problems.append(f"{card.id}, {split}: {spec.parameters['nodes']} nodes, printed {printed}")
            counted += 1
    return outcome_of(problems, datasets=counted, graphs=_TRAIN + 2 * _HELD_OUT, exception=exception)


@check
def equal_means_of_other_mixtures() -> Outcome:
    """Test splits of different mixtures (table 15) for which table 2 prints the same mean to the last digit."""
    pairs = []
    for task in TASKS:
        for i, first in enumerate(DIFFICULTIES):
            for second in DIFFICULTIES[i + 1 :]:
                mixtures = [mixture_of(task, difficulty, "test") for difficulty in (first, second)]
                if mixtures[0] == mixtures[1]:
                    continue
                if _printed_edges(task, first, "test") == _printed_edges(task, second, "test"):
                    drawn = [edges_drawn(task, difficulty, "test", _DRAWN["test"]) for difficulty in (first, second)]
                    pairs.append((f"{task} {first} and {second}", drawn))
    apart = [abs(a[0] - b[0]) for _, (a, b) in pairs]
    errors = [math.hypot(a[2], b[2]) / math.sqrt(_HELD_OUT) for _, (a, b) in pairs]
    return Outcome(
        len(pairs) == 2,
        {
            "pairs": ", ".join(name.replace("_", " ") for name, _ in pairs),
            "count": len(pairs),
            "apart": apart,
            "errors": errors,
        },
        "" if len(pairs) == 2 else f"{len(pairs)} pairs",
    )


@check
def cards_hold_table_14() -> Outcome:
    """Parameters of the random graph models on the cards are those of table 14."""
    problems, compared = [], 0
    for task in TASKS:
        for split in ("train", "test"):
            on_card = graphbench.card(f"algoreas/{task}_medium").split(split).parameters["models"]
            own = {name: {k: v for k, v in p.items() if k != "sizes"} for name, p in on_card.items()}
            printed = models_of(task, split)
            compared += sum(len(p) for p in printed.values())
            if own != printed:
                problems.append(f"{task}, {split}: {own} on the card, {printed} printed")
            if on_card["sbm"]["sizes"] != [0.5, 0.5]:
                problems.append(f"{task}: blocks of {on_card['sbm']['sizes']}")
    return outcome_of(problems, parameters=compared, columns=len(printed_parameters()["models"]))


@check
def cards_hold_table_15() -> Outcome:
    """Mixtures on the cards are those of table 15."""
    problems = []
    for task in TASKS:
        for difficulty in DIFFICULTIES:
            for split in ("train", "val", "test"):
                own = graphbench.card(f"algoreas/{task}_{difficulty}").split(split).parameters["mixture"]
                printed = mixture_of(task, difficulty, split)
                if own != printed:
                    problems.append(f"{task}_{difficulty}, {split}: {own} on the card, {printed} printed")
    return outcome_of(problems, mixtures=3 * len(TASKS) * len(DIFFICULTIES))


@check
def split_shares(printed: dict[str, list[float]], tolerance: float = 0.5) -> Outcome:
    """Shares of training, validation and test samples on the cards, in percent, beside printed ones.

    Args:
        printed: Dataset -> the three printed numbers.
        tolerance: Percentage points within which they agree: half of the last printed digit.
    """
    problems, largest = [], 0.0
    for name, shares in printed.items():
        counts = [graphbench.card(name).split(split).count for split in ("train", "val", "test")]
        own = [100 * count / sum(counts) for count in counts]
        off = max(abs(a - b) for a, b in zip(own, shares, strict=True))
        largest = max(largest, off)
        if off > tolerance:
            problems.append(f"{name}: {own}, printed {shares}")
    return outcome_of(problems, datasets=len(printed), largest=largest)


@check
def sizes_on_cards(printed: dict[str, list[float]], directions: int, graphs: int) -> Outcome:
    """Mean nodes and edges measured on the training split of our datasets, beside printed means.

    Args:
        printed: Dataset -> printed mean nodes and mean edges.
        directions: How often the printed mean counts an edge.
        graphs: How many graphs the printed mean is over.
    """
    problems, relative = [], []
    for name, (nodes, edges) in printed.items():
        found = measured(name)
        for what, value in (("nodes", nodes), ("edges", edges / directions)):
            mean, deviation = found.statistics["train"][what]
            error = deviation * math.sqrt(1 / found.statistics_samples["train"] + 1 / graphs)
            relative.append(abs(mean / value - 1))
            if abs(mean - value) > _ERRORS * error:
                problems.append(f"{name}: {mean} {what}, printed {value}, standard error {error:.3g}")
    return outcome_of(problems, means=2 * len(printed), largest=max(relative))


@check
def parameters_on_cards(printed: dict[str, dict[str, Any]]) -> Outcome:
    """Generator parameters on the cards beside printed ones.

    Args:
        printed: Dataset -> parameter -> printed value.
    """
    problems, compared = [], 0
    for name, parameters in printed.items():
        own = graphbench.card(name).split("train").parameters
        for key, value in parameters.items():
            compared += 1
            if own[key] != value:
                problems.append(f"{name}: {key} is {own[key]}, printed {value}")
    return outcome_of(problems, parameters=compared, datasets=len(printed))


def _is_near(own: float, printed: float) -> bool:
    return abs(own - printed) <= max(0.02 * printed, 0.1)


@check
def degrees_of_one_definition(rows: dict[str, list[float]]) -> Outcome:
    """The column of degrees in table 2 beside edges over nodes, once and twice.

    Args:
        rows: Row -> printed nodes, edges and degree.
    """
    once = [name for name, (n, m, d) in rows.items() if _is_near(m / n, d)]
    twice = [name for name, (n, m, d) in rows.items() if _is_near(2 * m / n, d)]
    neither = [name for name in rows if name not in once and name not in twice]
    return Outcome(
        bool(once and twice and neither),
        {
            "rows": len(rows),
            "once": len(once),
            "twice": len(twice),
            "neither": len(neither),
            "neither_names": ", ".join(neither),
            "twice_names": ", ".join(twice),
        },
        f"{len(once)} once, {len(twice)} twice, {len(neither)} neither",
    )


@check
def arcs_by_devices(printed: dict[int, float]) -> Outcome:
    """Arcs that further devices add to converter graphs: at most four each, as each has two edges (section 3.2.2).

    Args:
        printed: Devices -> printed mean number of arcs.
    """
    own = {
        devices: 2 * measured(f"circuits/converters_{devices}").statistics["test"]["edges"][0] for devices in printed
    }
    sizes = sorted(printed)
    pairs = list(pairwise(sizes))
    by_rule = [4.0 * (more - fewer) for fewer, more in pairs]
    steps, our_steps = ([arcs[more] - arcs[fewer] for fewer, more in pairs] for arcs in (printed, own))
    return Outcome(
        our_steps == by_rule and all(step > rule for step, rule in zip(steps, by_rule, strict=True)),
        {"own": {f"k{k}": arcs for k, arcs in own.items()}, "by_rule": by_rule, "steps": steps},
        f"ours add {our_steps}, by the rule {by_rule}, printed {steps}",
    )


@check
def counts_on_cards(printed: dict[str, int]) -> Outcome:
    """Numbers of graphs of all splits of our datasets beside printed ones.

    Args:
        printed: Dataset -> printed number of graphs.
    """
    problems = []
    for name, count in printed.items():
        own = sum(graphbench.card(name).split(split).count for split in ("train", "val", "test"))
        if own != count:
            problems.append(f"{name}: {own}, printed {count}")
    return outcome_of(problems, datasets=len(printed))


@check
def nodes_of_converters(printed: dict[int, float]) -> Outcome:
    """Mean nodes of converter graphs by their number of devices, beside printed ones.

    Args:
        printed: Devices -> printed mean number of nodes.
    """
    own, off = {}, {}
    for devices, value in printed.items():
        own[f"k{devices}"] = measured(f"circuits/converters_{devices}").statistics["train"]["nodes"][0]
        off[f"k{devices}"] = abs(own[f"k{devices}"] / value - 1)
    ordered = list(off.values())
    return Outcome(
        ordered == sorted(ordered) and ordered[-1] > 0.1, {"own": own, "off": off}, f"{own}, printed {printed}"
    )


@check
def shares_of_days(dates: Sequence[str], printed: Sequence[float]) -> Outcome:
    """Shares of days between the printed time points of social networks, beside the printed split ratios.

    Args:
        dates: First day, time points, last day.
        printed: Printed percentages.
    """
    days = [date.fromisoformat(day) for day in dates]
    spans = [(after - before).days for before, after in pairwise(days)]
    own = [100 * span / sum(spans) for span in spans]
    records = [r for name in ("quotes", "replies", "reposts") for r in load_records(f"social/{name}")]
    return Outcome(
        max(abs(a - b) for a, b in zip(own, printed, strict=True)) > 5 and not records,
        {"shares": own, "days": sum(spans)},
        f"{own}, {len(records)} records on the archive",
    )
