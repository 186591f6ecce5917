"""The frozen runs come out with the same bits; run folders of earlier versions are read and continued."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from graphbench.records.earlier_names import config_for_digests
from graphbench.records.files import read_record
from graphbench.training.evaluate import evaluate_run

from .cases import CASES, FROZEN, RUNS, facts_of, machine, run, search

KEPT = [name for name, case in CASES.items() if case.kept]
LATER = ("operations", "replicates", "deterministic", "weights_hash", "graphs_loaded")  # frozen records have none
LONGER = ("clrs_text_bfs", "clutrr_story", "co_mis_size")


def case(name: str) -> Any:
    """Return the argument of a test for one case; the longer cases are checked thoroughly only."""
    return pytest.param(name, marks=pytest.mark.thorough if name in LONGER else ())


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parity")


def frozen(name: str) -> tuple[dict[str, Any], bool]:
    """Return what was frozen, and whether its bits can be compared on this machine."""
    facts = json.loads((FROZEN / f"{name}.json").read_text(encoding="utf-8"))
    return facts, facts.pop("machine") == machine()


def close(found: Any, expected: Any, where: str = "") -> None:
    """Require two JSON values to be the same up to the rounding of another processor."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key, value in expected.items():
            close(found[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for i, (own, other) in enumerate(zip(found, expected, strict=True)):
            close(own, other, f"{where}[{i}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=0.05, abs=0.05), where
    else:
        assert found == expected, where


@pytest.mark.parametrize("name", [case(name) for name in CASES])
def test_runs_have_the_frozen_bits(name: str, root: Path, tmp_path: Path) -> None:
    expected, comparable = frozen(name)
    found = json.loads(json.dumps(facts_of(run(CASES[name], root, tmp_path / "run"))))
    assert set(expected["folder"]) <= set(found["folder"])
    for key in LATER:
        found["record"].pop(key, None)
    found["record"]["config"] = config_for_digests(found["record"]["config"])  # records of then had this form
    assert (found["record"].pop("schema"), expected["record"].pop("schema")) == (2, 1)
    if comparable:
        assert found["record"] == expected["record"]
        assert found["weights"] == expected["weights"]
    else:
        close(found["record"], expected["record"])


@pytest.mark.parametrize("name", KEPT)
def test_run_folders_of_earlier_versions_are_scored(name: str, root: Path) -> None:
    record = read_record(RUNS / name / "record.json")
    found = evaluate_run(RUNS / name, "test", root=root, limit=CASES[name].limit, device="cpu")
    scores = {metric: value for metric, value in found["test"].items() if metric != "seconds_per_graph"}
    expected = {metric: record.scores["test"][metric] for metric in scores}
    assert scores == pytest.approx(expected, rel=1e-4, abs=1e-4 if frozen(name)[1] else 0.05)


@pytest.mark.parametrize("name", [case(name) for name in KEPT])
def test_run_folders_of_earlier_versions_are_continued(name: str, root: Path, tmp_path: Path) -> None:
    shutil.copytree(RUNS / name, tmp_path / "run")
    result = run(CASES[name], root, tmp_path / "run")
    before = read_record(RUNS / name / "record.json")
    assert result.record.started == before.started  # not a new run
    assert result.record.curves == before.curves
    assert result.record.config_hash == before.config_hash


@pytest.mark.slow
def test_a_search_of_eight_trials_is_the_frozen_one(root: Path, tmp_path: Path) -> None:
    expected, comparable = frozen("search")
    found = json.loads(json.dumps(search(root, tmp_path / "search")))
    if comparable:
        assert found == expected["trials"]
    else:
        assert [trial["budget"] for trial in found] == [trial["budget"] for trial in expected["trials"]]
