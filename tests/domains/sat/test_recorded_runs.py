"""Recorded runs of solvers that are imported: rows that no run can have given are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphbench import card
from graphbench.core.errors import StoreError
from graphbench.data.build.label_export import import_tables
from graphbench.data.build.label_tables import LabelTable, read_tables, table_head, write_tables
from graphbench.data.components.domain import find

KEY = "0123456789abcdef" * 2
CUTOFF = 2_000_000_000


def kissat_table(rows: dict[str, tuple[int, ...]]) -> LabelTable:
    layer = card("sat/small:kissat")
    labeller = find("labeller", layer.labellers[0])
    return LabelTable(table_head(labeller, labeller.parse(layer, "train")), rows)


@pytest.mark.parametrize(
    ("key", "row", "message"),
    [
        (KEY, (3, 10, 0), "status is 3"),
        (KEY, (-1, 10, 0), "status is -1"),
        (KEY, (0, 0, 0), "nanoseconds is 0.*1 to 2000000000"),
        (KEY, (0, -5, 0), "nanoseconds is -5"),
        (KEY, (1, CUTOFF + 1, 0), "nanoseconds is 2000000001"),
        (KEY, (2, 5, 0), "unsolved after 5 ns, before the cutoff"),
        (KEY, (0, 10, -1), "cpu_microseconds is -1"),
        ("zz", (0, 10, 0), "the key is 'zz', no hash of a formula"),
    ],
)
def test_runs_that_cannot_be_are_refused(key: str, row: tuple[int, ...], message: str, tmp_path: Path) -> None:
    write_tables([kissat_table({key: row})], tmp_path / "runs.csv.xz")
    with pytest.raises(StoreError, match=message):
        import_tables(tmp_path / "runs.csv.xz", tmp_path)
    assert not (tmp_path / "labels").exists()


def test_runs_that_contradict_shipped_ones_are_refused(tmp_path: Path) -> None:
    table = kissat_table({})
    (shipped,) = read_tables(card("sat/small").path.parent / "labels" / table.head.name)
    key, row = next((key, row) for key, row in shipped.rows.items() if row[0] == 0)
    for changed in ((1, *row[1:]), (row[0], row[1] + 1, row[2])):
        write_tables([kissat_table({key: changed})], tmp_path / "runs.csv.xz")
        with pytest.raises(StoreError, match=f"key {key}.*contradicts"):
            import_tables(tmp_path / "runs.csv.xz", tmp_path)
    write_tables([kissat_table({key: (*row[:2], row[2] + 7), KEY: (2, CUTOFF, 1)})], tmp_path / "runs.csv.xz")
    (found,) = import_tables(tmp_path / "runs.csv.xz", tmp_path)
    assert found["new"] == 2 and "sat/small:select" in found["datasets"]


def test_runs_of_another_version_serve_no_dataset(tmp_path: Path) -> None:
    table = kissat_table({KEY: (0, 10, 0)})
    other = {**table.head.effort, "solver_version": "4.0.3"}
    write_tables([LabelTable(table.head.model_copy(update={"effort": other}), table.rows)], tmp_path / "runs.csv.xz")
    assert import_tables(tmp_path / "runs.csv.xz", tmp_path)[0]["datasets"] == []
