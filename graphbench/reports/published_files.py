"""Runs on published files, which reports separate from runs on generated data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphbench.catalog.sections import SplitSpec
from graphbench.data.components.file_sources import FileSource
from graphbench.data.components.source_choice import source_with_protocol
from graphbench.records.aggregates import Aggregate
from graphbench.reports.pages import ABSENT, Grid

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card


def is_of_files(about: Aggregate | Card) -> bool:
    """Return whether runs, or a card, are of published files."""
    return _source_of(about) is not None


def _source_of(about: Aggregate | Card) -> FileSource | None:
    domain = about.dataset.partition("/")[0] if isinstance(about, Aggregate) else about.domain
    return source_with_protocol(domain, about.protocol)


def card_of_files(card: Card, results: Sequence[Aggregate]) -> Card:
    """Return a dataset's card for the published files that runs are scored on.

    It holds nothing that was measured on generated data. Its out-of-distribution splits are those that some run is
    scored on, those of the card first.

    Args:
        card: The card of the generated dataset.
        results: Runs on published files.
    """
    scored = dict.fromkeys(split for runs in results for split in runs.scores)
    others = {name: SplitSpec(count=1) for name in scored if name not in card.all_splits}
    ood = {name: spec for name, spec in card.ood.items() if name in scored} | others
    source = _source_of(results[0])
    assert source is not None
    return source.describe(card).model_copy(update={"ood": ood})


def heading_of(dataset: str, card: Card) -> str:
    """Return the heading of a dataset in a report: its id, and of which kind of files its data are, if of any."""
    return dataset + (f", {card.protocol} files" if is_of_files(card) else "")


def anchor_of(dataset: str, card: Card) -> str:
    """Return the anchor of a dataset in a page, which also names its figures."""
    return dataset.replace("/", "-").replace(":", "-") + ("-files" if is_of_files(card) else "")


def scored_rows(card: Card, results: Sequence[Aggregate]) -> Grid:
    """Return the splits of published files with the number of graphs that runs are scored on."""
    rows = []
    for split in card.all_splits:
        counts = {r.graphs_scored[split] for runs in results for r in runs.records if split in r.graphs_scored}
        ends = [f"{count:,}" for count in sorted({min(counts), max(counts)})] if counts else [ABSENT]
        rows.append((split, " to ".join(ends)))
    return Grid(("split", "graphs scored"), tuple(rows))
