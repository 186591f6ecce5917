"""Accuracy of language models against problem size, as the CLRS-Text paper draws it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from graphbench.core.errors import EvaluationError
from graphbench.reports.plots import COLOURS, INK, add_legend, mark_trained, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from graphbench.tasks.text.language import SizeScore


def accuracy_figure(algorithm: str, models: Mapping[str, Sequence[SizeScore]], trained: Iterable[int] = ()) -> Figure:
    """Return the figure of accuracy against problem size of one algorithm, as the paper draws it (figure 6).

    Bars are one standard deviation over seeds; dots on the axis mark the sizes that were trained on.

    Args:
        algorithm: Name of the algorithm.
        models: Label -> scores. Only the scores of the algorithm are drawn.
        trained: Problem sizes of the training set, e.g. ``paper_protocol().sizes_of(algorithm).train``.

    Raises:
        EvaluationError: If no model has a score of the algorithm.
    """
    from matplotlib.ticker import MaxNLocator

    figure, (axes,) = new_figure(1)
    drawn: set[int] = set()
    for number, (label, scores) in enumerate(models.items()):
        scores_of_algorithm = [score for score in scores if score.algorithm == algorithm]
        if scores_of_algorithm:
            sizes, means, bars = zip(
                *((score.size, score.mean, score.std or 0.0) for score in scores_of_algorithm), strict=True
            )
            colour = COLOURS[number % len(COLOURS)]
            axes.errorbar(sizes, means, yerr=bars, color=colour, marker="o", markersize=3, capsize=2, label=label)
            drawn |= set(sizes)
    if not drawn:
        raise EvaluationError(f"no model has a score of {algorithm!r}; there is nothing to draw")
    axes.set_ylim(-0.02, 1.02)
    mark_trained(axes, [s for s in trained if min(drawn) <= s <= max(drawn)])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("problem size")
    axes.set_ylabel("accuracy")
    axes.set_title(algorithm, color=INK, fontsize=10)
    add_legend(figure, [axes])
    return figure
