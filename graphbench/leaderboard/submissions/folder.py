"""The files of a submission: listed without following links, and sorted into description, records and predictions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from graphbench.core.errors import ResultError
from graphbench.core.untrusted import shown, text_fault
from graphbench.records.files import DATASET_ID

DESCRIPTION = "submission.yaml"
PREDICTIONS = "predictions"
SEAL = "seal.json"
WEIGHTS = "weights"
CODE = "code"
MOST_FILES = 250_000
MOST_RUNS = 5000
MOST_LEVELS = 8
MOST_NAME = 200
_SEED = re.compile(r"seed(0|[1-9][0-9]{0,8})")
_WEIGHTS_FILE = re.compile(r"seed(0|[1-9][0-9]{0,8})\.safetensors")
LAYOUT = f"{PREDICTIONS}/<domain>/<dataset>[-<task>]/seed<number>/<split>.npz"
_WEIGHTS_LAYOUT = f"{WEIGHTS}/<domain>/<dataset>[-<task>]/seed<number>.safetensors"


@dataclass(frozen=True)
class SeedPath:
    """The predictions or the weights of a seed on one dataset.

    Attributes:
        path: The folder of the predictions, or the file of the weights.
        dataset: Id of the dataset, as the names of the folders give it.
        seed: The seed.
    """

    path: Path
    dataset: str
    seed: int


@dataclass
class Contents:
    """The files of a submission.

    Attributes:
        folder: The folder.
        records: JSON files outside the predictions.
        predictions: The folders of predictions.
        weights: The files of weights.
        code: The files of the author's code.
        unread: Number of files that nothing reads.
        faults: File -> why it is refused.
    """

    folder: Path
    records: list[Path] = field(default_factory=list)
    predictions: list[SeedPath] = field(default_factory=list)
    weights: list[SeedPath] = field(default_factory=list)
    code: list[Path] = field(default_factory=list)
    unread: int = 0
    faults: dict[str, str] = field(default_factory=dict)

    def name_of(self, path: Path) -> str:
        """Return the name of a file below the folder, for messages."""
        return path.relative_to(self.folder).as_posix()


class UnsafeFolder(ResultError):
    """A folder has links, special files, names that cannot be printed, or too many files; nothing in it was read."""

    def __init__(self, faults: dict[str, str]) -> None:
        super().__init__("; ".join(f"{shown(name)}: {fault}" for name, fault in faults.items()))
        self.faults = faults


def contents_of(folder: Path) -> Contents:
    """Return the files of a submission, sorted by kind; hidden files and folders are left out.

    Raises:
        UnsafeFolder: If there is a link, a special file, or a name that is refused; or there are more than
            :data:`MOST_FILES` files, :data:`MOST_RUNS` records or folders of predictions, or :data:`MOST_LEVELS`
            folders within each other.
    """
    contents, seeds = Contents(folder), dict[Path, SeedPath]()
    for path in sorted(_files_below(folder)):
        parts = path.relative_to(folder).parts
        if parts[0] == PREDICTIONS:
            _sort_prediction(path, parts[1:], contents, seeds)
        elif parts[0] == WEIGHTS:
            _sort_weights(path, parts[1:], contents)
        elif parts[0] == CODE:
            contents.code.append(path)
        elif parts == (SEAL,):
            continue
        elif path.suffix == ".json":
            contents.records.append(path)
        elif parts != (DESCRIPTION,):
            contents.unread += 1
    contents.predictions = list(seeds.values())
    for what, runs in (("records", contents.records), (PREDICTIONS, contents.predictions)):
        if len(runs) > MOST_RUNS:
            raise UnsafeFolder({what: f"there are {len(runs):,} of them; at most {MOST_RUNS:,} are read"})
    return contents


def _sort_prediction(path: Path, parts: tuple[str, ...], contents: Contents, seeds: dict[Path, SeedPath]) -> None:
    """Add the folder of a file of predictions, or the reason why the file lies in no folder of a seed."""
    name = contents.name_of(path)
    if len(parts) < 4:
        contents.faults[name] = f"predictions lie in {LAYOUT}; move the file there"
        return
    domain, dataset, seed = parts[:3]
    id_, number = f"{domain}/{dataset.replace('-', ':', 1)}", _SEED.fullmatch(seed)
    if not DATASET_ID.fullmatch(id_):
        contents.faults[f"{PREDICTIONS}/{domain}/{dataset}"] = f"no id of a dataset; predictions lie in {LAYOUT}"
    elif number is None:
        contents.faults[f"{PREDICTIONS}/{domain}/{dataset}/{seed}"] = (
            f"no seed, which is written without a sign or zeros before it (seed1); predictions lie in {LAYOUT}"
        )
    else:
        seed_folder = contents.folder / PREDICTIONS / domain / dataset / seed
        seeds.setdefault(seed_folder, SeedPath(seed_folder, id_, int(number[1])))


def _sort_weights(path: Path, parts: tuple[str, ...], contents: Contents) -> None:
    """Add a file of weights, or the reason why it is none."""
    name = contents.name_of(path)
    number = _WEIGHTS_FILE.fullmatch(parts[-1])
    id_ = f"{parts[0]}/{parts[1].replace('-', ':', 1)}" if len(parts) == 3 else ""
    if number is None or not DATASET_ID.fullmatch(id_):
        contents.faults[name] = f"weights lie in {_WEIGHTS_LAYOUT}, as safetensors; move the file there"
    else:
        contents.weights.append(SeedPath(path, id_, int(number[1])))


def _files_below(folder: Path) -> Iterator[Path]:
    faults: dict[str, str] = {}
    count, waiting = 0, [(folder, 0)]
    while waiting:
        place, level = waiting.pop()
        for entry in _entries(place, folder):
            if entry.name.startswith("."):
                continue
            count += 1
            path = place / entry.name
            name = path.relative_to(folder).as_posix()
            fault = _fault_of(entry, level)
            if fault is not None:
                faults[name] = fault
            elif entry.is_dir(follow_symlinks=False):
                waiting.append((path, level + 1))
            else:
                yield path
            if count > MOST_FILES:
                raise UnsafeFolder({".": f"there are more than {MOST_FILES:,} files; give one file per split"})
    if faults:
        raise UnsafeFolder(faults)


def _entries(place: Path, folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as entries:
            return list(entries)
    except OSError as error:
        name = place.relative_to(folder).as_posix()
        raise UnsafeFolder({name: f"the folder cannot be read: {error.strerror}"}) from error


def _fault_of(entry: os.DirEntry[str], level: int) -> str | None:
    """Return why a file or folder is refused, or None."""
    if fault := text_fault(entry.name, MOST_NAME):
        return f"its name is {fault}; rename it"
    if entry.is_symlink():
        return "it is a symbolic link, which is not followed; put the file itself there"
    if entry.is_dir(follow_symlinks=False):
        return None if level < MOST_LEVELS else f"folders lie more than {MOST_LEVELS} deep; move it up"
    return None if entry.is_file(follow_symlinks=False) else "it is no ordinary file; remove it"
