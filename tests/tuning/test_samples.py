"""Searches over models without steps: budgets are numbers of training samples, and every trial fits from scratch."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import graphbench
from graphbench.core.errors import ConfigError
from graphbench.records.files import read_record
from graphbench.tuning.journal import JOURNAL
from graphbench.tuning.method import DatasetMethod
from graphbench.tuning.optimizer import Optimizer

from ..warm import run_python

pytest.importorskip("sklearn")
pytest.importorskip("skops")

COMMAND = [sys.executable, "-m", "graphbench"]
MODEL = "model: {kind: tabular, processor: random_forest, hops: 1, options: {n_estimators: 5}}\n"
SPACE = {
    "model.hops": {"type": "int", "range": [0, 2]},
    "model.options.min_samples_leaf": {"type": "int", "range": [1, 20], "log": True, "default": 2},
}
FACTS = ("number", "config_id", "config", "budget", "continued_from", "seed", "status", "cost", "steps", "metrics")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of datasets that the tests of this file share."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def forest(tmp_path: Path) -> Path:
    path = tmp_path / "forest.yaml"
    path.write_text(MODEL)
    return path


def search(model: Path | str, root: Path, output: Path, **changes: Any) -> Optimizer:
    settings: dict[str, Any] = {"space": SPACE, "limit": 40, "root": root, "output": output, "device": "cpu"}
    return Optimizer.for_dataset("mst_easy", model=model, **{**settings, **changes})


def facts(folder: Path) -> list[dict[str, Any]]:
    trials = json.loads((folder / "result.json").read_text())["trials"]
    return [{key: trial[key] for key in FACTS} for trial in trials]


@pytest.mark.slow
def test_trials_of_a_multi_fidelity_search_fit_from_scratch_on_their_number_of_samples(
    forest: Path, root: Path, tmp_path: Path
) -> None:
    settings = {"min_budget": 10, "max_budget": 40, "eta": 2, "trials": 20}
    best = search(forest, root, tmp_path / "run", **settings).optimize()
    assert {trial.budget for trial in best.trials} == {10, 20, 40}
    for trial in best.trials:
        assert trial.succeeded and (trial.continued_from, trial.steps) == (0, trial.budget)
        assert trial.metrics.keys() == {"val_f1"}
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["what"]["fidelity"] == "samples" and result["steps"]["saved_share"] == 0
    assert result["baseline"]["training"] == {"train_limit": 40}
    # the model that comes back is the one that the best trial fitted
    splits = graphbench.Loader("mst_easy", root=root, limit=40).load(())
    again = graphbench.train(
        data=splits,
        model=tmp_path / "run" / "report" / "incumbent.yaml",
        output=tmp_path / "again",
        evaluate="val",
        progress=False,
    )
    assert again.scores["val"].primary == pytest.approx(best.score)
    batch = next(iter(splits.val.batches(8)))
    assert again.model(batch)["in_tree"].equal(best.model(batch)["in_tree"])
    # it stands in the report in its own words
    for name in ("report.md", "report.html"):
        page = (tmp_path / "run" / "report" / name).read_text()
        assert "40 training samples" in page and "samples fitted" in page
        assert not re.search(r"optimizer steps|steps done|steps saved|\d steps", page)


@pytest.mark.slow
def test_an_interrupted_search_goes_on_to_the_trials_it_would_have_had(
    forest: Path, root: Path, tmp_path: Path
) -> None:
    settings = {"min_budget": 10, "max_budget": 40, "eta": 2}
    whole = search(forest, root, tmp_path / "whole", trials=14, **settings).optimize(report=False, refit=False)
    search(forest, root, tmp_path / "run", trials=5, **settings).optimize(report=False, refit=False)
    journal = tmp_path / "run" / JOURNAL
    lines = journal.read_text().splitlines(keepends=True)
    last = max(place for place, line in enumerate(lines) if '"asked"' in line)
    journal.write_text("".join(lines[: last + 1]) + '{"torn')  # killed while the last trial ran
    best = search(forest, root, tmp_path / "run", trials=14, **settings).optimize(report=False, refit=False)
    assert facts(tmp_path / "run") == facts(tmp_path / "whole")
    assert (best.config, best.score) == (whole.config, whole.score)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["random", "smac"])
def test_without_budgets_all_trials_fit_on_all_samples(method: str, forest: Path, root: Path, tmp_path: Path) -> None:
    best = search(forest, root, tmp_path, method=method, trials=4).optimize(report=False, refit=False)
    assert [trial.budget for trial in best.trials] == [40] * 4
    assert len({trial.config_id for trial in best.trials}) == 4


def test_budgets_of_a_shipped_space_end_with_the_samples_there_are(root: Path, tmp_path: Path) -> None:
    found = search("random_forest", root, tmp_path, space=None)
    assert (found.args.fidelity, found.args.budgets) == ("samples", [1, 3, 5, 10, 20, 40])
    found = search("random_forest", root, tmp_path, space=None, limit=None)
    assert found.args.budgets == [250, 500, 1000, 2000, 4000, 8000]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_budget": 41, "min_budget": 10}, "max_budget=41 is more than the 40"),
        ({"space": "gin_small"}, "hpo/algoreas/gin_small.yaml has budgets in steps"),
        ({"fidelity": "steps"}, "count samples, not steps"),
        ({"overrides": ["training.train_limit=5"]}, "training.train_limit cannot be tuned"),
    ],
)
def test_budgets_that_do_not_fit_are_refused(
    settings: dict[str, Any], words: str, forest: Path, root: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        search(forest, root, tmp_path / "run", **settings)


def test_a_space_file_says_what_its_budgets_count(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "space.yaml"
    text = "title: t\nmodel: algoreas/random_forest\nspace:\n  model.hops: {type: int, range: [0, 2]}\n"
    path.write_text(f"{text}budget: {{min: 5, max: 20}}\nfidelity: steps\n")
    message = re.escape(f"{path}:6: fidelity: the budget of algoreas/random_forest counts samples; write samples")
    with pytest.raises(ConfigError, match=message):
        search("random_forest", root, tmp_path / "run", space=path)
    path.write_text(
        f"{text}  training.lr: {{type: float, range: [0.1, 0.2]}}\nbudget: {{min: 5, max: 20}}\nfidelity: samples\n"
    )
    with pytest.raises(
        ConfigError, match=re.escape(f"{path}:5: training.lr: 'training.lr' is no key of algoreas/random")
    ):
        search("random_forest", root, tmp_path / "run", space=path)


def test_the_learner_says_what_a_budget_counts() -> None:
    steps = DatasetMethod("mst_easy", "gin_small", budgets=(3, 9))
    assert (steps.fidelity.name, steps.continues) == ("steps", True)
    assert "training.train_limit" not in steps.baseline({})["training"]
    samples = DatasetMethod("mst_easy", "random_forest", budgets=(3, 9))
    assert (samples.fidelity.name, samples.continues) == ("samples", False)
    assert samples.run_config({}, budget=3).training.train_limit == 3


def test_a_run_on_fewer_training_samples_is_marked_small(forest: Path, root: Path, tmp_path: Path) -> None:
    overrides = {"training.train_limit": 30}
    options: dict[str, Any] = {"root": root, "val_limit": 20, "evaluate": "val", "progress": False}
    graphbench.train("mst_easy", forest, overrides=overrides, output=tmp_path / "run", **options)
    record = read_record(tmp_path / "run" / "record.json")
    assert record.budget.small
    assert record.budget.label.startswith("30 training graphs, train 30 of 1,000,000")
    assert record.config["training"]["train_limit"] == 30


@pytest.fixture
def tune(tmp_path: Path, root: Path, forest: Path) -> Any:
    """Return a function that gives the words of a small search in a folder of the test's own."""
    (tmp_path / "space.yaml").write_text(
        "title: Two hyperparameters of a forest\nmodel: algoreas/random_forest\nfidelity: samples\nspace:\n"
        "  model.hops: {type: int, range: [0, 2]}\n"
        "  model.options.min_samples_leaf: {type: int, range: [1, 20], log: true}\n"
        "budget: {min: 10, max: 40, eta: 2}\ntrials: 9\n"
    )
    common = ["--model", str(forest), "--space", str(tmp_path / "space.yaml"), "--limit", "40", "--root", str(root)]

    def words(*more: str, output: str = "run") -> list[str]:
        return [*COMMAND, "tune", "mst_easy", *common, "--output", str(tmp_path / output), *more]

    return words


def run(command: list[str]) -> str:
    done = run_python(command[1:], timeout=280)
    assert done.returncode == 0, f"{command} -> {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_the_command_searches_reports_and_names_the_command_that_trains_the_incumbent(
    tune: Any, tmp_path: Path
) -> None:
    text = run(tune("--method", "random", "--trials", "3"))
    lines = dict(line.split("  ", 1) for line in text.splitlines() if not line.startswith(" "))
    assert lines["validation f1 ↑"].strip().endswith("at 40 training samples")
    assert lines["training samples"].strip() == "120"
    assert (tmp_path / "run" / "report" / "report.html").is_file()
    words = shlex.split(lines["train it"])
    extra = ["--evaluate", "val", "--json", "--output", str(tmp_path / "train")]
    (record,) = json.loads(run([*COMMAND, *words[1:], *extra]))
    assert f"{record['scores']['val']['f1']:.4f} at" in lines["validation f1 ↑"]
    assert record["budget"]["label"].startswith("40 training graphs")


@pytest.mark.slow
def test_the_command_is_interrupted_and_goes_on(tune: Any, tmp_path: Path) -> None:
    quick = ("--no-report",)
    process = subprocess.Popen(
        tune(*quick),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    journal, deadline = tmp_path / "run" / JOURNAL, time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if journal.is_file() and journal.read_text().count('"finished"') >= 3:
            break
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert 3 <= len(facts(tmp_path / "run")) < 9
    run(tune(*quick))
    run(tune(*quick, output="undisturbed"))
    assert facts(tmp_path / "run") == facts(tmp_path / "undisturbed")
