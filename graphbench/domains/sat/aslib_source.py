"""ASlib scenarios as a source of the dataset ``sat/aslib``: the card, the splits and the samples of a folder."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card, SplitSpec
from graphbench.catalog.sections import TaskSpec
from graphbench.core.errors import CardError, FormulaError, StoreError
from graphbench.core.files import clear_errors, file_sha256
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.file_sources import FileSource
from graphbench.data.components.folder_splits import splits_by_hash
from graphbench.data.components.generators import Generator
from graphbench.domains.sat.aslib_files import COSTS, DESCRIPTION, FEATURE_STATUS, FOLDS, RUNS, read_scenario
from graphbench.domains.sat.aslib_files import FEATURES as VALUES
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.dimacs import read_dimacs
from graphbench.domains.sat.formula_files import MAX_LITERALS, SUFFIXES, canonical_formula
from graphbench.domains.sat.scenario_samples import FEATURES, SECONDS, scenario_features, scenario_samples
from graphbench.domains.sat.scenarios import Scenario

FORMULAS = "formulas"
_NAME = "sat.aslib"
_TABLES = (DESCRIPTION, RUNS, VALUES, COSTS, FEATURE_STATUS, FOLDS)
_MIN_FOLDS = 3
_DEVIATIONS = (
    "Missing values of features are the medians of the training split, and run times below 0.001 s count as 0.001 s.",
    "One fold is for testing and the next one for validation; a data seed stands for a fold.",
)
_LICENCE = "of the scenario, which is not part of this package"


class AslibParameters(StrictModel):
    """The scenario and the split from which instances are read.

    Attributes:
        folder: The folder of the scenario.
        content: SHA-256 of the files, so that changed files are a different dataset.
        split: ``train``, ``val`` or ``test``.
        test_fold: The fold used for testing; None if instances are split by the order of their hashes.
    """

    folder: str
    content: str
    split: str
    test_fold: int | None


def split_rows(scenario: Scenario, test_fold: int | None) -> dict[str, NDArray[np.int64]]:
    """Return the instances of every split, in their order.

    The fold ``test_fold`` is used for testing and the next fold (cyclically) for validation. If ``test_fold`` is None,
    instances are split by the MD5 hashes of their names: the tenth with the smallest hashes is used for testing, the
    next tenth for validation.
    """
    if test_fold is None or scenario.folds is None:
        names = [hashlib.md5(name.encode(), usedforsecurity=False).hexdigest() for name in scenario.instances]
        split = np.array(splits_by_hash(names))
        return {name: np.flatnonzero(split == name) for name in ("train", "val", "test")}
    numbers = np.unique(scenario.folds).tolist()
    following = numbers[(numbers.index(test_fold) + 1) % len(numbers)]
    is_test, is_val = scenario.folds == test_fold, scenario.folds == following
    parts = {"train": ~(is_test | is_val), "val": is_val, "test": is_test}
    return {name: np.flatnonzero(mask) for name, mask in parts.items()}


def _card(card: Card, folder: Path) -> Card:
    """Return the card of a scenario: the algorithms are the outputs, the features of instances are the inputs.

    Data seed k tests on the k-th fold, counted from 0.

    Raises:
        CardError: If the scenario has no k-th fold, or the card is not of a selection task, or its costs come from
            labellers.
        StoreError: If a file is missing or malformed.
        FormulaError: If the folder holds formulas, and a formula is malformed or missing.
    """
    if card.task.type != "select" or card.labels:
        raise CardError(f"ASlib scenarios hold one selection task each; load them as sat/aslib, not as {card.address}")
    root = folder.expanduser().resolve()
    if not root.is_dir():
        raise StoreError(f"{root} is not a folder; give the one that holds the files of a scenario")
    content = _content(str(root))
    scenario, formulas = _read(str(root), content)
    fold = _test_fold(scenario, card.data_seed)
    rows = split_rows(scenario, fold)
    shown = "by the hash of the instance's name" if fold is None else f"fold {fold} is for testing"
    specs = {
        split: SplitSpec(
            count=len(chosen),
            parameters={"folder": str(root), "content": content, "split": split, "test_fold": fold},
        )
        for split, chosen in rows.items()
    }
    channels = {FEATURES: scenario.used_features} if len(scenario.used_features) > 1 else {}
    overhead = {"overhead": {FEATURES: SECONDS}} if scenario.used_features else {}
    summary = (
        f"{len(scenario.instances):,} instances, {len(scenario.algorithms)} algorithms "
        f"({', '.join(scenario.algorithms)}), {len(scenario.used_features)} features, cutoff {scenario.cutoff:g} s; "
        f"splits: {shown}."
    )
    described = _describe(card).with_features(scenario_features(scenario, formulas is not None))
    return described.with_splits(specs).model_copy(
        update={
            "generator": _NAME,
            "title": f"ASlib scenario {scenario.name}",
            "description": summary,
            "protocol": f"aslib:{scenario.name}",
            "channels": channels,
            "classes": {},
            "task": TaskSpec(type="select", options=overhead),
        }
    )


def _describe(card: Card) -> Card:
    """Return the card with the entries that hold for every scenario; the scenario is not known yet."""
    source = card.source.model_copy(update={"deviations": _DEVIATIONS})
    update = {"protocol": "aslib", "licence": _LICENCE, "source": source, "measured": None}
    return card.model_copy(update=update)


def _test_fold(scenario: Scenario, draw: int) -> int | None:
    if scenario.folds is None:
        if draw:
            raise CardError(f"data_seed={draw} is refused: the scenario {scenario.name} has no folds; leave it out")
        if len(scenario.instances) < _MIN_FOLDS:
            raise StoreError(f"the scenario {scenario.name} has fewer than three instances, one for each split")
        return None
    numbers = np.unique(scenario.folds).tolist()
    if len(numbers) < _MIN_FOLDS:
        raise StoreError(
            f"the scenario {scenario.name} has {len(numbers)} folds; train, val and test need at least {_MIN_FOLDS}"
        )
    if draw >= len(numbers):
        raise CardError(
            f"data_seed={draw} is refused: it names the fold to test on, and the scenario {scenario.name} has "
            f"{len(numbers)} folds, 0 to {len(numbers) - 1}"
        )
    return int(numbers[draw])


# ---------------------------------------------------------------------------------------------------- the files


def _content(folder: str) -> str:
    digest = hashlib.sha256()
    root = Path(folder)
    with clear_errors(root, "read", "choose another folder"):
        paths = [path for name in _TABLES if (path := root / name).is_file()]
        for path in (*paths, *_formula_files(root)):
            digest.update(f"{path.name}|".encode() + bytes.fromhex(file_sha256(path)))
    return digest.hexdigest()[:16]


def _formula_files(folder: Path) -> list[Path]:
    root = folder / FORMULAS
    return sorted(path for path in root.rglob("*") if path.name.endswith(SUFFIXES)) if root.is_dir() else []


@lru_cache(maxsize=2)
def _read(folder: str, content: str) -> tuple[Scenario, tuple[Cnf, ...] | None]:
    """Return the scenario of a folder, and the formulas of its instances if the folder holds formulas."""
    scenario, files = read_scenario(Path(folder)), _formula_files(Path(folder))
    scenario.costs()  # refuses missing runs
    if len(scenario.algorithms) < 2:
        raise StoreError(f"the scenario {scenario.name} has one algorithm; a selection needs two")
    if not (scenario.used_features or files):
        raise StoreError(f"the scenario {scenario.name} has no features, and {folder} no sub-folder {FORMULAS!r}")
    return scenario, _formulas_of(scenario, files) if files else None


def _formulas_of(scenario: Scenario, files: list[Path]) -> tuple[Cnf, ...]:
    """Return the formula of every instance.

    A file belongs to an instance if the instance has the file's name, with or without folder and suffix, or if the
    instance is the `gbdhash` of the file's formula.

    Raises:
        FormulaError: If an instance has no file, or a file is malformed.
    """
    by_name: dict[str, Path] = {}
    for file in files:
        by_name |= {file.name: file, file.name[: file.name.rindex(".cnf")]: file}
    wanted = {name: by_name.get(name) or by_name.get(_stem(name)) for name in scenario.instances}
    by_hash: dict[str, Path] = {}
    if None in wanted.values():
        by_hash = {read_dimacs(file, max_literals=MAX_LITERALS).gbdhash: file for file in files}
    formulas = []
    for name, named in wanted.items():
        path = named or by_hash.get(name)
        if path is None:
            raise FormulaError(
                f"{files[0].parent} has no formula of the instance {name!r}; name its file by the instance, or the "
                "instance by the gbdhash of the formula"
            )
        formulas.append(canonical_formula(read_dimacs(path, max_literals=MAX_LITERALS), path))
    return tuple(formulas)


def _stem(instance: str) -> str:
    name = instance.rsplit("/", 1)[-1]
    suffix = next((end for end in SUFFIXES if name.endswith(end)), "")
    return name[: len(name) - len(suffix)]


def _generate(
    parameters: AslibParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    scenario, formulas = _read(parameters.folder, parameters.content)
    if _content(parameters.folder) != parameters.content:
        raise StoreError(f"the files in {parameters.folder} changed since they were read; load them again")
    rows = split_rows(scenario, parameters.test_fold)
    chosen = rows[parameters.split][indices]
    chosen_formulas = None if formulas is None else [formulas[i] for i in chosen.tolist()]
    return scenario_samples(scenario, chosen, rows["train"], chosen_formulas)


_GENERATOR = Generator(
    name=_NAME,
    version=1,
    parameters=AslibParameters,
    generate=_generate,
    check=None,  # costs are taken from the files without a check
    statistics=lambda parameters, samples: {},
    shard_size=lambda parameters: 1 << 62,  # one shard, drawn in this process
    unique=False,
)

ASLIB = FileSource(_NAME, _card, _GENERATOR, _describe)
"""The source ``aslib``: the folder of a scenario, with an optional sub-folder ``formulas`` of DIMACS files."""
