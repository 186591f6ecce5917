"""Accuracy of language models against problem size, as the CLRS-Text paper draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphbench.core.errors import EvaluationError
from graphbench.domains.clrs_text import paper_protocol
from graphbench.evaluation.language import SizeScore
from graphbench.reports.plots import COLOURS, INK, add_legend, mark_trained, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def accuracy_figure(algorithm: str, models: Mapping[str, Sequence[SizeScore]]) -> Figure:
    """Return the figure of accuracy against problem size of one algorithm, as the paper draws it (figure 6).

    Bars are one standard deviation over seeds; dots on the axis mark the sizes of the paper's training set.

    Args:
        algorithm: Name of the algorithm.
        models: Label -> scores, of which those of the algorithm are drawn.

    Raises:
        EvaluationError: If no model has a score of the algorithm.
    """
    from matplotlib.ticker import MaxNLocator

    figure, (axes,) = new_figure(1)
    drawn: set[int] = set()
    for number, (label, scores) in enumerate(models.items()):
        own = [score for score in scores if score.algorithm == algorithm]
        if own:
            sizes, means, bars = zip(*((score.size, score.mean, score.std or 0.0) for score in own), strict=True)
            colour = COLOURS[number % len(COLOURS)]
            axes.errorbar(sizes, means, yerr=bars, color=colour, marker="o", markersize=3, capsize=2, label=label)
            drawn |= set(sizes)
    if not drawn:
        raise EvaluationError(f"no model has a score of {algorithm!r}; there is nothing to draw")
    axes.set_ylim(-0.02, 1.02)
    mark_trained(axes, [s for s in paper_protocol().sizes_of(algorithm).train if min(drawn) <= s <= max(drawn)])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("problem size")
    axes.set_ylabel("accuracy")
    axes.set_title(algorithm, color=INK, fontsize=10)
    add_legend(figure, [axes])
    return figure
