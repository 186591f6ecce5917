"""Figures of the report: their style, learning curves, and their formats in pages.

Figures are drawn without pyplot, so drawing needs no display and leaves no global state.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from graphbench.reports.labels import Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from graphbench.catalog.cards import Card
    from graphbench.records.aggregates import Aggregate

# Distinct for colour-blind readers (after Okabe and Ito) and legible on white and on dark grey.
COLOURS = (
    "#2f7ed8", "#e0762f", "#1f9e78", "#c05fa6", "#a08520", "#7a6fd0", "#31b4c8", "#96614b", "#8db53c", "#e79bb8",
)  # fmt: skip
INK = "#4d4d4e"  # text and axes; replaced by the page's text colour in inline SVG
PAPER = "#fdfdfe"  # behind text on lines; replaced by the page's background in inline SVG
RED = "#d03030"  # failures; and, as in the figures of the paper on CLRS-Text, the sizes trained on
PUBLISHED = ", published"
SOLVER = " (solver)"
TRIVIAL = "best trivial"
TRAINED = "size trained on"
LATENCY = "latency_ms_batched"  # the field of a record with the time to predict one sample within a batch
_FEWEST = 2  # models of a figure of scores against time
_WIDE = 3.0  # ratio of scores beyond which their axis is logarithmic
_SHORT = 5  # points; shorter curves have markers
_GRID = "#80808040"


def mark_trained(axes: Axes, sizes: Sequence[float]) -> None:
    """Mark the sizes trained on by dots on the horizontal axis."""
    if sizes:
        low = axes.get_ylim()[0]
        places = [low] * len(sizes)
        axes.plot(sizes, places, linestyle="", marker="o", color=RED, markersize=4, clip_on=False, label=TRAINED)
        axes.set_ylim(bottom=low)


def curve_figure(results: Sequence[Aggregate], metric: str) -> Figure | None:
    """Return the figure of training loss and validation score against steps, or None if no run has curves.

    Scores on different validation splits, such as ``val`` and ``val_large``, are drawn in panels of their own.

    Args:
        results: Aggregated runs of one dataset; every seed is one line.
        metric: The primary metric; the curve ``val_<metric>`` is drawn, or ``val_loss`` of models selected by the loss.
    """
    splits = list(dict.fromkeys(map(_validation_split, results)))
    chosen = {split: [runs for runs in results if _validation_split(runs) == split] for split in splits}
    curves = [("train_loss", "training loss", list(results))]
    for name in dict.fromkeys((metric, "loss")):
        for split, of_split in chosen.items():
            title = f"validation {name}" if splits == ["val"] else f"{name} on {split}"
            curves.append((f"val_{name}", title, of_split))
    panels = [curve for curve in curves if any(_has_curve(runs, curve[0]) for runs in curve[2])]
    if not panels:
        return None
    figure, axes = new_figure(len(panels))
    labels = Labels(results)
    colours = {id(runs): COLOURS[number % len(COLOURS)] for number, runs in enumerate(results)}
    for panel, (name, title, shown) in zip(axes, panels, strict=True):
        for runs in shown:
            _draw_curves(panel, runs, name, colours[id(runs)], labels[runs] + runs.mark)
        panel.set_xlabel("optimizer steps")
        panel.set_ylabel(title)
        if name.endswith("_loss") and _spans_magnitudes(shown, name):
            panel.set_yscale("log")
    add_legend(figure, axes)
    return figure


def time_figure(results: Sequence[Aggregate], metric: str, *, higher_is_better: bool) -> Figure | None:
    """Return the figure of test scores against the time of an answer, or None if fewer than two models have both.

    Args:
        results: Aggregated runs of one dataset.
        metric: The metric. Its axis is logarithmic where smaller is better and the positive scores differ much.
        higher_is_better: Whether larger scores are better.
    """
    labels, points = Labels(results), []
    for runs in results:
        time, score = runs.measure(LATENCY), runs.score("test", metric)
        if time is not None and score is not None:
            points.append((time.mean / 1e3, score.mean, labels[runs] + runs.mark))
    if len(points) < _FEWEST:
        return None
    figure, (panel,) = new_figure(1)
    draw_front(panel, points, higher_is_better=higher_is_better)
    scores = [score for _, score, _ in points]
    if not higher_is_better and 0 < _WIDE * min(scores) < max(scores):
        panel.set_yscale("log")
        _plain_numbers(panel.yaxis)
    panel.set_xlabel("seconds per sample, in a batch")
    panel.set_ylabel(f"{metric}, {'higher' if higher_is_better else 'lower'} is better")
    return figure


def draw_front(axes: Axes, points: Iterable[tuple[float, float, str]], *, higher_is_better: bool) -> None:
    """Draw models as named points over a logarithmic axis of cost, and a line through those that no cheaper one beats.

    Args:
        axes: Where to draw.
        points: Cost (positive), score and name of each model, at least one.
        higher_is_better: Whether larger scores are better.
    """
    points = sorted(points)
    front: list[tuple[float, float]] = []
    for cost, score, _ in points:
        if not front or ((score > front[-1][1]) == higher_is_better and score != front[-1][1]):
            front.append((cost, score))
    axes.plot(*zip(*front, strict=True), color=COLOURS[1], linewidth=1.2, marker="", drawstyle="steps-post")
    for cost, score, label in points:
        on_front = (cost, score) in front
        axes.plot([cost], [score], marker="o", markersize=5, color=COLOURS[0 if on_front else 4])
        axes.annotate(
            label.replace("$", r"\$"),
            (cost, score),
            textcoords="offset points",
            xytext=(5, 3),
            fontsize=7,
            color=INK,
        )
    axes.set_xscale("log")
    axes.margins(x=0.3, y=0.15)
    _plain_numbers(axes.xaxis)


def _plain_numbers(axis: Axis) -> None:
    """Write the numbers of a logarithmic axis without exponents."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.4g}"))
    axis.set_minor_formatter(NullFormatter())


def _validation_split(runs: Aggregate) -> str:
    """Return the split by which the weights of runs were selected."""
    return str(runs.records[0].config.get("training", {}).get("val_split") or "val")


def _spans_magnitudes(results: Sequence[Aggregate], name: str) -> bool:
    values = [value for runs in results for record in runs.records for _, value in record.curves.get(name, [])]
    return min(values) > 0 and max(values) > 30 * min(values)


def _has_curve(runs: Aggregate, name: str) -> bool:
    return any(record.curves.get(name) for record in runs.records)


def _draw_curves(axes: Axes, runs: Aggregate, name: str, colour: str, label: str) -> None:
    drawn = [record.curves[name] for record in runs.records if record.curves.get(name)]
    for number, points in enumerate(drawn):
        axes.plot(
            *zip(*points, strict=True),
            color=colour, linewidth=1.2, alpha=0.85, label=None if number else label,
            marker="o" if len(points) <= _SHORT else None, markersize=3.5,
        )  # fmt: skip


def new_figure(
    panels: int, size: tuple[float, float] | None = None, columns: int | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a figure with some panels side by side, in the report's style.

    Args:
        panels: Number of panels.
        size: Width and height in inches; None for the usual size.
        columns: Panels of a row; None for all.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=size or (6.4 if panels == 1 else 9.6, 3.5), layout="constrained")
    figure.patch.set_alpha(0.0)
    across = columns or panels
    axes = [figure.add_subplot(-(-panels // across), across, i + 1) for i in range(panels)]
    for panel in axes:
        panel.patch.set_alpha(0.0)
        panel.grid(True, color=_GRID, linewidth=0.8)
        panel.tick_params(colors=INK, labelsize=9)
        panel.xaxis.label.set_color(INK)
        panel.yaxis.label.set_color(INK)
        for side, spine in panel.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(INK)
    return figure, axes


def add_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """Add one legend for all panels, to the right of them: models, published scores, solvers, other entries."""
    entries: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    labels = sorted(entries, key=_legend_order)
    handles = [entries[label] for label in labels]
    if handles:
        figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9, labelcolor=INK)


def _legend_order(label: str) -> tuple[bool, ...]:
    return label.startswith(TRIVIAL), label == TRAINED, label.endswith(SOLVER), label.endswith(PUBLISHED)


def png_bytes(figure: Figure) -> bytes:
    """Return the figure as a PNG on white."""
    buffer = io.BytesIO()
    figure.patch.set_alpha(1.0)  # or else "white" is transparent
    figure.savefig(buffer, format="png", dpi=160, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


_MOST_ENLARGED = 1.5


def inline_svg(figure: Figure, title: str) -> str:
    """Return the figure as an ``<svg>`` element for a page: scalable, in the page's text colour, with a title.

    It fills its column, but is enlarged by at most a half, so that the letters of a narrow figure stay small.
    The text stays text, and the same figure always gives the same characters.
    """
    import matplotlib
    from markupsafe import escape

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    svg = text[text.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    widest = f'style="width: min(100%, {_MOST_ENLARGED * 96 * figure.get_figwidth():.0f}px)"'
    svg = re.sub(r'^<svg([^>]*?) width="[^"]*"', rf"<svg\1 {widest}", svg, count=1)
    svg = re.sub(r'^<svg([^>]*?) height="[^"]*"', r'<svg\1 role="img"', svg, count=1)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px; font-family: inherit", svg)
    svg = svg.replace(INK, "currentColor").replace(PAPER, "var(--ground)")
    return svg.replace(">", f"><title>{escape(title)}</title>", 1)


def simplest(card: Card) -> str:
    """Return what the best of the trivial predictors is called; rules that read the graph are among them."""
    return f"{TRIVIAL} or rule" if card.task.rules else TRIVIAL
