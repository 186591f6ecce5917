"""Published CLUTRR files as a dataset: a card made for a folder, and the generator that reads its rows."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from graphbench.catalog.cards import Card, SplitSpec
from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.errors import CardError, StoreError
from graphbench.data.runs import offsets
from graphbench.data.samples import Generator, Samples
from graphbench.domains.clutrr.arrays import ToldPuzzles, chosen_samples
from graphbench.domains.clutrr.official import OfficialSplit, read_official, unreadable
from graphbench.domains.clutrr.official_tasks import listed, missing_tasks, require_own_tasks, splits_of_parts
from graphbench.domains.clutrr.relations import NUM_WORDS

_LOG = logging.getLogger(__name__)

GENERATOR = "clutrr.official"
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


class OfficialParameters(BaseModel):
    """Which rows of which files.

    Attributes:
        folder: The folder of the files.
        content: SHA-256 of the files, so that other files are another dataset.
        tasks: Names of the parts of the folder: ``train``, ``k2``, ``supporting_k3``, ...
        val: True for the fifth of the rows that is for validation, False for the others, None for all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: str
    content: str
    tasks: tuple[str, ...]
    val: bool | None = None


def official_card(card: Card, folder: str | Path) -> Card:
    """Return the card of published files that stand for a dataset.

    The published training rows are split at random, but always the same way, into four fifths ``train`` and one fifth
    ``val``. ``test`` is the files of the tasks that it holds in generated data, too, one row of each in turn. The
    out-of-distribution splits have the names of the card and hold the files of their tasks; a file that is none of them
    alone is one more split (``supporting_k3``). A warning names test tasks of which the folder has no file.

    Args:
        card: The dataset of this package that they are compared with.
        folder: Folder of the published files.

    Raises:
        CardError: If the card is not that of the canonical draw.
        StoreError: If the folder holds no such files or one cannot be read, lacks training files or the files of
            ``test``, has fewer than five training rows, or stands for another dataset.
    """
    if card.data_seed:
        _refuse_other_draws(None, card.data_seed)
    place = Path(folder).expanduser().resolve()
    content = _content(place)
    parts = _read(str(place), content)
    _require_enough(parts, place)
    require_own_tasks(card, place)
    tasks = {name: part.rows[0].task for name, part in parts.items() if name != "train"}
    held = splits_of_parts(card, tasks, place)
    _warn_of_missing(str(place), missing_tasks(card, tasks.values()))
    facts = {"folder": str(place), "content": content}

    def spec(names: Sequence[str], val: bool | None = None) -> SplitSpec:
        parameters = {**facts, "tasks": list(names), "val": val}
        count = len(_rows(OfficialParameters.model_validate(parameters)))
        own = listed(tasks[name] for name in names if name in tasks)
        shift = f"published test task{'s' if len(names) > 1 else ''} {own}" if own else None
        return SplitSpec(count=count, parameters=parameters, shift=shift)

    trained = {"train": spec(["train"], False), "val": spec(["train"], True)}
    relation = Feature("relation", Stage.INPUT, Location.EDGE, Kind.CATEGORICAL, NUM_WORDS + 1)
    return described_as_published(card).model_copy(
        update={
            "generator": GENERATOR,
            "overlapping": True,
            "features": tuple(relation if f.name == relation.name else f for f in card.features),
            "splits": {**trained, "test": spec(held["test"])},
            "ood": {split: spec(names) for split, names in held.items() if split != "test"},
        }
    )


def described_as_published(card: Card) -> Card:
    """Return the card of generated puzzles with what is said of published ones: source, licence, nothing measured."""
    source = card.source.model_copy(update={"deviations": _DEVIATIONS, "url": _URL})
    own = {"description": _DESCRIPTION, "licence": LICENCE, "source": source, "protocol": PROTOCOL, "measured": None}
    return card.model_copy(update=own)


@lru_cache(maxsize=8)
def _warn_of_missing(folder: str, missing: str) -> None:
    """Log once what test files a folder lacks."""
    if missing:
        _LOG.warning(
            "%s has no test file of the tasks %s; take the folder as published for all splits", folder, missing
        )


def _require_enough(parts: Mapping[str, OfficialSplit], folder: Path) -> None:
    for part, found in (("training", "train" in parts), ("test", parts.keys() - {"train"})):
        if not found:
            raise StoreError(f"{folder} has no {part} file; take the folder as published")
    rows = len(parts["train"])
    if rows < _VAL_SHARE:
        raise StoreError(
            f"{folder} has {rows} training rows; one in {_VAL_SHARE} is for validation, so there must be at least "
            f"{_VAL_SHARE}; take the folder as published"
        )


def _content(folder: Path) -> str:
    """Return the hash of the CSV files of a folder; of none where it is no folder (the reader says so)."""
    digest = hashlib.sha256()
    path = folder
    try:
        for path in sorted(folder.glob("*.csv")):
            digest.update(f"{path.name}|".encode() + hashlib.sha256(path.read_bytes()).digest())
    except OSError as error:
        raise unreadable(path, error) from error
    return digest.hexdigest()[:16]


@lru_cache(maxsize=2)
def _read(folder: str, content: str) -> dict[str, OfficialSplit]:
    return read_official(folder)


def parts_of(card: Card) -> dict[str, OfficialSplit]:
    """Return the parts of the folder that a card of published files is of: ``train``, ``k2``, ``supporting_k3``, ..."""
    parameters = OfficialParameters.model_validate(card.split("train").parameters)
    return _read(parameters.folder, parameters.content)


def _rows(parameters: OfficialParameters) -> list[tuple[str, int]]:
    """Return part and row number of every sample of a split; of several parts one row each in turn."""
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
    return chosen_samples([_told(part) for part in parts.values()], chosen)


def _told(part: OfficialSplit) -> ToldPuzzles:
    return ToldPuzzles(
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


def _refuse_other_draws(parameters: OfficialParameters | None, data_seed: int) -> NoReturn:
    raise CardError(
        f"data_seed={data_seed} is refused: published files cannot be drawn anew; leave data_seed out, or take "
        "generated data (leave source and folder out)"
    )


OFFICIAL = Generator(
    name=GENERATOR,
    version=2,
    parameters=OfficialParameters,
    generate=_generate,
    check=None,  # labels are taken as they are; reading them counts what is wrong in a warning
    statistics=lambda parameters, samples: {},
    shard_size=lambda parameters: 1 << 20,
    unique=False,
    redraw=_refuse_other_draws,
)
