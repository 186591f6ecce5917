"""The example of a plug-in: all commands work on its new kind of task, and it touches no file of ``graphbench/``."""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest

from graphbench.catalog.families import measured_path

from .warm import run_python

REPOSITORY = Path(__file__).resolve().parents[1]
EXAMPLE = Path(__file__).parent / "plugin_example"
PACKAGE = EXAMPLE / "graphbench_portfolio"

COMMANDS = """
import contextlib, io, json, sys
from graphbench.cli.app import main

for words in json.loads(sys.argv[1]):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            main(words)
            code = 0
        except SystemExit as end:
            code = end.code
    print(json.dumps([words, code or 0, out.getvalue()]))
"""


def run(home: Path, *commands: list[str]) -> list[str]:
    """Return what each of some commands prints, all in one process that finds the plug-in by its entry point."""
    folders = os.pathsep.join([str(home), str(REPOSITORY)])
    environment = {**os.environ, "PYTHONPATH": folders, "COLUMNS": "160"}
    environment.pop("GRAPHBENCH_PLUGINS", None)
    done = run_python(["-c", COMMANDS, json.dumps(commands)], environment, home)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(words, code) for words, code, _ in found] == [(list(words), 0) for words in commands], done.stderr
    return [out for _, _, out in found]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A folder on the import path that holds the installed plug-in."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = folder / "graphbench_portfolio-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: graphbench-portfolio\nVersion: 1.0\n")
    project = (EXAMPLE / "pyproject.toml").read_text()
    (group,) = re.findall(r'\[project\.entry-points\."(.+)"\]\n(\w+) = "(.+)"', project)
    (metadata / "entry_points.txt").write_text(f"[{group[0]}]\n{group[1]} = {group[2]}\n")
    return folder


@pytest.fixture(scope="module")
def trained(home) -> tuple[Path, dict[str, str]]:
    """The folder of the runs, and what each command of a whole study prints."""
    study = home / "study"
    root, records = ["--root", str(home / "data")], ["--records", str(study / "records")]
    few = ["--limit", "60", "--steps", "4"]
    commands = {
        "list": ["list", "portfolio"],
        "info": ["info", "portfolio/cover"],
        "generate": ["generate", "portfolio/cover", "--limit", "60", "--workers", "2", *root],
        "verify": ["verify", "portfolio/cover", "--samples", "20", *root],
        "hub": ["train", "portfolio/cover", "--output", str(study / "hub"), *few, *records, *root],
        "gin": ["train", "portfolio/cover", "--model", "gin", "--output", str(study / "gin"), *few, *records, *root],
        "nearest": [
            *["train", "portfolio/cover", "--model", "nearest", "--limit", "60"],
            *["--output", str(study / "nearest"), *records, *root],
        ],
        "evaluate": ["evaluate", str(study / "hub"), "--splits", "test,n48", "--limit", "60", *root],
        "predict": ["predict", str(study / "hub"), "--splits", "test,n48", "--limit", "60", *root],
        "own": [
            *["evaluate", "portfolio/cover", "--predictions", str(study / "hub" / "predictions"), "--limit", "60"],
            *["--model-name", "mine", *records, *root],
        ],
        "report": ["report", "portfolio", "--output", str(study / "report"), *records],
    }
    return study, dict(zip(commands, run(home, *commands.values()), strict=True))


def test_the_plug_in_is_listed_and_described(trained):
    _, said = trained
    assert "portfolio/cover" in said["list"] and "excess_cost" in said["list"]
    assert "0 greedy, 1 matching, 2 sparing" in said["info"]
    assert re.search(r"train\s+60", said["generate"])
    assert "FAILED" not in said["verify"] and "failed" not in said["verify"]
    assert re.search(r"n48\s+structure and labels\s+ok", said["verify"])


def test_its_project_file_installs_cards_and_measurements():
    tools = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert tools["packages"] == [PACKAGE.name]
    patterns = tools["package-data"][PACKAGE.name]
    files = [path for path in PACKAGE.rglob("*.*") if path.suffix not in (".py", ".pyc")]
    files.append(measured_path(PACKAGE / "datasets" / "portfolio" / "cover.yaml", "cover"))
    assert all(any(path.match(pattern) for pattern in patterns) for path in files)


def test_its_models_are_trained_scored_and_reported(trained):
    study, said = trained
    for model in ("hub", "gin", "nearest"):
        record = json.loads((study / model / "record.json").read_text())
        assert set(record["scores"]) >= {"val", "test", "n48"}
        assert 0 <= record["scores"]["test"]["excess_cost"] <= 1
    scores = json.loads((study / "hub" / "record.json").read_text())["scores"]
    assert (
        f"{scores['test']['excess_cost']:.4f}" in said["evaluate"]
        and f"{scores['n48']['excess_cost']:.4f}" in said["own"]
    )
    report = (study / "report" / "report.md").read_text()
    assert "steps not stated" in report
    assert all(name in report for name in ("hub", "gin", "nearest", "mine", "single best", "excess_cost"))


@pytest.mark.slow
def test_its_models_are_tuned(home, trained):
    study, _ = trained
    shared = ["--limit", "60", "--root", str(home / "data")]
    hub = ["--model", "hub", "--trials", "2", "--output", str(study / "tuned")]
    nearest = ["--model", "nearest", "--method", "hyperband", "--trials", "8", "--output", str(study / "tuned_nearest")]
    _, said = run(home, *(["tune", "portfolio/cover", *own, *shared] for own in (hub, nearest)))
    result = json.loads((study / "tuned" / "result.json").read_text())
    assert result["incumbent"] is not None
    result = json.loads((study / "tuned_nearest" / "result.json").read_text())
    assert {trial["budget"] for trial in result["trials"]} == {15, 30, 60}
    assert "at 60 training samples" in said


def test_its_scores_are_those_of_a_few_lines_of_numpy(home, trained):
    study, _ = trained
    script = (
        "import graphbench, numpy, sys; "
        "splits = graphbench.Loader('portfolio/cover', root=sys.argv[1], limit=60).load();"
        "numpy.save(sys.argv[2], numpy.stack([graph['cost'].numpy().reshape(-1) for graph in splits.test]))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(home), str(REPOSITORY)])}
    done = run_python(["-c", script, home / "data", home / "costs.npy"], environment, home)
    assert done.returncode == 0, done.stderr
    costs, chosen = np.load(home / "costs.npy"), np.load(study / "hub" / "predictions" / "test.npz")["y_pred"]
    excess_cost = (costs[np.arange(len(costs)), chosen] - costs.min(axis=1)).mean()
    found = json.loads((study / "hub" / "record.json").read_text())["scores"]["test"]["excess_cost"]
    assert found == pytest.approx(excess_cost, abs=1e-7)


def test_it_touches_no_file_of_the_package():
    brought = [path for path in EXAMPLE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert brought and not [path for path in brought if (REPOSITORY / "graphbench") in path.parents]
    for path in (REPOSITORY / "graphbench").rglob("*.py"):
        words = path.read_text(encoding="utf-8")
        assert not re.search(r"portfolio[/.][a-z]|graphbench[_-]portfolio|ChooseTask", words), (
            f"{path} knows of the example"
        )


PARTS = {
    "a generator": "heuristics.py",
    "a dataset": "datasets/portfolio/cover.yaml",
    "a domain": "__init__.py",
    "a kind of task": "choose.py",
    "a processor": "processor.py",
    "an estimator": "nearest.py",
    "a model's configuration": "baselines/portfolio/hub.yaml",
    "a search space": "hpo/portfolio/hub.yaml",
}


def rows_of_costs() -> dict[str, tuple[list[str], str]]:
    """Return part -> the cells of its row in the contributors' table, and the first file that the row names."""
    page = (REPOSITORY / "docs" / "extending.md").read_text(encoding="utf-8")
    table = page.partition("## What to touch")[2].partition("\n## ")[0]
    rows = {}
    for line in table.splitlines():
        if line.startswith("| a"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            rows[cells[0]] = (cells, re.findall(r"`([\w./]+\.(?:py|yaml))`", cells[4])[0])
    return rows


def test_the_contributors_table_counts_the_files_and_the_lines_of_the_example():
    rows = rows_of_costs()
    for part, file in PARTS.items():
        cells, named = rows[part]
        assert (cells[1], cells[2], named) == ("1", "0", file), part
        assert int(cells[3]) == len((PACKAGE / file).read_text(encoding="utf-8").splitlines()), part


def test_the_contributors_table_tells_about_how_long_files_of_built_in_domains_are():
    """Files of the package change, so a fifth more or fewer lines than the table says are allowed."""
    rows = {part: row for part, row in rows_of_costs().items() if "/" in row[1] and part not in PARTS}
    assert len(rows) >= 9
    for part, (cells, file) in rows.items():
        lines = len((REPOSITORY / file).read_text(encoding="utf-8").splitlines())
        assert 0.8 * lines <= int(cells[3]) <= 1.25 * lines, f"{part}: {file} has {lines} lines"
