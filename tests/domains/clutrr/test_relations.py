import pytest

from graphbench.core.errors import GraphBenchError
from graphbench.domains.clutrr.relations import (
    GENDERS,
    NEUTRAL,
    SYMMETRIC,
    WORDS,
    UnknownRelation,
    gender_of_word,
    inverse,
    relation_number,
    relation_of_word,
    word_for,
    word_number,
)


def test_words_are_numbered_by_relation_and_gender():
    assert (len(WORDS), len(NEUTRAL)) == (22, 11)
    for number, word in enumerate(WORDS):
        assert word_number(word) == number
        assert relation_of_word(word) == NEUTRAL[number // 2]
        assert gender_of_word(word) == GENDERS[number % 2]
        assert word_for(relation_of_word(word), gender_of_word(word)) == word


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        ("inv-child", ("father", "mother")),
        ("SO", ("husband", "wife")),
        ("sibling-in-law", ("brother-in-law", "sister-in-law")),
        ("in-law", ("son-in-law", "daughter-in-law")),
        ("un", ("nephew", "niece")),
    ],
)
def test_words_of_a_relation(relation, words):
    assert tuple(word_for(relation, gender) for gender in GENDERS) == words


def test_inverse_is_its_own_inverse():
    assert {relation for relation in NEUTRAL if inverse(relation) == relation} == SYMMETRIC
    assert all(inverse(inverse(relation)) == relation for relation in NEUTRAL)
    assert (inverse("un"), inverse("inv-in-law")) == ("inv-un", "in-law")


def test_the_golden_words_and_inverses(golden):
    content = golden("golden_composition.json")
    assert set(content["vocabulary"]) == {*NEUTRAL, "no-relation"}
    text = str(content)
    for word in WORDS:
        assert word in text or word == "niece", word


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: relation_number("daughter"), "write it without gender: 'child'"),
        (lambda: relation_number("siblings"), "did you mean 'sibling'"),
        (lambda: relation_number("qqq"), "are inv-child, child"),
        (lambda: word_number("neice"), "did you mean 'niece'"),
        (lambda: word_number("qqq"), "are father, mother"),
        (lambda: word_number(["son"]), r"unknown word \['son'\]"),
        (lambda: relation_number(None), "unknown relation None; the relations are"),
        (lambda: relation_number({}), "unknown relation {}; the relations are"),
        (lambda: word_for("child", "woman"), "gender 'woman'.*'male' or 'female'"),
        (lambda: word_for("son", "male"), "without gender: 'child'"),
        (lambda: inverse("SOS"), "did you mean 'SO'"),
    ],
)
def test_unknown_names(ask, message):
    with pytest.raises(UnknownRelation, match=message) as caught:
        ask()
    assert isinstance(caught.value, GraphBenchError)
