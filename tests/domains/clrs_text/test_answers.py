"""Extraction of the final answer and exact match."""

import time

import pytest

from graphbench.data.arrays.answers import final_answer
from graphbench.domains.clrs_text import answer_of, exact_match


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("4", "4"),
        ("0, 0, 3 | 4\n\n", "4"),
        ("[1 2 3]", "[1 2 3]"),
        ("[5 4], [4 5] | [4 5]\n\n", "[4 5]"),
        ("[0.548 -0.1 1e-05]", "[0.548 -0.1 1e-05]"),
        (" | [[0 -1], [-1 0]]\n\n", "[[0 -1], [-1 0]]"),
        ("(0, 4), (3, 4) | (4, 4)\n\n", "(4, 4)"),
        ("The sorted list is [1, 2, 3].", "[1, 2, 3]"),
        ("so the minimum is at index 4.", "4"),
        ("[1 2]\nis my answer, see x7 and v2.0beta", "[1 2]"),
        ("first [1 2], then [3 4", "4"),  # an unfinished list is no list
        ("[]", "[]"),
        ("[[1 2]\n [3 4]]", "[[1 2]\n [3 4]]"),
        ("[one two] no numbers", None),
        ("", None),
    ],
)
def test_answer_is_the_last_array_like_object(text, answer):
    assert answer_of(text) == answer


def test_answer_of_two_objects():
    assert answer_of("[0 1], 0, [1 1], 1 | [0 2 0 1 3], 4\n\n", 2) == "[0 2 0 1 3], 4"
    assert answer_of("[0 1]", 2) is None
    assert answer_of("[0 1]", 0) is None


def test_final_answer_is_what_follows_the_trace():
    assert final_answer("0, 0, 3 | 4\n\n") == "4"
    assert final_answer("[0 2 0 1 3], 4\n\n") == "[0 2 0 1 3], 4"
    assert final_answer(" | [1 2]\n\n") == "[1 2]"


@pytest.mark.parametrize(
    ("output", "reference", "right"),
    [
        ("[1 2 3]", "[1 2 3]\n\n", True),
        ("[1 2 3]\n\n", "[2 1 3], [1 2 3] | [1 2 3]\n\n", True),
        ("I think: [3 2 1] -> [1 2 3]", "[1 2 3]\n\n", True),
        ("[1, 2, 3]", "[1 2 3]\n\n", False),  # exact means exact
        ("[1.0 2]", "[1 2]\n\n", False),
        ("[1 2 3] or [3 2 1]", "[1 2 3]\n\n", False),
        ("[[1 2 3]]", "[1 2 3]\n\n", False),
        ("[2 3 2 0], 1", "[0 1 2 3], 0 | [2 3 2 0], 1\n\n", True),
        ("1", "[2 3 2 0], 1\n\n", False),
        ("[2 3 2 0] 1", "[2 3 2 0], 1\n\n", False),
        ("0, 3", "0, 3\n\n", True),
        ("(0, 3)", "(0, 1) | (0, 3)\n\n", True),
        ("(0,3)", "(0, 3)\n\n", False),
        ("", "4\n\n", False),
        ("nothing", "4\n\n", False),
    ],
)
def test_exact_match(output, reference, right):
    assert exact_match(output, reference) is right


def test_every_reference_is_its_own_answer_and_no_other_s(golden_lines):
    lines = [line for own in golden_lines.values() for line in own]
    assert len(lines) == 1248
    for line in lines:
        assert exact_match(line["reference"], line["reference"])
        assert exact_match(line["prompt"] + line["reference"], line["reference"])
        assert exact_match(final_answer(line["reference"]), line["reference"])
        assert not exact_match(line["reference"] + "99", line["reference"])


def test_long_broken_outputs_are_read_in_linear_time():
    started = time.process_time()
    for text in ("[1 2 " * 30_000, "[" * 60_000, "[[1 2], " * 20_000, "[" + "12 " * 50_000, "[1" + " " * 60_000):
        answer_of(text)
    assert time.process_time() - started < 5
