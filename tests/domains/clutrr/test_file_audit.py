"""The audit of published files (``benchmarks.claims.clutrr_files``): every kind of fault is counted."""

import importlib
import sys
from pathlib import Path

import pytest
from hypothesis import given

from graphbench.domains.clutrr.files.rows import parse_row

from .test_official import PEOPLE, cells, drawn_cells, golden, golden_folder, write  # noqa: F401
from .test_official_splits import rows

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
audit = importlib.import_module("benchmarks.claims.clutrr_files")

NOISY = PEOPLE + ",Di:female,Ed:male"
FALSE = "labels are false: the path implies another relation or gender"
OPEN = "labels are not implied by the path under the sound rules"
PROOFS = "proofs do not begin with the answer"
NAMELESS = "stories do not name both people asked about"
SHARED = "puzzles share their id with another"
NOISE = "puzzles have other noise than the paper says of their task"
COLUMNS = "puzzles have a column that contradicts the puzzle"
UNKNOWN = "noise facts have no known relation (class 22)"


def audited(folder):
    """Fault -> number of cases, and the sentence."""
    return {finding.fault: (len(finding.cases), str(finding)) for finding in audit.findings(audit.read_puzzles(folder))}


def faults(folder):
    return {fault: count for fault, (count, _) in audited(folder).items() if count}


def test_good_files_have_no_fault(tmp_path):
    found = audited(write(tmp_path, "1.2_test.csv", cells()))
    assert {sentence for _, sentence in found.values()} == {
        *(f"0 of 1 {fault}" for fault in found if fault != UNKNOWN),
        f"0 of 0 {UNKNOWN}",
    }


def test_false_labels_are_counted(tmp_path):
    write(tmp_path, "1.2,1.3_train.csv", *(cells(part="train", number=i) for i in range(6)))
    write(tmp_path, "1.2_test.csv", cells(), cells(target="brother", number=1), cells(target="aunt", number=2))
    count, sentence = audited(tmp_path)[FALSE]
    assert count == 2
    assert sentence == f"2 of 9 (22.2%) {FALSE} (first: 1.2_test.csv, row 2, id 'test-1-2-1')"


def test_labels_that_hold_in_some_families_alone_are_counted(tmp_path):
    # A child's uncle is a brother, or a brother-in-law.
    row = cells(("son", "uncle"), "brother", "Ann:female,Cy:male,Bob:male")
    found = faults(write(tmp_path, "1.2_test.csv", row, cells(number=1)))
    assert found[OPEN] == 1
    assert FALSE not in found


def test_a_finding_names_the_first_row_of_its_kind(tmp_path):
    found = audited(
        write(
            tmp_path,
            "1.2_test.csv",
            cells(number=0, story="[Ann] met her father [Cy], who met his brother."),
            cells(number=1, proof_state="[]"),
            cells(number=2, proof_state="[{('Ann', 'father', 'Cy'): [('Ann', 'father', 'Cy')]}]"),
            cells(number=3, target="brother", story="[Cy] met his brother [Bob]."),
            cells(number=4, id="twice"),
            cells(number=5, id="twice"),
        )
    )
    assert found[FALSE][1].endswith("(first: 1.2_test.csv, row 4, id 'test-1-2-3')")
    assert (
        found[NAMELESS][1]
        == f"2 of 6 (33.3%) {NAMELESS} (first: 1.2_test.csv, row 1, id 'test-1-2-0': nobody is called [Bob])"
    )
    assert found[PROOFS][1] == f"2 of 6 (33.3%) {PROOFS} (first: 1.2_test.csv, row 2, id 'test-1-2-1')"
    assert found[SHARED][1] == f"2 of 6 (33.3%) {SHARED} (first: 1.2_test.csv, row 5, id 'twice')"
    assert found["stories stand twice"][0] == 4
    assert (found[NOISE][0], found[UNKNOWN][0]) == (0, 0)


@pytest.mark.parametrize(
    ("kind", "noise", "fault"),
    [
        (2, [(0, 3), (3, 1)], None),
        (2, [(0, 3), (3, 4), (4, 2)], None),
        (2, [(0, 3)], "the noise fact (0, 3) is irrelevant, not supporting"),
        (2, [(0, 3), (3, 1), (1, 4)], "the noise fact (1, 4) is irrelevant, not supporting"),
        (2, [], "task_2.2 without noise"),
        (3, [(1, 3)], None),
        (3, [(4, 2)], None),
        (3, [(3, 4)], "the noise fact (3, 4) is disconnected, not irrelevant"),
        (3, [(1, 3), (3, 2)], "the noise fact (1, 3) is supporting, not irrelevant"),
        (3, [(1, 0)], "the noise fact (1, 0) is supporting, not irrelevant"),
        (4, [(3, 4)], None),
        (4, [(2, 4)], "the noise fact (2, 4) is irrelevant, not disconnected"),
        (5, [(1, 3)], None),
        (5, [], "task_5.2 without noise"),
    ],
)
def test_noise_is_held_against_its_task(tmp_path, kind, noise, fault):
    row = cells(genders=NOISY, noise=noise, kind=kind)
    count, sentence = audited(write(tmp_path, f"{kind}.2_test.csv", row))[NOISE]
    assert count == (fault is not None)
    assert fault is None or f"(first: {kind}.2_test.csv, row 1, id {row['id']!r}: {fault})" in sentence


def test_unknown_noise_is_counted(tmp_path):
    write(tmp_path, "4.2_test.csv", cells(genders=NOISY, noise=[(3, 4)], kind=4, target="son"))
    found = audited(tmp_path)
    assert found[FALSE][0] == 1
    assert found[UNKNOWN][1] == f"1 of 1 (100.0%) {UNKNOWN} (first: 4.2_test.csv, row 1, id 'test-4-2-0')"


@pytest.mark.parametrize(
    ("column", "text", "problem"),
    [
        ("", "first", "it cannot be read"),
        ("text_target", "[1]", "it cannot be read"),
        ("proof_state", "[{('Ann', 'uncle', 'Bob'): [('Ann', 'boss', 'Cy')]}]", "it cannot be read"),
        ("proof_state", "[{('Ann', 'uncle'): []}]", "it cannot be read"),
        ("proof_state", "[{1: 2}]", "it cannot be read"),
        ("proof_state", "[1]", "it cannot be read"),
        ("proof_state", "[{('Ann', 'uncle', 'Bob'): [('Ann', 'father', 'Zoe')]}]", "'Zoe' is not among the people"),
        ("node_mapping", "{7: 9}", "it must lead to people of 'genders'"),
        ("node_mapping", "{1: 0, 2: 1, 3: 1}", "it must lead to people of 'genders'"),
        ("node_mapping", "{1: 0, 2: 1}", "it must lead to people of 'genders'"),
        ("node_mapping", "[1, 2]", "it cannot be read"),
    ],
)
def test_columns_that_samples_do_not_need_are_checked(tmp_path, column, text, problem):
    count, sentence = audited(write(tmp_path, "1.2_test.csv", cells() | {column: text}))[COLUMNS]
    assert count == 1
    assert f"column {column!r}: {problem}" in sentence
    assert f"(got {text!r:.120})" in sentence


def test_the_misspelt_niece_is_read_in_proofs(tmp_path):
    proof = "[{('Cy', 'neice', 'Ann'): [('Cy', 'brother', 'Bob'), ('Bob', 'daughter', 'Ann')]}]"
    row = cells(("brother", "daughter"), "neice", "Cy:male,Bob:male,Ann:female", proof_state=proof)
    assert faults(write(tmp_path, "1.2_test.csv", row)) == {}


@given(drawn_cells())
def test_drawn_columns_have_no_fault(row):
    assert audit.column_fault(audit.Puzzle(parse_row(Path("x.csv"), 1, row), row)) is None


def test_relations_of_noise_are_said_to_be_of_the_files_or_derived(tmp_path):
    write(tmp_path, "3.2,3.3_train.csv", *rows("3.2", "train", 5))
    people = "Ann:female,Bea:female,Cy:male,Di:female"
    one = {"words": ("aunt", "son"), "target": "son", "genders": people, "kind": 2, "noise": [(0, 3), (3, 1)]}
    told = cells(**one, number=1, edge_types="['aunt', 'son', 'mother', 'sister']")
    write(tmp_path, "2.2_test.csv", cells(**one), told)
    write(tmp_path, "3.2_test.csv", *rows("3.2", "test", 1))
    puzzles = audit.read_puzzles(tmp_path)
    assert audit.relations_of_noise(puzzles) == (
        "2 of 10 noise facts have a relation in the files, 2 more can have only one"
    )
    assert audited(tmp_path)[UNKNOWN][1].startswith(f"6 of 10 (60.0%) {UNKNOWN} (first: 3.2,3.3_train.csv")


def test_test_paths_that_training_has_are_counted_and_printed(tmp_path, capsys, monkeypatch):
    write(tmp_path, "1.2,1.3_train.csv", *(cells(part="train", number=i) for i in range(3)))
    other = cells(("mother", "brother"), genders="Ann:female,Cy:female,Bob:male", number=1)
    write(tmp_path, "1.2_test.csv", cells(), other, cells(("son", "son"), "grandson", number=2))
    leaked = "k2: 1 of 3 paths have the words of a training path, 2 its relations"
    assert list(audit.clause_leakage(audit.read_puzzles(tmp_path))) == [leaked]
    monkeypatch.setattr(sys, "argv", ["clutrr_files", str(tmp_path)])
    audit.main()
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == leaked
    assert f"0 of 6 {FALSE}" in printed


# The published generator.


def test_noise_and_paths_of_the_published_generator_are_of_their_task(tmp_path, golden):  # noqa: F811
    puzzles = audit.read_puzzles(golden_folder(tmp_path, golden))
    assert {puzzle.row.noise for puzzle in puzzles} == {1, 2, 3, 4}
    assert [puzzle.row.id for puzzle in puzzles if audit.noise_fault(puzzle.row)] == []


def test_verdicts_agree_with_the_generators_family(tmp_path, golden):  # noqa: F811
    found = {p.row.id: audit.verdict(p.row) for p in audit.read_puzzles(golden_folder(tmp_path, golden))}
    sure = [p for p in golden if all(place >= p["k"] for place in p["unsound_edges"])]  # the path itself is true
    assert len(sure) > 100
    assert "false" not in {found[p["id"]] for p in sure if p["target_genealogically_true"]}
    assert "true" not in {found[p["id"]] for p in sure if not p["target_genealogically_true"]}
