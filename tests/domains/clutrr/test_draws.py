"""Draws of CLUTRR: held-out clauses, pairs of words and templates are drawn anew, as many as before."""

import re
from collections import Counter

import numpy as np
import pytest

from graphbench.catalog.names import card
from graphbench.data.arrays.seeds import redrawn_seed
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.domain import find
from graphbench.domains.clutrr.checks import check_stories
from graphbench.domains.clutrr.clauses import held_out
from graphbench.domains.clutrr.relations import WORDS
from graphbench.domains.clutrr.templates import sentence_frames, templates_of, tokens_of

from .test_datasets import walks

NAMES = ["clutrr/gen_23", "clutrr/paper_gen_234", "clutrr/rob_irrelevant"]


def parsed(name, split, data_seed):
    own = card(name).with_data_seed(data_seed)
    return find("generator", own.generator).parse(own, split)


def drawn(name, split, count, data_seed):
    return draw_samples(card(name).with_data_seed(data_seed), split, np.arange(count))


def kept_out(parameters, k):
    family = parameters.puzzles(k).families
    return held_out(parameters.rules, k, parameters.share, parameters.held_out_seed, family)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [2, 3])
def test_other_clauses_are_held_out_and_as_many(name, k):
    found = [kept_out(parsed(name, "test", seed), k) for seed in range(6)]
    assert len({frozenset(clauses) for clauses in found}) > 4
    assert len({len(clauses) for clauses in found}) == 1
    assert found[0] == held_out(parsed(name, "test", 0).rules, k)
    for seed in (0, 3):  # training avoids what test is made of
        assert kept_out(parsed(name, "train", seed), k) == kept_out(parsed(name, "test", seed), k)


def test_other_templates_are_held_out_and_as_many_of_every_kind():
    def kinds(templates):
        return Counter((template.facts, template.relation) for template in templates)

    canonical = templates_of("test")
    assert templates_of("test", 0) == canonical
    seen = set()
    for seed in range(1, 60):
        train, test = templates_of("train", seed), templates_of("test", seed)
        assert kinds(train) == kinds(templates_of("train")) and kinds(test) == kinds(canonical)
        assert list(kinds(test)) == list(kinds(canonical))  # in the order that stories count on
        assert not {template.text for template in train} & {template.text for template in test}
        assert set(train) | set(test) == {*templates_of("train"), *canonical}
        seen |= set(test)
    assert len(seen) > 240  # every wording has its turn, but for what many relations share
    assert templates_of("test", 7) == templates_of("test", 7) != templates_of("test", 8)


def sentences(samples):
    """The sentences of stories, without people, words of kinship and what stands for either."""
    found = set()
    for tokens in samples.values["tokens"].strings():
        people = re.sub(r"@ent\d+|\b(?:he|she|him)\b", "X", tokens)
        people = re.sub(r"\b(?:his|her)\b", "X 's", people)
        kin = " ".join("#" if token in WORDS else token for token in people.split())
        found |= set(re.split(r"(?<=[.!?]) ", kin))
    return found


@pytest.mark.parametrize("data_seed", [0, 1, 2])
def test_no_sentence_of_training_is_told_in_test(data_seed):
    train = sentences(drawn("clutrr/gen_234", "train", 6000, data_seed))
    noisy = sentences(drawn("clutrr/rob_supporting", "train", 3000, data_seed))
    test = [("clutrr/gen_234", "test"), ("clutrr/gen_234", "k10"), ("clutrr/rob_supporting", "irrelevant")]
    told = set().union(*(sentences(drawn(name, split, 1000, data_seed)) for name, split in test))
    assert len(train) > 200 and len(told) > 50
    assert not told & (train | noisy)


@pytest.mark.parametrize("seed", range(40))
def test_no_draw_parts_a_sentence(seed):
    frames = [{f for t in templates_of(part, seed) for f in sentence_frames(t.text)} for part in ("train", "test")]
    assert not frames[0] & frames[1]


@pytest.mark.parametrize("name", NAMES)
def test_drawn_puzzles_pass_their_checks(name):
    for split in card(name).all_splits:
        assert check_stories(parsed(name, split, 2), drawn(name, split, 20, 2)) == []


def test_puzzles_of_one_draw_break_the_rules_of_another():
    samples = drawn("clutrr/gen_23", "k3", 60, 1)
    assert any(
        "though held_out is only" in problem for problem in check_stories(parsed("clutrr/gen_23", "k3", 2), samples)
    )


@pytest.mark.parametrize("data_seed", [1, 2])
def test_nothing_of_test_is_in_training(data_seed):
    train, test = (
        drawn("clutrr/gen_23", split, count, data_seed) for split, count in (("train", 6000), ("test", 1500))
    )
    assert not set(walks(train)) & set(walks(test))
    assert set(walks(test)) != set(walks(drawn("clutrr/gen_23", "test", 1500, 0)))
    told = [wordings(samples) for samples in (train, test)]
    for found, part in zip(told, ("train", "test"), strict=True):
        templates = [t for t in templates_of(part, redrawn_seed(0, data_seed)) if t.facts > 1]
        assert found <= {shape for template in templates for shape in shapes(template)}
        assert all(found & shapes(template) for template in templates)


def wordings(samples):
    """The stories that one template tells as a whole: tokens, with letters for people and a mark for kinship."""
    found = set()
    for i, tokens in enumerate(samples.values["tokens"].strings()):
        nodes, facts = samples.node_ptr[i], slice(samples.edge_ptr[i], samples.edge_ptr[i + 1])
        if samples.values["sentence"][facts].any():
            continue
        path = samples.edges[facts][np.argsort(samples.values["step"][facts])]
        for person, letter in zip([path[0, 0], *path[:, 1]], "xyzw", strict=False):
            tokens = re.sub(rf"@ent{samples.values['entity'][nodes + person]}(?!\d)", letter, tokens)
        found.add(" ".join("#" if token in WORDS else token for token in tokens.split()))
    return found


def shapes(template):
    """What ``wordings`` gives for a template, for all choices of genders."""
    written = {
        "kin": lambda piece: ["#"],
        "name": lambda piece: ["xyzw"[piece.person]],
        "text": lambda piece: tokens_of(piece.text.lower()),
    }
    return {" ".join(t for piece in form for t in written[piece.kind](piece)) for _, form in template.forms()}
