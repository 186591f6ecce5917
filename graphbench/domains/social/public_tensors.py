"""The tensors of the public package by GraphBench's authors, with the interactions to which they belong.

Release 0.2.0 reads, for every kind and split, ``x_<kind>_<split>.pt`` (contents), ``y_<kind>_<split>.pt`` (targets) and
``keep_uids_<kind>_<split>.pt`` (users), and ``<kind>.csv`` of the archive of Bluesky. Row ``i`` of the tensors belongs
to the ``i``-th user with an edge, in rising order.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import CORE_SPLITS
from graphbench.core.casting import overflow_fault
from graphbench.core.errors import StoreError
from graphbench.data.arrays.samples import Samples
from graphbench.data.sources.torch_files import read_torch_file
from graphbench.domains.social.archive_tables import interactions_by_part, prepare_interactions
from graphbench.domains.social.simulator_tables import DATES
from graphbench.domains.social.tables import COUNTS, end_of_day

_URL = "https://huggingface.co/datasets/log-rwth-aachen/Graphbench_SocialMedia"
_LARGEST = np.iinfo(np.int32).max


def read_tensors(folder: Path, kind: str) -> dict[str, Samples]:
    """Return the splits of the tensors in a folder; files may lie in folders below it.

    The tensors do not hold past engagement, so persistence cannot be scored.

    Raises:
        StoreError: If a file is missing, damaged or holds something else, or the tensors do not belong to the
            interactions.
    """
    prepare_interactions(folder, kind)
    splits = {}
    for split, seen_until in zip(CORE_SPLITS, DATES[:-1], strict=True):
        content, targets = (_matrix(_only(folder, f"{name}_{kind}_{split}.pt")) for name in "xy")
        users = _users(_only(folder, f"keep_uids_{kind}_{split}.pt"))
        pairs = first_pairs(folder, kind, users, seen_until)
        nodes = np.unique(pairs)
        if not len(nodes) == len(content) == len(targets) or targets.shape[1] != len(COUNTS):
            raise StoreError(
                f"{split} of {kind} in {folder} has {len(nodes):,} users with edges until {seen_until}, contents "
                f"{list(content.shape)} and targets {list(targets.shape)}; give the tensors and the interactions of "
                f"one release ({_URL} and https://zenodo.org/records/14669616)"
            )
        for prefix, array, dtype in (("x", content, np.float16), ("y", targets, np.float32)):
            if (fault := overflow_fault(array, dtype)) is not None:
                raise StoreError(f"{prefix}_{kind}_{split}.pt in {folder} {fault}; fetch it again ({_URL})")
        edges = np.searchsorted(nodes, pairs)
        splits[split] = Samples(
            np.array([len(nodes)]),
            np.array([len(edges)]),
            edges,
            {
                "content": content.astype(np.float16),
                **{name: np.ascontiguousarray(targets[:, i], np.float32) for i, name in enumerate(COUNTS)},
            },
        )
    return splits


def first_pairs(folder: Path, kind: str, users: NDArray[np.int64], seen_until: date) -> NDArray[np.int64]:
    """Return the pairs of kept users with a first row in the file not later than a day, int64 ``[E, 2]``, sorted.

    The public package chooses edges in this way. If the file is sorted by time, the result is all pairs that interacted
    by the day.

    Args:
        folder: The folder of the archive; the interactions must be prepared.
        kind: ``quotes``, ``replies`` or ``reposts``.
        users: int64, rising.
        seen_until: Last day of the inputs.
    """
    kept = [np.empty((0, 2), np.int64)]
    for part in interactions_by_part(folder, kind):
        key = part.source.astype(np.int64) << 32 | part.target
        _, first = np.unique(key, return_index=True)
        first = first[part.time[first] <= end_of_day(seen_until)]
        pairs = np.stack([part.source[first], part.target[first]], axis=1).astype(np.int64)
        kept.append(pairs[np.isin(pairs, users).all(axis=1)])
    pairs = np.concatenate(kept)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _only(folder: Path, name: str) -> Path:
    """Return the only file of a name in a folder or its sub-folders."""
    paths = sorted(folder.rglob(name))
    if len(paths) != 1:
        fault = f"has no {name}" if not paths else f"has {len(paths)} files {name}"
        raise StoreError(f"{folder} {fault}; give a folder with one copy of the files of {_URL}")
    return paths[0]


def _matrix(path: Path) -> NDArray[Any]:
    matrix = read_torch_file(path)
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.dtype.kind != "f":
        contents = f"{matrix.dtype} {list(matrix.shape)}" if isinstance(matrix, np.ndarray) else type(matrix).__name__
        raise StoreError(f"{path} holds {contents}, not a matrix of floats; give the file of {_URL}")
    if not np.isfinite(matrix).all():
        row = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
        raise StoreError(f"{path} has a value that is not finite in row {row}; fetch it again")
    return matrix


def _users(path: Path) -> NDArray[np.int64]:
    """Return the users in a file, int64, rising; the file may hold their numbers as texts."""
    content = read_torch_file(path)
    try:
        if not isinstance(content, Collection) or isinstance(content, (str, dict)):
            raise ValueError(f"it is of type {type(content).__name__}")
        users = np.unique(np.array([int(user) for user in content], np.int64))
        if len(users) and not 0 <= users[0] <= users[-1] <= _LARGEST:
            raise ValueError(f"it has the user {users[0] if users[0] < 0 else users[-1]}")
    except (TypeError, ValueError, OverflowError) as error:
        raise StoreError(f"{path} is no list of users ({error}); give the file of {_URL}") from error
    return users
