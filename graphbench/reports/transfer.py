"""The result of a transfer plan as a table and as curves over the number of labelled samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
_MOST, _DARK = 0.5, 0.3  # changes at which the colours of a matrix end, and from which their text is white
Curve = Mapping[int, Sequence[float]]  # shots -> score of every seed


@dataclass(frozen=True, slots=True)
class Gain:
    """What pretraining changes.

    Attributes:
        change: Change of the mean score, as a share of the score from scratch; positive where it is better.
        apart: Whether the intervals of the two means do not overlap.
    """

    change: float
    apart: bool


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


def gains(results: Iterable[Adapted], split: str) -> dict[str, dict[int, Gain]]:
    """Return dataset -> shots -> what the pretraining changes, where both starts have scores."""
    results = list(results)
    metrics = _metrics_of(results)
    by_dataset: dict[str, dict[int, Gain]] = {}
    for dataset, starts in curves_of(results, split).items():
        sign = 1 if METRICS[metrics[dataset]].higher_is_better else -1
        for count, first in sorted(starts.get("pretrained", {}).items()):
            second = starts.get("scratch", {}).get(count, [])
            if first and second and np.mean(second):
                change = sign * (np.mean(first) - np.mean(second)) / abs(np.mean(second))
                by_dataset.setdefault(dataset, {})[count] = Gain(float(change), bool(_are_apart(first, second)))
    return by_dataset


def transfer_matrix(results: Sequence[Adapted], split: str) -> Figure:
    """Return the gains of all datasets as a matrix: a row per dataset, a column per number of samples.

    A cell has the change of the mean score by pretraining, in per cent of the score from scratch and positive where it
    is better; a frame says that the two 95 % intervals do not overlap. Colours end at 50 %.
    """
    from matplotlib.patches import Rectangle

    cells = gains(results, split)
    shots = sorted({count for by_shots in cells.values() for count in by_shots})
    values = np.full((len(cells), len(shots)), np.nan)
    figure, (axes,) = new_figure(1, (1.1 * len(shots) + 4.0, 0.32 * len(cells) + 1.2), 1)
    for row, by_shots in enumerate(cells.values()):
        for count, gain in by_shots.items():
            column = shots.index(count)
            values[row, column] = gain.change
            dark = abs(gain.change) > _DARK
            percent = round(100 * gain.change)
            words = f"{percent:+d} %".replace("-", "\N{MINUS SIGN}") if percent else "0 %"
            axes.text(column, row, words, ha="center", va="center", fontsize=8, color="white" if dark else "black")
            if gain.apart:
                frame: dict[str, Any] = {"fill": False, "edgecolor": "#e69f00", "linewidth": 2.0, "zorder": 3}
                axes.add_patch(Rectangle((column - 0.47, row - 0.45), 0.94, 0.9, **frame))
    axes.grid(visible=False)
    places = [np.arange(size + 1) - 0.5 for size in reversed(values.shape)]
    axes.pcolormesh(*places, values, cmap="RdBu", vmin=-_MOST, vmax=_MOST, edgecolors="white", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xticks(range(len(shots)), [f"n = {count:,}" for count in shots])
    axes.set_yticks(range(len(cells)), list(cells))
    axes.tick_params(length=0, labelsize=8)
    return figure


def separated(results: Sequence[Adapted], split: str) -> tuple[int, int]:
    """Return in how many pairs of pretrained and scratch the two intervals do not overlap, and the number of pairs."""
    apart = pairs = 0
    for starts in curves_of(results, split).values():
        for count, first in starts.get("pretrained", {}).items():
            second = starts.get("scratch", {}).get(count, [])
            are_apart = _are_apart(first, second)
            pairs += are_apart is not None
            apart += bool(are_apart)
    return apart, pairs


def _are_apart(first: Sequence[float], second: Sequence[float]) -> bool | None:
    """Return whether the intervals of two means do not overlap; None below three scores, which have no interval."""
    halves = half_width(first), half_width(second)
    if halves[0] is None or halves[1] is None:
        return None
    return abs(float(np.mean(first)) - float(np.mean(second))) > halves[0] + halves[1]


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
