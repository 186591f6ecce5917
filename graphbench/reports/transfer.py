"""The result of a transfer plan as a table and as curves over the number of labelled samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphbench.catalog.names import card as find_card
from graphbench.evaluation.metrics.registry import METRICS
from graphbench.records.aggregates import student_half_width
from graphbench.reports.plots import COLOURS, add_legend, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from graphbench.training.transfer import Adapted

_LEVEL = 0.95
_WORDS = {"pretrained": "pretrained", "scratch": "from scratch"}
Curve = Mapping[int, Sequence[float]]  # shots -> score of every seed


def curves_of(results: Iterable[Adapted], split: str) -> dict[str, dict[str, dict[int, list[float]]]]:
    """Return dataset -> start -> shots -> scores on a split, one per seed."""
    curves: dict[str, dict[str, dict[int, list[float]]]] = {}
    for one in results:
        by_shots = curves.setdefault(one.dataset, {}).setdefault(one.start, {}).setdefault(one.shots, [])
        if split in one.scores:
            by_shots.append(one.scores[split])
    return curves


def transfer_table(results: Sequence[Adapted], split: str) -> str:
    """Return a Markdown table: a row per dataset, a column per number of samples, pretrained beside from scratch.

    An arrow at the metric says whether higher or lower scores are better.

    A cell has the mean over the seeds with half the width of Student's 95 % interval, or both scores of two seeds.
    """
    curves, metrics = curves_of(results, split), _metrics_of(results)
    shots = sorted({one.shots for one in results})
    lines = [
        "| dataset | metric | start | " + " | ".join(f"n = {count:,}" for count in shots) + " |",
        "| :-- | :-- | :-- |" + " --: |" * len(shots),
    ]
    for dataset, starts in curves.items():
        metric = metrics[dataset]
        metric += " ↑" if METRICS[metric].higher_is_better else " ↓"
        for start, by_shots in starts.items():
            cells = [_cell(by_shots.get(count, [])) for count in shots]
            lines.append(f"| {dataset} | {metric} | {_WORDS[start]} | " + " | ".join(cells) + " |")
    noted: dict[tuple[int, str], dict[str, None]] = {}
    for one in results:
        if one.note:
            noted.setdefault((one.shots, one.note), {})[one.dataset] = None
    notes = [f"- n = {count:,}, {', '.join(names)}: {note}" for (count, note), names in noted.items()]
    return "\n".join([*lines, *(["", *notes] if notes else [])]) + "\n"


def separated(results: Sequence[Adapted], split: str) -> tuple[int, int]:
    """Return in how many pairs of pretrained and scratch the two intervals do not overlap, and the number of pairs."""
    apart = pairs = 0
    for starts in curves_of(results, split).values():
        for count, first in starts.get("pretrained", {}).items():
            halves = half_width(first), half_width(second := starts.get("scratch", {}).get(count, []))
            if halves[0] is not None and halves[1] is not None:
                pairs += 1
                apart += abs(float(np.mean(first)) - float(np.mean(second))) > halves[0] + halves[1]
    return apart, pairs


def half_width(scores: Sequence[float]) -> float | None:
    """Return half the width of Student's 95 % interval of a mean; None below three scores."""
    if len(scores) < 3:
        return None
    return student_half_width(scores, _LEVEL)


def transfer_figure(results: Sequence[Adapted], split: str) -> Figure:
    """Return the curves of all datasets, one panel each: mean score over the number of samples, with intervals."""
    curves, metrics = curves_of(results, split), _metrics_of(results)
    columns = min(len(curves), 3)
    rows = -(-len(curves) // columns)
    figure, axes = new_figure(len(curves), (3.2 * columns + 2.2, 2.8 * rows), columns)
    for panel, (dataset, starts) in zip(axes, curves.items(), strict=True):
        metric = metrics[dataset]
        better = "higher" if METRICS[metric].higher_is_better else "lower"
        for colour, (start, by_shots) in zip(COLOURS, starts.items(), strict=False):
            _draw(panel, by_shots, colour, _WORDS[start])
        panel.set_xscale("symlog", linthresh=1)
        shots = sorted({count for by_shots in starts.values() for count, scores in by_shots.items() if scores})
        panel.set_xticks(shots, [f"{count:,}" for count in shots])
        panel.set_xticks([], minor=True)
        panel.set_title(dataset, fontsize=9)
        panel.set_xlabel("labelled samples")
        panel.set_ylabel(f"{metric} ({better} is better)")
    add_legend(figure, axes)
    return figure


def _metrics_of(results: Iterable[Adapted]) -> dict[str, str]:
    """Return dataset -> the metric of its scores; results of older versions leave it to the card."""
    return {one.dataset: one.metric or find_card(one.dataset).metrics.primary for one in results}


def _draw(panel: Any, by_shots: Curve, colour: str, label: str) -> None:
    points = [
        (count, float(np.mean(scores)), half_width(scores) or 0.0) for count, scores in by_shots.items() if scores
    ]
    if points:
        shots, means, halves = zip(*sorted(points), strict=True)
        style: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 3.5, "linewidth": 1.2, "label": label}
        if any(halves):
            panel.errorbar(shots, means, yerr=halves, capsize=2, **style)
        else:
            panel.plot(shots, means, **style)


def _cell(scores: Sequence[float]) -> str:
    if not scores:
        return "-"
    if len(scores) == 2:
        return f"{scores[0]:.4g}, {scores[1]:.4g}"
    half = half_width(scores)
    return f"{np.mean(scores):.4g}" + ("" if half is None else f" ± {half:.2g}")
