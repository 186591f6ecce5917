"""The figure of scores away from training: lines over sizes, or bars if the splits are kinds.

Figures are drawn without pyplot, so drawing needs no display and leaves no global state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from graphbench.reports.plots import COLOURS, INK, PUBLISHED, add_legend, mark_trained, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_MAX_TICKS = 12
_DASHES: tuple[Any, ...] = ((0, (8, 2)), (0, (6, 2, 1.5, 2)), (0, (3, 1.5)), (0, (7, 2, 1.5, 2, 1.5, 2)), (0, (2, 3)))
_GREY = "#8b93a0"  # of references: legible on white and on dark grey
_MARKERS = ("s", "^", "D", "v")  # of published scores for all models
_GROUP = 0.8  # width of the bars of a split


@dataclass(frozen=True, slots=True)
class OODRow:
    """One split of an out-of-distribution table.

    Attributes:
        split: Split name; ``test`` comes first.
        nodes: Number of nodes of the split's graphs (the mean if they differ), or the problem size of its texts; None
            if unknown.
        mean: Mean score over runs; None if the split was not evaluated.
        std: Standard deviation over runs; None for one run.
        published: The same architecture's published score under the same protocol; None if there is none.
        floor: Score of the best trivial baseline; None if not measured.
    """

    split: str
    nodes: float | None
    mean: float | None
    std: float | None
    published: float | None
    floor: float | None


@dataclass(frozen=True, slots=True)
class SizeAxis:
    """The horizontal axis of splits that differ in size.

    Attributes:
        label: The label.
        sizes: Split -> size, without splits of several sizes.
        trained: Sizes trained on.
        logarithmic: Whether the axis is logarithmic.
    """

    label: str
    sizes: Mapping[str, float]
    trained: Sequence[float] = ()
    logarithmic: bool = True


@dataclass(frozen=True, slots=True)
class Series:
    """One model's scores.

    Attributes:
        label: Name of the model.
        architecture: Name of the architecture with the protocol; its published scores are drawn once.
        caveat: Why the runs are not compared; empty if they are.
        rows: One row per split.
    """

    label: str
    architecture: str
    caveat: str
    rows: tuple[OODRow, ...]

    @property
    def legend(self) -> str:
        """The entry of the model in the legend."""
        return self.label + (f" ({self.caveat})" if self.caveat else "")

    @property
    def published(self) -> dict[str, float]:
        """Split -> published score of the architecture."""
        return {row.split: row.published for row in self.rows if row.published is not None}


@dataclass(frozen=True, slots=True)
class Reference:
    """Scores of a solver, of people or of a trivial baseline, with which models are compared.

    Attributes:
        label: Name of the reference.
        scores: Split -> score.
        kind: ``solver``, ``published`` or ``trivial``.
    """

    label: str
    scores: Mapping[str, float]
    kind: Literal["solver", "published", "trivial"]

    @property
    def colour(self) -> str:
        """The colour of the line: the colour of text for the trivial baseline, grey for other references."""
        return INK if self.kind == "trivial" else _GREY


def size_figure(series: Sequence[Series], references: Sequence[Reference], metric: str, axis: SizeAxis) -> Figure:
    """Return the figure of a metric against size, one line per model.

    Args:
        series: One per model.
        references: The references; a reference without a score on the axis is left out.
        metric: Label of the vertical axis.
        axis: The positions of the splits.
    """
    figure, (panel,) = new_figure(1)
    printed: set[str] = set()
    for number, entry in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        _draw_scores(panel, entry, axis, colour)
        if entry.architecture not in printed and _draw_published(panel, entry, axis, colour):
            printed.add(entry.architecture)
    shown_references = _with_dashes(references, list(axis.sizes))
    people = [reference.label for reference, _ in shown_references if reference.kind == "published"]
    for reference, dashes in shown_references:
        panel.plot(
            *zip(*_points(axis, reference.scores), strict=True),
            linestyle=dashes, color=reference.colour, linewidth=1.4, label=reference.label,
            marker=_MARKERS[people.index(reference.label) % len(_MARKERS)] if reference.label in people else None,
            markersize=4,
            zorder=2 if reference.kind == "trivial" else 1.5,
        )  # fmt: skip
    shown = sorted({axis.sizes[row.split] for entry in series for row in entry.rows if row.split in axis.sizes})
    _use_size_axis(panel, shown, axis)
    panel.set_ylabel(metric)
    mark_trained(panel, [size for size in axis.trained if shown[0] <= size <= shown[-1]])
    add_legend(figure, [panel])
    return figure


def _draw_scores(panel: Axes, entry: Series, axis: SizeAxis, colour: str) -> None:
    points = _points(axis, {row.split: row.mean for row in entry.rows if row.mean is not None})
    if not points:
        return
    spread = dict(_points(axis, {row.split: row.std or 0.0 for row in entry.rows}))
    sizes, means = zip(*points, strict=True)
    bars = [spread[size] for size in sizes] if any(spread[size] for size in sizes) else None
    panel.errorbar(sizes, means, yerr=bars, color=colour, marker="o", markersize=4.5, capsize=3, label=entry.legend)


def _draw_published(panel: Axes, entry: Series, axis: SizeAxis, colour: str) -> bool:
    points = _points(axis, entry.published)
    if points:
        panel.plot(
            *zip(*points, strict=True),
            linestyle="--", marker="s", markersize=3.5, color=colour, alpha=0.75, linewidth=1.3,
            label=entry.architecture + PUBLISHED,
        )  # fmt: skip
    return bool(points)


def _points(axis: SizeAxis, scores: Mapping[str, float]) -> list[tuple[float, float]]:
    """Return (size, score) of the splits on the axis, by ascending size."""
    return sorted(((axis.sizes[split], score) for split, score in scores.items() if split in axis.sizes), key=_size)


def _size(point: tuple[float, float]) -> float:
    return point[0]


def _with_dashes(references: Sequence[Reference], splits: Sequence[str]) -> list[tuple[Reference, Any]]:
    """Return the references with a score on one of the splits, each with its line style."""
    shown = [reference for reference in references if any(split in reference.scores for split in splits)]
    solvers = [reference.label for reference in shown if reference.kind == "solver"]
    others = {"trivial": ":", "published": "--"}
    return [(r, others.get(r.kind) or _DASHES[solvers.index(r.label) % len(_DASHES)]) for r in shown]


def _use_size_axis(panel: Axes, sizes: Sequence[float], axis: SizeAxis) -> None:
    if axis.logarithmic:
        panel.set_xscale("log", base=2)
    powers = [size for size in sizes if float(size).is_integer() and int(size).bit_count() == 1]
    step = -(-len(sizes) // _MAX_TICKS)
    ticks = powers if step > 1 and powers else list(sizes)[step - 1 :: step]
    panel.set_xticks(ticks, [f"{size:g}" for size in ticks])
    panel.minorticks_off()
    panel.set_xlabel(axis.label)


def kinds_figure(
    series: Sequence[Series], references: Sequence[Reference], metric: str, splits: Sequence[str]
) -> Figure:
    """Return the figure of a metric on splits that are kinds: one group of bars per split, one bar per model.

    A published score is a square on the bar of its architecture, a reference a line across the group.

    Args:
        series: One per model.
        references: The references; a reference without a score on the splits is left out.
        metric: Label of the vertical axis.
        splits: The groups, from left to right.
    """
    figure, (panel,) = new_figure(1)
    panel.grid(visible=False, axis="x")
    panel.set_axisbelow(True)
    width = _GROUP / len(series)
    printed: set[str] = set()
    for number, entry in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        positions = {split: i + (number + 0.5) * width - _GROUP / 2 for i, split in enumerate(splits)}
        _draw_bars(panel, entry, positions, width, colour)
        published = {split: score for split, score in entry.published.items() if split in positions}
        if published and entry.architecture not in printed:
            printed.add(entry.architecture)
            panel.plot(
                [positions[split] for split in published], list(published.values()),
                linestyle="", marker="s", markersize=6, color=colour, markeredgecolor=INK,
                label=entry.architecture + PUBLISHED,
            )  # fmt: skip
    for reference, dashes in _with_dashes(references, splits):
        groups = [i for i, split in enumerate(splits) if split in reference.scores]
        panel.hlines(
            [reference.scores[splits[i]] for i in groups],
            [i - _GROUP / 2 for i in groups], [i + _GROUP / 2 for i in groups],
            linestyle=[dashes], color=INK, linewidth=1.4, label=reference.label,
        )  # fmt: skip
    panel.set_xticks(range(len(splits)), list(splits))
    panel.set_ylabel(metric)
    add_legend(figure, [panel])
    return figure


def _draw_bars(panel: Axes, entry: Series, positions: Mapping[str, float], width: float, colour: str) -> None:
    rows = [row for row in entry.rows if row.split in positions and row.mean is not None]
    spread = [row.std or 0.0 for row in rows]
    panel.bar(
        [positions[row.split] for row in rows], [row.mean or 0.0 for row in rows], width * 0.94,
        yerr=spread if any(spread) else None, capsize=3, color=colour, alpha=0.85, ecolor=INK, label=entry.legend,
    )  # fmt: skip
