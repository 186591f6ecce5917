"""``graphbench submit``: what it prints on one screen, its exit codes, and that names do nothing in a terminal."""

from __future__ import annotations

import json

import numpy as np
import pytest

import graphbench
from graphbench.cli import main

from ..leaderboard.submissions.conftest import describe, place_of

DATASET = "clutrr/gen_23"
LIMIT = 8


@pytest.fixture(scope="module")
def truth(root):
    data = graphbench.Loader(DATASET, root=root, limit=LIMIT, workers=1).load("test").test
    return np.array([int(data[i].answer) for i in range(LIMIT)])


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def submit(capsys, root, monkeypatch):
    """Return a function that runs a command of a terminal of 80 columns, and gives what it prints."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments, expect=0):
        with pytest.raises(SystemExit) as end:
            main(["submit", *map(str, arguments)])
        printed = capsys.readouterr()
        assert end.value.code == expect, printed
        return printed.err if expect == 2 else printed.out

    return run


def words(screen):
    """Return what is printed without its line breaks."""
    return " ".join(screen.split())


def test_from_the_beginning_to_the_report(submit, root, truth, tmp_path):
    folder = tmp_path / "mine"
    said = submit("init", folder, "--model", "mine", "--dataset", DATASET, "--author", "Ada Lovelace")
    assert f"{folder}/predictions/{DATASET}/seed0/: a file is named after its split" in said
    assert "there are neither records nor predictions of it" in words(submit("check", folder, "--root", root, expect=1))
    text = (folder / "submission.yaml").read_text()
    (folder / "submission.yaml").write_text(text.replace("    # limit: 1000 ", f"    limit: {LIMIT} "))
    for seed in range(3):
        np.save(place_of(folder, DATASET, seed) / "test.npy", np.where(np.arange(LIMIT) < 5 + seed, truth, truth - 1))
    records = tmp_path / "records"
    screen = submit("check", folder, "--root", root, "--records", records)
    lines = screen.splitlines()
    assert len(lines) <= 24 and lines[0] == f"{folder}: mine, by Ada Lovelace"
    row = next(line for line in lines if line.startswith(DATASET))
    assert row.split("  ")[0] == DATASET and "0-2" in row and "accuracy 0.7500 ± 0.1250" in row
    assert "1/11 in part" in row and row.rstrip().endswith("accepted, remarks") and len(row) <= 80
    assert f"Data hashes compared with the data here: {DATASET} (test)" in lines
    assert "Scores computed from predictions: test (3 runs)" in lines and "1 of 1 dataset accepted" in lines
    with pytest.raises(SystemExit) as end:
        main(["report", "--records", str(records), "--output", str(tmp_path / "report.md")])
    assert end.value.code == 0 and "mine" in (tmp_path / "report.md").read_text()


def test_the_screen_stays_short_however_much_is_wrong(submit, root, tmp_path):
    for number in range(60):
        (tmp_path / f"record{number}.json").write_text(f"[{number}]")
        (tmp_path / "predictions" / "clutrr" / f"nothing{number}" / "seed0").mkdir(parents=True)
        (tmp_path / "predictions" / "clutrr" / f"nothing{number}" / "seed0" / "test.npy").touch()
    screen = submit("check", tmp_path, "--root", root, expect=1)
    assert len(screen.splitlines()) <= 40 and "... and 116 more lines (--json has all)" in screen
    found = json.loads(submit("check", tmp_path, "--root", root, "--json", expect=1))
    assert len(found["findings"]) == 122 and found["accepted"] is False


def test_names_do_nothing_in_a_terminal(submit, root, tmp_path):
    name = "[link=https://evil.example]click[/link][red]<b>"
    describe(tmp_path, authors=[name])
    (tmp_path / f"{name.replace('/', '')}.json").write_text('{"schema": 1, "\\u001b[2J": 0}')
    screen = submit("check", tmp_path, "--root", root, expect=1)
    assert f"mine, by {name}" in screen and "\\x1b" in screen  # the markup is shown as it is written
    assert screen.replace("\n", "").isprintable()
    found = submit("check", tmp_path, "--root", root, "--json", expect=1)
    assert found.replace("\n", "").isascii()
    (tmp_path / "a\x1b[31m\nb").mkdir()
    screen = submit("check", tmp_path, "--root", root, expect=1)
    assert "a\\x1b[31m\\nb: its name is a text with the character \\x1b" in words(screen)
    assert screen.replace("\n", "").isprintable()


def test_wrong_use_is_an_error_of_one_line(submit, tmp_path):
    assert "there is no folder" in submit("check", tmp_path / "nothing", expect=2)
    assert "is refused; use letters" in submit("init", tmp_path / "a", "--model", "a b", expect=2)
    assert "did you mean 'mst_easy'" in submit("init", tmp_path, "--model", "a", "--dataset", "mst_eazy", expect=2)
