"""Earlier states of a board, in a checkout made for the test."""

import json
import subprocess

import pytest

from graphbench.cli import main
from graphbench.core.errors import ResultError
from graphbench.leaderboard import build_leaderboard
from graphbench.leaderboard.history import first_places, state_at
from graphbench.records.files import save_record

from .conftest import bootstrapped, make_record

ID = "algoreas/mst_easy"


def git(folder, *arguments):
    named = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", folder, *named, *arguments], check=True, capture_output=True)


def runs(model, f1, dataset=ID):
    facts = {"dataset": dataset, "dataset_version": 1, "model": model}
    return [bootstrapped(make_record(seed, f1=f1 + seed / 1000, **facts)) for seed in range(3)]


@pytest.fixture
def checkout(tmp_path):
    """Five commits: gin leads, gt is worse, pairs leads with one seed and then with three, and pairs is removed."""
    folder = tmp_path / "project"
    results = folder / "baselines" / "results"
    results.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")

    def commit(records, words):
        for record in records:
            save_record(record, results)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", words)

    commit(runs("gin", 0.7), "gin")
    commit([*runs("gt", 0.6), *runs("gt", 0.9, "algoreas/bridges_easy")], "gt")
    commit(runs("pairs", 0.99)[:1], "one seed")
    commit(runs("pairs", 0.99), "three seeds")
    for path in results.rglob("pairs*.json"):
        path.unlink()
    (results / "notes.json").write_text("[1]")
    commit([], "without pairs")
    return results


def test_first_places_change_when_another_model_is_ranked_first(checkout):
    found = [
        (change.unit.split()[0], change.model.split()[0], change.before and change.before.split()[0])
        for change in first_places(checkout)
    ]
    assert found == [
        (ID, "gin", None),
        ("algoreas/bridges_easy", "gt", None),
        (ID, "pairs", "gin"),  # not with one seed
        (ID, "gin", "pairs"),
    ]
    assert all(
        change.ranked == (change.unit.split()[0] == ID and change.before is not None)
        for change in first_places(checkout)[2:]
    )


def test_a_state_has_the_records_of_its_commit(checkout):
    counts = [len(state_at(f"HEAD~{back}", checkout).records) for back in range(5)]
    assert counts == [9, 12, 10, 9, 3]
    assert state_at("main", checkout).unread == ("notes.json",)
    assert state_at("HEAD~1", checkout).records[0] == next(r for r in runs("gt", 0.9, "algoreas/bridges_easy"))
    for name in ("nowhere", "--all", "HEAD:x", ""):
        with pytest.raises(ResultError, match="there is no commit"):
            state_at(name, checkout)


def test_outside_of_a_checkout_there_is_no_history(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ResultError, match=r"lies in no checkout|there is no commit"):
        state_at("HEAD", tmp_path)
    with pytest.raises(ResultError, match="lies in no checkout"):
        first_places(tmp_path)


def test_pages_have_the_changes_and_the_date_of_their_state(checkout, tmp_path):
    build_leaderboard(state_at("HEAD~1", checkout).records, tmp_path / "out", changes=first_places(checkout))
    for name in ("index.html", "leaderboard.md"):
        text = (tmp_path / "out" / name).read_text(encoding="utf-8")
        assert "Changes of first places" in text and text.index("pairs") < text.rindex("gin")
    with pytest.raises(SystemExit) as end:
        line = f"leaderboard --at HEAD~1 --changes --records {checkout} --output {tmp_path / 'then'}"
        main(line.split())
    assert not end.value.code
    found = json.loads((tmp_path / "then" / "leaderboard.json").read_text(encoding="utf-8"))
    assert found["records"] == 12
    assert "commit" in (tmp_path / "then" / "index.html").read_text(encoding="utf-8").split("</title>")[0]
