import pytest

from graphbench.catalog.names import card
from graphbench.errors import EvaluationError
from graphbench.evaluation.class_names import class_numbers


def test_names_become_the_numbers_of_the_card():
    puzzles = card("clutrr/gen_23")
    names = puzzles.classes["answer"]
    assert class_numbers(puzzles, "answer", names).tolist() == list(range(22))
    assert class_numbers(puzzles, "answer", [" Aunt", "FATHER-IN-LAW\r"]).tolist() == [
        names.index("aunt"),
        names.index("father-in-law"),
    ]
    assert class_numbers(puzzles, "answer", []).shape == (0,)


@pytest.mark.parametrize(
    ("feature", "words", "message"),
    [
        ("answer", ["aunt", "unkle"], "line 2: 'unkle' is no class of 'answer'; did you mean 'uncle'?"),
        ("answer", ["?"], "line 1: '?' is no class of 'answer'; it is one of father, mother"),
        ("answer", ["x" * 200], f"line 1: '{'x' * 80}' is no class"),
        ("role", ["path"], "the classes of 'role' of clutrr/gen_23 have no names; give their numbers"),
    ],
)
def test_words_that_are_no_class_are_told(feature, words, message):
    with pytest.raises(EvaluationError) as caught:
        class_numbers(card("clutrr/gen_23"), feature, words)
    assert message in str(caught.value)
