"""Parallel coordinates: every configuration of a tuning run as one line over all its hyperparameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphbench.reports.plots import COLOURS, INK, PAPER, new_figure
from graphbench.tuning.parameters import short_names, value_text
from graphbench.tuning.report.plots import MAGNITUDES, blend, distinct_texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from graphbench.tuning.history import History
    from graphbench.tuning.parameters import Parameter
    from graphbench.tuning.trial import Trial

_BEST, _MIDDLE, _WORST = COLOURS[0], "#a98fa0", COLOURS[1]  # legible on white and on dark grounds
_STOPPED = "#8a939f"
_MAX_ORDERED_MARKS, _MAX_UNORDERED_MARKS = 8, 16  # marks on the axis of a list with and without an order
_MAX_MARK_LENGTH = 14  # characters
_APART = 0.09  # of an axis, between two marks
_GOLDEN = 0.618034
_SPREAD = 0.05  # of an axis, over which lines through the same value of a list are spread
_FENCE = 3.0  # interquartile ranges; scores further out are drawn at the end of their axis
_INACTIVE = -0.12
_CROWDED = 8  # parameters; from this number on, every other name is a line higher
_SPACING = 0.95  # inches between two axes


def parallel_figure(history: History) -> Figure | None:
    """Return the figure of all successful configurations, or None if there is none.

    The figure has one vertical axis per hyperparameter, each on a separate scale, and as the last axis the score at the
    run's largest budget. The colour of a line is that score. Configurations that were stopped at a smaller budget are
    grey and have no score. The incumbent is drawn on top. A hyperparameter that is inactive in a configuration is drawn
    below its axis.
    """
    parameters = [parameter for parameter in history.parameters if parameter.varies]
    incumbent = history.incumbent
    if incumbent is None or not parameters:
        return None
    figure, (axes,) = new_figure(1, (max(9.6, _SPACING * (len(parameters) + 1.6)), 4.6))
    full = [trial for trial in history.furthest() if trial.budget == incumbent.budget]
    stopped = [trial for trial in history.furthest() if trial.budget < incumbent.budget]
    scale = _ScoreScale([history.measure.score(trial.measured) for trial in full], history.measure.higher_is_better)
    for trial in stopped:
        _draw(axes, _positions(parameters, trial, _SPREAD), _STOPPED, 0.8, max(0.1, min(0.35, 25 / len(stopped))))
    for trial in sorted(full, key=lambda trial: -trial.measured):
        score = history.measure.score(trial.measured)
        _draw(
            axes, [*_positions(parameters, trial, _SPREAD), scale.place(score)], _colour(scale.badness(score)), 1.5, 0.9
        )
    best = [*_positions(parameters, incumbent), scale.place(history.measure.score(incumbent.measured))]
    axes.plot(
        range(len(best)), best, color=_BEST, linewidth=3.2, marker="o", markersize=6.5, zorder=4, clip_on=False,
        label=f"incumbent, configuration {incumbent.config_id}",
    )  # fmt: skip
    drawn = [*full, *stopped]
    _draw_axes(axes, parameters, [any(p.name not in trial.config for trial in drawn) for p in parameters])
    _draw_axis(
        axes, len(parameters), scale.ticks(), f"{history.measure.head}\nat {history.fidelity.text(incumbent.budget)}"
    )
    _add_legend(figure, axes, stopped=bool(stopped), others=len(full) > 1)
    return figure


def _draw(axes: Axes, positions: Sequence[float], colour: str, width: float, alpha: float) -> None:
    axes.plot(
        range(len(positions)), positions, color=colour, linewidth=width, alpha=alpha, zorder=2 if width > 1 else 1
    )


def _add_legend(figure: Figure, axes: Axes, *, stopped: bool, others: bool) -> None:
    from matplotlib.lines import Line2D

    handles, _ = axes.get_legend_handles_labels()
    if others:
        handles += [
            Line2D([], [], color=_colour(badness), label=label)
            for badness, label in ((0.0, "best"), (0.5, "middle"), (1.0, "worst"))
        ]
    if stopped:
        handles.append(Line2D([], [], color=_STOPPED, linewidth=0.8, label="stopped at a smaller budget"))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9, labelcolor=INK
    )


class _ScoreScale:
    """Positions of scores on their axis, 0 at the bottom, 1 at the top; far outliers are drawn at the worse end."""

    def __init__(self, scores: Sequence[float], higher_is_better: bool) -> None:
        self.log = not higher_is_better and min(scores) > 0 and max(scores) > MAGNITUDES * min(scores)
        self._higher = higher_is_better
        values = self._scaled(np.array(scores))
        low, high = np.quantile(values, (0.25, 0.75))
        reach = _FENCE * (high - low)
        self.low, self.high = float(values.min()), float(values.max())
        if reach > 0 and higher_is_better:
            self.low = max(self.low, float(low - reach))
        elif reach > 0:
            self.high = min(self.high, float(high + reach))
        self.cut = self.low > float(values.min()) or self.high < float(values.max())

    def place(self, score: float) -> float:
        """Return the position of a score on the axis, from 0 to 1."""
        if self.high <= self.low:
            return 0.5
        value = float(self._scaled(np.array(score)))
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def badness(self, score: float) -> float:
        """Return 0 for the best score, 1 for the worst."""
        return 1 - self.place(score) if self._higher else self.place(score)

    def ticks(self) -> list[tuple[float, str]]:
        """Return position and text of the axis's marks."""
        values = np.linspace(self.low, self.high, 5 if self.high > self.low else 1)
        scores = (np.exp(values) if self.log else values).tolist()
        marks = [(self.place(score), text) for score, text in zip(scores, distinct_texts(scores), strict=True)]
        if self.cut:  # scores at the worse end may be worse than its mark
            end = 0 if self._higher else -1
            position, text = marks[end]
            marks[end] = (position, f"{'≤' if self._higher else '≥'} {text}")
        return marks

    def _scaled(self, scores: Any) -> Any:
        return np.log(scores) if self.log else scores


def _positions(parameters: Sequence[Parameter], trial: Trial, spread: float = 0.0) -> list[float]:
    """Return where a configuration crosses the axes; on axes of lists it is shifted by up to half of ``spread``."""
    shift = spread * ((trial.config_id * _GOLDEN) % 1 - 0.5)
    return [
        _INACTIVE + shift
        if parameter.name not in trial.config
        else parameter.place(trial.config[parameter.name]) + (shift if parameter.values else 0)
        for parameter in parameters
    ]


def _draw_axes(axes: Axes, parameters: Sequence[Parameter], inactive: Sequence[bool]) -> None:
    """Draw the parameters' axes with their marks and names."""
    names = short_names([parameter.name for parameter in parameters])
    for x, parameter in enumerate(parameters):
        lifted = len(parameters) >= _CROWDED and x % 2 == 1
        _draw_axis(axes, x, _marks(parameter), names[parameter.name] + ("\n" if lifted else ""))
        if inactive[x]:
            _write_mark(axes, x, _INACTIVE, "inactive")
    axes.set_xlim(-0.55, len(parameters) + 0.35)
    axes.set_ylim(-0.2 if any(inactive) else -0.05, 1.05)
    axes.grid(False)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_axis(axes: Axes, x: int, marks: Sequence[tuple[float, str]], name: str) -> None:
    axes.plot([x, x], [0, 1], color=INK, linewidth=1.2, zorder=3, clip_on=False)
    axes.text(x, 1.06, name, ha="center", va="bottom", fontsize=9.5, color=INK, fontweight="bold")
    for position, text in marks:
        axes.plot([x - 0.02, x], [position, position], color=INK, linewidth=1, zorder=3)
        _write_mark(axes, x, position, text)


def _write_mark(axes: Axes, x: int, position: float, text: str) -> None:
    behind = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    axes.text(x - 0.045, position, text, ha="right", va="center", fontsize=8, color=INK, bbox=behind, zorder=6)


def _marks(parameter: Parameter) -> list[tuple[float, str]]:
    """Return position and text of an axis's marks: all values of a short list; bounds and round values of a range."""
    if parameter.values:
        step = math.ceil(len(parameter.values) / (_MAX_ORDERED_MARKS if parameter.ordered else _MAX_UNORDERED_MARKS))
        return [(parameter.place(value), _shortened(value)) for value in parameter.values[::step]]
    from matplotlib.ticker import LogLocator, MaxNLocator

    low, high = float(parameter.low), float(parameter.high)
    decades = math.log10(high / low) if parameter.log else 0.0
    locator = LogLocator(subs=(1.0,) if decades > 2 else (1.0, 2.0, 5.0)) if parameter.log else MaxNLocator(5)
    chosen = [low, high]
    for value in locator.tick_values(low, high):
        position = parameter.place(value) if low < value < high else 0.0
        whole = not parameter.whole or float(value).is_integer()
        if whole and low < value < high and all(abs(position - parameter.place(mark)) > _APART for mark in chosen):
            chosen.append(float(value))
    return [(parameter.place(value), f"{value:.4g}") for value in chosen]


def _shortened(value: Any) -> str:
    text = value_text(value)
    return text if len(text) <= _MAX_MARK_LENGTH else text[: _MAX_MARK_LENGTH - 1] + "…"


def _colour(badness: float) -> str:
    if badness < 0.5:
        return blend(_BEST, _MIDDLE, 2 * badness)
    return blend(_MIDDLE, _WORST, 2 * badness - 1)
