import math
from collections import Counter
from itertools import pairwise, permutations

import pytest

from graphbench.domains.clutrr.charts import derivable_along, derived
from graphbench.domains.clutrr.clauses import (
    ClauseError,
    clause_code,
    clause_of,
    clauses,
    default_family,
    held_out,
    held_out_codes,
    walk_code,
    walks,
)
from graphbench.domains.clutrr.families import FamilyError, FamilyParameters, draw_family
from graphbench.domains.clutrr.paper_family import closed_family
from graphbench.domains.clutrr.relations import NEUTRAL, UnknownRelation, relation_of_word
from graphbench.domains.clutrr.rules import RULE_SETS, UnknownRules, rule_set

SMALL = FamilyParameters(3, 2, 2, 1.0)


def resolves(path, relation, compositions):
    """Return whether the facts of a path compose, in some order, so that every result is what the family says."""
    holds = {(i, i + 1) for i in range(len(path) - 1)}
    for span in range(2, len(path)):
        for i in range(len(path) - span):
            for m in range(i + 1, i + span):
                r1, r2, r = (relation(path[a], path[b]) for a, b in ((i, m), (m, i + span), (i, i + span)))
                if {(i, m), (m, i + span)} <= holds and r and compositions.get((r1, r2)) == r:
                    holds.add((i, i + span))
    return (0, len(path) - 1) in holds


def brute_force(rules, k, parameters):
    family = draw_family(parameters, 0)
    matrix = closed_family(parameters) if rules == "paper" else family.relations
    compositions = rule_set(rules).compositions

    def relation(x, y):
        return NEUTRAL[matrix[x, y]] if matrix[x, y] >= 0 else None

    found = set()
    for path in permutations(range(len(family)), k + 1):
        clause = tuple(relation(x, y) for x, y in pairwise(path))
        if clause in found or None in clause or not resolves(path, relation, compositions):
            continue
        facts = [(i, i + 1, r) for i, r in enumerate(clause)]
        if derived(facts, rules)[0, k] == {relation(path[0], path[k])}:
            found.add(clause)
    return found


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("k", [2, 3])
def test_clauses_are_all_that_paths_have(rules, k):
    listed = clauses(rules, k, SMALL)
    assert len(set(listed)) == len(listed)
    assert set(listed) == brute_force(rules, k, SMALL)


def test_numbers_of_clauses():
    assert [len(clauses("sound", k)) for k in (2, 3, 4)] == [32, 103, 311]
    assert [len(clauses("paper", k)) for k in (2, 3, 4)] == [16, 43, 125]
    assert set(clauses("sound", 2)) == set(rule_set("sound").compositions)
    assert set(clauses("paper", 2)) == set(rule_set("paper").compositions)
    assert len(walks("paper")) == 62  # as many as the published data has


def test_published_clauses_are_listed_where_the_path_is_simple_and_has_one_answer(golden):
    compared = 0
    for puzzle in golden("golden_public.jsonl"):
        path, k = puzzle["path_edges"], puzzle["k"]
        clause = tuple(edge[2] for edge in path)
        if k > 4 or puzzle["path_revisits_node"]:
            continue
        facts = [(i, i + 1, relation) for i, relation in enumerate(clause)]
        assert puzzle["target"] in derivable_along(clause, "paper")
        if derived(facts, "paper")[0, k] == {puzzle["target"]}:
            assert clause in clauses("paper", k)
            compared += 1
    assert compared > 50


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 1.0])
def test_the_share_held_out_is_exact(rules, k, share):
    listed, chosen = clauses(rules, k), held_out(rules, k, share)
    assert set(chosen) <= set(listed)
    assert len(set(chosen)) == len(chosen) == math.ceil(round(share * len(listed), 9))


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize(("share", "is_exact"), [(0.1, True), (1.0, False)])
def test_every_clause_of_two_facts_keeps_a_walk(rules, share, is_exact):
    listed, chosen = walks(rules), held_out(rules, 2, share)
    assert set(chosen) < set(listed)
    kept = Counter(tuple(map(relation_of_word, walk)) for walk in set(listed) - set(chosen))
    assert set(kept) == set(clauses(rules, 2))
    if is_exact:
        assert len(chosen) == math.ceil(round(share * len(listed), 9))
    else:
        assert set(kept.values()) == {1}


def test_a_larger_share_holds_out_more_and_another_seed_others():
    assert set(held_out("sound", 3, 0.1)) < set(held_out("sound", 3, 0.3))
    assert set(held_out("sound", 3, 0.1)) != set(held_out("sound", 3, 0.1, seed=1))
    assert held_out("sound", 3, 0.1) == held_out("sound", 3)


@pytest.mark.parametrize("rules", RULE_SETS)
def test_codes(rules):
    for k in (2, 3, 4):
        codes = [clause_code(clause) for clause in clauses(rules, k)]
        assert [clause_of(code, k) for code in codes] == list(clauses(rules, k))
        assert codes == sorted(codes)
        listed = held_out_codes(rules, k, 0.1, 0, default_family(rules))
        code = walk_code if k == 2 else clause_code
        assert listed.tolist() == sorted(code(clause) for clause in held_out(rules, k))
    assert (clause_code(("un", "child")), walk_code(("niece", "father"))) == (10 * 11 + 1, 21 * 22)


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda: clauses("sound", 5), ClauseError, "5 relations.*2 to 4"),
        (lambda: held_out("sound", 1), ClauseError, "clauses of 1 relations"),
        (lambda: held_out("sound", 3, 1.5), ClauseError, "share is 1.5"),
        (lambda: held_out("sound", 3, True), ClauseError, "share is True"),
        (lambda: clauses("pap", 3), UnknownRules, "did you mean 'paper'"),
        (lambda: clauses("paper", 3, FamilyParameters()), FamilyError, "the paper's rules need one family"),
        (lambda: clause_code(("uncle",)), UnknownRelation, "'inv-un'"),
        (lambda: clause_of(121, 2), ClauseError, "clause 121 is.*2 relations end at 120"),
    ],
)
def test_errors(ask, error, message):
    with pytest.raises(error, match=message):
        ask()
