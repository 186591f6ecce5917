"""The table of the parts of a split that a card has scored beside the whole."""

from __future__ import annotations

from collections.abc import Sequence

from graphbench.catalog.cards import Card
from graphbench.evaluation.aggregates import Aggregate
from graphbench.reports.labels import Labels
from graphbench.reports.pages import Grid
from graphbench.reports.tables import metric_head, stat_text


def parts_grid(card: Card, results: Sequence[Aggregate]) -> Grid | None:
    """Return the card's metrics on every part of the test split, or None if there is no part or none was scored."""
    names = (card.metrics.primary, *card.metrics.also)
    labels = Labels(results)
    rows = []
    for part, spec in card.metrics.parts.items():
        for runs in results:
            found = [runs.score(f"test_{part}", name) for name in names]
            if any(found):
                about = f"{part}: magnitude of {spec.output} above {spec.above:g}"
                rows.append((about, labels[runs] + runs.mark, *(stat_text(value) for value in found)))
    return Grid(("part", "model", *(metric_head(name) for name in names)), tuple(rows)) if rows else None
