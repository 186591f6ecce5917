"""Formulas: canonical form, samples and back, DIMACS files."""

import gzip
import hashlib
import lzma
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.errors import FormulaError
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.dimacs import read_dimacs
from graphbench.domains.sat.formula_checks import check_formulas
from graphbench.domains.sat.formulas import formula_of, formulas_as_samples

PROPERTY = settings(deadline=None)
LITERAL = st.integers(1, 9).flatmap(lambda v: st.sampled_from([v, -v]))
CLAUSES = st.lists(st.lists(LITERAL, max_size=6), max_size=12)


class Limits:
    variables, clauses = (1, 100), (1, 100)


def truth(clauses, values):
    return all(any((literal > 0) == values[abs(literal) - 1] for literal in clause) for clause in clauses)


@PROPERTY
@given(CLAUSES, st.lists(st.booleans(), min_size=9, max_size=9))
def test_the_canonical_form_has_the_same_models(clauses, values):
    cnf = Cnf.from_clauses(clauses, 9)
    canonical = cnf.canonical()
    model = np.array(values)
    assert canonical.is_satisfied_by(model) == cnf.is_satisfied_by(model) == truth(clauses, values)
    for clause in canonical.clauses():
        assert [abs(literal) for literal in clause] == sorted({abs(literal) for literal in clause})
    assert list(canonical.canonical().clauses()) == list(canonical.clauses())


@PROPERTY
@given(CLAUSES)
def test_long_and_short_clauses_are_sorted_alike(clauses):
    padding = list(range(20, 60))
    short, long = (Cnf.from_clauses([c + more for c in clauses], 60).canonical() for more in ([], padding))
    assert [c + padding for c in short.clauses()] == list(long.clauses())


@PROPERTY
@given(CLAUSES)
def test_unused_variables_are_left_out_in_order(clauses):
    cnf = Cnf.from_clauses(clauses, 12)
    found = cnf.without_unused_variables()
    used = sorted({abs(literal) for clause in clauses for literal in clause})
    assert found.num_variables == len(used)
    back = [[used[abs(x) - 1] * (1 if x > 0 else -1) for x in clause] for clause in found.clauses()]
    assert back == clauses


@PROPERTY
@given(st.lists(CLAUSES, min_size=1, max_size=4))
def test_formulas_are_samples_and_back(formulas):
    given_ = [Cnf.from_clauses([c for c in f if c] or [[1]]).canonical().without_unused_variables() for f in formulas]
    given_ = [cnf for cnf in given_ if cnf.num_clauses] or [Cnf.from_clauses([[1]])]
    samples = formulas_as_samples(given_, np.arange(len(given_)))
    assert check_formulas(Limits, samples) == []
    for i, cnf in enumerate(given_):
        back = formula_of(samples, i)
        assert back.num_variables == cnf.num_variables
        assert list(back.clauses()) == list(cnf.clauses())


def test_the_check_of_formulas_finds_what_is_wrong():
    samples = formulas_as_samples([Cnf.from_clauses([[1, -2], [2, 3]])], np.zeros(1))
    assert check_formulas(Limits, samples) == []

    class Narrow:
        variables, clauses = (1, 2), (1, 100)

    assert check_formulas(Narrow, samples) == ["formula 0: 3 variables, not 1 to 2"]
    for edge, problem in (((0, 1), "does not join"), ((0, 9), "does not exist")):
        samples.edges[1] = edge
        assert problem in check_formulas(Limits, samples)[0]
    samples.edges[1] = samples.edges[0]
    assert "twice" in check_formulas(Limits, samples)[0]


def test_wrong_literals_and_models_are_refused():
    with pytest.raises(ValueError, match="literal 0"):
        Cnf.from_clauses([[1, 0]])
    with pytest.raises(ValueError, match="variable 5, but there are 3"):
        Cnf.from_clauses([[-5]], 3)
    with pytest.raises(ValueError, match=r"shape \(2,\).*1 variables"):
        Cnf.from_clauses([[1]]).is_satisfied_by(np.ones(2, bool))


@settings(PROPERTY, max_examples=40)
@given(CLAUSES, st.sampled_from(["", ".gz", ".xz", ".bz2"]))
def test_a_file_holds_the_formula(clauses, suffix):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a.cnf{suffix}"
        Cnf.from_clauses(clauses, 10).to_dimacs(path)
        back = read_dimacs(path)
    assert (back.num_variables, list(back.clauses())) == (10, clauses)


def test_variations_of_the_format_are_read(tmp_path):
    path = tmp_path / "a.cnf"
    path.write_bytes(
        b"c a comment\r\n\r\np  cnf   4 4  \r\n1 -2\r\n 0 3\t0\r\nc between 5 clauses 0\n0 -4 -1\n%\n0\nanything\n"
    )
    assert list(read_dimacs(path).clauses()) == [[1, -2], [3], [], [-4, -1]]
    path.write_bytes(b"p cnf 2 1\n1 2")  # a last clause without its 0, and no newline
    assert list(read_dimacs(path).clauses()) == [[1, 2]]
    path.write_bytes(b"p cnf 0 0\n")
    assert list(read_dimacs(path).clauses()) == []


def test_pieces_of_a_file_join(tmp_path, monkeypatch):
    from graphbench.domains.sat import dimacs

    clauses = [[i, -(i + 1), 1000 + i] for i in range(1, 200)]
    path = tmp_path / "a.cnf"
    Cnf.from_clauses(clauses).to_dimacs(path)
    for size in (1, 2, 3, 7, 64):
        monkeypatch.setattr(dimacs, "_PIECE", size)
        assert list(read_dimacs(path).clauses()) == clauses


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no header"),
        (b"1 2 0\n", "no header"),
        (b"p wcnf 3 3 10\n", "line 1: the header is 'p wcnf 3 3 10'"),
        (b"c x\np cnf 3\n", "line 2: the header"),
        (b"p cnf -3 1\n1 0\n", "the header"),
        (b"p cnf 99999999999999999999999999 1\n1 0\n", "above 2,147,483,647"),
        (b"p cnf 3 2\n1 0\n", "holds 1 clauses, but its header says 2"),
        (b"p cnf 3 1\n1 0\n2 0\n", "holds 2 clauses, but its header says 1"),
        (b"p cnf 3 1\n4 0\n", "variable 4, but its header says 3"),
        (b"p cnf 3 2\n1 0\n1 x 0\n", "line 3: 'x' where a literal"),
        (b"p cnf 3 1\n1 - 2 0\n", "line 2: ' ' where a literal"),
        (b"p cnf 3 1\n1-2 0\n", "line 2: '-' where a literal"),
        (b"p cnf 3 1\n99999999999999999999 0\n", "line 2: a literal is above"),
        (b"p cnf 3 1\n1 2.5 0\n", "'.' where a literal"),
        (b"\x00\xff\xfe" * 100, "no header"),
    ],
)
def test_files_that_hold_no_formula_end_in_one_error(tmp_path, content, message):
    path = tmp_path / "a.cnf"
    path.write_bytes(content)
    with pytest.raises(FormulaError, match=message) as caught:
        read_dimacs(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_ten_million_literals_on_one_line_are_read_within_the_limit(tmp_path):
    path = tmp_path / "a.cnf.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"p cnf 9 1\n" + b"7 " * 10_000_000 + b"0\n")
    cnf = read_dimacs(path)
    assert cnf.lengths.tolist() == [10_000_000] and cnf.canonical().lengths.tolist() == [1]
    with pytest.raises(FormulaError, match="more than 1,000,000 literals"):
        read_dimacs(path, max_literals=1_000_000)


def test_damaged_compressed_files_are_refused(tmp_path):
    whole = lzma.compress(b"p cnf 9 1\n1 2 0\n" * 1000)
    for name, content in (("a.cnf.xz", whole[:-40]), ("a.cnf.gz", b"no gzip"), ("missing.cnf", None)):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(FormulaError, match="cannot be read"):
            read_dimacs(path)


@settings(deadline=None)
@given(
    st.lists(st.lists(st.one_of(st.integers(-120, 120), st.integers(1 - 2**31, 2**31 - 1)).filter(bool), max_size=5))
)
def test_the_text_of_a_formula_holds_its_numbers(clauses):
    literals, ptr = [x for clause in clauses for x in clause], np.cumsum([0, *map(len, clauses)])
    cnf = Cnf(2**31 - 1, np.array(literals, np.int32), ptr.astype(np.int64))
    lines = [" ".join(map(str, [*clause, 0])) for clause in clauses]
    assert cnf.body() == " ".join(lines)
    assert cnf.dimacs().decode().splitlines() == [f"p cnf {2**31 - 1} {len(clauses)}", *lines]
    assert cnf.dimacs().endswith(b"\n") and not cnf.dimacs().endswith(b"\n\n")


def test_the_hash_is_that_of_gbd(tmp_path):
    gbdc = pytest.importorskip("gbdc")
    cnf = Cnf.from_clauses([[1, -2], [3, 4, -5], [2], [-4, 1]])
    cnf.to_dimacs(tmp_path / "a.cnf")
    assert cnf.gbdhash == gbdc.gbdhash(str(tmp_path / "a.cnf"))
    assert cnf.gbdhash == hashlib.md5(b"1 -2 0 3 4 -5 0 2 0 -4 1 0").hexdigest()


def test_the_public_names_are_those_of_the_package_whatever_was_imported_before():
    import graphbench.domains.sat.feature_groups
    import graphbench.domains.sat.graphs  # noqa: F401
    from graphbench.domains import sat

    assert all(callable(getattr(sat, name)) for name in sat.__all__ if name != "SOLVERS")
    assert sat.features(sat.Cnf.from_clauses([[1, -2]]), ["size"])["log_variables"] == pytest.approx(np.log10(3))
    with pytest.raises(AttributeError, match="no attribute 'feature'; it exports Cnf"):
        sat.feature  # noqa: B018
