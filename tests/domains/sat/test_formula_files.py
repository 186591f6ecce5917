"""Folders of DIMACS files as a source, and formulas written as files."""

from __future__ import annotations

import gzip
import hashlib
import random

import pytest

import graphbench
from graphbench.core.errors import FormulaError, StoreError
from graphbench.data.components.folder_splits import splits_by_hash
from graphbench.data.store.shards import stored_samples
from graphbench.domains.sat import Cnf
from graphbench.domains.sat.dimacs import read_dimacs
from graphbench.domains.sat.formula_files import (
    MAX_VARIABLES,
    read_formula,
    read_formulas,
    write_formulas,
)
from graphbench.domains.sat.formulas import formula_of


def formula(seed: int, variables: int = 9, clauses: int = 25) -> Cnf:
    rng = random.Random(seed)
    return Cnf.from_clauses(
        [[rng.choice([-1, 1]) * v for v in rng.sample(range(1, variables + 1), 3)] for _ in range(clauses)]
    )


def write(folder, names, first=0):
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        formula(first + number).to_dimacs(folder / name)
    return folder


@pytest.fixture
def splits_folder(tmp_path):
    place = tmp_path / "files"
    write(place / "train", ["b.cnf", "a.cnf.gz", "c.cnf.xz", "d.cnf.bz2"])
    write(place / "val", ["x.cnf"], 10)
    write(place / "test", ["y.cnf", "z.cnf"], 20)
    write(place / "far", ["w.cnf"], 30)
    (place / "train" / "notes.txt").write_text("no formula")
    return place


def test_sub_folders_are_splits(splits_folder, tmp_path):
    loader = graphbench.Loader("sat/small", source="files", folder=splits_folder, root=tmp_path / "root", workers=1)
    card = loader._cards["sat/small"].graphs
    assert {name: spec.count for name, spec in card.all_splits.items()} == {"train": 4, "val": 1, "test": 2, "far": 1}
    assert card.protocol == "files" and "family" not in {f.name for f in card.features}
    from graphbench.data.build.generation import ensure_split

    stored = stored_samples(card.graph_schema, ensure_split(card, "train", tmp_path / "root", workers=1))
    assert stored.values["name"].strings() == ["a.cnf.gz", "b.cnf", "c.cnf.xz", "d.cnf.bz2"]
    for i, name in enumerate(stored.values["name"].strings()):
        expected = read_dimacs(splits_folder / "train" / name).canonical().without_unused_variables()
        assert list(formula_of(stored, i).clauses()) == list(expected.clauses())


def test_without_sub_folders_the_order_of_hashes_decides(tmp_path):
    write(tmp_path, [f"f{i}.cnf" for i in range(23)])
    found = read_formulas(tmp_path)
    bodies = {}
    for i in range(23):
        clauses = [[*sorted(clause, key=abs), 0] for clause in formula(i).clauses()]
        bodies[f"f{i}.cnf"] = " ".join(" ".join(map(str, clause)) for clause in clauses)
    order = sorted(bodies, key=lambda name: hashlib.md5(bodies[name].encode()).hexdigest())
    assert {name: set(own) for name, own in found.items()} == {
        "train": set(order[4:]),
        "val": set(order[2:4]),
        "test": set(order[:2]),
    }
    assert list(found["train"]) == sorted(found["train"])
    assert sorted(splits_by_hash(["c", "a", "b"])) == ["test", "train", "val"]


def test_written_formulas_are_read_back_in_order(tmp_path):
    formulas = [formula(i).canonical().without_unused_variables() for i in range(12)]
    for split, own in (("train", formulas[:8]), ("val", formulas[8:10]), ("test", formulas[10:])):
        assert write_formulas(own, tmp_path / split) == len(own)
    found = read_formulas(tmp_path)
    read = [cnf for split in ("train", "val", "test") for cnf in found[split].values()]
    assert [list(cnf.clauses()) for cnf in read] == [list(cnf.clauses()) for cnf in formulas]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"p cnf 2 1\n1 0\n2 0\n", "holds 2 clauses, but its header says 1"),
        (b"p cnf 1 1\n2 0\n", "variable 2.*header says 1"),
        (b"p cnf 99999999999999 1\n1 0\n", "line 1: the header .* has a number above"),
        (b"p cnf 2000000000 1\n1 0\n", f"2,000,000,000 variables.*{MAX_VARIABLES:,}"),
        (b"p cnf 2 2\n1 0\n0\n", "a clause is empty"),
        (b"p cnf 2 1\n1 -1 0\n", "all clauses always hold"),
        (b"p cnf 0 0\n", "decided before any search"),
        (b"\x00\xff\x13garbage" * 50, "has no header"),
        (b"p cnf 2 1\n1 \xff 0\n", "line 2: .* where a literal is expected"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path, content, message):
    path = tmp_path / "bad.cnf"
    path.write_bytes(content)
    with pytest.raises(FormulaError, match=rf"bad\.cnf.*{message}|{message}") as caught:
        read_formula(path)
    assert "bad.cnf" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_a_truncated_file_is_refused(tmp_path, suffix):
    path = tmp_path / f"cut.cnf{suffix}"
    formula(1, 200, 4000).to_dimacs(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(FormulaError, match=r"cut\.cnf"):
        read_formula(path)
    path.write_bytes(gzip.compress(b"p cnf 1 1\n1 0\n") if suffix != ".gz" else b"BZh91AY")
    with pytest.raises(FormulaError, match=r"cut\.cnf"):
        read_formula(path)


def test_folders_that_are_no_dataset_are_refused(tmp_path):
    with pytest.raises(FormulaError, match=r"no formula.*\*.cnf"):
        read_formulas(tmp_path)
    with pytest.raises(StoreError, match="missing"):
        read_formulas(tmp_path / "missing")
    write(tmp_path, ["a.cnf", "b.cnf"])
    with pytest.raises(FormulaError, match=r"2 formulas.*at least one each"):
        read_formulas(tmp_path)
    write(tmp_path / "train", ["c.cnf"], 5)
    with pytest.raises(FormulaError, match=r"\(a.cnf\) beside.*\(train\)"):
        read_formulas(tmp_path)


def test_missing_splits_and_equal_formulas_are_refused(tmp_path):
    write(tmp_path / "train", ["a.cnf"])
    with pytest.raises(FormulaError, match="'val' is missing"):
        read_formulas(tmp_path)
    write(tmp_path / "val", ["b.cnf"], 1)
    (tmp_path / "test").mkdir()
    other = [list(reversed(clause)) for clause in formula(0).clauses()]
    Cnf.from_clauses(other).to_dimacs(tmp_path / "test" / "c.cnf.gz")
    with pytest.raises(FormulaError, match=r"a.cnf holds the same formula as .*c.cnf.gz|c.cnf.gz holds the same"):
        read_formulas(tmp_path)
