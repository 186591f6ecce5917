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


def is_of_files(subject: Aggregate | Card) -> bool:
    """Return whether runs used published files, or a card describes published files."""
    return _source_of(subject) is not None


def _source_of(subject: Aggregate | Card) -> FileSource | None:
    domain = subject.dataset.partition("/")[0] if isinstance(subject, Aggregate) else subject.domain
    return source_with_protocol(domain, subject.protocol)


def card_of_files(card: Card, results: Sequence[Aggregate]) -> Card:
    """Return a dataset's card for the published files that runs are scored on.

    The card holds no measurements of generated data. Its out-of-distribution splits are the splits that some run is
    scored on; the splits of the dataset's card come first.

    Args:
        card: The card of the generated dataset.
        results: Runs on published files.
    """
    scored = dict.fromkeys(split for runs in results for split in runs.scores)
    others = {name: SplitSpec(count=1) for name in scored if name not in card.all_splits}
    ood = {name: spec for name, spec in card.ood.items() if name in scored} | others
    source = _source_of(results[0])
    assert source is not None
    described = source.describe(card)
    return described.with_splits(described.splits, ood)


def heading_of(dataset: str, card: Card) -> str:
    """Return the heading of a dataset in a report: its id, and the kind of published files if it has any."""
    return dataset + (f", {card.protocol} files" if is_of_files(card) else "")


def anchor_of(dataset: str, card: Card) -> str:
    """Return the anchor of a dataset in a page; the anchor also names the dataset's figures."""
    return dataset.replace("/", "-").replace(":", "-") + ("-files" if is_of_files(card) else "")


def scored_rows(card: Card, results: Sequence[Aggregate]) -> Grid:
    """Return the splits of published files with the number of graphs that runs are scored on."""
    rows = []
    for split in card.all_splits:
        counts = {r.graphs_scored[split] for runs in results for r in runs.records if split in r.graphs_scored}
        ends = [f"{count:,}" for count in sorted({min(counts), max(counts)})] if counts else [ABSENT]
        rows.append((split, " to ".join(ends)))
    return Grid(("split", "graphs scored"), tuple(rows))
