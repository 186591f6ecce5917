"""Published CLUTRR files as a source: the dataset that a folder stands for, its card, its samples and its faults."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card, SplitSpec
from graphbench.catalog.features import Feature
from graphbench.catalog.names import catalog
from graphbench.core.errors import StoreError
from graphbench.core.files import file_sha256
from graphbench.core.ragged import offsets
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.checks import Row
from graphbench.data.components.file_sources import FileSource, refuse_other_draws
from graphbench.data.components.generators import Generator
from graphbench.domains.clutrr.arrays import PuzzlesWithStories, chosen_samples
from graphbench.domains.clutrr.official import (
    Finding,
    OfficialSplit,
    findings,
    published_tasks,
    read_official,
    unreadable,
)
from graphbench.domains.clutrr.official_rows import OfficialRow
from graphbench.domains.clutrr.relations import NUM_WORDS, relation_of_word

_LOG = logging.getLogger(__name__)

NAME = "clutrr.official"
PROTOCOL = "official"
LICENCE = "CC BY-NC 4.0, of the published files, which are not part of this package"
_URL = "https://github.com/facebookresearch/clutrr"
_DESCRIPTION = (
    "The puzzles of published files as they are: their stories, labels and noise, written and drawn by the authors of "
    "CLUTRR. Of labels that are false, and of noise whose relation the files do not say, `graphbench verify` tells how "
    "many there are."
)
_DEVIATIONS = (
    "One training puzzle in five is for validation, the same ones every time; in the paper others in every run.",
    "`test` is the files of the tasks that are trained on; every file, these too, is of a split away from training.",
    "A noise fact whose relation the files do not say, and no other fact determines, has the class 22 of `relation`.",
)
_VAL_SHARE = 5  # one training puzzle in five is for validation (paper, section 4.1)


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
    _require_enough(parts, root)
    _require_own_tasks(card, root)
    tasks = {name: part.rows[0].task for name, part in parts.items() if name != "train"}
    held = _splits_of_parts(card, tasks, root)
    _warn_of_missing(str(root), _missing_tasks(card, tasks.values()))
    facts = {"folder": str(root), "content": content}

    def spec(names: Sequence[str], val: bool | None = None) -> SplitSpec:
        parameters = {**facts, "tasks": list(names), "val": val}
        count = len(_rows(OfficialParameters.model_validate(parameters)))
        task_list = _listed(tasks[name] for name in names if name in tasks)
        shift = f"published test task{'s' if len(names) > 1 else ''} {task_list}" if task_list else None
        return SplitSpec(count=count, parameters=parameters, shift=shift)

    trained = {"train": spec(["train"], False), "val": spec(["train"], True)}
    features = tuple(_with_unstated(f) if f.name == "relation" else f for f in card.features)
    return with_official_metadata(card.with_features(features)).model_copy(
        update={
            "generator": NAME,
            "overlapping": True,
            "splits": {**trained, "test": spec(held["test"])},
            "ood": {split: spec(names) for split, names in held.items() if split != "test"},
        }
    )


def _with_unstated(relation: Feature) -> Feature:
    """Return the feature ``relation`` with one class more, for facts whose relation no published file states."""
    meaning = f"{relation.meaning}, or {NUM_WORDS} if the file does not state it" if relation.meaning else ""
    return replace(relation, classes=NUM_WORDS + 1, meaning=meaning)


def with_official_metadata(card: Card) -> Card:
    """Return the card of generated puzzles with the metadata of published puzzles: source, licence, no measurements."""
    source = card.source.model_copy(update={"deviations": _DEVIATIONS, "url": _URL})
    update = {"description": _DESCRIPTION, "licence": LICENCE, "source": source, "protocol": PROTOCOL, "measured": None}
    return card.model_copy(update=update)


@lru_cache(maxsize=8)
def _warn_of_missing(folder: str, missing: str) -> None:
    """Log once which test files are missing in a folder."""
    if missing:
        _LOG.warning(
            "%s has no test file of the tasks %s; take the folder as published for all splits", folder, missing
        )


def _require_enough(parts: Mapping[str, OfficialSplit], folder: Path) -> None:
    for part, is_present in (("training", "train" in parts), ("test", parts.keys() - {"train"})):
        if not is_present:
            raise StoreError(f"{folder} has no {part} file; take the folder as published")
    rows = len(parts["train"])
    if rows < _VAL_SHARE:
        raise StoreError(
            f"{folder} has {rows} training rows; one in {_VAL_SHARE} is for validation, so there must be at least "
            f"{_VAL_SHARE}; take the folder as published"
        )


def _content(folder: Path) -> str:
    """Return the hash of the CSV files of a folder; without a folder, of no files (the reader raises the error)."""
    digest = hashlib.sha256()
    path = folder
    try:
        for path in sorted(folder.glob("*.csv")):
            digest.update(f"{path.name}|".encode() + bytes.fromhex(file_sha256(path)))
    except OSError as error:
        raise unreadable(path, error) from error
    return digest.hexdigest()[:16]


@lru_cache(maxsize=2)
def _read(folder: str, content: str) -> dict[str, OfficialSplit]:
    return read_official(folder)


def _parts_of(card: Card) -> dict[str, OfficialSplit]:
    """Return the parts of the folder of a card of published files: ``train``, ``k2``, ``supporting_k3``, ..."""
    parameters = OfficialParameters.model_validate(card.split("train").parameters)
    return _read(parameters.folder, parameters.content)


def _rows(parameters: OfficialParameters) -> list[tuple[str, int]]:
    """Return the part and the row number of every sample of a split; several parts take turns, one row each."""
    parts = _read(parameters.folder, parameters.content)
    if parameters.val is None:
        return sorted(((task, i) for task in parameters.tasks for i in range(len(parts[task]))), key=lambda row: row[1])
    chosen = []
    for task in parameters.tasks:
        order = np.argsort([hashlib.sha256(row.id.encode()).hexdigest() for row in parts[task].rows])
        is_val = np.zeros(len(order), bool)
        is_val[order[: len(order) // _VAL_SHARE]] = True
        chosen += [(task, int(i)) for i in np.flatnonzero(is_val == parameters.val)]
    return chosen


def _generate(
    parameters: OfficialParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    parts = _read(parameters.folder, parameters.content)
    if _content(Path(parameters.folder)) != parameters.content:
        raise StoreError(f"the files in {parameters.folder} changed while they were read; load them again")
    rows = _rows(parameters)
    first = dict(zip(parts, offsets(np.array([len(part) for part in parts.values()])).tolist(), strict=False))
    chosen = np.array([first[task] + i for task, i in (rows[k] for k in indices.tolist())], np.int64)
    return chosen_samples([_with_stories(part) for part in parts.values()], chosen)


def _with_stories(part: OfficialSplit) -> PuzzlesWithStories:
    return PuzzlesWithStories(
        part.num_nodes,
        part.num_edges,
        part.edges,
        by_node={"asker": part.asker, "asked": part.asked, "gender": part.gender, "entity": part.entity},
        by_edge={
            "relation": part.relation,
            "role": part.role,
            "step": part.step,
            "sentence": part.sentence,
        },
        by_graph={"answer": part.answer},
        names=part.name,
        texts={"story": part.story, "tokens": part.tokens},
    )


OFFICIAL = Generator(
    name=NAME,
    version=2,
    parameters=OfficialParameters,
    generate=_generate,
    check=None,  # labels are taken as published; reading logs a warning that counts their faults
    statistics=lambda parameters, samples: {},
    shard_size=lambda parameters: 1 << 20,
    unique=False,
    redraw=refuse_other_draws,
)


# The dataset that a folder stands for, and the files of each split, both determined by the tasks

_NOISE_OF_TASK = {"none": 1, "supporting": 2, "irrelevant": 3, "disconnected": 4}
Tasks = frozenset[str]


def _require_own_tasks(card: Card, folder: Path) -> None:
    """Raise an error if published files stand for another dataset than the requested one.

    The training tasks must be the training tasks of the dataset. If several datasets have the same training tasks, the
    test tasks decide.

    Args:
        card: The requested dataset.
        folder: Where the files lie.

    Raises:
        StoreError: If the files stand for another dataset; the message names it.
    """
    train, test = published_tasks(folder).values()
    all_cards = catalog().cards.values()
    cards = [other for other in all_cards if (other.domain, other.generator) == (card.domain, card.generator)]
    trained = [other for other in cards if train == _of_splits(other, ["train"])]
    fitting = [other for other in trained if test <= _of_splits(other, other.ood)] or trained
    if card.id in [other.id for other in fitting]:
        return
    names = " or ".join(other.id for other in fitting)
    remedy = f"the folder stands for {names}: load it as that" if names else "the folder stands for no dataset of ours"
    trained_on = _of_splits(card, ["train"])
    raise StoreError(
        f"{folder} holds training puzzles of the tasks {_listed(train)} and test puzzles of {_listed(test)}; {card.id} "
        f"is trained on {_listed(trained_on)} and tested on {_listed(_of_splits(card, card.ood))}; {remedy}"
    )


def _splits_of_parts(card: Card, tasks: Mapping[str, str], folder: Path) -> dict[str, tuple[str, ...]]:
    """Return split -> the test parts of a folder that it holds.

    ``test`` and the out-of-distribution splits of the card come first, each with the parts of its tasks. A part that is
    not by itself an out-of-distribution split becomes another split with the part's name.

    Args:
        card: The dataset that the files stand for.
        tasks: Part -> its task: ``k2`` -> 1.2, ``supporting_k3`` -> 2.3.
        folder: Where the files lie, for the message.

    Raises:
        StoreError: If no part is of a task of ``test``.
    """
    wanted = {split: _of_splits(card, [split]) for split in ("test", *card.ood)}
    held = {
        split: tuple(part for part, task in tasks.items() if task in split_tasks)
        for split, split_tasks in wanted.items()
    }
    if not held["test"]:
        raise StoreError(
            f"{folder} has no test file of the tasks {_listed(wanted['test'])}, which are the test split of {card.id}; "
            "take the folder as published"
        )
    alone = {parts for split, parts in held.items() if split != "test" and len(parts) == 1}
    return {
        **{split: parts for split, parts in held.items() if parts},
        **{part: (part,) for part in tasks if (part,) not in alone},
    }


def _missing_tasks(card: Card, tasks: Iterable[str]) -> str:
    """Return the test tasks of a dataset's published files that are not among ``tasks``, in words; empty if none.

    The files test the training tasks, and the longest paths of every shift.
    """
    shifted = [_of_splits(card, [split]) for split in card.ood]
    published = _of_splits(card, ["train"]).union(max(split_tasks, key=_numbers) for split_tasks in shifted)
    return _listed(published - set(tasks))


def _listed(tasks: Iterable[str]) -> str:
    """Return tasks in their order: ``1.2, 1.3, 1.10``."""
    return ", ".join(sorted(tasks, key=_numbers))


def _of_splits(card: Card, splits: Iterable[str]) -> Tasks:
    """Return the published names of the tasks in splits of generated puzzles: 2.3 is three facts, supporting noise."""
    names = set()
    for split in splits:
        parameters = card.split(split).parameters
        noise = _NOISE_OF_TASK[parameters.get("noise", "none")]
        names |= {f"{noise}.{k}" for k in parameters["lengths"]}
    return frozenset(names)


def _numbers(task: str) -> list[int]:
    return [int(number) for number in task.split(".")]


# The report of `graphbench verify`: published files have no reference, so it counts their faults


def rows_of_files(card: Card, splits: Sequence[str]) -> Iterator[Row]:
    """Yield the findings in published files: the faults of all files, and clauses of test files that training has, too.

    No finding is a failure, because the files are used as published.

    Args:
        card: The card of the files.
        splits: The splits in which clauses are checked.
    """
    parts = _parts_of(card)
    *others, unknown = findings(list(parts.values()))
    for finding in (*others, unknown):
        yield _counted("all files", finding.about, str(finding), bool(finding.faulty), bool(finding.every))
    yield _recovered(list(parts.values()), unknown)
    yield _told_twice(list(parts.values()))
    trained = parts["train"].rows
    walks, clauses = {row.f_comb for row in trained}, {_clause(row) for row in trained}
    for split in splits:
        names = OfficialParameters.model_validate(card.split(split).parameters).tasks
        if "train" not in names:
            rows = [row for name in names for row in parts[name].rows]
            seen = [sum(row.f_comb in walks for row in rows), sum(_clause(row) in clauses for row in rows)]
            words = f"{seen[0]} of {len(rows)} paths have the words of one of training, {seen[1]} its relations"
            yield _counted(split, "clause leakage", words, any(seen))


def _recovered(splits: Sequence[OfficialSplit], unknown: Finding) -> Row:
    """Return the origin of the relations of noise facts, if there are noise facts."""
    rows = [row for split in splits for row in split.rows]
    said = sum(len(set(row.story_edges[row.k : len(row.edge_types)]) - set(row.story_edges[: row.k])) for row in rows)
    words = (
        f"{said} of {unknown.every} noise facts have a relation in the files, "
        f"{unknown.every - said - len(unknown.faulty)} more can have but one, which is taken"
    )
    return _counted("all files", "noise relations", words, False, bool(unknown.every))


def _told_twice(splits: Sequence[OfficialSplit]) -> Row:
    times = Counter(row.story for split in splits for row in split.rows)
    repeated = sum(count for count in times.values() if count > 1)
    return _counted("all files", "duplicates", f"{repeated} of {times.total()} stories stand twice", repeated > 0)


def _counted(split: str, check: str, words: str, is_found: bool, is_checked: bool = True) -> Row:
    if not is_checked:
        return Row(split, check, True, "there is none in the files", "skipped")
    return Row(split, check, True, words, "noted" if is_found else "")


def _clause(row: OfficialRow) -> tuple[str, ...]:
    return tuple(map(relation_of_word, row.f_comb))


SOURCES: Mapping[str, FileSource] = {
    PROTOCOL: FileSource(NAME, official_card, OFFICIAL, with_official_metadata, report=rows_of_files)
}
