"""The sources of ``social/quotes``, ``social/replies`` and ``social/reposts``: the archive of Bluesky, and tensors.

``official`` reads the archive; ``official_shared`` also reads the archive, and counts a repost of another user's post
as a post of the reposting user; ``tensors`` reads the tensors of the public package by GraphBench's authors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import CORE_SPLITS, Card
from graphbench.core.errors import CardError, StoreError
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.checks import Row
from graphbench.data.components.file_sources import FileParameters, FileSource, file_source
from graphbench.data.components.generators import Generator
from graphbench.data.sources.zenodo import ZenodoFiles
from graphbench.domains.social.archive_files import GRAPHS, POSTS
from graphbench.domains.social.archive_tables import (
    facts,
    interactions_by_part,
    posts_by_part,
    prepare_interactions,
    prepare_posts,
)
from graphbench.domains.social.embeddings import contents_by_part
from graphbench.domains.social.public_tensors import read_tensors
from graphbench.domains.social.samples import degree_statistics, snapshot_as_samples
from graphbench.domains.social.simulator_tables import DATES, START
from graphbench.domains.social.snapshots import Median, Snapshot, snapshot_of_parts
from graphbench.domains.social.tables import KINDS, end_of_day


class ArchiveParameters(StrictModel):
    """The parameters of a snapshot of the archive; see :class:`~.generators.SnapshotParameters`."""

    kind: Literal["quotes", "replies", "reposts"]
    seen_until: date
    predicted_until: date


def read_snapshot(
    folder: Path,
    kind: str,
    seen_until: date,
    predicted_until: date,
    *,
    median: Median = "lower",
    loops: bool = True,
    shared: bool = False,
    embedded: bool = True,
    progress: bool | None = None,
) -> Snapshot:
    """Return a snapshot of the archive in a folder; tables that are not prepared yet are prepared first.

    Args:
        folder: The folder of the archive.
        kind: ``quotes``, ``replies`` or ``reposts``.
        seen_until: Last day of the inputs.
        predicted_until: Last day of the posts whose engagement is predicted.
        median: As for :func:`~.snapshots.snapshot`.
        loops: As for :func:`~.snapshots.snapshot`.
        shared: Whether reposts of others' posts count as posts, with the engagement of the post that was reposted.
        embedded: Whether the snapshot has contents, which must be embedded already; if False, ``content`` has no
            columns.
        progress: Show progress bars; None for terminals only.

    Raises:
        StoreError: If a file is missing, damaged or unsafe, the texts are not embedded, or nobody posted in both
            intervals.
    """
    for journal, table in (
        (prepare_posts(folder, progress, shared=shared), "posts"),
        (prepare_interactions(folder, kind, progress), kind),
    ):
        if not journal.rows:
            raise StoreError(
                f"{folder} has no row of {table} that can be read ({journal.malformed:,} lines are malformed); give "
                "the folder of the archive of Bluesky"
            )
    times = end_of_day(START) - 1440, end_of_day(seen_until), end_of_day(predicted_until)
    contents = contents_by_part(folder, shared=shared) if embedded else ()
    rows = posts_by_part(folder, shared=shared), interactions_by_part(folder, kind)
    snapshot = snapshot_of_parts(*rows, contents, times, median=median, loops=loops)
    if snapshot is None:
        raise StoreError(
            f"in {folder} nobody with an edge of {kind} posted until {seen_until} and from then to {predicted_until}; "
            "take the whole archive"
        )
    return snapshot


def read_official(folder: Path, kind: str, shared: bool = False) -> dict[str, Samples]:
    """Return the paper's splits of the archive in a folder; ``shared`` as for :func:`read_snapshot`.

    Raises:
        StoreError: As for :func:`read_snapshot`.
    """
    splits = {}
    for split, seen_until, predicted_until in zip(CORE_SPLITS, DATES[:-1], DATES[1:], strict=True):
        samples = snapshot_as_samples([read_snapshot(folder, kind, seen_until, predicted_until, shared=shared)])
        content = samples.values["content"].astype(np.float16)
        splits[split] = replace(samples, values={**samples.values, "content": content})
    return splits


def _report(card: Card, splits: Sequence[str]) -> Iterator[Row]:
    """Yield the numbers of rows and malformed lines in the files."""
    folder = Path(FileParameters.model_validate(card.split("train").parameters).folder)
    for table, journal in facts(folder).items():
        treatment = "left out" if table == "posts" else "counted as posts"
        shared = f", {journal.shared:,} are reposts of others' posts and {treatment}" if table not in KINDS else ""
        words = f"{journal.rows:,} rows, {journal.malformed:,} malformed lines{shared}"
        yield Row("all files", table, True, words, "noted" if journal.malformed else "")


def _of_kind(read: Callable[..., dict[str, Samples]], protocol: str, kind: str, **options: Any) -> FileSource:
    """Return the source of one kind of interactions; its runs have the protocol of the source that users name."""

    def describe(card: Card) -> Card:
        return card.model_copy(update={"protocol": protocol, "measured": None, "overlapping": True})

    source = file_source(f"social.{protocol}_{kind}", partial(read, kind=kind, **options))
    generator = replace(source.generator, statistics=degree_statistics)
    report = None if read is read_tensors else _report
    return replace(source, generator=generator, report=report, describe=describe, part_of=protocol)


def _sources(
    protocol: str, read: Callable[..., dict[str, Samples]], downloads: Any = (), **options: Any
) -> dict[str, FileSource]:
    """Return the source that users name, which chooses by card, and the sources of each kind of interactions."""
    by_kind = {kind: _of_kind(read, protocol, kind, **options) for kind in KINDS}

    def card_of_files(card: Card, folder: Path) -> Card:
        if card.generator != "social.archive":
            raise CardError(
                f"{card.address} is simulated; source={protocol!r} has social/quotes, social/replies and social/reposts"
            )
        source = by_kind[str(card.split("train").parameters["kind"])]
        return source.describe(source.card(card, folder))

    any_of_them = next(iter(by_kind.values()))
    named = FileSource(
        f"social.{protocol}", card_of_files, ARCHIVE, any_of_them.describe, any_of_them.report, downloads
    )
    return {protocol: named, **{f"{protocol}_{kind}": source for kind, source in by_kind.items()}}


def _refuse(
    parameters: ArchiveParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Any:
    raise StoreError(
        f"social/{parameters.kind} is read from the archive of Bluesky: give source='official' and folder= (--source "
        f"official --folder DIR); social/sim_{parameters.kind} is simulated and needs no files"
    )


ARCHIVE = Generator(
    name="social.archive",
    version=1,
    parameters=ArchiveParameters,
    generate=_refuse,
    check=None,
    statistics=lambda parameters, samples: {},
    shard_size=lambda parameters: 1,
    unique=False,
    drawn=False,
)

_RECORD = ZenodoFiles(14669616, (POSTS[0], GRAPHS))
SOURCES: Mapping[str, FileSource] = {
    **_sources("official", read_official, _RECORD),
    **_sources("official_shared", read_official, _RECORD, shared=True),
    **_sources("tensors", read_tensors),
}
