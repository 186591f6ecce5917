"""Sweeps: which runs a plan has, which are kept, what a failure leaves, and the pages at the end."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from contextlib import ExitStack

import pytest
import yaml

from graphbench.cli.app import main
from graphbench.core.errors import ConfigError, UnknownModel
from graphbench.records.files import load_records
from graphbench.training.sweep import SweepPlan, cells_of, read_plan, slurm_script
from tests.data.clusters import local_cluster

TINY = ["--set", "model.hidden=8", "--set", "training.batch_size=4", "--set", "training.eval_every=4"]
WORDS = ["bridges_easy", "--steps", "4", "--limit", "12", "--evaluate", "val,test", "--workers", "1", *TINY]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def run(capsys, monkeypatch, tmp_path, root):
    """Return a function that runs the command in a folder of its own, and gives its exit code and output."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)

    def call(*words):
        with pytest.raises(SystemExit) as end:
            main(["sweep", *map(str, words), "--root", str(root)])
        return end.value.code or 0, capsys.readouterr()

    return call


def test_a_plan_has_every_combination_the_first_seed_first(tmp_path):
    plan = SweepPlan(
        datasets=("mst_easy", "bridges_easy"), models=("gin_small", "mlp"), seeds=(0, 5), data_seeds=(0, 3)
    )
    cells = cells_of(plan, tmp_path)
    assert len(cells) == 16 == len({cell.folder for cell in cells}) and [cell.number for cell in cells] == list(
        range(16)
    )
    first = [(cell.config.dataset, cell.config.model_name, cell.config.training.seed) for cell in cells[:5]]
    mst, bridges = "algoreas/mst_easy", "algoreas/bridges_easy"
    pairs = [(mst, "gin_small"), (mst, "mlp"), (bridges, "gin_small"), (bridges, "mlp")]
    assert first == [(*pair, 0) for pair in pairs] + [(mst, "gin_small", 5)]
    assert cells[0].scored == ("val", "test", "n192", "n256", "n384", "n512")
    assert [cell.config.data_seed for cell in cells] == [0] * 8 + [3] * 8
    longer = cells_of(plan.model_copy(update={"steps": 7}), tmp_path)
    assert not {cell.folder for cell in cells} & {cell.folder for cell in longer}


def test_a_plan_is_written_and_read(tmp_path):
    plan = SweepPlan(datasets=("clutrr/*",), models=("gat_small",), eval_limit={"k10": 5}, set={"training.lr": 1e-3})
    plan.write(tmp_path / "plan.yaml")
    assert read_plan(tmp_path / "plan.yaml") == plan and read_plan(tmp_path / "plan.yaml").digits == plan.digits
    (tmp_path / "one.yaml").write_text("datasets: mst_easy\nmodels: gin_small\nseeds: 4\n", encoding="utf-8")
    assert read_plan(tmp_path / "one.yaml") == SweepPlan(datasets=("mst_easy",), models=("gin_small",), seeds=(4,))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"datasets": ["mst_easy"]}, "models"),
        ({"datasets": ["mst_easy"], "models": ["gin"], "sedes": [1]}, "sedes"),
        ({"datasets": ["mst_easy"], "models": ["gin"], "steps": 0}, "steps"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_the_key(tmp_path, content, message):
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_plan(path)


def test_wrong_names_are_errors_before_anything_is_trained(tmp_path):
    with pytest.raises(UnknownModel, match="unknown model 'gim'"):
        cells_of(SweepPlan(datasets=("mst_easy",), models=("gin_small", "gim")), tmp_path)
    assert not any(tmp_path.iterdir())


@pytest.mark.thorough
def test_finished_runs_are_kept_and_a_further_model_is_trained_alone(run, tmp_path):
    code, told = run(*WORDS, "--model", "gin_small", "--seed", 0, "--cell", 0)
    assert code == 0 and "gin_small on algoreas/bridges_easy, seed 0" in told.out
    (before,) = (tmp_path / "sweep" / "runs").rglob("record.json")
    content = before.read_bytes()
    code, told = run(*WORDS, "--model", "gin_small", "--model", "mlp", "--seed", 0, "--dry-run", "--json")
    assert [(c["number"], c["finished"]) for c in json.loads(told.out)] == [(0, True), (1, False)]
    code, told = run(*WORDS, "--model", "gin_small", "--model", "mlp", "--seed", 0)
    assert code == 0 and "2 of 2 runs have ended" in told.out and "| mlp |" in told.out
    assert before.read_bytes() == content
    folder = tmp_path / "sweep"
    assert {record.model for record in load_records(records=folder / "records")} == {"gin_small", "mlp"}
    rows = csv.DictReader(io.StringIO((folder / "table.csv").read_text(encoding="utf-8")))
    assert {"gin_small", "mlp"} <= {row["model"] for row in rows}
    for name in ("report/report.html", "leaderboard/index.html", "table.tex", "table.md"):
        assert (folder / name).is_file()
    (plan,) = folder.glob("plan-*.yaml")  # what a dry run or a single run would do is not a sweep yet
    assert read_plan(plan).models == ("gin_small", "mlp")


@pytest.mark.slow
def test_a_run_that_fails_stops_no_other_and_is_named(run, tmp_path):
    wrong = {"model": {"processor": "gin", "hidden": 8}, "training": {"steps": 4, "batch_size": 4, "lr": 1e30}}
    (tmp_path / "wild.yaml").write_text(yaml.safe_dump(wrong), encoding="utf-8")
    code, told = run(
        *WORDS, "--set", "training.gradient_clip=null", "--model", "wild.yaml", "--model", "mlp", "--seed", 1
    )
    assert code == 1 and "1 of 2 runs have ended" in told.out
    assert "wild on algoreas/bridges_easy, seed 1 failed: " in " ".join(told.out.split())
    assert [record.model for record in load_records(records=tmp_path / "sweep" / "records")] == ["mlp"]


@pytest.mark.slow
def test_a_cluster_trains_the_same_models_and_a_failure_is_named(run, tmp_path, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    words = [*WORDS, "--model", "gin_small", "--model", "mlp", "--seed", 0]
    wrong = {"model": {"processor": "gin", "hidden": 8}, "training": {"steps": 4, "lr": 1e30, "gradient_clip": None}}
    (tmp_path / "wild.yaml").write_text(yaml.safe_dump(wrong), encoding="utf-8")
    code, _ = run(*words, "--output", "here")
    assert code == 0
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.chdir(elsewhere)  # workers on other machines have other working folders
        cluster = stack.enter_context(local_cluster(2))
        patch.undo()
        address = cluster.scheduler_address
        code, told = run(*words, "--model", "wild.yaml", "--output", "there", "--cluster", address)
        assert code == 1 and "2 of 3 runs have ended" in told.out
        words_told = " ".join(told.out.split())
        assert "wild on algoreas/bridges_easy, seed 0 failed: " in words_told and "does not exist" not in words_told
    assert len([*(tmp_path / "there" / "runs").rglob("record.json")]) == 2
    here, there = (
        {r.model: r for r in load_records(records=tmp_path / name / "records")} for name in ("here", "there")
    )
    assert here.keys() == there.keys() == {"gin_small", "mlp"}
    for model, record in here.items():
        assert (record.scores, record.weights_hash) == (there[model].scores, there[model].weights_hash)


def test_the_slurm_script_runs_the_missing_cells(run, tmp_path):
    code, told = run(*WORDS, "--model", "gin_small", "--slurm")
    (plan,) = (tmp_path / "sweep").glob("plan-*.yaml")
    assert code == 0 and "#SBATCH --array=0-2\n" in told.out
    assert f"graphbench sweep sweep/{plan.name} --output sweep --root" in told.out
    assert subprocess.run(["bash", "-n"], input=told.out, text=True, check=True).returncode == 0
    cells = cells_of(read_plan(plan), tmp_path)
    script = slurm_script(plan, tmp_path / "a b", [cells[0], cells[2]], {"--device": "cpu"}, baselines=True)
    assert "--array=0,2" in script and f'--output="{tmp_path}/a b/' in script
    assert script.count("--device cpu") == 2 and script.endswith("--device cpu --baselines\n")
    with pytest.raises(ConfigError, match="nothing is left to train"):
        slurm_script(plan, tmp_path, [], {})
    for words in (("--cell", 1), ("--json",)):
        assert run(*WORDS, "--model", "gin_small", "--slurm", *words)[0] == 2


def test_no_model_and_a_wrong_number_are_wrong_usage(run):
    assert run("mst_easy")[0] == 2
    code, told = run(*WORDS, "--model", "gin_small", "--cell", 9)
    assert code == 2 and "runs 0 to 2, not 9" in " ".join(told.err.replace("│", " ").split())
