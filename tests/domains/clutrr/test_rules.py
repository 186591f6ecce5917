import random
from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest

from graphbench.domains.clutrr.families import FamilyParameters, draw_family
from graphbench.domains.clutrr.relations import INVERSE, NEUTRAL
from graphbench.domains.clutrr.rules import RULE_SETS, UnknownRules, rule_set

SUPPORT = 50


def grown_family(rng):
    """Return parents and couples: people marry strangers, have children, or turn out to have parents themselves.

    No marriage joins two people who are linked already, so any two people are linked in one way.
    """
    parents, couples = {0: ()}, {}

    def newcomer(of=()):
        parents[len(parents)] = of
        return len(parents) - 1

    def marry(a, b):
        couples[a], couples[b] = b, a

    for _ in range(rng.randint(3, 9)):
        change = rng.random()
        if change < 0.35:
            single = [x for x in parents if x not in couples]
            if single:
                marry(rng.choice(single), newcomer())
        elif change < 0.7:
            if couples:
                parent = rng.choice(list(couples))
                for _ in range(rng.randint(1, 2)):
                    newcomer((parent, couples[parent]))
        else:
            origins = [x for x in parents if not parents[x]]
            child = rng.choice(origins)
            parents[child] = (newcomer(), newcomer())
            marry(*parents[child])
    return parents, couples


def outcomes(families, genealogy, by_marriage):
    """Return (r1, r2) -> how often y is which relation (or None) of x, for z the r1 of x and y the r2 of z."""
    found = defaultdict(Counter)
    for parents, couples in families:
        relations = genealogy(parents, couples.items(), by_marriage).relations()
        after = defaultdict(list)
        for (z, y), r2 in relations.items():
            after[z].append((y, r2))
        for (x, z), r1 in relations.items():
            for y, r2 in after[z]:
                if y != x:
                    found[r1, r2][relations.get((x, y))] += 1
    return found


@pytest.fixture(scope="module")
def families():
    rng = random.Random(7)
    return [grown_family(rng) for _ in range(3000)]


def certain(found):
    return {pair: next(iter(counts)) for pair, counts in found.items() if len(counts) == 1 and None not in counts}


def test_sound_rules_are_those_that_hold_in_every_family(families, genealogy):
    found = outcomes(families, genealogy, by_marriage=True)
    assert certain(found) == dict(rule_set("sound").compositions)
    assert min(sum(found[pair].values()) for pair in certain(found)) > SUPPORT
    never = {pair for pair in product(NEUTRAL, repeat=2) if pair not in found}
    assert never == {("SO", "SO")}  # a spouse's spouse is oneself


@pytest.mark.thorough
def test_nine_more_compositions_hold_where_who_marries_in_is_a_stranger(families, genealogy):
    found = defaultdict(Counter)
    for key in range(60):
        family = draw_family(FamilyParameters(), key)
        after = {x: np.flatnonzero(family.relations[x] >= 0).tolist() for x in range(len(family))}
        for x, z in product(after, repeat=2):
            for y in set(after[z]) - {x} if z in after[x] else ():
                found[family.relation(x, z), family.relation(z, y)][family.relation(x, y)] += 1
    in_general = outcomes(families, genealogy, by_marriage=True)
    narrower = certain(found)
    assert narrower.items() >= rule_set("sound").compositions.items()
    assert narrower.items() - rule_set("sound").compositions.items() == {
        (("child", "sibling-in-law"), "in-law"),
        (("child", "un"), "grand"),
        (("grand", "inv-grand"), "SO"),
        (("in-law", "sibling-in-law"), "child"),
        (("in-law", "un"), "grand"),
        (("sibling-in-law", "inv-child"), "inv-in-law"),
        (("sibling-in-law", "inv-in-law"), "inv-child"),
        (("inv-un", "inv-child"), "inv-grand"),
        (("inv-un", "inv-in-law"), "inv-grand"),
    }
    assert all(len(in_general[pair]) > 1 for pair in narrower.keys() - rule_set("sound").compositions.keys())


def test_uncles_by_marriage_make_more_rules_sound(families, genealogy):
    assert len(certain(outcomes(families, genealogy, by_marriage=False))) == 30 < len(rule_set("sound").compositions)


def test_paper_has_two_rules_that_families_contradict(families, genealogy):
    found = outcomes(families, genealogy, by_marriage=True)
    false = {pair for pair, head in rule_set("paper").compositions.items() if set(found[pair]) != {head}}
    assert false == {("child", "inv-un"), ("child", "inv-grand")}


def test_sound_rules_can_be_read_backwards():
    rules = rule_set("sound")
    assert dict(rules.inverses) == dict(INVERSE)
    for (r1, r2), head in rules.compositions.items():
        assert rules.compositions[INVERSE[r2], INVERSE[r1]] == INVERSE[head]


def test_the_paper_s_rules():
    rules = rule_set("paper")
    assert len(rules.compositions) == 16
    assert {head for head in rules.compositions.values()} == set(NEUTRAL) - {"SO", "sibling-in-law"}
    assert rules.inverses == {
        "SO": "SO",
        "sibling": "sibling",
        "child": "inv-child",
        "grand": "inv-grand",
        "un": "inv-un",
        "in-law": "inv-in-law",
    }


def test_the_paper_s_rules_are_the_golden_ones(golden):
    content = golden("golden_composition.json")
    known = {tuple(pair.split("|")): head for pair, head in content["composition"].items() if head}
    assert dict(rule_set("paper").compositions) == known


@pytest.mark.parametrize("name", RULE_SETS)
def test_tables_say_what_the_names_say(name):
    rules = rule_set(name)
    for i, r1 in enumerate(NEUTRAL):
        back = rules.inverse_table[i]
        assert (NEUTRAL[back] if back >= 0 else None) == rules.inverses.get(r1)
        for j, r2 in enumerate(NEUTRAL):
            head = rules.composition_table[i, j]
            assert (NEUTRAL[head] if head >= 0 else None) == rules.compositions.get((r1, r2))
    with pytest.raises(ValueError, match="read-only"):
        rules.composition_table[0, 0] = np.int8(1)


@pytest.mark.parametrize(
    ("name", "message"), [("sond", "did you mean 'sound'"), ("", "there are 'paper' and 'sound'"), (3, "unknown set")]
)
def test_unknown_rule_set(name, message):
    with pytest.raises(UnknownRules, match=message):
        rule_set(name)
