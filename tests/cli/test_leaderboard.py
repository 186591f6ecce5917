"""The commands ``results`` and ``leaderboard``: what they print, filter and write."""

from __future__ import annotations

import csv
import io
import json

import pytest

from graphbench.cli.app import main
from graphbench.core.errors import ArgumentError
from graphbench.records.files import load_records, save_record
from graphbench.records.table import COLUMNS, as_rows

from ..evaluation.conftest import make_record

MST, BRIDGES = "algoreas/mst_easy", "algoreas/bridges_easy"


@pytest.fixture
def folder(tmp_path):
    """A folder of records: two models on one dataset, one small run on another, one of a dataset without card."""
    place = tmp_path / "records"
    for model, seed, f1 in (("gin", 0, 0.7), ("gin", 1, 0.9), ("gt", 0, 0.8)):
        save_record(make_record(seed, f1=f1, dataset=MST, dataset_version=1, model=model), place)
    small = {"small": True, "label": "5 steps"}
    save_record(make_record(f1=0.5, dataset=BRIDGES, dataset_version=1, model="gin_small", budget=small), place)
    save_record(make_record(f1=0.1, dataset="algoreas/gone"), place)
    return place


@pytest.fixture
def run(capsys):
    """Return a function that runs a command and gives its exit code, output and errors."""

    def call(*words):
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
        found = capsys.readouterr()
        return end.value.code or 0, found.out, found.err

    return call


def table(text):
    """Return the cells of a printed table's rows, up to the empty line."""
    return [line.split() for line in text.partition("\n\n")[0].splitlines()[1:]]


def test_the_table_has_the_primary_metric_on_test(run, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = run("results", "--records", folder)
    assert code == 0
    assert [[row[0], row[1], row[5]] for row in table(out)] == [
        [BRIDGES, "gin_small", "0.5000"],
        [MST, "gin", "0.7000"],
        [MST, "gin", "0.9000"],
        [MST, "gt", "0.8000"],
    ]
    assert table(out)[0][-3:] == ["0", "100", "small"] and table(out)[1][-1] == "full"
    (graphs,) = {row[-4] for row in table(out)}
    assert out.split("\n")[0].split()[5] == "graphs" and graphs == "-"  # older records do not say
    record = load_records(MST, folder)[0].model_copy(update={"seed": 9, "graphs_scored": {"test": 1234}})
    save_record(record, folder)
    assert "1,234" in [row[-4] for row in table(run("results", "--records", folder)[1])]
    assert "4 rows; --csv and --json print all columns" in out


def test_rows_that_differ_in_protocol_or_configuration_have_different_names(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    configs = [{"model": {"processor": "gin", "hidden": width}, "training": {"steps": 100}} for width in (8, 16)]
    first, second = (make_record(dataset=MST, dataset_version=1, config=config) for config in configs)
    save_record(first, tmp_path)
    assert [row[1] for row in table(run("results", "--records", tmp_path)[1])] == ["gin"]
    save_record(second, tmp_path)
    save_record(first.model_copy(update={"protocol": "other", "seed": 1}), tmp_path)
    for source in ("clrs/bfs/gin", "clrs/dfs/gin", "/home/me/runs/gin-1", "/home/me/runs/gin-2"):
        training = {"steps": 100, "start": {"source": source}}
        changes = {"protocol": "fine_tuned", "config": {"training": training}}
        save_record(make_record(dataset=MST, dataset_version=1, **changes), tmp_path)
    save_record(make_record(dataset=MST, dataset_version=1, model="gt"), tmp_path)
    rows = run("results", "--records", tmp_path)[1].partition("\n\n")[0].splitlines()[1:]
    names = sorted(row.removeprefix(MST).partition(" test ")[0].strip() for row in rows)
    folders = [name for name in names if name.startswith("gin (fine_tuned) [")]  # no folder of a user stands in a table
    assert len(folders) == 2
    expected = ["gin (other)", "gin (fine_tuned), from clrs/bfs", "gin (fine_tuned), from clrs/dfs", "gt", *folders]
    assert names == sorted([f"gin [{first.config_hash}]", f"gin [{second.config_hash}]", *expected])


def test_filters_and_order(run, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = run("results", "mst_easy", "--records", folder, "--sort", "value", "--reverse")
    assert [row[5] for row in table(out)] == ["0.9000", "0.8000", "0.7000"]
    _, out, _ = run("results", "--records", folder, "--split", "n*", "--metric", "f1", "--model", "g?")
    assert [(row[1], row[2]) for row in table(out)] == [("gt", "n192"), ("gt", "n512")]
    _, out, _ = run("results", "--records", folder, "--budget", "small", "--metric", "*")
    assert [row[3] for row in table(out)] == ["f1", "accuracy", "f1_per_graph"]
    _, out, _ = run("results", "--records", folder, "--metric", "f1", "--model", "gin")
    assert [row[0] for row in table(out)] == ["algoreas/gone", MST, MST]  # a named metric needs no card
    code, out, _ = run("results", "--records", folder, "--model", "gt", "--budget", "small")
    assert code == 0 and "no record fits" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--model", "gtt"), "Invalid value for --model: no chosen record has the model 'gtt'; did you mean 'gt'?"),
        (("--model", "gin", "--model", "nobody"), ""),  # the other name fits
        (("--model", "nobody"), "has the model 'nobody'; there are gin, gin_small, gt"),
        (("--split", "tets"), "has the split 'tets'; did you mean 'test'?"),
        (("--metric", "acuracy"), "has the metric 'acuracy'; did you mean 'accuracy'?"),
        (("--format", "latex", "--model", "gtt"), "has the model 'gtt'; did you mean 'gt'?"),
        (("--format", "latex", "--split", "tets"), "has the split 'tets'"),
    ],
)
def test_names_that_no_record_has_are_refused(run, folder, words, message):
    code, out, error = run("results", "--records", folder, *words)
    assert (code, bool(out)) == ((2, False) if message else (0, True))
    assert message in " ".join(error.replace("│", " ").split())


def test_results_of_a_folder_without_records_are_an_error(run, tmp_path):
    code, _, error = run("results", "--records", tmp_path)
    assert code == 2 and str(tmp_path) in error.replace("\n", "")


def test_csv_and_json_have_every_row_and_column(run, folder):
    _, out, _ = run("results", "--records", folder, "--csv")
    rows, expected = list(csv.DictReader(io.StringIO(out))), as_rows("*", folder)
    assert tuple(rows[0]) == COLUMNS and len(rows) == len(expected) == 5 * 5
    assert [(row["model"], row["split"], float(row["value"])) for row in rows] == [
        (row["model"], row["split"], row["value"]) for row in expected
    ]
    _, out, _ = run("results", "mst_easy", "--records", folder, "--json", "--split", "test", "--metric", "primary")
    assert json.loads(out) == [row for row in expected if row["dataset"] == MST and row["split"] == "test"
                               and row["metric"] == "f1"]  # fmt: skip


def test_a_malformed_record_is_left_out_and_named(run, folder, tmp_path, caplog):
    """One bad file says nothing of the others."""
    (folder / "half.json").write_text("{", encoding="utf-8")
    for words in (
        ("results", "--csv"),
        ("results", "--format", "csv"),
        ("leaderboard", "--output", tmp_path / "board.json"),
        ("report", "--output", tmp_path / "report.md"),
    ):
        caplog.clear()
        assert run(*words, "--records", folder)[0] == 0, words
        assert "left out" in caplog.text and "half.json is not a JSON record" in caplog.text, words


@pytest.mark.thorough
def test_tables_for_papers_are_printed_in_three_forms(run, folder):
    code, out, _ = run("results", "mst_easy", "--records", folder, "--format", "latex")
    assert code == 0 and out.startswith("% \\usepackage{booktabs}\n\\begin{tabular}{lr}") and "structural (rule)" in out
    _, out, _ = run("results", "mst_easy", "--records", folder, "--format", "markdown", "--intervals", "--split", "*")
    assert out.startswith("| model | test (f1 ↑) | n192 (f1 ↑) |")
    _, out, _ = run("results", "mst_easy", "--records", folder, "--baselines", "--format", "csv", "--class", "minutes")
    assert {"pairs", "gin_small"} <= {row["model"] for row in csv.DictReader(io.StringIO(out))}
    part = folder.parent / "part"
    changes = {"model": "mine", "data_hashes": {"test": "0" * 64}, "graphs_scored": {"test": 40}, "dataset_version": 1}
    few = make_record(0, dataset=MST, **changes)
    save_record(few, part)
    _, out, error = run("results", "mst_easy", "--records", part, "--baselines", "--format", "csv")
    assert "mine" not in {row["model"] for row in csv.DictReader(io.StringIO(out))}
    assert "left out: mine" in error and "leave --baselines out" in error
    for words, message in (
        (["--format", "word"], "latex, markdown, csv"),
        (["--format", "csv", "--class", "hours"], "minutes, paper, open"),
        (["--format", "csv", "--json"], "choose one"),
        (["--intervals"], "add --format"),
        (["--format", "csv", "--metric", "f1"], "leave out --metric"),
    ):
        code, _, error = run("results", "--records", folder, *words)
        assert code == 2 and message in " ".join(error.replace("│", " ").split()), words


def test_wrong_words_are_answered_with_the_remedy(run, folder):
    assert run("results", "--records", folder, "--csv", "--json")[0] == 2
    code, _, error = run("results", "--records", folder, "--sort", "vlaue")
    assert code == 2 and "unknown column 'vlaue'; did you mean 'value'?" in error
    code, _, error = run("results", "--records", folder, "--budget", "tiny")
    assert code == 2 and "choose from full, small, unstated" in error
    code, _, error = run("results", "mts_easy", "--records", folder)
    assert code == 2 and "did you mean" in error and "mst_easy" in error
    with pytest.raises(ArgumentError, match="choose from dataset, model"):
        as_rows("*", folder, sort="%%%")


def test_rows_without_a_value_come_last_in_any_order(folder):
    save_record(make_record(f1=0.3, dataset=MST, model="own", steps=None, config={"kind": "own"}), folder)
    for reverse in (False, True):
        steps = [row["steps"] for row in as_rows("*", folder, split="test", metric="f1", sort="steps", reverse=reverse)]
        assert steps[-1] is None and len(steps) == 6 and None not in steps[:-1]


def test_what_terminals_obey_is_not_printed(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    record = make_record(scores={"test": {"\x1b[31mred": 0.5}})
    save_record(record, path=tmp_path / "records" / "one.json")
    _, out, _ = run("results", "--records", tmp_path / "records", "--metric", "*")
    assert "\x1b" not in out and "\\x1b[31mred" in out


def test_a_spreadsheet_runs_no_text_of_a_record_and_ordinary_ones_come_back(run, tmp_path):
    formulas = ("=1+1", "+1", "-1", "@SUM(1)", "\uff1d1", " =1")
    scores = {
        split: {"f1": 0.5} for split in (*formulas, "\t=1", "\r=1", "two\nlines", "\x1b[31mred", "n256, far", "a=b")
    }
    record = make_record(scores={**scores, "test": {"f1": 0.25}}, seed=-3)
    save_record(record, path=tmp_path / "records" / "one.json")
    code, out, _ = run("results", "--records", tmp_path / "records", "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and "\x1b" not in out and len(out.splitlines()) == len(rows) + 1
    splits = {row["split"] for row in rows}
    escaped = {"\\t=1", "\\r=1", "two\\nlines", "\\x1b[31mred"}
    assert splits == {f"'{text}" for text in formulas} | escaped | {"n256, far", "a=b", "test"}
    assert {(row["model"], row["dataset"], row["seed"]) for row in rows} == {(record.model, record.dataset, "-3")}
    assert {row["value"] for row in rows} == {"0.5", "0.25"}


def test_leaderboard_writes_pages_and_names_datasets_without_a_card(run, folder, tmp_path):
    code, out, _ = run("leaderboard", "--records", folder, "--output", tmp_path / "out")
    assert code == 0
    written = [line.removeprefix("wrote ") for line in out.splitlines()]
    assert [path.rpartition("/")[2] for path in written] == [
        "index.html", "domain-algoreas.html", "leaderboard.md", "leaderboard.json",
    ]  # fmt: skip
    found = json.loads((tmp_path / "out" / "leaderboard.json").read_text(encoding="utf-8"))
    assert found["records"] == 5 and found["unknown"] == ["algoreas/gone"]
    assert "algoreas/gone" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_leaderboard_of_some_datasets_beside_the_packages_records(run, folder):
    _, out, _ = run("leaderboard", "mst_easy", "--records", folder, "--json")
    own = json.loads(out)
    assert {board["dataset"] for board in own["boards"]} == {MST} and own["records"] == 3
    _, out, _ = run("leaderboard", "mst_easy", "--records", folder, "--baselines", "--json")
    both = json.loads(out)
    committed = len({row["path"] for row in as_rows(MST)})
    assert committed > 0 and both["records"] == 3 + committed


def test_leaderboard_of_nothing_says_what_to_do(run, folder, tmp_path):
    (tmp_path / "empty").mkdir()
    for words in (("--records", tmp_path / "empty"), ("clrs", "--records", folder)):
        code, _, error = run("leaderboard", *words)
        assert code == 2 and "there are no records" in error and "graphbench train" in error
    code, _, error = run("leaderboard", "--records", tmp_path / "absent")
    assert code == 2 and "no results folder" in error
