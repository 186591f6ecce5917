"""Figures of a tuning report: best so far, use of the budget, and importance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from graphbench.reports.labels import named
from graphbench.reports.plots import COLOURS, INK, PUBLISHED, RED, TRIVIAL, add_legend, new_figure
from graphbench.training.fidelity import STEPS, Fidelity
from graphbench.tuning.parameters import short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from graphbench.tuning.history import History, Rung
    from graphbench.tuning.report.expected import Expected
    from graphbench.tuning.report.importance import Importance
    from graphbench.tuning.trial import Trial

_SMALLEST, _LARGEST = "#97a3b4", COLOURS[0]  # of the budgets' colours
_BEST = COLOURS[1]
_MIN_DIGITS, _MAX_DIGITS, _MAX_TICKS = 3, 12, 6
MAGNITUDES = 30  # ratio of the largest to the smallest error above which their axis is logarithmic


def best_figure(history: History, expected: Expected | None = None) -> Figure | None:
    """Return the figure of the best so far over the budget spent and over time, or None if no trial succeeded.

    The line is the incumbent's score; a new line begins where a larger budget is first reached. Failed trials are drawn
    at the worse end of the axis. Horizontal lines are expected scores.
    """
    if not history.successes:
        return None
    moments = history.moments
    figure, panels = new_figure(2)
    longest = moments[-1].seconds
    unit, divisor = ("hours", 3600) if longest >= 7200 else ("minutes", 60) if longest >= 120 else ("seconds", 1)
    _draw_moments(panels[0], history, [float(moment.steps) for moment in moments], expected)
    _draw_moments(panels[1], history, [moment.seconds / divisor for moment in moments], expected)
    panels[0].set_xlabel(f"{history.fidelity.full_unit}s, all trials together")
    panels[1].set_xlabel(f"{unit} in which trials ran")
    use_whole_ticks(panels[0].xaxis)
    panels[0].set_ylabel(history.measure.head)
    add_legend(figure, panels)
    return figure


def _draw_moments(axes: Axes, history: History, at: Sequence[float], expected: Expected | None) -> None:
    scored = [(x, moment.trial) for x, moment in zip(at, history.moments, strict=True) if moment.trial.succeeded]
    budgets = sorted({trial.budget for _, trial in scored})
    for rank, budget in enumerate(budgets):
        points = [(x, history.measure.score(trial.measured)) for x, trial in scored if trial.budget == budget]
        share = rank / (len(budgets) - 1) if len(budgets) > 1 else 1.0
        axes.plot(
            *zip(*points, strict=True), linestyle="", marker="o", markersize=2.5 + 3 * share, markeredgewidth=0,
            alpha=0.85, color=blend(_SMALLEST, _LARGEST, share), label=history.fidelity.text(budget),
        )  # fmt: skip
    lines = [] if expected is None else _draw_expected(axes, expected)
    scores = [history.measure.score(trial.measured) for _, trial in scored]
    use_score_scale(axes, [*scores, *lines], history.measure.higher_is_better)
    _draw_best(axes, history, at)
    failed = [x for x, moment in zip(at, history.moments, strict=True) if not moment.trial.succeeded]
    worse_end = 0.0 if history.measure.higher_is_better else 1.0
    axes.set_xlim(0, max(at) * 1.02 or 1)  # trials may take no time
    if failed:
        axes.plot(
            failed, [worse_end] * len(failed), linestyle="", marker="x", markersize=5.5, markeredgewidth=1.4, color=RED,
            label="failed", transform=axes.get_xaxis_transform(), clip_on=False, zorder=5,
        )  # fmt: skip


def _draw_expected(axes: Axes, expected: Expected) -> list[float]:
    """Draw the best trivial and the published scores as horizontal lines, and return them."""
    lines = [] if expected.floor is None else [(expected.floor[1], TRIVIAL, INK, ":")]
    for number, score in enumerate(expected.of_model):
        if score.value is not None:
            label = f"{named(score.model, score.protocol)} on test{PUBLISHED}"
            lines.append((score.value, label, COLOURS[3 + number % 3], "--"))
    for value, label, colour, style in lines:
        axes.axhline(value, color=colour, linestyle=style, linewidth=1.4, zorder=1, label=label)
    return [value for value, *_ in lines]


def _draw_best(axes: Axes, history: History, at: Sequence[float]) -> None:
    """Draw the incumbent's score, one line per budget, with a mark wherever the incumbent changes."""
    incumbents: list[tuple[float, Trial]] = [
        (x, moment.incumbent) for x, moment in zip(at, history.moments, strict=True) if moment.incumbent is not None
    ]
    for number, (_, piece) in enumerate(groupby(incumbents, key=lambda point: point[1].budget)):
        points = list(piece)
        new = [i for i, (_, trial) in enumerate(points) if i == 0 or trial is not points[i - 1][1]]
        axes.plot(
            [x for x, _ in points], [history.measure.score(trial.measured) for _, trial in points],
            drawstyle="steps-post", color=_BEST, linewidth=1.8, marker="D", markersize=3.6, markevery=new, zorder=4,
            label=None if number else "best so far",
        )  # fmt: skip


def distinct_texts(values: Sequence[float]) -> list[str]:
    """Return numbers as text with enough digits to distinguish different numbers, at least three."""
    different = len(set(values))
    texts: list[str] = []
    for digits in range(_MIN_DIGITS, _MAX_DIGITS + 1):
        texts = [f"{value:.{digits}g}" for value in values]
        if len(set(texts)) == different:
            break
    return texts


def use_whole_ticks(axis: Axis) -> None:
    """Mark few and whole numbers on an axis of counts, with separators of thousands."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(_MAX_TICKS, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def use_score_ticks(axis: Axis) -> None:
    """Mark few scores on a linear axis, each in full, without an offset."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    axis.set_major_locator(MaxNLocator(_MAX_TICKS))
    formatter = ScalarFormatter(useOffset=False)
    formatter.set_powerlimits((-4, 6))
    axis.set_major_formatter(formatter)


def use_score_scale(axes: Axes, scores: Sequence[float], higher_is_better: bool) -> None:
    """Make the vertical axis logarithmic for errors that span magnitudes."""
    if not higher_is_better and min(scores) > 0 and max(scores) > MAGNITUDES * min(scores):
        axes.set_yscale("log")
    else:
        use_score_ticks(axes.yaxis)


def budget_figure(rungs: Sequence[Rung], fidelity: Fidelity = STEPS) -> Figure | None:
    """Return the figure of trials, and of the budget spent and saved, at each budget; None without trials."""
    if not rungs:
        return None
    figure, (trials, steps) = new_figure(2, (9.6, 0.9 + 0.42 * len(rungs)))
    rows = list(range(len(rungs)))
    succeeded = [rung.trials - rung.failed for rung in rungs]
    _stack(trials, rows, succeeded, [rung.failed for rung in rungs], ("succeeded", "failed", RED))
    _stack(
        steps, rows, [rung.steps for rung in rungs], [rung.saved for rung in rungs],
        (fidelity.spent, f"{fidelity.name} saved by continuing", COLOURS[2]),
    )  # fmt: skip
    trials.set_xlabel("trials")
    steps.set_xlabel(f"{fidelity.full_unit}s")
    trials.set_ylabel("budget")
    for panel in (trials, steps):
        panel.set_yticks(rows, [f"{rung.budget:,}" for rung in rungs])
        panel.grid(False, axis="y")
        use_whole_ticks(panel.xaxis)
    add_legend(figure, [trials, steps])
    return figure


def _stack(
    axes: Axes, rows: Sequence[int], first: Sequence[int], second: Sequence[int], words: tuple[str, str, str]
) -> None:
    label, other, colour = words
    first_colour = COLOURS[0] if label == "succeeded" else _SMALLEST
    axes.barh(rows, first, height=0.62, color=first_colour, label=label)
    if any(second):
        axes.barh(rows, second, left=first, height=0.62, color=colour, alpha=0.75, label=other)


def importance_figure(importance: Importance) -> Figure | None:
    """Return the figure of shares of variance, the most important parameter on top; None where they were refused."""
    effects = importance.effects
    if not effects:
        return None
    figure, (axes,) = new_figure(1, (7.4, 0.9 + 0.34 * len(effects)))
    rows = np.arange(len(effects))[::-1]
    names = short_names([effect.name for effect in effects])
    axes.barh(rows + 0.19, [effect.alone for effect in effects], height=0.36, color=COLOURS[0], label="alone")
    totals = [effect.total for effect in effects]
    axes.barh(rows - 0.19, totals, height=0.36, color=COLOURS[5], label="with all interactions")
    axes.set_yticks(rows, [names[effect.name] for effect in effects])
    axes.set_xlim(left=0)
    axes.set_xlabel("share of the variance of the cost")
    axes.grid(False, axis="y")
    add_legend(figure, [axes])
    return figure


def blend(first: str, second: str, share: float) -> str:
    """Return a mixture of two colours, by the share of the second."""
    from matplotlib.colors import to_hex, to_rgb

    mixed = [(1 - share) * a + share * b for a, b in zip(to_rgb(first), to_rgb(second), strict=True)]
    return str(to_hex((mixed[0], mixed[1], mixed[2])))
