"""Suggestions for names that do not exist."""

from __future__ import annotations

import pytest

from graphbench.core.suggestions import closest, did_you_mean, nearest

NAMES = ("training.lr", "training.warmup", "model.hidden")


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("hiden", ("hidden", "layers"), "; did you mean 'hidden'?"),
        ("HIDDEN", ("hidden", "layers"), "; did you mean 'hidden'?"),
        ("gin", ("GIN", "gat"), "; did you mean 'GIN'?"),
        ("lr", NAMES, "; did you mean 'training.lr'?"),
        ("model.hiden", NAMES, "; did you mean 'model.hidden'?"),
        ("zzz", NAMES, ""),
        ("x", (), ""),
        (32, (16, 32, 64), "; did you mean '32'?"),
        (None, ("none",), "; did you mean 'none'?"),
        ("gni", {"gin": object(), "gat": object()}, "; did you mean 'gin'?"),
    ],
)
def test_the_nearest_name_is_suggested(name: object, known: object, expected: str) -> None:
    assert closest(name, known) == expected  # type: ignore[arg-type]


def test_another_spelling_leads_to_the_name_it_stands_for() -> None:
    assert closest("boolean", ["categorical"], aliases={"boolean": "categorical"}) == "; did you mean 'categorical'?"


def test_how_similar_a_name_must_be_can_be_chosen() -> None:
    assert closest("a_b_c", ("abcdefg",), cutoff=0.9) == ""
    assert closest("abc", ("abcdefg",), cutoff=0.5) == "; did you mean 'abcdefg'?"


def test_several_names_are_suggested_the_nearest_first() -> None:
    known = ("mst_easy", "mst_medium", "mst_hard", "bridges")
    assert nearest("mst_easi", known, most=2)[0] == "mst_easy"
    assert did_you_mean(["a", "b"]) == "; did you mean 'a' or 'b'?"
    assert did_you_mean([]) == ""


def test_two_spellings_of_one_name_are_suggested_once() -> None:
    assert nearest("layer", ["layers"], most=2, aliases={"layer_": "layers"}) == ["layers"]
