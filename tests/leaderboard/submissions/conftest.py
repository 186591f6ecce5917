"""Two small datasets with complete data, and submissions on them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import graphbench
from graphbench.catalog import resources
from graphbench.leaderboard.submissions import SubmissionReport, check_submission
from graphbench.records.files import save_record
from graphbench.records.record import RunRecord, _digest

from ...conftest import FAMILY, LABELLED, MIS

TREES, SETS = "algoreas/toy_trees", "co/toy_graphs:mis"
SPLITS = {"train": {"count": 30}, "val": {"count": 10}, "test": {"count": 12}}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of two datasets, generated whole: trees (predict) and independent sets (solve)."""
    place = tmp_path_factory.mktemp("cards")
    labels = {"co.mis": {"effort": {"steps": 200, "nodes": 50}, "features": MIS}}
    tasks = {name: {**task, "labels": "co.mis"} for name, task in LABELLED["tasks"].items()}
    cards = {
        "algoreas/toy_trees": {
            **FAMILY,
            "metrics": {"primary": "f1", "also": ["accuracy"]},
            "splits": SPLITS,
            "ood": {"n14": {"count": 5, "parameters": {"nodes": 14}}},
        },
        "co/toy_graphs": {**LABELLED, "labels": labels, "tasks": tasks},
    }
    for name, content in cards.items():
        path = place / "datasets" / f"{name}.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(yaml.safe_dump(content, sort_keys=False))
    graphbench.register_data(place)
    data = tmp_path_factory.mktemp("data")
    graphbench.Loader([TREES, SETS], root=data, workers=1).load("all")
    yield data
    resources._FOLDERS.remove(str(place))


@pytest.fixture
def targets(root: Path) -> Callable[[str], np.ndarray]:
    """Return a function that gives the edges of the trees of a split, one truth value per edge."""

    def of(split: str) -> np.ndarray:
        data = graphbench.Loader(TREES, root=root, workers=1).load(())[split]
        return np.concatenate([batch.in_tree.numpy() for batch in data.batches(64)]).astype(bool)

    return of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the description of a submission."""
    place = tmp_path / "submission"
    place.mkdir()
    describe(place)
    return place


def describe(folder: Path, **changes: Any) -> None:
    """Write ``submission.yaml``; None leaves a key out."""
    about = {"schema": 1, "model": "mine", "authors": ["Ada Lovelace"], "licence": "CC0-1.0", **changes}
    content = {key: value for key, value in about.items() if value is not None}
    (folder / "submission.yaml").write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")


def place_of(folder: Path, dataset: str = TREES, seed: int = 0) -> Path:
    """Return the folder of a seed's predictions, which is made."""
    place = folder / "predictions" / dataset.replace(":", "-") / f"seed{seed}"
    place.mkdir(parents=True, exist_ok=True)
    return place


def noisy(truth: np.ndarray, seed: int, share: float = 0.1) -> np.ndarray:
    """Return labels of which a share is wrong."""
    return truth ^ (np.random.default_rng(seed).random(len(truth)) < share)


def predict(folder: Path, targets: Callable[[str], np.ndarray], seeds: range = range(3), splits: str = "test") -> None:
    """Write predictions of trees."""
    for seed in seeds:
        for split in splits.split(","):
            np.savez(place_of(folder, seed=seed) / f"{split}.npz", y_pred=noisy(targets(split), seed))


def record_of(root: Path, seed: int = 0, splits: tuple[str, ...] = ("test",), **about: Any) -> RunRecord:
    """Return a record of predictions of trees with 0.25 as F1 score on every split."""
    data = graphbench.Loader(TREES, root=root, workers=1).load(())
    scores = about.pop("scores", {split: {"f1": 0.25, "accuracy": 0.5 + seed / 10} for split in splits})
    return RunRecord.from_scores({s: data[s] for s in splits}, scores, **{"model": "mine", "seed": seed, **about})


def saved(record: RunRecord, folder: Path) -> Path:
    """Write a record into the folder ``records`` of a submission."""
    return save_record(record, folder / "records")


def edited(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a record's file, with a digest that fits, so that only the change can be found."""
    content = json.loads(path.read_text())
    content.pop("digest")
    change(content)
    path.write_text(json.dumps({**content, "digest": _digest(content)}))


@pytest.fixture
def check(root: Path, folder: Path) -> Callable[..., SubmissionReport]:
    """Return a function that checks the submission."""

    def run(**options: Any) -> SubmissionReport:
        return check_submission(folder, **{"root": root, **options})

    return run


def told(report: SubmissionReport, level: str = "refused") -> str:
    """Return all findings of a level, those of the whole submission first, one per line."""
    findings = [*report.findings, *(finding for entry in report.datasets for finding in entry.findings)]
    return "\n".join(finding.line for finding in findings if finding.level == level)
