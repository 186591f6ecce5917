"""Stored records as a table: a row per record, split and metric."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import graphbench
from graphbench.core.errors import MissingDependency, ResultError
from graphbench.records.files import save_record
from graphbench.records.table import COLUMNS, as_rows, results

from .conftest import make_record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    scores = {"test": {"f1": 0.75, "my_metric": 3.0}, "n192": {"f1": 0.5}}
    for seed in (1, 0):
        save_record(make_record(seed, scores=scores, graphs_scored={"test": 100}), tmp_path)
    save_record(make_record(dataset="clrs/bfs", scores={"test": {"score": 0.9}}), tmp_path)
    return tmp_path


def test_rows_say_what_was_scored_and_where_it_is_written(folder: Path) -> None:
    rows = as_rows("algoreas/*", folder)
    assert len(rows) == 6 and {tuple(row) for row in rows} == {COLUMNS}
    assert [(row["seed"], row["split"], row["metric"], row["value"]) for row in rows[:3]] == [
        (0, "test", "f1", 0.75),
        (0, "test", "my_metric", 3.0),
        (0, "n192", "f1", 0.5),
    ]
    first = rows[0]
    assert (first["dataset"], first["model"], first["steps"], first["small"]) == (
        "algoreas/mst_medium",
        "gin",
        100,
        False,
    )
    assert (first["data_hash"], rows[2]["data_hash"]) == ("0123456789abcdef", None)
    assert (first["graphs_scored"], rows[2]["graphs_scored"]) == (100, None)
    assert (first["higher_is_better"], rows[1]["higher_is_better"]) == (True, None)
    assert Path(first["path"]).is_file() and Path(first["path"]).is_relative_to(folder)
    assert first["started"] == "2026-01-02T03:04:05+00:00"


def test_rows_become_csv_and_json(folder: Path) -> None:
    rows = as_rows(records=folder)
    assert len(rows) == 7 and json.loads(json.dumps(rows)) == rows
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    file.seek(0)
    assert [float(row["value"]) for row in csv.DictReader(file)] == [row["value"] for row in rows]


def test_selectors_and_roots_are_those_of_records(folder: Path) -> None:
    assert {row["dataset"] for row in as_rows(["clrs/*", "weather/*"], str(folder))} == {"clrs/bfs"}
    assert as_rows("weather/*", folder) == []
    with pytest.raises(ResultError, match="there is no results folder"):
        as_rows(records=folder / "none")
    assert {row["dataset"] for row in as_rows()} >= {"algoreas/mst_easy"}  # the committed ones


def test_a_table_of_pandas(folder: Path) -> None:
    pytest.importorskip("pandas")
    table = graphbench.results("algoreas/*", records=folder)
    assert list(table.columns) == list(COLUMNS) and len(table) == 6
    means = table[table.metric == "f1"].pivot_table("value", "model", "split")
    assert means.loc["gin"].to_dict() == {"n192": 0.5, "test": 0.75}
    assert list(results("weather/*", folder).columns) == list(COLUMNS)


def test_without_pandas_the_remedy_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependency, match=r"pip install 'graphbench\[pandas\]'"):
        graphbench.results(records=folder)
    assert as_rows(records=folder)


def test_pandas_is_no_dependency_of_the_package(run_script: Any, output_of: Any) -> None:
    script = "import sys, graphbench; graphbench.results; print(*{m.split('.')[0] for m in sys.modules})"
    assert not {"pandas", "torch"} & set(output_of(run_script(script)).split())
