"""Rules of a domain: how a card names them, what they are given, and how wrong ones are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphbench
from graphbench.catalog.features import Feature
from graphbench.core.errors import CardError, EvaluationError
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.domain import rules_of, unregister
from graphbench.data.components.rules import Rule
from graphbench.evaluation.references import whole_split
from graphbench.evaluation.trivial import LABEL_PREDICTORS, best_floor, trivial_scores
from graphbench.tasks.predict.rules import rule_predictions
from graphbench.tasks.registry import task_of

SEEN: list[Any] = []


def heavy(samples: Any) -> dict[str, Any]:
    """Predict the heavier half of the edges, and keep what was given."""
    SEEN.append(samples)
    return {"in_tree": samples.values["weight"] > 5}


def broken(samples: Any) -> dict[str, Any]:
    raise KeyError("weihgt")


RULES = {
    "heavy": Rule("An edge is in the tree if its weight is above 5.", heavy),
    "broken": Rule("Raises an error.", broken),
    "short": Rule("Returns a row too few.", lambda samples: {"in_tree": samples.values["weight"][1:] > 5}),
    "other": Rule("Predicts an input.", lambda samples: {"weight": samples.values["weight"]}),
    "silent": Rule("Predicts nothing.", lambda samples: {}),
}


@pytest.fixture(autouse=True)
def toy_rules() -> Iterator[None]:
    graphbench.register_domain(graphbench.Domain("toyrules", rules=RULES))
    yield
    unregister("toyrules")
    SEEN.clear()


def test_rules_are_scored_beside_the_predictors_that_read_labels(make_card):
    plain = make_card(metrics={"primary": "f1", "also": ["accuracy"]})
    card = make_card(metrics={"primary": "f1", "also": ["accuracy"]}, task={"rules": {"structural": "toyrules.heavy"}})
    samples = draw_samples(card, "test", np.arange(20))
    before, found = task_of(plain).floors(samples, samples), task_of(card).floors(samples, samples)
    assert {name: scores for name, scores in found.items() if name != "structural"} == before
    weight, target = samples.values["weight"], samples.values["in_tree"] != 0
    assert found["structural"]["accuracy"] == pytest.approx(np.mean((weight > 5) == target))
    hits = np.sum((weight > 5) & target)
    assert found["structural"]["f1"] == pytest.approx(2 * hits / (np.sum(weight > 5) + np.sum(target)))


def test_a_rule_sees_graphs_and_inputs_and_no_target(make_card):
    card = make_card(task={"rules": {"structural": "toyrules.heavy"}})
    samples = draw_samples(card, "test", np.arange(3))
    task_of(card).floors(samples, samples)
    (given,) = SEEN
    assert set(given.values) == {"weight"} and given.edges is samples.edges


def test_rules_change_no_fingerprint(make_card):
    plain, card = make_card(), make_card(task={"rules": {"structural": "toyrules.heavy"}})
    assert card.fingerprint(1) == plain.fingerprint(1)
    changed = card.model_copy(update={"description": "Another text.", "source": plain.source.model_copy()})
    assert changed.fingerprint(1) == plain.fingerprint(1)


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ({"structural": "toyrules.hevy"}, "heavy"),
        ({"structural": "nowhere.heavy"}, "nowhere"),
        ({"structural": "heavy"}, "heavy"),
        ({"majority": "toyrules.heavy"}, "majority"),
    ],
)
def test_rules_that_do_not_exist_or_have_a_taken_name_are_refused(make_card, rules, named):
    card = make_card(task={"rules": rules})
    with pytest.raises(CardError, match=named):
        task_of(card)


def test_names_of_rules_are_identifiers(make_card):
    with pytest.raises(CardError, match="By degree"):
        make_card(task={"rules": {"By degree": "toyrules.heavy"}})


def test_a_kind_of_task_that_scores_no_rules_refuses_them(make_card):
    features = {"question": ["input", "graph", "text"], "answer": ["output", "graph", "text"]}
    card = make_card(
        features=features,
        task={"type": "text", "rules": {"structural": "toyrules.heavy"}},
        metrics={"primary": "exact_match"},
    )
    with pytest.raises(CardError, match=r"task\.rules names structural"):
        task_of(card)


@pytest.mark.parametrize(
    ("rule", "named"), [("broken", "weihgt"), ("short", "in_tree"), ("other", "weight"), ("silent", "nothing")]
)
def test_faults_of_a_rule_name_the_rule(make_card, rule, named):
    card = make_card(task={"rules": {"structural": f"toyrules.{rule}"}})
    samples = draw_samples(card, "test", np.arange(3))
    with pytest.raises(EvaluationError, match=rf"toyrules\.{rule}.*{named}"):
        rule_predictions(card, samples)


def test_best_floor_can_leave_rules_out(make_card):
    card = make_card(task={"rules": {"structural": "toyrules.heavy"}})
    floor = {"test": {"all_positive": {"f1": 0.4}, "structural": {"f1": 0.9}}}
    measured = graphbench.card("algoreas/mst_easy").measured.model_copy(
        update={"floor": floor, "scored_samples": {"test": card.split("test").count}}
    )
    card = card.model_copy(update={"measured": measured})
    samples = whole_split(card, "test")
    assert best_floor(card, "test", "f1", samples) == ("structural", 0.9)
    assert best_floor(card, "test", "f1", samples, rules=False) == ("all_positive", 0.4)


def test_the_names_of_predictors_that_read_labels_are_all_listed():
    names = set()
    for kind, values in (("mask", [0, 1]), ("categorical(3)", [0, 2]), ("scalar", [0.0, 1.5])):
        feature = Feature.parse("label", ["output", "node", kind])
        metric = "mae" if kind == "scalar" else "accuracy"
        names |= set(trivial_scores(feature, np.array(values), np.array(values), None, [metric]))
    assert names == set(LABEL_PREDICTORS)


def test_cards_without_rules_have_none(make_card):
    card = make_card()
    assert rules_of(card) == {} and rule_predictions(card, draw_samples(card, "test", np.arange(2))) == {}
