"""How much there is in a split, counted in plain Python beside."""

import re

import numpy as np
import pytest

from graphbench.catalog.names import card as card_of
from graphbench.catalog.names import list_datasets
from graphbench.data.build.generation import draw_samples
from graphbench.domains import clutrr
from graphbench.domains.clutrr.relations import WORDS
from graphbench.domains.clutrr.templates import templates_of
from graphbench.domains.clutrr.variety import different_ones, unseen_shares, walks_of
from graphbench.reports.tables import split_rows


def samples_of(name, split, count):
    return draw_samples(card_of(f"clutrr/{name}"), split, np.arange(count))


@pytest.mark.parametrize(("name", "split"), [("gen_23", "k5"), ("rob_supporting", "test"), ("paper_gen_23", "k2")])
def test_walks_clauses_and_answers_are_counted(name, split):
    samples = samples_of(name, split, 120)
    step, relation = samples.values["step"], samples.values["relation"]
    walks = []
    for begin, end in zip(samples.edge_ptr[:-1], samples.edge_ptr[1:], strict=True):
        walks.append(tuple(int(relation[e]) for e in sorted(range(begin, end), key=lambda e: step[e]) if step[e] >= 0))
    assert walks_of(samples) == walks
    clauses = {tuple(WORDS[word // 2 * 2] for word in walk) for walk in walks}
    answers = set(samples.values["answer"].tolist())
    assert different_ones(samples) == {"walks": len(set(walks)), "clauses": len(clauses), "answers": len(answers)}
    assert 0 < len(clauses) <= len(set(walks))


def test_words_that_training_cannot_hold_are_counted():
    texts = samples_of("gen_23", "test", 60).values["tokens"].strings()
    known = set(WORDS)
    for template in templates_of("train"):
        for _, form in template.forms():
            for piece in form:
                known.update(re.findall(r"'s(?!\w)|[\w-]+|[^\w\s]", piece.text.lower()))
    shares = [
        sum(word not in known and not word.startswith("@ent") for word in text.split()) / len(text.split())
        for text in texts
    ]
    assert unseen_shares(texts).tolist() == pytest.approx(shares)
    assert 0.05 < np.mean(shares) < 0.3
    assert set(unseen_shares(samples_of("gen_23", "train", 60).values["tokens"].strings())) == {0.0}


def test_the_cards_of_all_puzzles_say_how_much_there_is():
    for id_ in list_datasets("clutrr"):
        card = card_of(id_)
        found = card.measured.different
        assert set(found) == set(card.all_splits)
        assert all(0 < own["answers"] <= 22 and own["clauses"] <= own["walks"] for own in found.values())
        assert card.measured.statistics["train"]["unseen_words"] == (0.0, 0.0)
        assert 0.05 < card.measured.statistics["test"]["unseen_words"][0] < 0.3
        assert {"first_and_last_fact", "learned_rules"} < set(card.solvers["test"])
    grid = split_rows(card_of("clutrr/gen_23"))
    place = grid.heads.index("different walks")
    assert [row[place] for row in grid.rows][3] == str(card_of("clutrr/gen_23").measured.different["k2"]["walks"])


def test_the_names_of_the_package_are_listed():
    assert {"compose", "closure", "solve", *clutrr.__all__} <= set(dir(clutrr))
