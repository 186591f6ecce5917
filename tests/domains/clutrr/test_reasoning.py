import random
from itertools import pairwise, permutations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.domains.clutrr import answer, closure, compose, solve
from graphbench.domains.clutrr.charts import derivable_along, derived
from graphbench.domains.clutrr.families import FamilyParameters, draw_family
from graphbench.domains.clutrr.reasoning import StoryError
from graphbench.domains.clutrr.relations import INVERSE, NEUTRAL, UnknownRelation
from graphbench.domains.clutrr.rules import RULE_SETS, UnknownRules, rule_set

RULES = st.sampled_from(RULE_SETS)
ENDS = st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda pair: pair[0] != pair[1])
FACTS = st.lists(
    st.tuples(ENDS, st.sampled_from(NEUTRAL)).map(lambda fact: (*fact[0], fact[1])), min_size=1, max_size=6
)


@st.composite
def true_facts(draw, most=7):
    """Some facts of a drawn family, all linked."""
    family = draw_family(FamilyParameters(3, 1, 3, 0.9), draw(st.integers(0, 2**63)))
    rng = random.Random(draw(st.integers(0, 2**32)))
    people, facts = [rng.randrange(len(family))], []
    for _ in range(draw(st.integers(1, most))):
        x = rng.choice(people)
        y = rng.choice([y for y in range(len(family)) if family.relation(x, y)])
        people.append(y)
        facts.append((x, y, family.relation(x, y)) if rng.random() < 0.5 else (y, x, family.relation(y, x)))
    return family, facts


# --- oracles ---------------------------------------------------------------------------------------------------------


def bracketings(relations, rules):
    """Return all that some relations in a row compose to, over all binary trees."""
    if len(relations) == 1:
        return set(relations)
    return {
        compose(r1, r2, rules)
        for m in range(1, len(relations))
        for r1 in bracketings(relations[:m], rules)
        for r2 in bracketings(relations[m:], rules)
    } - {None}


def both_ways(facts, rules):
    inverses = rule_set(rules).inverses
    return {*facts, *((y, x, inverses[r]) for x, y, r in facts if r in inverses)}


def along_simple_paths(facts, query, rules):
    """Return what the facts, read both ways, compose to along all simple paths between two people."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(query)
    graph.add_edges_from((x, y, {"relation": r}) for x, y, r in both_ways(facts, rules))
    return {
        relation
        for path in nx.all_simple_edge_paths(graph, *query)
        for relation in bracketings([graph.edges[edge]["relation"] for edge in path], rules)
    }


def along_walks(facts, query, rules):
    """Return what the facts, read both ways, compose to along walks, where no part goes round to where it began."""
    found, grown = both_ways(facts, rules), True
    while grown:
        joined = {
            (x, y, compose(r1, r2, rules))
            for x, z, r1 in found
            for w, y, r2 in found
            if z == w and x != y and compose(r1, r2, rules)
        }
        grown = not joined <= found
        found = found | joined
    return {r for x, y, r in found if (x, y) == query}


@settings(max_examples=80, deadline=None)
@given(FACTS, RULES)
def test_simple_paths_find_nothing_that_solve_misses(facts, rules):
    for query in permutations({person for fact in facts for person in fact[:2]}, 2):
        assert along_simple_paths(facts, query, rules) <= solve(facts, query, rules)


@settings(max_examples=40, deadline=None)
@given(FACTS)
def test_solve_finds_what_walks_give(facts):
    for query in permutations({person for fact in facts for person in fact[:2]}, 2):
        assert along_walks(facts, query, "sound") == solve(facts, query, "sound")


@settings(max_examples=60, deadline=None)
@given(FACTS, RULES)
def test_closure_is_that_of_the_plain_reasoner(facts, rules):
    assert closure(facts, rules) == {pair: frozenset(found) for pair, found in derived(facts, rules).items()}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(NEUTRAL), min_size=1, max_size=6), RULES)
def test_chart_is_all_bracketings(clause, rules):
    assert derivable_along(clause, rules) == bracketings(clause, rules)
    facts = [(i, i + 1, relation) for i, relation in enumerate(clause)]
    assert derivable_along(clause, rules) <= solve(facts, (0, len(clause)), rules)


def test_somebody_off_the_path_completes_an_answer():
    """A child of the mother-in-law is the spouse or a sibling of the spouse: who the spouse is decides."""
    facts = [("Ann", "Mum", "inv-in-law"), ("Mum", "Sue", "child"), ("Ann", "Joe", "SO")]
    assert solve(facts[:2], ("Ann", "Sue")) == frozenset()
    assert along_simple_paths(facts, ("Ann", "Sue"), "sound") == set()
    assert solve(facts, ("Ann", "Sue")) == {"sibling-in-law"}


# --- properties ------------------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(true_facts())
def test_sound_rules_derive_only_what_is_true(drawn):
    family, facts = drawn
    for (x, y), found in closure(facts).items():
        assert found == {family.relation(x, y)}


@settings(max_examples=60, deadline=None)
@given(true_facts())
def test_swapping_the_question_inverts_the_answer(drawn):
    _, facts = drawn
    found = closure(facts)
    assert found == {(y, x): frozenset(INVERSE[r] for r in relations) for (x, y), relations in found.items()}


@settings(max_examples=60, deadline=None)
@given(FACTS, RULES, st.permutations(["Ann", "Bob", 3, (4, "x"), None]))
def test_names_and_order_of_facts_change_nothing(facts, rules, names):
    renamed = [(names[x], names[y], r) for x, y, r in reversed(facts)]
    expected = {(names[x], names[y]): found for (x, y), found in closure(facts, rules).items()}
    assert closure(renamed, rules) == expected


@settings(max_examples=40, deadline=None)
@given(FACTS, FACTS, RULES)
def test_more_facts_take_nothing_away(facts, more, rules):
    before, after = closure(facts, rules), closure(facts + more, rules)
    assert all(found <= after[pair] for pair, found in before.items())


# --- answers and errors ----------------------------------------------------------------------------------------------


def test_paper_derives_what_families_contradict():
    facts = [("x", "z", "child"), ("z", "y", "inv-un")]
    assert solve(facts, ("x", "y"), "paper") == {"sibling"}
    assert solve(facts, ("x", "y"), "sound") == frozenset()


def test_answer():
    names = ["Ann", "Bob", "Cid", "Dee"]
    facts = [(x, y, r) for (x, y), r in zip(pairwise(names), ["SO", "sibling", "child"], strict=True)]
    assert answer(facts, ("Ann", "Dee")) == "un"
    assert compose("sibling", "child") == "un"
    assert compose("child", "grand") is None
    assert closure([]) == {}


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda: compose("child", "uncle"), UnknownRelation, "write it without gender: 'inv-un'"),
        (lambda: compose("child", "child", rules="all"), UnknownRules, "unknown set of rules 'all'"),
        (lambda: closure([(0, 1, "kid")]), UnknownRelation, "unknown relation 'kid'"),
        (lambda: closure([(0, 1, "un")], "sond"), UnknownRules, "did you mean 'sound'"),
        (lambda: closure([(1, 1, "un")]), StoryError, r"\(1, 1, 'un'\).*itself"),
        (lambda: solve([(0, 1, "un")], (0, 7)), StoryError, "no fact tells of 7; ask for two of 0, 1"),
        (lambda: solve([], (0, 7)), StoryError, "no facts on 7 and 0"),
        (lambda: solve([(0, 1)], (0, 1)), StoryError, r"fact \(0, 1\) is not"),
        (lambda: solve([(0, 1, "un", 2)], (0, 1)), StoryError, r"the fact \(0, 1, 'un', 2\) is not"),
        (lambda: closure(["un"]), StoryError, "the fact 'un' is not"),
        (lambda: closure("abc"), StoryError, "the facts are 'abc'; give a list of"),
        (lambda: answer(None, (0, 1)), StoryError, "the facts are None; give a list of"),
        (lambda: closure([([0], 1, "un")]), StoryError, r"\[0\] in a fact stands for nobody"),
        (lambda: closure([(0, 1, None)]), UnknownRelation, "unknown relation None; the relations are"),
        (lambda: closure([(0, 1, ["un"])]), UnknownRelation, r"unknown relation \['un'\]"),
        (lambda: compose([], "un"), UnknownRelation, r"unknown relation \[\]"),
        (lambda: solve([(0, 1, "un")], (0, 1, 0)), StoryError, r"question is \(0, 1, 0\)"),
        (lambda: solve([("a", "b", "un")], "ab"), StoryError, "the question is 'ab'; ask for two people"),
        (lambda: answer([(0, 1, "un")], None), StoryError, "the question is None; ask for two people"),
        (lambda: solve([(0, 1, "un")], (0, [1])), StoryError, r"no fact tells of \[1\]"),
        (lambda: solve([(0, 1, "un")], (1, 1)), StoryError, "of 1 to itself"),
        (lambda: answer([(0, 1, "un"), (2, 3, "un")], (0, 3)), StoryError, "no path of facts joins them"),
        (lambda: answer([(0, 1, "un"), (1, 2, "un")], (0, 2)), StoryError, "the rules derive no relation"),
        (lambda: answer([(0, 1, "un"), (0, 1, "SO")], (0, 1)), StoryError, "2 relations of 1 to 0: SO, un"),
    ],
)
def test_errors(ask, error, message):
    with pytest.raises(error, match=message):
        ask()
