"""Simulated networks written in the format of the archive of Bluesky."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.core.errors import ArgumentError
from graphbench.core.files import clear_errors
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.domain import find
from graphbench.data.components.exporters import Exporter
from graphbench.domains.social.archive_files import GRAPHS, POSTS
from graphbench.domains.social.generators import SnapshotParameters, network
from graphbench.domains.social.simulator import Network
from graphbench.domains.social.wording import write_text

_LEVEL = 6


def write_archive(history: Network, folder: Path) -> list[Path]:
    """Write a history as ``user_posts.tar.gz`` and ``graphs.tar.gz``; return the files.

    Posts have the fields of the archive and texts of a small grammar. Interactions have minutes. The bytes depend on
    the history alone.

    Raises:
        StoreError: If the folder cannot be written.
    """
    posts, graphs = folder / POSTS[0], folder / GRAPHS
    with clear_errors(folder, "write", "choose another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        with _tarball(posts) as archive:
            for name, content in _files_of_posts(history):
                _add(archive, name, content)
        with _tarball(graphs) as archive:
            for kind, interactions in history.interactions.items():
                rows = np.stack(
                    [interactions.source, interactions.target, stamps_of_minutes(interactions.time)], axis=1
                )
                order = np.lexsort((rows[:, 1], rows[:, 0], rows[:, 2]))
                text = io.StringIO()
                text.write("source,target,date\n")
                np.savetxt(text, rows[order], "%d", ",")
                _add(archive, f"graphs/{kind}.csv", text.getvalue().encode())
    return [posts, graphs]


def stamps_of_minutes(minutes: NDArray[Any]) -> NDArray[np.int64]:
    """Return minutes since 1970 as YYYYMMDDHHMM."""
    days, rest = np.divmod(minutes.astype(np.int64), 1440)
    date = days.astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    year = month.astype("datetime64[Y]")
    year_number = year.astype(np.int64) + 1970
    month_number = (month - year.astype("datetime64[M]")).astype(np.int64) + 1
    day_number = (date - month.astype("datetime64[D]")).astype(np.int64) + 1
    hour, minute = np.divmod(rest, 60)
    return np.asarray((((year_number * 100 + month_number) * 100 + day_number) * 100 + hour) * 100 + minute)


def _files_of_posts(history: Network) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the file of every user who posts; posts are sorted by time."""
    posts = history.posts
    order = np.lexsort((posts.time, posts.user))
    columns = [getattr(posts, name)[order] for name in ("user", "likes", "replies", "reposts")]
    users, starts = np.unique(columns[0], return_index=True)
    stamps, topics = stamps_of_minutes(posts.time[order]), history.topics[order]
    for user, first, last in zip(users.tolist(), starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        lines = []
        for i in range(first, last):
            post = {
                "post_id": i,
                "user_id": user,
                "instance": "sim.social",
                "date": int(stamps[i]),
                "text": write_text(int(topics[i]), i),
                "langs": ["eng"],
                "like_count": int(columns[1][i]),
                "reply_count": int(columns[2][i]),
                "repost_count": int(columns[3][i]),
                **dict.fromkeys(("reply_to", "replied_author", "thread_root", "thread_root_author")),
                **dict.fromkeys(("repost_from", "reposted_author", "quotes", "quoted_author", "labels")),
                **dict.fromkeys(("sent_label", "sent_score")),
            }
            lines.append(json.dumps(post))
        yield f"user_posts/{user}.jsonl", ("\n".join(lines) + "\n").encode()


@contextmanager
def _tarball(path: Path) -> Iterator[tarfile.TarFile]:
    """Open a compressed tarball for writing; its bytes do not depend on the time."""
    with (
        path.open("wb") as stream,
        gzip.GzipFile("", "wb", _LEVEL, stream, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        yield archive


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def _write(card: Card, splits: Mapping[str, Samples], folder: Path) -> list[Path]:
    """Write the whole history; all splits are snapshots of it."""
    parameters = find("generator", card.generator).parse(card, "train")
    if not isinstance(parameters, SnapshotParameters):
        raise ArgumentError(f"{card.address} is not simulated; `archive` writes simulated networks, social/sim_*")
    return write_archive(network(parameters.users, parameters.seed, parameters.width), folder)


EXPORTERS: Mapping[str, Exporter] = {
    "archive": Exporter("social.archive", "the whole history, all kinds and dates, as the archive of Bluesky", _write),
}
