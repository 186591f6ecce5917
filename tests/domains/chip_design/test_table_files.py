"""Files of truth tables as a source of functions, beside ABC's own reader."""

from __future__ import annotations

import gzip
import subprocess

import numpy as np
import pytest

import graphbench
from graphbench.core.errors import CircuitError, MissingDependency
from graphbench.data.components.folder_splits import read_splits
from graphbench.domains.chip_design.aig import Aig, equivalent
from graphbench.domains.chip_design.graphs import tables_of_texts
from graphbench.domains.chip_design.shannon import circuits_of_tables
from graphbench.domains.chip_design.synthesis import find_abc
from graphbench.domains.chip_design.table_files import MOST_OUTPUTS, TABLES, read_table
from graphbench.domains.chip_design.truth_tables import from_text, to_text
from graphbench.tasks.registry import task_of


def drawn(inputs: int, outputs: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, inputs, outputs)).random((outputs, 1 << inputs)) < 0.4


def as_binary(table: np.ndarray) -> str:
    """One output per line, the last assignment first."""
    return "".join("".join("1" if value else "0" for value in row[::-1]) + "\n" for row in table)


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 1), (3, 2), (6, 1), (7, 3), (10, 2)])
def test_tables_are_read_back(tmp_path, inputs, outputs):
    table = drawn(inputs, outputs)
    forms = {
        "a.truth": as_binary(table).encode(),
        "b.truth": b"# made by a test\n\n" + as_binary(table).replace("\n", "\r\n").encode(),
        "c.truth.gz": gzip.compress(as_binary(table).encode()),
        "d.hex": ("\n".join(to_text(table).upper().split()) + "\n").encode(),
    }
    for name, content in forms.items():
        (tmp_path / name).write_bytes(content)
        assert np.array_equal(read_table(tmp_path / name), table), name


@pytest.mark.parametrize(("inputs", "outputs"), [(3, 2), (6, 1), (7, 3)])
def test_abc_reads_the_same_functions(tmp_path, inputs, outputs):
    try:
        abc = find_abc()
    except MissingDependency as error:
        pytest.skip(str(error))
    table = drawn(inputs, outputs, seed=1)
    (tmp_path / "a.truth").write_text(as_binary(table))
    commands = "read_truth -xf a.truth; collapse; sop; strash; write_aiger a.aig"
    subprocess.run([abc.executable, "-c", commands], cwd=tmp_path, check=True, capture_output=True)
    assert equivalent(Aig.from_aiger(tmp_path / "a.aig"), read_table(tmp_path / "a.truth"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"01", "no ending of a truth table"),
        ("a.truth", b"", "no line with values"),
        ("a.truth", b"# nothing\n", "no line with values"),
        ("a.truth", b"0102\n", "line 1: '0102' where the values of an output, 0 and 1, are expected"),
        ("a.truth", b"0101 0101\n", "'0101 0101' where"),
        ("a.hex", b"0g\n", "'0g' where the values of an output, hexadecimal digits"),
        ("a.truth", b"01011\n", "line 1: 5 values"),
        ("a.truth", b"01\n", "line 1: 2 values; an output of n inputs has 2\\^n"),
        ("a.truth", b"0101\n01010101\n", "line 2: 8 values, but the first output has 4"),
        ("a.truth", b"0101\n" * (MOST_OUTPUTS + 1), "more than 64 outputs"),
        ("a.truth", b"0" * (1 << 17), "is it a truth table"),
        ("a.truth", b"0" * (1 << 17) + b"\n", "is it a truth table"),
        ("a.truth.gz", b"\x1f\x8b not gzip", "cannot be read"),
        ("a.truth.gz", gzip.compress(b"0101\n", mtime=0)[:-4], "cannot be read"),
        ("a.truth", b"\xff\xfe01\n", "where the values of an output"),
    ],
)
def test_hostile_files_are_named(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(CircuitError, match=message) as caught:
        read_table(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_bomb_is_not_unpacked(tmp_path):
    path = tmp_path / "a.truth.gz"
    path.write_bytes(gzip.compress(b"0101\n" * 30_000_000, compresslevel=9))
    with pytest.raises(CircuitError):
        read_table(path)


def test_a_folder_is_a_dataset(tmp_path, needs_installed):
    tables = {f"ex{i:02d}.truth": drawn(4 + i % 3, 1 + i % 2, seed=i) for i in range(12)}
    for name, table in tables.items():
        (tmp_path / name).write_text(as_binary(table))
    splits = read_splits(tmp_path, TABLES, whole="files")
    assert {split: len(own) for split, own in splits.items()} == {"train": 10, "val": 1, "test": 1, "files": 12}
    loader = graphbench.Loader("chip_design/aig", source="files", folder=tmp_path, root=tmp_path / "data")
    with needs_installed():
        data = loader.load()
    for sample in [*data.train, *data.val, *data.test]:
        assert np.array_equal(from_text(sample.table), tables[sample.name])
    answers = tmp_path / "answers"
    answers.mkdir()
    for name, table in tables.items():
        (circuit,) = circuits_of_tables(*tables_of_texts([to_text(table)]))
        (answers / name.replace(".truth", ".aig")).write_bytes(circuit.to_aiger())
    scores = task_of(data.card).score_file(answers, data["files"])
    assert scores["files"]["correct"] == 1
    (tmp_path / "copy.truth").write_text(as_binary(tables["ex00.truth"]))
    with pytest.raises(CircuitError, match=r"copy\.truth"):
        read_splits(tmp_path, TABLES)
