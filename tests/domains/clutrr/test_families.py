from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graphbench.domains.clutrr.families import PAPER_FAMILY, FamilyError, FamilyParameters, draw_family
from graphbench.domains.clutrr.paper_family import closed_family
from graphbench.domains.clutrr.relations import NEUTRAL, relation_number, word_for
from graphbench.domains.clutrr.rules import rule_set

PARAMETERS = [
    PAPER_FAMILY,
    FamilyParameters(),
    FamilyParameters(2, 0, 3, 0.5),
    FamilyParameters(3, 1, 1, 1.0),
    FamilyParameters(5, 1, 2, 0.9),
    FamilyParameters(2, 2, 5, 0.0),
]


def pairs_of(family):
    parents = {x: {int(family.father[x]), int(family.mother[x])} - {-1} for x in range(len(family))}
    couples = [(x, int(partner)) for x, partner in enumerate(family.spouse) if partner >= 0]
    return parents, couples


def named(matrix):
    return {(x, y): NEUTRAL[matrix[x, y]] for x, y in np.argwhere(matrix >= 0).tolist()}


# --- truth -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_relations_are_those_of_parents_and_spouses(parameters, genealogy):
    for index in range(15):
        family = draw_family(parameters, key=4, index=index)
        assert named(family.relations) == genealogy(*pairs_of(family)).relations()


def test_no_drawn_family_contradicts_the_sound_rules():
    compositions, applied = rule_set("sound").compositions, set()
    for index in range(20):
        relations = named(draw_family(FamilyParameters(), key=5, index=index).relations)
        after = defaultdict(list)
        for (z, y), r2 in relations.items():
            after[z].append((y, r2))
        for (x, z), r1 in relations.items():
            for y, r2 in after[z]:
                if x != y and (r1, r2) in compositions:
                    assert relations[x, y] == compositions[r1, r2]
                    applied.add((r1, r2))
    assert applied == set(compositions)


# --- structure -------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 4),
    st.integers(0, 3),
    st.integers(0, 1),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.integers(0, 2**64 - 1),
)
def test_structure(generations, fewest, more, marriage, key):
    parameters = FamilyParameters(generations, fewest, max(1, fewest + more), marriage)
    family = draw_family(parameters, key)
    assert 2 <= len(family) <= parameters.most_people
    for x in range(len(family)):
        partner, father, mother = int(family.spouse[x]), int(family.father[x]), int(family.mother[x])
        if partner >= 0:
            assert family.spouse[partner] == x
            assert family.gender[partner] != family.gender[x]
            assert family.generation[partner] == family.generation[x]
            assert family.father[x] < 0 or family.father[partner] < 0
            assert family.children(x) == family.children(partner)
        assert (father < 0) == (mother < 0)
        if father >= 0:
            assert family.spouse[father] == mother
            assert (family.gender_of(father), family.gender_of(mother)) == ("male", "female")
            assert family.generation[x] == family.generation[father] + 1 < generations
        has_children_due = partner >= 0 and family.generation[x] + 1 < generations
        fewest_due, most_due = (parameters.min_children, parameters.max_children) if has_children_due else (0, 0)
        assert fewest_due <= len(family.children(x)) <= most_due


def test_the_largest_family_is_reached():
    for parameters in (PAPER_FAMILY, FamilyParameters(5, 2, 2, 1.0), FamilyParameters(2, 3, 3, 0.0)):
        assert len(draw_family(parameters, 1)) == parameters.most_people
    assert PAPER_FAMILY.most_people == 42


def test_children_marriages_and_genders_have_their_chances():
    children, married, genders = Counter(), [], Counter()
    for index in range(600):
        family = draw_family(FamilyParameters(3, 1, 4, 0.7), key=11, index=index)
        born = np.flatnonzero(family.father >= 0)
        children[len(family.children(0))] += 1
        married += (family.spouse[born] >= 0).tolist()
        genders.update(family.gender[born].tolist())
    assert stats.chisquare([children[n] for n in range(1, 5)]).pvalue > 1e-3
    assert stats.binomtest(sum(married), len(married), 0.7).pvalue > 1e-3
    assert stats.binomtest(genders[0], genders.total(), 0.5).pvalue > 1e-3


def test_a_family_is_a_function_of_its_key_index_attempt_and_stream():
    def families(**other):
        return draw_family(FamilyParameters(), **{"key": 1, "index": 2, "attempt": 0, "stream": 0} | other)

    def shown(family):
        return pairs_of(family), family.gender.tolist()

    assert shown(families()) == shown(families())
    others = [{"key": 2}, {"index": 3}, {"attempt": 1}, {"stream": 1}]
    assert all(shown(families(**other)) != shown(families()) for other in others)


# --- view ------------------------------------------------------------------------------------------------------------


def test_view():
    family = draw_family(PAPER_FAMILY, 3)
    child = family.children(0)[0]
    assert family.relation(0, 1) == "SO"
    assert family.word(0, child) == word_for("child", family.gender_of(child))
    assert family.word(child, 0) == "father"
    assert family.relation(0, 0) is None
    cousins = family.children(2)[0], family.children(3)[0]
    assert family.relation(*cousins) is None
    assert family.word(*cousins) is None
    for ask in (family.gender_of, family.children, lambda x: family.relation(0, x), lambda x: family.word(x, 0)):
        with pytest.raises(FamilyError, match="no person 42; give a number from 0 to 41"):
            ask(42)
        with pytest.raises(FamilyError, match="no person 'Ann'"):
            ask("Ann")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1,), r"key is -1.*0 to 2\*\*64 - 1"),
        ((2**64,), "key is 18446744073709551616"),
        (("a",), "key is 'a'"),
        ((1.0,), "key is 1.0"),
        ((True,), "key is True"),
        ((1, -1), "index is -1"),
        ((1, None), "index is None"),
        ((1, 0, "b"), "attempt is 'b'"),
        ((1, 0, 0, 2**63), "stream is 9223372036854775808"),
    ],
)
def test_streams_that_do_not_exist(arguments, message):
    with pytest.raises(FamilyError, match=message):
        draw_family(PAPER_FAMILY, *arguments)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"generations": 1}, "generations is 1.*2 to 5"),
        ({"generations": 6}, "generations is 6"),
        ({"generations": 2.0}, "generations is 2.0"),
        ({"min_children": -1}, "min_children is -1"),
        ({"min_children": 5}, "min_children is 5, more than max_children, 4"),
        ({"max_children": 0, "min_children": 0}, "max_children is 0"),
        ({"max_children": True, "min_children": 0}, "max_children is True"),
        ({"marriage": 1.1}, "marriage is 1.1; give a probability"),
        ({"marriage": "all"}, "marriage is 'all'"),
        ({"marriage": float("nan")}, "marriage is nan"),
        ({"generations": 5, "max_children": 4}, "682 people.*at most 256"),
    ],
)
def test_parameters_out_of_range(values, message):
    with pytest.raises(FamilyError, match=message):
        FamilyParameters(**values)


# --- the family of the paper's code ----------------------------------------------------------------------------------


def test_closure_of_the_paper_s_family():
    closed, true = closed_family(PAPER_FAMILY), draw_family(PAPER_FAMILY, 0).relations
    related = closed >= 0
    counts = Counter(named(closed).values())
    assert related.sum() == 554
    assert counts["sibling"] == counts["un"] == counts["inv-un"] == 96
    assert (counts["child"], counts["SO"], counts["in-law"], counts["grand"]) == (45, 42, 35, 32)
    assert (closed != true)[related].sum() == 46
    assert (closed[true == relation_number("child")] == relation_number("child")).all()


def test_closure_is_the_golden_one(golden):
    content = golden("golden_closure.json")
    assert named(closed_family(PAPER_FAMILY)) == {(x, y): relation for x, y, relation in content["closure_edges"]}
    true = named(draw_family(PAPER_FAMILY, 0).relations)
    assert all(true[x, y] == relation for x, y, relation in content["base_edges"])


def test_closure_needs_one_family():
    for parameters in (FamilyParameters(3, 3, 4, 1.0), FamilyParameters(3, 4, 4, 0.9)):
        with pytest.raises(FamilyError, match="the paper's rules need one family"):
            closed_family(parameters)
