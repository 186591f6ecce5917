"""Published CLUTRR files as a source: the dataset that a folder stands for, its card, and its samples."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card, SplitSpec
from graphbench.catalog.features import Feature
from graphbench.catalog.names import catalog
from graphbench.core.damage import damage_named
from graphbench.core.errors import StoreError
from graphbench.core.files import file_sha256
from graphbench.core.ragged import offsets
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.file_sources import FileSource, refuse_other_draws
from graphbench.data.components.generators import Generator
from graphbench.domains.clutrr.arrays import PuzzlesWithStories, chosen_samples, marks
from graphbench.domains.clutrr.files.facts import UNKNOWN, facts_of
from graphbench.domains.clutrr.files.rows import NAME, PublishedRow, published_files, read_rows, task_numbers
from graphbench.domains.clutrr.relations import GENDERS, NUM_ENTITIES, WORDS

_LOG = logging.getLogger(__name__)

PROTOCOL = "official"
SOURCE = f"clutrr.{PROTOCOL}"
LICENCE = "CC BY-NC 4.0, of the published files, which are not part of this package"
_URL = "https://github.com/facebookresearch/clutrr"
_DESCRIPTION = (
    "The puzzles of published files as they are: their stories, labels and noise, written and drawn by the authors of "
    "CLUTRR. Some labels are false, and the files do not say the relations of noise facts."
)
_DEVIATIONS = (
    "One training puzzle in five is for validation, the same puzzles every time; the paper draws others in every run.",
    "`test` has the files of the training tasks; every test file is also in an out-of-distribution split.",
    f"A noise fact whose relation the files do not say and nothing determines has the class {UNKNOWN} of `relation`.",
)
_VAL_SHARE = 5  # one training puzzle in five is for validation (paper, section 4.1)
_TOKEN = re.compile(r"@ent\d+|n't\b|'(?:s|d|m|ll|re|ve)\b|[^\W_]+(?:['-][^\W_]+)*|\S")
_NOISE_OF_TASK = {"none": 1, "supporting": 2, "irrelevant": 3, "disconnected": 4}


# Puzzles of published rows


@dataclass(frozen=True, eq=False)
class PublishedPuzzles(PuzzlesWithStories):
    """Published puzzles as arrays, with the features of generated puzzles.

    People keep their published numbers. A fact that a path passes twice is one edge. ``relation`` is 22 for noise facts
    whose relation the files do not say and nothing determines; ``sentence`` is always -1, because the files do not say
    which sentence tells a fact; ``tokens`` has words and punctuation in lower case between single spaces, and people as
    ``@ent7``.

    Attributes:
        rows: The S rows of the puzzles.
    """

    rows: tuple[PublishedRow, ...]


def read_official(folder: str | Path, seed: int = 0) -> dict[str, PublishedPuzzles]:
    """Read a folder of published CLUTRR files.

    Args:
        folder: The folder, for example ``data_089907f8``.
        seed: Seed of the numbers that stand for people; the numbers of a puzzle depend only on the seed and the id.

    Returns:
        ``train`` for the training files, and one part per test task: ``k2`` ... without noise, ``supporting_k3``,
        ``irrelevant_k3``, ``disconnected_k3``, ``mixed_k3`` (all kinds) with noise.

    Raises:
        StoreError: If the folder has no published files, or a file is malformed; the message names file, row, column.
    """
    return {part: _puzzles(rows, seed) for part, rows in read_rows(Path(folder)).items()}


def _puzzles(rows: Sequence[PublishedRow], seed: int) -> PublishedPuzzles:
    facts = [facts_of(row) for row in rows]
    edges, relations, roles, steps = zip(*chain.from_iterable(facts), strict=True)
    entities = [_entities(row, seed) for row in rows]
    num_nodes = np.array([len(row.genders) for row in rows], np.int64)
    query = np.array([row.query_edge for row in rows], np.int64)
    genders = [GENDERS.index(gender) for row in rows for gender in row.genders.values()]
    return PublishedPuzzles(
        num_nodes,
        num_edges=np.array([len(of_row) for of_row in facts], np.int64),
        edges=np.array(edges, np.int64),
        by_node={
            "asker": marks(query[:, 0], num_nodes),
            "asked": marks(query[:, 1], num_nodes),
            "gender": np.array(genders, np.uint8),
            "entity": np.array([number for of_row in entities for number in of_row.values()], np.uint8),
        },
        by_edge={
            "relation": np.array(relations, np.int8),
            "role": np.array(roles, np.uint8),
            "step": np.array(steps, np.float32),
            "sentence": np.full(len(edges), -1, np.float32),
        },
        by_graph={"answer": np.array([WORDS.index(row.target) for row in rows], np.int8)},
        names=[name for row in rows for name in row.genders],
        texts={
            "story": [NAME.sub(r"\1", row.story) for row in rows],
            "tokens": [_tokens(row.story, of_row) for row, of_row in zip(rows, entities, strict=True)],
        },
        rows=tuple(rows),
    )


def _entities(row: PublishedRow, seed: int) -> dict[str, int]:
    """Return name -> the number that stands for it, drawn for this puzzle."""
    puzzle_seed = int.from_bytes(hashlib.blake2b(row.id.encode(), digest_size=8).digest(), "little")
    numbers = np.random.default_rng([seed, puzzle_seed]).permutation(NUM_ENTITIES)[: len(row.genders)]
    return dict(zip(row.genders, numbers.tolist(), strict=True))


def _tokens(story: str, entity: Mapping[str, int]) -> str:
    """Return a story's words, people as ``@ent7``; a name in brackets that nobody has stays a word."""
    anonymous = NAME.sub(lambda match: f" @ent{entity[match[1]]} " if match[1] in entity else f" {match[1]} ", story)
    return " ".join(_TOKEN.findall(anonymous.lower()))


# Samples of splits


class OfficialParameters(StrictModel):
    """The selection of rows of a split.

    Attributes:
        folder: The folder of the files.
        content: SHA-256 of the files, so that changed files are a different dataset.
        tasks: Names of the parts of the folder: ``train``, ``k2``, ``supporting_k3``, ...
        val: True for the fifth of the rows used for validation, False for the other rows, None for all rows.
    """

    folder: str
    content: str
    tasks: tuple[str, ...]
    val: bool | None = None


def _content(folder: Path) -> str:
    """Return the hash of the CSV files of a folder; without a folder, of no files (the reader raises the error)."""
    digest = hashlib.sha256()
    with damage_named(folder, remedy="check who may read its files"):
        for path in sorted(folder.glob("*.csv")):
            digest.update(f"{path.name}|".encode() + bytes.fromhex(file_sha256(path)))
    return digest.hexdigest()[:16]


@lru_cache(maxsize=2)
def _read(folder: str, content: str) -> dict[str, PublishedPuzzles]:
    return read_official(folder)


def _places(parameters: OfficialParameters) -> list[tuple[str, int]]:
    """Return the part and the row number of every sample of a split; several parts take turns, one row each."""
    parts = _read(parameters.folder, parameters.content)
    if parameters.val is None:
        return sorted(
            ((part, i) for part in parameters.tasks for i in range(len(parts[part].rows))), key=lambda p: p[1]
        )
    chosen = []
    for part in parameters.tasks:
        order = np.argsort([hashlib.sha256(row.id.encode()).hexdigest() for row in parts[part].rows])
        is_val = np.zeros(len(order), bool)
        is_val[order[: len(order) // _VAL_SHARE]] = True
        chosen += [(part, int(i)) for i in np.flatnonzero(is_val == parameters.val)]
    return chosen


def _generate(
    parameters: OfficialParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    parts = _read(parameters.folder, parameters.content)
    if _content(Path(parameters.folder)) != parameters.content:
        raise StoreError(f"the files in {parameters.folder} changed while they were read; load them again")
    places = _places(parameters)
    first = dict(zip(parts, offsets(np.array([len(part.rows) for part in parts.values()])).tolist(), strict=False))
    chosen = np.array([first[part] + i for part, i in (places[k] for k in indices.tolist())], np.int64)
    return chosen_samples(list(parts.values()), chosen)


# The card of a folder


def official_card(card: Card, folder: Path) -> Card:
    """Return the card of published files that stand for a dataset.

    The published training rows are split at random, but always the same way, into four fifths ``train`` and one fifth
    ``val``. ``test`` holds the files of the same tasks as in generated data, one row of each file in turn. The
    out-of-distribution splits have the names of the card and hold the files of their tasks; every test file that is not
    by itself an out-of-distribution split becomes another split (``supporting_k3``). A warning names the test tasks
    without a file in the folder.

    Args:
        card: The dataset of this package with which the published files are compared.
        folder: Folder of the published files.

    Raises:
        CardError: If the card is not the card of the canonical draw.
        StoreError: If the folder holds no published files, a file cannot be read, or the folder lacks training files or
            the files of ``test``, has fewer than five training rows, or stands for another dataset.
    """
    if card.data_seed:
        refuse_other_draws(None, card.data_seed)
    root = folder.expanduser().resolve()
    content = _content(root)
    parts = _read(str(root), content)
    _require_parts(parts, root)
    _require_dataset(card, root)
    tasks = {name: puzzles.rows[0].task for name, puzzles in parts.items() if name != "train"}
    parts_of_split = _parts_of_splits(card, tasks, root)
    _warn_of_missing(str(root), _missing_tasks(card, tasks.values()))

    def spec(names: Sequence[str], val: bool | None = None) -> SplitSpec:
        parameters = {"folder": str(root), "content": content, "tasks": list(names), "val": val}
        count = len(_places(OfficialParameters.model_validate(parameters)))
        published = _in_order(tasks[name] for name in names if name in tasks)
        shift = f"published test task{'s' if len(names) > 1 else ''} {published}" if published else None
        return SplitSpec(count=count, parameters=parameters, shift=shift)

    trained = {"train": spec(["train"], False), "val": spec(["train"], True)}
    features = tuple(_with_unstated(f) if f.name == "relation" else f for f in card.features)
    splits = {**trained, "test": spec(parts_of_split["test"])}
    ood = {split: spec(names) for split, names in parts_of_split.items() if split != "test"}
    described = with_official_metadata(card.with_features(features)).with_splits(splits, ood)
    return described.model_copy(update={"generator": SOURCE, "overlapping": True})


def _with_unstated(relation: Feature) -> Feature:
    """Return the feature ``relation`` with one class more, for facts whose relation no published file states."""
    meaning = f"{relation.meaning}, or {UNKNOWN} if the file does not state it" if relation.meaning else ""
    return replace(relation, classes=UNKNOWN + 1, meaning=meaning)


def with_official_metadata(card: Card) -> Card:
    """Return the card of generated puzzles with the metadata of published puzzles: source, licence, no measurements."""
    source = card.source.model_copy(update={"deviations": _DEVIATIONS, "url": _URL})
    update = {"description": _DESCRIPTION, "licence": LICENCE, "source": source, "protocol": PROTOCOL, "measured": None}
    return card.model_copy(update=update)


def _require_parts(parts: Mapping[str, PublishedPuzzles], folder: Path) -> None:
    """Raise an error if a folder has no training file, no test file, or too few training rows for validation."""
    for split, is_present in (("training", "train" in parts), ("test", parts.keys() - {"train"})):
        if not is_present:
            raise StoreError(f"{folder} has no {split} file; take the folder as published")
    count = len(parts["train"].rows)
    if count < _VAL_SHARE:
        raise StoreError(
            f"{folder} has {count} training rows; one in {_VAL_SHARE} is for validation, so there must be at least "
            f"{_VAL_SHARE}; take the folder as published"
        )


def _require_dataset(card: Card, folder: Path) -> None:
    """Raise an error if published files stand for another dataset than the requested one; the message names it.

    The training tasks must be the training tasks of the dataset. If several datasets have the same training tasks, the
    test tasks decide.
    """
    files = published_files(folder)
    train, test = (
        frozenset(t for file in files if file.split == split for t in file.tasks) for split in ("train", "test")
    )
    cards = [c for c in catalog().cards.values() if (c.domain, c.generator) == (card.domain, card.generator)]
    trained = [other for other in cards if train == _tasks(other, ["train"])]
    fitting = [other.id for other in trained if test <= _tasks(other, other.ood)] or [other.id for other in trained]
    if card.id not in fitting:
        names = " or ".join(fitting)
        remedy = (
            f"the folder stands for {names}: load it as that" if names else "the folder stands for no dataset of ours"
        )
        raise StoreError(
            f"{folder} holds training puzzles of the tasks {_in_order(train)} and test puzzles of {_in_order(test)}; "
            f"{card.id} is trained on {_in_order(_tasks(card, ['train']))} and tested on "
            f"{_in_order(_tasks(card, card.ood))}; {remedy}"
        )


def _parts_of_splits(card: Card, tasks: Mapping[str, str], folder: Path) -> dict[str, tuple[str, ...]]:
    """Return split -> the test parts of a folder that it holds.

    ``test`` and the out-of-distribution splits of the card come first, each with the parts of its tasks. A part that is
    not by itself an out-of-distribution split becomes another split with the part's name.

    Args:
        card: The dataset that the files stand for.
        tasks: Part -> its task: ``k2`` -> 1.2, ``supporting_k3`` -> 2.3.
        folder: The folder, for the message.

    Raises:
        StoreError: If no part is of a task of ``test``.
    """
    parts = {
        split: tuple(part for part, task in tasks.items() if task in _tasks(card, [split]))
        for split in ("test", *card.ood)
    }
    if not parts["test"]:
        raise StoreError(
            f"{folder} has no test file of the tasks {_in_order(_tasks(card, ['test']))}, which are the test split of "
            f"{card.id}; take the folder as published"
        )
    alone = {names for split, names in parts.items() if split != "test" and len(names) == 1}
    return {
        **{split: names for split, names in parts.items() if names},
        **{part: (part,) for part in tasks if (part,) not in alone},
    }


def _missing_tasks(card: Card, tasks: Iterable[str]) -> str:
    """Return the test tasks of a dataset's published files that are not among ``tasks``, in words; empty if none.

    The files test the training tasks, and the longest paths of every shift.
    """
    longest = {max(_tasks(card, [split]), key=task_numbers) for split in card.ood}
    return _in_order((_tasks(card, ["train"]) | longest) - set(tasks))


@lru_cache(maxsize=8)
def _warn_of_missing(folder: str, missing: str) -> None:
    """Log once which test files are missing in a folder."""
    if missing:
        _LOG.warning(
            "%s has no test file of the tasks %s; take the folder as published for all splits", folder, missing
        )


def _tasks(card: Card, splits: Iterable[str]) -> frozenset[str]:
    """Return the published names of the tasks in splits of generated puzzles: 2.3 is three facts, supporting noise."""
    every = [card.split(split).parameters for split in splits]
    return frozenset(f"{_NOISE_OF_TASK[p.get('noise', 'none')]}.{k}" for p in every for k in p["lengths"])


def _in_order(tasks: Iterable[str]) -> str:
    """Return tasks in their order: ``1.2, 1.3, 1.10``."""
    return ", ".join(sorted(tasks, key=task_numbers))


OFFICIAL = Generator(
    name=SOURCE,
    version=2,
    parameters=OfficialParameters,
    generate=_generate,
    check=None,  # labels are taken as published
    statistics=lambda parameters, samples: {},
    shard_size=lambda parameters: 1 << 20,
    unique=False,
    redraw=refuse_other_draws,
)
SOURCES: Mapping[str, FileSource] = {PROTOCOL: FileSource(SOURCE, official_card, OFFICIAL, with_official_metadata)}
