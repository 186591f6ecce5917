"""Folders with one sample per file, such as formulas or graphs, and the split of each file.

The splits are the sub-folders ``train``, ``val`` and ``test``; every other sub-folder with such files is an
out-of-distribution split with the sub-folder's name. If a folder has no sub-folders, its files are assigned to splits
in the order of hashes of their contents: the first tenth is ``test``, the second tenth ``val``, the rest ``train``.
The samples of a split are in the alphabetical order of their file names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import CORE_SPLITS
from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.errors import GraphBenchError
from graphbench.core.files import clear_errors
from graphbench.core.words import counted
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts

NAME = Feature("name", Stage.META, Location.GRAPH, Kind.TEXT, meaning="name of the file")
"""The feature that holds the names of files."""

PACKED = ("", ".gz", ".xz", ".bz2")
"""Endings of files that may be compressed."""

WHOLE = "files"
"""The split with all samples of a folder without sub-folders."""

_HELD_OUT = 10  # one file in ten is for testing, one in ten for validation

_SHOWN = 3  # names of files in a message

T = TypeVar("T")

logger = logging.getLogger(__name__)

Graph = tuple[int, NDArray[np.int32]]
"""Number of nodes, and the edges [m, 2], each once, u < v, sorted."""


@dataclass(frozen=True)
class FileKind(Generic[T]):
    """A kind of files with one sample each.

    Attributes:
        noun: The sample in words, such as ``formula``; its plural has an s.
        is_one: Whether a file has this kind, by its name.
        names: The names of such files in words.
        read: Returns the sample of a file; raises ``error`` for a malformed one.
        digest: Returns a hash of a sample's content.
        error: Class of the errors on folders.
    """

    noun: str
    is_one: Callable[[str], bool]
    names: str
    read: Callable[[Path], T]
    digest: Callable[[T], str]
    error: type[GraphBenchError]


def read_splits(folder: Path, kind: FileKind[T], *, whole: str = "") -> dict[str, dict[str, T]]:
    """Return split -> file name -> sample for a folder; the module's docstring describes the splits.

    Args:
        folder: The folder.
        kind: The kind of its files.
        whole: Name of a further split with all samples of a folder without sub-folders; empty for none.

    Raises:
        GraphBenchError: Of the kind's class, if the folder holds no sample or too few for three splits, or a file is
            malformed or has the sample of another one.
        StoreError: If the folder cannot be read.
    """
    with clear_errors(folder, "read", "choose another folder"):
        inside = {child.name: _files(child, kind) for child in sorted(folder.iterdir())}
        direct, beside = _files(folder, kind)
    parts = {name: paths for name, (paths, _) in inside.items() if paths}
    if parts and direct:
        raise kind.error(
            f"{folder} holds {kind.noun}s ({direct[0].name}) beside sub-folders of {kind.noun}s ({next(iter(parts))}); "
            "move them into a sub-folder, which is their split"
        )
    if not parts and not direct:
        raise kind.error(f"{folder} holds no {kind.noun}; expected are files named {kind.names}")
    listed = parts or {"": direct}
    _tell_of_others([path for name in parts for path in inside[name][1]] if parts else beside, kind)
    samples = {split: {path.name: kind.read(path) for path in files} for split, files in listed.items()}
    digests = {
        s: {name: kind.digest(sample) for name, sample in split_samples.items()} for s, split_samples in samples.items()
    }
    _require_distinct(folder, digests, kind)
    if not parts:
        return _assigned(folder, samples[""], digests[""], kind) | ({whole: samples[""]} if whole else {})
    missing = [split for split in CORE_SPLITS if split not in samples]
    if missing:
        raise kind.error(
            f"{folder} has the sub-folders {', '.join(samples)}, but {missing[0]!r} is missing or holds no "
            f"{kind.noun}; give {', '.join(CORE_SPLITS)}, or no sub-folders"
        )
    return samples


def _files(folder: Path, kind: FileKind[T]) -> tuple[list[Path], list[Path]]:
    """Return the files of a kind in a folder, and its other files without the hidden ones; both sorted."""
    if not folder.is_dir() or folder.name.startswith("."):
        return [], []
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    others = [path for path in paths if not (kind.is_one(path.name) or path.name.startswith("."))]
    return [path for path in paths if kind.is_one(path.name)], others


def _tell_of_others(others: Sequence[Path], kind: FileKind[T]) -> None:
    """Warn of files that are not read because of their names."""
    if others:
        logger.warning(
            "%s not read, as %s are named %s: %s",
            "1 file is" if len(others) == 1 else f"{len(others):,} files are",
            f"{kind.noun}s",
            kind.names,
            ", ".join(path.name for path in others[:_SHOWN]) + (", ..." if len(others) > _SHOWN else ""),
        )


def _require_distinct(folder: Path, digests: Mapping[str, Mapping[str, str]], kind: FileKind[T]) -> None:
    first: dict[str, Path] = {}
    for split, split_digests in digests.items():
        for name, digest in split_digests.items():
            path = folder / split / name
            other = first.setdefault(digest, path)
            if other is not path:
                raise kind.error(f"{path} holds the same {kind.noun} as {other}; remove one of them")


def _assigned(
    folder: Path, samples: Mapping[str, T], digests: Mapping[str, str], kind: FileKind[T]
) -> dict[str, dict[str, T]]:
    if len(samples) < len(CORE_SPLITS):
        raise kind.error(
            f"{folder} holds {counted(len(samples), kind.noun)}; {', '.join(CORE_SPLITS[:-1])} and {CORE_SPLITS[-1]} "
            "need at least one each: add files"
        )
    split = splits_by_hash([digests[name] for name in samples])
    return {
        name: {file: sample for (file, sample), chosen in zip(samples.items(), split, strict=True) if chosen == name}
        for name in CORE_SPLITS
    }


def graphs_as_samples(graphs: Mapping[str, Graph]) -> Samples:
    """Return graphs as samples without features but the names of their files."""
    sizes = np.array([nodes for nodes, _ in graphs.values()], np.int64)
    edges = [edges for _, edges in graphs.values()]
    counts = np.array([len(edges_of_graph) for edges_of_graph in edges], np.int64)
    return Samples(sizes, counts, np.concatenate(edges), {NAME.name: Texts.of(graphs)})


def splits_by_hash(hashes: Sequence[str]) -> list[str]:
    """Assign three or more samples to splits by the order of their hashes; return the split of each.

    The first tenth in this order (at least one) is ``test``, the second tenth ``val``, the rest ``train``.
    """
    order = sorted(range(len(hashes)), key=lambda i: hashes[i])
    tenth = max(1, len(hashes) // _HELD_OUT)
    splits = ["train"] * len(hashes)
    for rank, i in enumerate(order[: 2 * tenth]):
        splits[i] = "test" if rank < tenth else "val"
    return splits
