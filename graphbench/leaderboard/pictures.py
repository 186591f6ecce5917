"""Pictures of the leaderboard: means over datasets as a figure, and every score on the scale of its table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphbench.leaderboard.aggregation import HIGHEST, LOWEST
from graphbench.leaderboard.model import Board, Group
from graphbench.reports.plots import COLOURS, INK, add_legend, new_figure

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
    rows = [row for row in group.shown if row.mean_normalised is not None][:_MAX_MODELS]
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


def _name_rows(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), [name.replace("$", r"\$") for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
