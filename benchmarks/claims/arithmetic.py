"""What follows from printed numbers alone: sums, means and orders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import mean
from typing import Any

import yaml

from benchmarks.claims.registry import Outcome, check
from benchmarks.claims.running import outcome_of
from graphbench.catalog.resources import baselines_dir

_HIGHER = ("r2", "spearman")


@cache
def _tables(domain: str) -> list[dict[str, Any]]:
    path = baselines_dir() / "published" / f"{domain}.yaml"
    tables: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))["tables"]
    return tables


def parts_of_table(domain: str, table: int, **wanted: Any) -> list[dict[str, Any]]:
    """Return the parts of a printed table in ``baselines/published``, those with the wanted entries."""
    return [t for t in _tables(domain) if t["table"] == table and all(t.get(k) == v for k, v in wanted.items())]


@check
def order_of_models(better: str, worse: str, everywhere: bool = False) -> Outcome:
    """How often one model is better than another in table 3, by metric.

    Args:
        better: The model that is said to be better everywhere.
        worse: The other one.
        everywhere: Whether it is better in all cells; else in some, but not in all.
    """
    wins: dict[str, int] = {}
    counts: dict[str, int] = {}
    close = 0
    for table in parts_of_table("social", 3):
        metric = table["metric"].split("_")[0]
        for models in table["scores"].values():
            (first, deviation), (second, other) = models[better], models[worse]
            is_better = first > second if metric in _HIGHER else first < second
            counts[metric] = counts.get(metric, 0) + 1
            wins[metric] = wins.get(metric, 0) + is_better
            close += not is_better and abs(first - second) <= deviation + other
    cells, won = sum(counts.values()), sum(wins.values())
    return Outcome(
        won == cells if everywhere else 0 < won < cells,
        {"won": won, "cells": cells, "wins": wins, "counts": counts, "close": close},
        f"{won} of {cells}",
    )


@check
def totals(parts: Mapping[str, float], printed: float, weights: Mapping[str, float] | None = None) -> Outcome:
    """Whether parts add up to a printed total, or have it as their weighted mean, within its last digit.

    Args:
        parts: The parts.
        printed: The printed total, or mean if there are weights.
        weights: Weights of the parts.
    """
    if weights is None:
        own = float(sum(parts.values()))
    else:
        own = sum(parts[name] * weights[name] for name in parts) / sum(weights.values())
    digits = len(str(printed).partition(".")[2]) if printed != int(printed) else 0
    agree = abs(own - printed) <= 0.5 * 10**-digits + 1e-9 * abs(printed)
    return Outcome(agree, {"own": own, "printed": printed, "parts": len(parts)}, f"{own}, printed {printed}")


@check
def reduction(before: Sequence[float], after: Sequence[float], printed_percent: float) -> Outcome:
    """A printed reduction in percent, beside the printed means, rounded to two digits, and their deviations.

    Args:
        before: Printed mean and deviation.
        after: The same after the change.
        printed_percent: The printed reduction.
    """
    rounding = 0.005
    least = 100 * (1 - (after[0] + rounding) / (before[0] - rounding))
    most = 100 * (1 - (after[0] - rounding) / (before[0] + rounding))
    gap = before[0] - after[0]
    return Outcome(
        least <= printed_percent <= most and gap < before[1],
        {"percent": 100 * gap / before[0], "gap": gap, "deviation": before[1]},
        f"{least:.2f} to {most:.2f} %",
    )


@check
def errors_sum_to_all() -> Outcome:
    """Whether table 19's row "all variables" is the sum of GT's errors of the eleven variables over all levels.

    Section 3.4.1 defines it as the mean over all pairs of variable and level; one of the atmosphere has 13 levels.
    """
    errors = {t["metric"]: t["scores"]["era5_64x32"]["gt"][0] for t in parts_of_table("weather", 19)}
    parts = {k: v for k, v in errors.items() if k != "mse" and not k.rsplit("_", 1)[1].isdigit()}
    own = sum(parts.values())
    levels = {name: 13 if f"{name}_500" in errors else 1 for name in parts}
    pairs = sum(levels.values())
    mean_of_pairs = sum(parts[name] * levels[name] for name in parts) / pairs
    return Outcome(
        len(parts) == 11 and pairs == 83 and abs(own / errors["mse"] - 1) <= 1e-4,
        {"sum": own, "printed": errors["mse"], "variables": len(parts), "mean": mean_of_pairs, "pairs": pairs},
        f"{own}, printed {errors['mse']}",
    )


@check
def sat_graphs_of_one_formula(nodes: Mapping[str, float], edges: Mapping[str, float]) -> Outcome:
    """Whether printed means contradict that the graphs of a formula share its variables, clauses and literals.

    With v variables, c clauses and l literals in clauses, VG has v nodes, VCG v + c nodes and l edges, and LCG 2v + c
    nodes and l edges, or l + v where the two literals of a variable are joined.

    Args:
        nodes: Printed mean nodes of ``vg``, ``vcg`` and ``lcg``.
        edges: Printed mean edges of ``vcg`` and ``lcg``.
    """
    own, rounding = nodes["vg"] + nodes["vcg"], 0.005
    apart = abs(own - nodes["lcg"]) > 3 * rounding
    return Outcome(
        apart and edges["vcg"] - edges["lcg"] > 2 * rounding,
        {"nodes": own, "printed": nodes["lcg"], "more_edges": edges["vcg"] - edges["lcg"]},
        f"{own}, printed {nodes['lcg']}",
    )


@check
def better_by_task(gt: Sequence[str], gin: Sequence[str]) -> Outcome:
    """In how many printed cells of tables 16 and 17 the model is better that the text names.

    Args:
        gt: Tasks on which GT is said to be better.
        gin: Tasks on which GIN is said to be better.
    """
    held, others = 0, []
    tables = [*parts_of_table("graphbench", 16, split="test"), *parts_of_table("graphbench", 17, split="test")]
    for table in tables:
        sign = 1 if table["metric"] == "f1" else -1
        for dataset, models in table["scores"].items():
            task = dataset.rpartition("_")[0]
            if task not in (*gt, *gin):
                continue
            first, second = (models[name][0] for name in (("gt", "gin") if task in gt else ("gin", "gt")))
            held += sign * first > sign * second
            if sign * first <= sign * second:
                others.append(dataset.replace("_", " ") + (" (a tie)" if first == second else ""))
    return Outcome(
        bool(held and others),
        {"held": held, "cells": held + len(others), "others": ", ".join(others)},
        "the text holds in all cells",
    )


@check
def drop_by_noise(model: str, kind: str) -> Outcome:
    """Printed accuracy of a model that is trained without noise, tested without and with one kind of noise (table 2).

    Args:
        model: The model.
        kind: The kind of noise.
    """
    (before,) = (part["scores"]["rob_clean"][model] for part in parts_of_table("clutrr", 2, split="clean"))
    (after,) = (part["scores"]["rob_clean"][model] for part in parts_of_table("clutrr", 2, split=kind))
    drop = before[0] - after[0]
    return Outcome(drop >= max(before[1], after[1]), {"before": before, "after": after, "drop": drop}, f"{drop:.2f}")


@check
def units_within_table_19() -> Outcome:
    """Ratios of the error of persistence to those of GT and of GraphCast at 500 hPa in table 19, by variable."""
    columns = {t["metric"]: t["scores"]["era5_64x32"] for t in parts_of_table("weather", 19)}
    names = ("temperature", "u_component_of_wind", "geopotential", "specific_humidity", "vertical_velocity")
    cells = {name: {model: cell[0] for model, cell in columns[f"mse_{name}_500"].items()} for name in names}
    ratio = {name: cell["persistence"] / cell["gt"] for name, cell in cells.items()}
    graphcast = [cell["persistence"] / cell["graphcast"] for cell in cells.values()]
    usual = [ratio[name] for name in names[:3]]
    return Outcome(
        ratio["vertical_velocity"] > 50 * max(usual)
        and ratio["specific_humidity"] < min(usual) / 50
        and max(graphcast) < 10 * min(graphcast),
        {
            **ratio,
            "least_usual": min(usual),
            "most_usual": max(usual),
            "least_graphcast": min(graphcast),
            "most_graphcast": max(graphcast),
        },
        f"{ratio}",
    )


@check
def class_averages(printed: Mapping[str, Mapping[str, float]]) -> Outcome:
    """CLRS's averages over classes (table 1) beside means of its table 2.

    Args:
        printed: Class -> model -> printed average in percent.
    """
    from graphbench.catalog.names import list_datasets
    from graphbench.records.published import collections

    (table,) = parts_of_table("clrs", 2)
    classes = collections()["clrs30"].classes
    problems, largest = [], 0.0
    for name, models in printed.items():
        members = [id_.split("/")[1] for id_ in list_datasets(classes[name])]
        for model, value in models.items():
            own = 100 * mean(table["scores"][member][model][0] for member in members)
            largest = max(largest, abs(own - value))
            if abs(own - value) > 0.011:
                problems.append(f"{name}, {model}: {own:.2f}, printed {value}")
    return outcome_of(problems, averages=sum(map(len, printed.values())), largest=largest)


@check
def overall_averages(table: int, printed: Mapping[str, float]) -> Outcome:
    """CLRS's overall averages beside the means over the 30 algorithms of a table.

    Args:
        table: Table 2 or 4.
        printed: Model -> printed average in percent.
    """
    (found,) = parts_of_table("clrs", table)
    own = {model: 100 * mean(row[model][0] for row in found["scores"].values()) for model in printed}
    problems = [f"{m}: {own[m]:.2f}, printed {v}" for m, v in printed.items() if abs(own[m] - v) > 0.011]
    return outcome_of(problems, averages=len(printed), algorithms=len(found["scores"]))


@check
def averages_of_averages(classes: Mapping[str, Sequence[float]], printed: Mapping[str, float]) -> Outcome:
    """CLRS's overall averages of table 1 beside the means of its eight class averages, and those of table 2.

    Args:
        classes: Model -> its eight printed class averages.
        printed: Model -> printed overall average of table 1.
    """
    (table,) = parts_of_table("clrs", 2)
    problems, apart = [], []
    for model, value in printed.items():
        over_classes = mean(classes[model])
        over_algorithms = 100 * mean(row[model][0] for row in table["scores"].values())
        apart.append(abs(over_algorithms - value))
        if abs(over_classes - value) > 0.011:
            problems.append(f"{model}: {over_classes:.2f}, printed {value}")
    return outcome_of(problems, models=len(printed), apart=max(apart))


@check
def wins_ties_losses(printed: Mapping[str, str]) -> Outcome:
    """CLRS's win/tie/loss counts from table 2 by the rule of appendix C.

    A model outperforms another if its mean less its deviation exceeds the other's mean. It wins if it outperforms all
    others, else loses if another outperforms it, else is tied.

    Args:
        printed: Model -> printed counts, e.g. ``8/3/19``.
    """
    (table,) = parts_of_table("clrs", 2)
    counts = {model: [0, 0, 0] for model in printed}
    for row in table["scores"].values():
        for model in printed:
            others = [other for other in printed if other != model]
            wins = all(row[model][0] - row[model][1] > row[other][0] for other in others)
            loses = any(row[other][0] - row[other][1] > row[model][0] for other in others)
            counts[model][0 if wins else 2 if loses else 1] += 1
    own = {model: "/".join(map(str, found)) for model, found in counts.items()}
    problems = [f"{m}: {own[m]}, printed {v}" for m, v in printed.items() if own[m] != v]
    return outcome_of(problems, models=len(printed), own=", ".join(own.values()))


@check
def averages_of_robustness(table: int, printed: Mapping[str, float], differing: Sequence[str]) -> Outcome:
    """CLUTRR's averages over the cells of a table, beside the printed ones.

    Args:
        table: Table 2, 3 or 4.
        printed: Model -> printed average.
        differing: Models whose printed average does not follow from the printed cells.
    """
    own = {model: mean(_robustness(table, model)) for model in printed}
    off = [m for m, v in printed.items() if abs(own[m] - v) > 0.01 + 1e-9]
    return Outcome(
        sorted(off) == sorted(differing),
        {"agree": len(printed) - len(off), "models": len(printed), "own": {m: own[m] for m in off or printed}},
        f"{off} differ",
    )


def _robustness(table: int, model: str) -> list[float]:
    found = []
    for part in parts_of_table("clutrr", table):
        for dataset, models in part["scores"].items():
            if not dataset.startswith("paper_"):
                found.append(models[model][0])
    return found


@check
def deviations_too_large_for_errors(runs: int = 10) -> Outcome:
    """Cells of CLUTRR's tables 2 to 4 whose number behind the mean cannot be a standard error over ten runs.

    Accuracies lie in [0, 1]. With mean m, the sample deviation of n of them is at most sqrt(n m (1 - m) / (n - 1)), so
    the standard error is at most sqrt(m (1 - m) / (n - 1)).

    Args:
        runs: Number of runs.
    """
    impossible, cells = [], 0
    for table in (2, 3, 4):
        for part in parts_of_table("clutrr", table):
            for dataset, models in part["scores"].items():
                if dataset.startswith("paper_"):
                    continue
                for centre, printed in models.values():
                    cells += 1
                    # 0.005: both numbers are rounded to two digits
                    bound = max(
                        math.sqrt(m * (1 - m) / (runs - 1))
                        for m in (centre, max(0, centre - 0.005), centre + 0.005)
                        if m <= 1
                    )
                    if printed - 0.005 > bound:
                        impossible.append((centre, printed, bound))
    example = max(impossible, key=lambda cell: cell[1] - cell[2], default=(0, 0, 0))
    return Outcome(
        bool(impossible),
        {"impossible": len(impossible), "cells": cells, "mean": example[0], "printed": example[1], "bound": example[2]},
        "all could be standard errors",
    )
