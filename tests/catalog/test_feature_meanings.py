"""A feature says in one line what it means and in which unit; the line changes no data and no run."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import graphbench
from graphbench.catalog.cards import Card
from graphbench.catalog.families import measured_path
from graphbench.catalog.features import MEANING_CHARACTERS, Feature, Kind
from graphbench.catalog.names import catalog, list_datasets
from graphbench.core.errors import CardError
from graphbench.data.arrays.samples import Samples
from graphbench.data.build.generation import draw_samples
from graphbench.data.store.content import first_graphs_hash
from graphbench.domains.algoreas.graph_models import MODELS
from graphbench.domains.clutrr.noise import ROLES
from graphbench.domains.clutrr.relations import GENDERS
from graphbench.training.identity import card_meaning

WriteFamily = Callable[..., tuple[Card, ...]]
MEANING = "weight of the edge, uniform in (0, 10); no unit"
DESCRIBED = {
    "weight": ["input", "edge", "scalar", MEANING],
    "in_tree": ["output", "edge", "mask", "whether the edge is in the tree"],
    "model": ["meta", "graph", "categorical(6)"],
}

LONGEST = 140  # characters of a line of a shipped card
UNITS = {
    *("no unit", "a count", "logarithm of a count", "letters", "nodes visited", "radians", "units of time"),
    *("seconds", "hours", "modelled seconds", "log10 of modelled seconds"),
}
UNITS_OF_COLUMNS = {
    "operation": "no unit, V, ohm, H, F, Hz, ohm, ohm, ohm, F",
    **dict.fromkeys(
        ("state", "change"),
        "temperature K, wind m/s, pressure Pa, precipitation m, geopotential m2/s2, humidity kg/kg, "
        "vertical velocity Pa/s",
    ),
}
NUMBERS = {"entity", "coloring", "key", "relation", "singular"}
"""Features whose classes have no names: numbers of people, colours and letters, and sums of faults. The classes of
``relation`` are the classes of another feature."""

DIFFERENT = {
    "algoreas": {"in_tree", "weight"},
    "sat": {"occurrences", "shared"},
    "social": {"content"},
    "clrs": {
        *("A", "d", "f", "i", "j", "k", "key", "low", "m", "mark", "msk", "p", "phase", "pi", "pi_h", "pos", "pred_h"),
        *("q", "s", "selected", "selected_h", "string", "target", "topo_head_h", "u", "v", "w"),
    },
}
"""Domain -> names of features that mean different things in different datasets or graph representations."""


def features_of(card: Card) -> Iterator[Feature]:
    """Yield the features of a card's graphs, labels, tasks and graph representations."""
    yield from card.features
    for labels in card.labels.values():
        yield from labels.features
    for representation in card.representations.values():
        yield from representation.features


def without_meanings(card: Card) -> Card:
    labels = {
        name: spec.model_copy(update={"features": tuple(replace(f, meaning="") for f in spec.features)})
        for name, spec in card.labels.items()
    }
    return card.with_features([replace(f, meaning="") for f in card.features]).model_copy(update={"labels": labels})


def test_a_fourth_text_is_the_meaning(write_family: WriteFamily) -> None:
    (card,) = write_family(features=DESCRIBED)
    assert [f.meaning for f in card.features] == [MEANING, "whether the edge is in the tree", ""]
    assert [f.type_name for f in card.features] == ["scalar", "mask", "categorical(6)"]
    assert MEANING in repr(card.features[0]) and card.model_dump(mode="json")["features"][0]["meaning"] == MEANING
    sized = Feature.parse("wind", ["input", "node", "scalar(3)", "wind; m/s"])
    assert (sized.width, sized.meaning) == (3, "wind; m/s")


@pytest.mark.parametrize(
    ("meaning", "value"),
    [
        (5, "5"),
        (None, "None"),
        (True, "True"),
        (["a"], "['a']"),
        ("", "''"),
        ("  ", "'  '"),
        ("weight ", "'weight '"),
        ("two\nlines", r"two\nlines"),
        ("a\ttab", r"a\ttab"),
        ("red \x1b[31mtext", r"\x1b"),
        ("turned \u202etext", r"\u202e"),
        ("half \ud800", r"\ud800"),
        ("a" * (MEANING_CHARACTERS + 1), f"{MEANING_CHARACTERS + 1}"),
    ],
)
def test_wrong_meanings_are_refused(meaning: Any, value: str) -> None:
    with pytest.raises(CardError, match="feature 'weight': the meaning") as caught:
        Feature.parse("weight", ["input", "edge", "scalar", meaning])
    assert value in str(caught.value) and str(caught.value).isprintable() and len(str(caught.value)) < 300


def test_a_meaning_with_commas_needs_quotation_marks(write_family: WriteFamily) -> None:
    with pytest.raises(CardError, match=r"weight.*quotation marks"):
        write_family(features={**DESCRIBED, "weight": ["input", "edge", "scalar", "weight of the edge", "no unit"]})


def test_an_error_in_a_card_names_its_file(write_family: WriteFamily) -> None:
    with pytest.raises(CardError, match=r"toy\.yaml.*weight.*the meaning is 7"):
        write_family(features={**DESCRIBED, "weight": ["input", "edge", "scalar", 7]})


def test_features_that_differ_in_their_meaning_alone_are_equal() -> None:
    plain, described = (Feature.parse("weight", ["input", "edge", "scalar", *more]) for more in ([], [MEANING]))
    assert plain == described and hash(plain) == hash(described) and len({plain, described}) == 1
    assert replace(described, meaning="") == described != replace(described, width=2)


@pytest.mark.parametrize("id_", ["mst_easy", "sat/small", "sat/small:select", "clrs/bfs", "weather/sim_t21"])
def test_meanings_change_no_fingerprint_and_no_identity_of_a_run(id_: str) -> None:
    card = graphbench.card(id_)
    plain = without_meanings(card)
    assert all(f.meaning for f in card.features) and not any(f.meaning for f in plain.features)
    assert card.fingerprint(1) == plain.fingerprint(1)
    assert card_meaning(card) == card_meaning(plain)
    for name in card.labels:
        assert card.label_fingerprint(name, 1) == plain.label_fingerprint(name, 1)


def hash_of(card: Card, samples: Samples) -> str:
    arrays = {"node_ptr": samples.node_ptr, "edge_ptr": samples.edge_ptr, "edges": samples.edges, **samples.values}
    return first_graphs_hash(card.graph_schema, arrays, len(samples))


@pytest.mark.thorough
def test_meanings_change_no_content_hash_and_are_not_measured() -> None:
    card = graphbench.card("mst_easy")
    plain = without_meanings(card)
    drawn, again = draw_samples(card, "train", np.arange(3)), draw_samples(plain, "train", np.arange(3))
    assert drawn.values["weight"].tobytes() == again.values["weight"].tobytes()
    assert hash_of(card, drawn) == hash_of(plain, again)
    measured = measured_path(card.path, card.id.split("/")[1]).read_text(encoding="utf-8")
    assert card.features[0].meaning not in measured and '"meaning"' not in measured


def test_a_task_and_a_representation_keep_the_meanings() -> None:
    card = graphbench.card("sat/small:select")
    (cost,) = [f for f in card.outputs if f.name == "kissat_par10"]
    assert cost.meaning == "effort of Kissat, ten times the cutoff if unsolved; modelled seconds"
    represented = graphbench.card("sat/small:select@vg")
    assert all(f.meaning for f in represented.features) and represented.features[0].name == "occurrences"


@pytest.mark.parametrize("id_", list_datasets())
def test_every_feature_of_a_shipped_card_has_a_line(id_: str) -> None:
    card = catalog().cards[id_]
    for feature in features_of(card):
        meaning = feature.meaning
        assert meaning and len(meaning) <= LONGEST, feature.name
        assert not meaning[0].isupper() and not meaning.endswith(".") and "  " not in meaning, meaning
        before, semicolon, unit = meaning.rpartition("; ")
        if feature.kind is Kind.SCALAR:
            assert before and (unit in UNITS or unit == UNITS_OF_COLUMNS.get(feature.name)), meaning
        else:
            assert not semicolon, meaning


@pytest.mark.parametrize("id_", list_datasets())
def test_a_line_lists_the_classes_that_the_card_does_not_name(id_: str) -> None:
    card = catalog().cards[id_]
    for feature in features_of(card):
        if feature.kind is Kind.CATEGORICAL and feature.name not in {*card.classes, *NUMBERS}:
            numbers = [int(number) for number in re.findall(r"(?:[:,] )(\d+) ", feature.meaning)]
            assert numbers == list(range(feature.classes)), feature.meaning


def test_listed_classes_are_those_of_the_generators() -> None:
    def listed(id_: str, name: str) -> tuple[str, ...]:
        (feature,) = [f for f in graphbench.card(id_).features if f.name == name]
        return tuple(re.findall(r"\d (\w+)", feature.meaning))

    assert listed("mst_easy", "model") == MODELS
    assert listed("clutrr/gen_23", "gender") == GENDERS and listed("clutrr/gen_23", "role") == ROLES


@pytest.mark.parametrize("domain", sorted({card.domain for card in catalog().cards.values()}))
def test_a_name_means_the_same_in_a_domain_unless_it_is_listed(domain: str) -> None:
    meanings: dict[str, set[str]] = {}
    for card in catalog().cards.values():
        for feature in features_of(card) if card.domain == domain else ():
            meanings.setdefault(feature.name, set()).add(feature.meaning)
    assert {name for name, texts in meanings.items() if len(texts) > 1} == DIFFERENT.get(domain, set())
