from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest

import graphbench
from graphbench.catalog.cards import Card
from graphbench.catalog.names import Catalog
from graphbench.core.errors import ArgumentError, CardError, GraphBenchError, UnknownDataset


@pytest.fixture
def pets(write_family: Callable[..., tuple[Card, ...]]) -> Catalog:
    variants = {
        "cat": {"aliases": ["tom", "kitty"], "groups": ["indoor"]},
        "dog": {"aliases": ["rex"], "groups": ["indoor", "loud"]},
    }
    return Catalog([*write_family("pets", variants=variants), *write_family("fish", aliases=["nemo"])])


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("algoreas/pets_cat", ["pets_cat"]),
        (" algoreas/pets_cat ", ["pets_cat"]),
        ("rex", ["pets_dog"]),
        ("indoor", ["pets_cat", "pets_dog"]),
        ("loud", ["pets_dog"]),
        ("algoreas", ["pets_cat", "pets_dog", "fish"]),
        ("algoreas/pets_*", ["pets_cat", "pets_dog"]),
        ("*/fis?", ["fish"]),
        ("algoreas/[f]*", ["fish"]),
        ("pets", ["pets_cat", "pets_dog"]),
        ("algoreas/pets", ["pets_cat", "pets_dog"]),
        (["nemo", "algoreas/pets_dog"], ["fish", "pets_dog"]),
        (["rex", "indoor", "tom", "algoreas/*"], ["pets_dog", "pets_cat", "fish"]),
        (("nemo", ["rex"]), ["fish", "pets_dog"]),
    ],
)
def test_selectors(pets: Catalog, selector: str | list[str], expected: list[str]) -> None:
    assert pets.resolve(selector) == [f"algoreas/{name}" for name in expected]


@pytest.mark.parametrize(
    ("selector", "single"),
    [("algoreas/fish", True), ("nemo", True), ("loud", False), ("*/fish", False), (["nemo"], False), ("pets", False)],
)
def test_only_ids_and_aliases_are_single(pets: Catalog, selector: str | list[str], single: bool) -> None:
    assert pets.is_single(selector) is single


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("algoreas/pets_cta", ["'algoreas/pets_cta'", "did you mean 'algoreas/pets_cat'?", "'algoreas/*' shows 3"]),
        ("kity", ["'kity'", "did you mean 'kitty'?", "graphbench list shows 3"]),
        ("indor", ["did you mean 'indoor'?"]),
        ("KITTY", ["'KITTY'", "did you mean 'kitty'?"]),
        ("Algoreas/Pets_Cat", ["did you mean 'algoreas/pets_cat'?"]),
        ("fish", ["did you mean 'algoreas/fish'?"]),
        ("algoreas/pest", ["did you mean 'algoreas/pets'?"]),
        ("algoreas/pets_emu", ["did you mean 'algoreas/pets_", "or 'algoreas/pets_", "'algoreas/*' shows 3"]),
        ("nowhere/*", ["'nowhere/*'", "no dataset matches this pattern", "graphbench list shows 3"]),
        ("pets_*", ["'pets_*'", "did you mean '*/pets_*'?"]),
        ("pets_[", ["'pets_['", "close its bracket", "graphbench list shows 3"]),
        ("", ["unknown dataset ''"]),
        (["nemo", "rexx"], ["'rexx'", "did you mean 'rex'?"]),
        ([], ["empty", "graphbench list"]),
    ],
)
def test_unknown_names_suggest(pets: Catalog, selector: str | list[str], words: list[str]) -> None:
    with pytest.raises(UnknownDataset) as caught:
        pets.resolve(selector)
    for word in words:
        assert word in str(caught.value)
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, GraphBenchError)


@pytest.mark.parametrize("pattern", ["pets_[", "algoreas/pets_do[", "pets_?x", "pets_cats*"])
def test_patterns_get_no_single_name_suggested(pets: Catalog, pattern: str) -> None:
    with pytest.raises(UnknownDataset) as caught:
        pets.resolve(pattern)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("selector", [None, 5, b"pets", ["algoreas/pets_cat", None], [3.5]])
def test_selectors_that_are_no_names(pets: Catalog, selector: Any) -> None:
    with pytest.raises(ArgumentError, match="a dataset is named by a string"):
        pets.resolve(selector)


def test_a_family_of_several_domains_is_not_chosen_silently() -> None:
    cards = [
        Named("home/pets_cat", family="pets"),
        Named("home/pets_dog", family="pets"),
        Named("zoo/pets", family="pets", domain="zoo"),
    ]
    catalog = Catalog(cast("list[Card]", cards))
    with pytest.raises(UnknownDataset, match=r"'pets'.*'home/pets' or 'zoo/pets'"):
        catalog.resolve("pets")
    assert catalog.resolve("home/pets") == ["home/pets_cat", "home/pets_dog"]
    assert catalog.resolve("zoo/pets") == ["zoo/pets"]


def test_far_names_get_no_suggestion(pets: Catalog) -> None:
    with pytest.raises(UnknownDataset) as caught:
        pets.resolve("qqqqqqqq")
    assert "did you mean" not in str(caught.value)


@dataclass
class Named:
    """As much of a card as names need."""

    id: str
    aliases: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    domain: str = "home"
    family: str = "a"
    path: str = "here.yaml"

    @property
    def all_groups(self):
        return (self.domain, *self.groups)


@pytest.mark.parametrize(
    ("cards", "words"),
    [
        ([Named("home/a"), Named("home/a", path="there.yaml")], ["home/a", "here.yaml", "there.yaml"]),
        ([Named("home/a", ("one",)), Named("home/b", ("one",))], ["'one'", "home/a"]),
        ([Named("home/a", ("one", "one"))], ["'one'", "taken"]),
        ([Named("home/a"), Named("home/b", ("home/a",))], ["'home/a'", "taken"]),
        ([Named("home/a", ("home/b",)), Named("home/b", path="there.yaml")], ["home/b", "here.yaml", "there.yaml"]),
        ([Named("home/a", ("one",)), Named("home/b", groups=("one",))], ["'one'", "group", "home/a"]),
        ([Named("home/a", ("home",))], ["'home'", "group"]),
    ],
)
def test_a_name_means_one_thing(cards: list[Named], words: list[str]) -> None:
    with pytest.raises(CardError) as caught:
        Catalog(cast("list[Card]", cards))
    for word in words:
        assert word in str(caught.value)


def test_card_and_list_of_the_package() -> None:
    assert graphbench.card("mst_easy").id == "algoreas/mst_easy"
    assert graphbench.list_datasets("mst_easy") == ["algoreas/mst_easy"]
    assert set(graphbench.list_datasets("algoreas/mst_*")) == {f"algoreas/mst_{d}" for d in ("easy", "medium", "hard")}
    assert graphbench.list_datasets("mst") == graphbench.list_datasets("algoreas/mst_*")
    assert len(graphbench.list_datasets()) == len(set(graphbench.list_datasets())) >= 21
    with pytest.raises(UnknownDataset, match="stands for"):
        graphbench.card("algoreas")
