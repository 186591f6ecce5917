"""The archive of Bluesky as the source ``official`` of ``social/quotes``, ``social/replies`` and ``social/reposts``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from graphbench.catalog.cards import CORE_SPLITS, Card
from graphbench.core.errors import CardError, StoreError
from graphbench.data.checks import Row
from graphbench.data.samples import Generator, Samples
from graphbench.data.sources import FileParameters, FileSource, file_source
from graphbench.domains.social.archive_tables import (
    facts,
    interactions_by_part,
    posts_by_part,
    prepare_interactions,
    prepare_posts,
)
from graphbench.domains.social.embeddings import contents_by_part
from graphbench.domains.social.samples import degree_statistics, snapshot_as_samples
from graphbench.domains.social.simulator_tables import DATES, START
from graphbench.domains.social.snapshots import Median, Snapshot, snapshot_of_parts
from graphbench.domains.social.tables import KINDS, end_of_day

PROTOCOL = "official"


class ArchiveParameters(BaseModel):
    """Which snapshot of the archive; see :class:`~.generators.SnapshotParameters`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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
    embedded: bool = True,
    progress: bool | None = None,
) -> Snapshot:
    """Return a snapshot of the archive in a folder, whose tables are prepared first where they are not.

    Args:
        folder: The folder of the archive.
        kind: ``quotes``, ``replies`` or ``reposts``.
        seen_until: Last day of what models see.
        predicted_until: Last day of the posts whose engagement is predicted.
        median: As for :func:`~.snapshots.snapshot`.
        loops: As for :func:`~.snapshots.snapshot`.
        embedded: Whether the snapshot has the contents, which must have been embedded; without, it has no columns.
        progress: Show progress bars; None for terminals only.

    Raises:
        StoreError: If a file is missing, damaged or unsafe, the texts are not embedded, or nobody posted in both
            intervals.
    """
    for journal, what in (
        (prepare_posts(folder, progress), "posts"),
        (prepare_interactions(folder, kind, progress), kind),
    ):
        if not journal.rows:
            raise StoreError(
                f"{folder} has no row of {what} that can be read ({journal.malformed:,} lines are malformed); give the "
                "folder of the archive of Bluesky"
            )
    times = end_of_day(START) - 1440, end_of_day(seen_until), end_of_day(predicted_until)
    contents = contents_by_part(folder) if embedded else ()
    rows = posts_by_part(folder), interactions_by_part(folder, kind)
    found = snapshot_of_parts(*rows, contents, times, median=median, loops=loops)
    if found is None:
        raise StoreError(
            f"in {folder} nobody with an edge of {kind} posted until {seen_until} and from then to {predicted_until}; "
            "take the whole archive"
        )
    return found


def read_official(folder: Path, kind: str) -> dict[str, Samples]:
    """Return the splits of the paper of the archive in a folder.

    Raises:
        StoreError: As :func:`read_snapshot` does.
    """
    found = {}
    for split, seen_until, predicted_until in zip(CORE_SPLITS, DATES[:-1], DATES[1:], strict=True):
        samples = snapshot_as_samples([read_snapshot(folder, kind, seen_until, predicted_until)])
        content = samples.values["content"].astype(np.float16)
        found[split] = replace(samples, values={**samples.values, "content": content})
    return found


def _report(card: Card, splits: Sequence[str]) -> Iterator[Row]:
    """Yield what was found in the files."""
    folder = Path(FileParameters.model_validate(card.split("train").parameters).folder)
    for table, journal in facts(folder).items():
        shared = f", {journal.shared:,} are reposts of others' posts and left out" if table == "posts" else ""
        words = f"{journal.rows:,} rows, {journal.malformed:,} malformed lines{shared}"
        yield Row("all files", table, True, words, "noted" if journal.malformed else "")


def _describe(card: Card) -> Card:
    return card.model_copy(update={"protocol": PROTOCOL, "measured": None, "overlapping": True})


def _of_kind(kind: str) -> FileSource:
    found = file_source(f"social.{kind}", partial(read_official, kind=kind))
    generator = replace(found.generator, statistics=degree_statistics)
    return replace(found, generator=generator, report=_report, describe=_describe)


_OF_KIND = {kind: _of_kind(kind) for kind in KINDS}


def _card(card: Card, folder: Path) -> Card:
    """Return the card of the archive in a folder, with the interactions that the card names.

    Raises:
        CardError: If the card is that of a simulated network.
    """
    if card.generator != "social.archive":
        raise CardError(
            f"{card.address} is simulated; the archive is loaded as social/quotes, social/replies or social/reposts"
        )
    return _describe(_OF_KIND[str(card.split("train").parameters["kind"])].card(card, folder))


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

SOURCES: Mapping[str, FileSource] = {
    PROTOCOL: FileSource("social.official", _card, ARCHIVE, _describe, report=_report),
    **_OF_KIND,
}
