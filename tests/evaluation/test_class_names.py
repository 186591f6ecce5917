import numpy as np
import pytest
from sklearn.metrics import f1_score

from graphbench.catalog.names import card
from graphbench.core.errors import EvaluationError
from graphbench.tasks.predict.class_names import answered_classes, class_numbers, score_answers


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


def test_answers_name_classes_in_their_own_way():
    puzzles = card("clutrr/gen_23")
    names = puzzles.classes["answer"]
    given = ["Aunt.", " **Mother in law** ", "neice", "FATHER_IN_LAW", '"son"', "", "cousin", "uncle or aunt", "6"]
    found = [names[n] if n >= 0 else None for n in answered_classes(puzzles, "answer", given)]
    assert found == ["aunt", "mother-in-law", "niece", "father-in-law", "son", None, None, None, None]
    assert answered_classes(puzzles, "answer", names).tolist() == list(range(22))
    with pytest.raises(EvaluationError, match="'role' of clutrr/gen_23"):
        answered_classes(puzzles, "role", ["path"])


def test_an_answer_without_a_class_is_wrong_and_no_class_of_its_own():
    truth, answered = np.array([0, 0, 1, 2, 3, 3]), np.array([0, -1, 1, 1, -1, 3])
    score = score_answers(card("clutrr/gen_23"), truth, answered)
    assert score["accuracy"] == pytest.approx(3 / 6) and score.graphs == 6
    # F1 over the classes 0 to 3 alone: a label that no class has takes recall from them and precision from none
    assert score["macro_f1"] == pytest.approx(f1_score(truth, answered, labels=[0, 1, 2, 3], average="macro"))
    right = score_answers(card("clutrr/gen_23"), truth, truth)
    assert right.to_dict() == {"accuracy": 1.0, "macro_f1": 1.0}
    none = score_answers(card("clutrr/gen_23"), truth, np.full(6, -1))
    assert none.to_dict() == {"accuracy": 0.0, "macro_f1": 0.0}
