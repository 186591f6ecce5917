"""Pictures of the leaderboard: means over datasets as a figure, and every score on the scale of its table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphbench.leaderboard.aggregation import HIGHEST, LOWEST
from graphbench.leaderboard.model import Board, Group
from graphbench.reports.plots import COLOURS, INK, add_legend, draw_front, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_MODELS = 16  # of a figure
_ROW = 0.27  # inches
_REACH = 1.5  # largest distance of a reference from the models, in widths of the models' range
_WIDTH, _HEIGHT, _MARGIN = 150.0, 18.0, 6.0  # of a strip


@dataclass(frozen=True, slots=True)
class Strip:
    """Positions of a row's score within a strip, in units of the strip's width.

    Attributes:
        mean: Position of the mean.
        interval: Positions of the ends of the interval; None without an interval.
    """

    mean: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Mark:
    """The position of a reference within a strip.

    Attributes:
        kind: Kind of the reference.
        place: The position; the end of the strip if the reference lies beyond it.
        beyond: -1 or 1 if the reference lies beyond the left or right end, else 0.
    """

    kind: str
    place: float
    beyond: int


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale of a table: a strip per row, and marks for the references.

    Attributes:
        low: Score at the left end.
        high: Score at the right end.
        strips: One per row of the table.
        marks: One per reference of the table; None for a reference that is not comparable.
        width: Width of a strip.
        height: Height of a strip.
    """

    low: float
    high: float
    strips: tuple[Strip, ...]
    marks: tuple[Mark | None, ...]
    width: float = _WIDTH
    height: float = _HEIGHT


def scale_of(board: Board) -> Scale:
    """Return the scale of a table: all scores and intervals, and references that are not far from them."""
    ends = [end for row in board.rows if row.interval for end in (row.interval.low, row.interval.high)]
    scores = [*(row.mean for row in board.rows), *ends]
    reach = _REACH * (max(scores) - min(scores))
    comparable = [reference.value for reference in board.references if reference.comparable]
    near = [value for value in comparable if not reach or min(scores) - reach <= value <= max(scores) + reach]
    low, high = min(scores + near), max(scores + near)

    def position(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(_MARGIN + min(max(share, 0.0), 1.0) * (_WIDTH - 2 * _MARGIN), 2)

    strips = tuple(
        Strip(position(row.mean), (position(row.interval.low), position(row.interval.high)) if row.interval else None)
        for row in board.rows
    )
    marks = tuple(
        Mark(r.kind, position(r.value), (r.value > high) - (r.value < low)) if r.comparable else None
        for r in board.references
    )
    return Scale(low, high, strips, marks)


def group_figure(group: Group) -> Figure | None:
    """Return the figure of a group's models: normalised scores per dataset and their mean, and the mean ranks.

    None for fewer than two models with normalised scores. The figure shows the first models of the group's table.
    """
    rows = [row for row in group.shown if row.mean_normalised_own is not None][:_MAX_MODELS]
    if len(rows) < 2:
        return None
    ranked = [row for row in rows if row.mean_rank is not None]
    names = [f"{row.model}  {len(row.scores)}/{len(group.units)}" for row in rows]
    size = (9.6 if ranked else 7.2, max(1.9, 1.15 + _ROW * len(rows)))
    figure, panels = new_figure(2 if ranked else 1, size)
    positions = range(len(rows))
    first = panels[0]
    for position, row in zip(positions, rows, strict=True):
        values_of_row = [score.normalised for score in row.scores if score.normalised is not None]
        first.plot(
            values_of_row, [position] * len(values_of_row), linestyle="", marker="o", markersize=4.5,
            color=COLOURS[0], alpha=0.6, label="a dataset",
        )  # fmt: skip
    means = [row.mean_normalised or 0.0 for row in rows]
    first.plot(means, positions, linestyle="", marker="D", markersize=6, color=COLOURS[1], label="mean, missing as 0")
    first.axvline(0, color=INK, linewidth=0.9, linestyle=":", label="best trivial")
    first.axvline(1, color=INK, linewidth=0.9, linestyle="--", label="best known")
    first.set_xlabel(f"normalised score, between {LOWEST:g} and {HIGHEST:g}")
    _name_rows(first, names)
    if ranked:
        second = panels[1]
        values = [row.mean_rank or 0.0 for row in ranked]
        second.barh([rows.index(row) for row in ranked], values, height=0.55, color=COLOURS[2])
        second.set_xlabel("mean rank among complete models")
        second.set_xlim(left=0)
        _name_rows(second, [""] * len(rows))
    add_legend(figure, panels)
    return figure


def critical_difference(models: int, datasets: int, level: float = 0.05) -> float:
    """Return the difference of mean ranks from which Nemenyi's test separates two models.

    It is ``q sqrt(k (k + 1) / (6 N))`` for k models on N datasets, where q is the quantile of the studentised range for
    k groups and infinitely many degrees of freedom, divided by the root of 2 (Demsar, 2006, section 3.2.2).

    Args:
        models: Number of models, at least 2.
        datasets: Number of datasets.
        level: Level of the test, for all pairs together.
    """
    from scipy.stats import studentized_range

    quantile = float(studentized_range.ppf(1 - level, models, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(models * (models + 1) / (6 * datasets))


def not_separated(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """Return (first, last) of every largest group of models that no test separates, of ascending mean ranks.

    Args:
        ranks: Mean ranks, ascending.
        difference: The critical difference.
    """
    groups: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(i for i, other in enumerate(ranks) if other - rank < difference)
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups


def rank_figure(group: Group) -> Figure | None:
    """Return the critical-difference diagram of a group's ranked models; None for fewer than three.

    A bar connects models that Nemenyi's test on mean ranks does not separate at 5 %.
    """
    rows = sorted((row for row in group.rows if row.mean_rank is not None), key=lambda row: row.mean_rank or 0.0)
    if len(rows) < 3:
        return None
    ranks = [row.mean_rank or 0.0 for row in rows]
    difference = critical_difference(len(rows), len(group.units))
    bars = not_separated(ranks, difference)
    half = -(-len(rows) // 2)
    figure, (panel,) = new_figure(1, (7.2, 1.1 + 0.26 * half + 0.14 * len(bars)))
    panel.grid(False)
    low, high = 1.0, float(max(len(rows), math.ceil(ranks[-1])))
    depth = 0.5 * len(bars) + 0.6
    for i, (row, rank) in enumerate(zip(rows, ranks, strict=True)):
        is_left = i < half
        height = -(depth + (i if is_left else len(rows) - 1 - i))
        side = low - 0.15 if is_left else high + 0.15
        panel.plot([rank, rank, side], [0, height, height], color=INK, linewidth=0.9)
        text = f"{row.model}  {rank:.2f}".replace("$", r"\$")
        panel.text(side, height, f" {text} ", ha="right" if is_left else "left", va="center", fontsize=8.5, color=INK)
    for number, (first, last) in enumerate(bars):
        panel.plot(
            [ranks[first] - 0.04, ranks[last] + 0.04], [-0.35 - 0.5 * number] * 2, color=COLOURS[1], linewidth=3.5
        )
    panel.plot([low, min(low + difference, high)], [1.3, 1.3], color=INK, linewidth=1.5)
    panel.text(low, 1.4, f"critical difference {difference:.2f}", fontsize=8, color=INK, va="bottom")
    panel.plot([low, high], [0, 0], color=INK, linewidth=1.2)
    for place in range(1, int(high) + 1):
        panel.text(place, 0.12, str(place), ha="center", va="bottom", fontsize=8.5, color=INK)
    for spine in panel.spines.values():
        spine.set_visible(False)
    panel.set_xticks([])
    panel.set_yticks([])
    reach = 0.42 * (high - low) + 0.6
    panel.set_xlim(low - reach, high + reach)
    panel.set_ylim(-(depth + half), 2.3)
    return figure


def cost_figure(boards: Sequence[Board]) -> Figure | None:
    """Return the figure of scores against processor time, a panel per table, or None if no table has two models.

    A line connects the models that no cheaper model is better than (the Pareto front).

    Args:
        boards: Tables of the test splits.
    """
    costs = {
        board.unit: [(row.label, row.cost.core_seconds, row.mean) for row in board.rows if row.cost.core_seconds]
        for board in boards
    }
    shown = [board for board in boards if len(costs[board.unit]) > 1]
    if not shown:
        return None
    columns = min(len(shown), 3)
    lines = -(-len(shown) // columns)
    figure, panels = new_figure(len(shown), (3.4 * columns, 2.7 * lines + 0.2), columns=columns)
    for panel, board in zip(panels, shown, strict=True):
        points = ((seconds, score, label) for label, seconds, score in costs[board.unit] if seconds is not None)
        draw_front(panel, points, higher_is_better=board.higher_is_better)
        panel.tick_params(labelsize=7.5)
        arrow = "higher is better" if board.higher_is_better else "lower is better"
        panel.set_title(board.unit, fontsize=8.5, color=INK)
        panel.set_xlabel("CPU seconds of training", fontsize=8)
        panel.set_ylabel(f"{board.metric}, {arrow}", fontsize=8)
    return figure


def _name_rows(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), [name.replace("$", r"\$") for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
