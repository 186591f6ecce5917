"""The first screen of the leaderboard, one line per dataset, and the pictures of scores by size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphbench.leaderboard.model import TEST, Board, Leaderboard, Reference, Row
from graphbench.leaderboard.texts import anchor
from graphbench.records.classes import BUDGET_CLASSES, BudgetClass
from graphbench.reports.plots import COLOURS
from graphbench.reports.tables import number

_WIDTH, _HEIGHT, _MARGIN = 96.0, 26.0, 4.0  # of a sparkline
_LEAST_SPAN = 0.2  # of the largest score: the least difference that fills the height of a small picture
_CHART_WIDTH, _CHART_HEIGHT, _LEFT, _BOTTOM, _TOP = 520.0, 210.0, 56.0, 30.0, 10.0
_MOST_CURVES = 6


@dataclass(frozen=True, slots=True)
class Scored:
    """A name with a score.

    Attributes:
        name: Name of a model or a predictor.
        value: Its score.
        apart: Why the score does not stand beside the others; empty if it does.
    """

    name: str
    value: float
    apart: str = ""

    @property
    def text(self) -> str:
        """The score as text."""
        return number(self.value)


@dataclass(frozen=True, slots=True)
class Line:
    """One dataset on the first screen.

    Attributes:
        unit: Address and protocol.
        domain: Its domain.
        anchor: Its anchor on the page of the domain.
        question: What it asks: the title of the dataset.
        metric: The primary metric.
        higher_is_better: Direction of the metric.
        models: Number of models with a score on the test split.
        graphs: Number of samples that were scored, where it is a part of the test split; None for the whole split.
        trivial: The best predictor that knows no graph.
        classical: The best rule, reference solver or model that was not trained in steps; None if there is none.
        best: Budget class -> the best recorded model within it that was trained: of the ranked ones where any is
            ranked, and of rules, searches and solvers where nothing was trained.
        ahead: Budget class -> the trained model with the best mean, where that has no rank and another one has.
        published: The best published score of the same protocol; if none is comparable, the best of the others.
        curve: (size, score) of the best model of all on every split with a size, ascending.
    """

    unit: str
    domain: str
    anchor: str
    question: str
    metric: str
    higher_is_better: bool
    models: int
    graphs: int | None
    trivial: Scored | None
    classical: Scored | None
    best: Mapping[BudgetClass, Row]
    ahead: Mapping[BudgetClass, Row]
    published: Scored | None
    curve: tuple[tuple[float, float], ...]

    def beats_published(self, row: Row) -> bool:
        """Return whether a model's mean is better than the best published score."""
        if self.published is None or self.published.apart:
            return False
        return row.mean > self.published.value if self.higher_is_better else row.mean < self.published.value


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Points of a curve in a small picture.

    Attributes:
        points: Points of the line, as ``points`` of SVG has them.
        last: The last point.
        words: The curve in words, for readers of screens.
        first_size: The smallest size.
        last_size: The largest size.
        width: Width of the picture.
        height: Height of the picture.
    """

    points: str
    last: tuple[float, float]
    words: str
    first_size: str
    last_size: str
    width: float = _WIDTH
    height: float = _HEIGHT


def lines_of(leaderboard: Leaderboard) -> list[Line]:
    """Return one line per dataset and protocol with test scores that count in means."""
    units: dict[str, list[Board]] = {}
    for board in leaderboard.boards:
        if board.main:
            units.setdefault(board.unit, []).append(board)
    lines = []
    for unit, boards in units.items():
        tests = {board.budget_class: board for board in boards if board.split == TEST}
        if "open" in tests:
            lines.append(_line(unit, tests, [board for board in boards if board.budget_class == "open"]))
    return lines


def _line(unit: str, tests: Mapping[BudgetClass, Board], boards: Sequence[Board]) -> Line:
    board = tests["open"]
    best = {name: tests[name].leader for name in BUDGET_CLASSES if name in tests}
    classical = [Scored(row.label, row.mean) for row in board.rows if row.is_classical]
    kinds = ("rule", "solver")
    classical += [Scored(r.name, r.value) for r in board.references if r.kind in kinds and r.comparable]
    first = {name: next(row for row in tests[name].rows if row.trained == best[name].trained) for name in best}
    ahead = {name: first[name] for name in best if first[name].label != best[name].label}
    return Line(
        unit=unit,
        domain=board.domain,
        anchor=anchor(unit),
        question=board.title,
        metric=board.metric,
        higher_is_better=board.higher_is_better,
        models=len(board.rows),
        graphs=None if board.data.whole else board.data.graphs,
        trivial=_first(board.references, "trivial"),
        classical=_best_of(classical, board.higher_is_better),
        best=best,
        ahead=ahead,
        published=_first(board.references, "published") or _not_comparable(board.references),
        curve=_curve(best["open"], boards),
    )


def _best_of(scored: Sequence[Scored], higher: bool) -> Scored | None:
    return max(scored, key=lambda one: one.value if higher else -one.value, default=None)


def _first(references: Sequence[Reference], kind: str) -> Scored | None:
    """Return the best comparable reference of a kind; they are sorted, best first."""
    return next((Scored(r.name, r.value) for r in references if r.kind == kind and r.comparable), None)


def _not_comparable(references: Sequence[Reference]) -> Scored | None:
    """Return the best published score that answers another question; None if there is none."""
    return next((Scored(r.name, r.value, r.basis) for r in references if r.kind == "published"), None)


def _curve(row: Row, boards: Sequence[Board]) -> tuple[tuple[float, float], ...]:
    """Return the scores of a model over the sizes of the splits; the test split comes before others of its size."""
    scores: dict[float, float] = {}
    for board in sorted(boards, key=lambda board: board.split != TEST):
        model_row = next((other for other in board.rows if other.config_hash == row.config_hash), None)
        if model_row is not None and board.size is not None:
            scores.setdefault(board.size, model_row.mean)
    return tuple(sorted(scores.items()))


def sparkline(line: Line) -> Sparkline | None:
    """Return the size curve of a line as a small picture; None for fewer than two sizes."""
    if len(line.curve) < 2:
        return None
    values = [value for _, value in line.curve]
    missing = max(0.0, _LEAST_SPAN * max(map(abs, values)) - (max(values) - min(values)))
    low, high = min(values) - missing / 2, max(values) + missing / 2
    step = (_WIDTH - 2 * _MARGIN) / (len(values) - 1)

    def height(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(_HEIGHT - _MARGIN - share * (_HEIGHT - 2 * _MARGIN), 1)

    points = [(round(_MARGIN + i * step, 1), height(value)) for i, value in enumerate(values)]
    words = ", ".join(f"{number(value)} at {_size_text(size)}" for size, value in line.curve)
    ends = _size_text(line.curve[0][0]), _size_text(line.curve[-1][0])
    return Sparkline(" ".join(f"{x:g},{y:g}" for x, y in points), points[-1], words, *ends)


def _size_text(size: float) -> str:
    """Return a size with the digits that matter: 3.5, 13, 251."""
    return f"{size:.0f}" if size >= 10 else f"{size:.2g}"


@dataclass(frozen=True, slots=True)
class Curve:
    """The scores of one model over sizes, in a chart.

    Attributes:
        label: Name of the model.
        colour: Colour of the line.
        points: (x, y, score) of every size, in units of the chart.
    """

    label: str
    colour: str
    points: tuple[tuple[float, float, float], ...]

    @property
    def line(self) -> str:
        """The points, as ``points`` of SVG has them."""
        return " ".join(f"{x:g},{y:g}" for x, y, _ in self.points)


@dataclass(frozen=True, slots=True)
class Chart:
    """Scores by the size of the samples, of the models with the best test scores.

    Attributes:
        curves: The models.
        sizes: (x, label) of every size.
        ticks: (y, label) of the ends of the scale of scores.
        width: Width of the chart.
        height: Height of the chart.
        left: Left end of the lines.
        bottom: Place of the axis of sizes.
    """

    curves: tuple[Curve, ...]
    sizes: tuple[tuple[float, str], ...]
    ticks: tuple[tuple[float, str], ...]
    width: float = _CHART_WIDTH
    height: float = _CHART_HEIGHT
    left: float = _LEFT
    bottom: float = _CHART_HEIGHT - _BOTTOM


def size_chart(boards: Sequence[Board]) -> Chart | None:
    """Return the scores by size of one dataset; None where no model has scores of two sizes.

    Args:
        boards: The tables of all models on all splits of the dataset, those that count in means.
    """
    test = next((board for board in boards if board.split == TEST), None)
    if test is None:
        return None
    all_curves = [(row.label, _curve(row, boards)) for row in test.rows]
    curves = [(label, points) for label, points in all_curves if len(points) > 1][:_MOST_CURVES]
    if not curves:
        return None
    sizes = sorted({size for _, points in curves for size, _ in points})
    values = [value for _, points in curves for _, value in points]
    low, high = min(values), max(values)
    smallest, largest = math.log(sizes[0]), math.log(sizes[-1])

    def x(size: float) -> float:
        return round(_LEFT + (_CHART_WIDTH - _LEFT - 12) * (math.log(size) - smallest) / (largest - smallest), 1)

    def y(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(_CHART_HEIGHT - _BOTTOM - 8 - share * (_CHART_HEIGHT - _BOTTOM - _TOP - 8), 1)

    drawn = tuple(
        Curve(label, COLOURS[i % len(COLOURS)], tuple((x(size), y(value), value) for size, value in points))
        for i, (label, points) in enumerate(curves)
    )
    ticks = dict.fromkeys((y(value), number(value)) for value in (low, high))
    return Chart(drawn, tuple((x(size), _size_text(size)) for size in sizes), tuple(ticks))
