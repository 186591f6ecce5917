"""What reading published files counts in its one warning, and noise that is not of its task."""

import logging

import pytest

from graphbench.domains.clutrr.official import read_official
from graphbench.domains.clutrr.relations import WORDS

from .test_official import PEOPLE, cells, failure, read_one, relations, write


def test_false_labels_are_counted_in_one_warning(tmp_path, caplog):
    write(tmp_path, "1.2,1.3_train.csv", *(cells(part="train", number=i) for i in range(6)))
    wrong_relation = cells(target="brother", number=1)
    wrong_gender = cells(target="aunt", number=2)
    write(tmp_path, "1.2_test.csv", cells(), wrong_relation, wrong_gender)
    with caplog.at_level(logging.WARNING):
        splits = read_official(tmp_path)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "2 of 9 (22.2%) labels are false" in caplog.text
    assert "noise" not in caplog.text
    assert [WORDS[i] for i in splits["k2"].answer] == ["uncle", "brother", "aunt"]


def warning_of(folder, caplog):
    with caplog.at_level(logging.WARNING):
        read_official(folder)
    return caplog.text


def test_a_warning_names_the_first_row_of_each_kind(tmp_path, caplog):
    rows = [
        cells(number=0, story="[Ann] met her father [Cy], who met his brother."),
        cells(number=1, proof_state="[]"),
        cells(number=2, proof_state="[{('Ann', 'father', 'Cy'): [('Ann', 'father', 'Cy')]}]"),
        cells(number=3, target="brother", story="[Cy] met his brother [Bob]."),
        cells(number=4, id="twice"),
        cells(number=5, id="twice"),
    ]
    told = warning_of(write(tmp_path, "1.2_test.csv", *rows), caplog)
    assert "1 of 6 (16.7%) labels are false: " in told and "(first: 1.2_test.csv, row 4, id 'test-1-2-3')" in told
    assert (
        "2 of 6 (33.3%) stories do not name both people asked about (first: 1.2_test.csv, row 1, id 'test-1-2-0': "
        "nobody is called [Bob])"
    ) in told
    assert "2 of 6 (33.3%) proofs do not begin with the answer (first: 1.2_test.csv, row 2, id 'test-1-2-1')" in told
    assert "2 of 6 (33.3%) puzzles share their id with another (first: 1.2_test.csv, row 5, id 'twice')" in told
    assert "class" not in told and "noise" not in told


NOISY = PEOPLE + ",Di:female,Ed:male"


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
def test_noise_is_held_against_its_task(tmp_path, caplog, kind, noise, fault):
    row = cells(genders=NOISY, noise=noise, kind=kind)
    told = warning_of(write(tmp_path, f"{kind}.2_test.csv", cells(genders=NOISY, noise=noise, kind=kind)), caplog)
    assert ("1 of 1 (100.0%) puzzles have other noise" in told) == (fault is not None)
    assert fault is None or f"(first: {kind}.2_test.csv, row 1, id {row['id']!r}: {fault})" in told


@pytest.mark.parametrize("edge", [(0, 2), (2, 0)])
@pytest.mark.parametrize("kind", [2, 3, 4, 5])
def test_noise_that_tells_the_answer_is_refused(tmp_path, kind, edge):
    message = failure(write(tmp_path, f"{kind}.2_test.csv", cells(genders=NOISY, noise=[(0, 3), edge], kind=kind)))
    assert f"column 'story_edges': the fact [{edge}] is about the two people asked about" in message


def test_a_path_that_tells_the_answer_is_refused(tmp_path):
    path = {"words": ("uncle", "brother", "brother"), "genders": "Ann:female,Bob:male,Cy:male,Ed:male"}
    told = cells(**path, target="uncle", story_edges="[(0, 2), (2, 1), (1, 2)]", query_edge="(0, 2)")
    assert "asked about" in failure(write(tmp_path, "1.3_test.csv", told | {"query": "('Ann', 'Cy')"}))


def test_noise_of_another_kind_gets_its_role_from_the_graph_and_no_relation(tmp_path):
    people = "Ann:female,Bob:male,Cy:male,Di:female"
    own = {"words": ("uncle", "son"), "target": "son", "genders": people, "noise": [(0, 3)]}
    assert relations(read_one(tmp_path, kind=3, **own))[0, 3] == "mother"
    (tmp_path / "4").mkdir()
    other = read_one(tmp_path / "4", kind=4, **own)
    assert relations(other)[0, 3] is None
    assert other.role.tolist() == [0, 2, 0]


def test_unknown_noise_is_counted_in_the_same_warning(tmp_path, caplog):
    people = PEOPLE + ",Di:female,Ed:male"
    write(tmp_path, "4.2_test.csv", cells(genders=people, noise=[(3, 4)], kind=4, target="son"))
    with caplog.at_level(logging.WARNING):
        read_official(tmp_path)
    assert len(caplog.records) == 1
    assert "1 of 1 (100.0%) labels are false" in caplog.text
    assert "1 of 1 (100.0%) noise facts have no known relation (class 22) (first: 4.2_test.csv, row 1" in caplog.text


def test_labels_that_hold_in_some_families_alone_are_counted(tmp_path, caplog):
    # A child's uncle is a brother, or a brother-in-law.
    row = cells(("son", "uncle"), "brother", "Ann:female,Cy:male,Bob:male")
    with caplog.at_level(logging.WARNING):
        read_official(write(tmp_path, "1.2_test.csv", row, cells(number=1)))
    assert "1 of 2 (50.0%) labels are not implied" in caplog.text
    assert "are false" not in caplog.text


def test_true_labels_raise_no_warning(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        read_official(write(tmp_path, "1.2_test.csv", cells()))
    assert not caplog.records
