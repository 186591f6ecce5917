"""The words for what pydantic refuses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator

from graphbench.core.errors import ConfigError
from graphbench.core.validation import Place, dotted, explain, keys_at


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Inner(Strict):
    count: int = Field(1, ge=1)
    share: float = 0.5

    @model_validator(mode="after")
    def _check(self) -> Inner:
        if self.count > 100:
            raise ValueError("the count is above 100; lower it")
        return self


class Cat(Strict):
    type: Literal["cat"]
    lives: int = 9


class Dog(Strict):
    type: Literal["dog"]
    tricks: list[str] = []


def _size(value: Any) -> str:
    return "big" if isinstance(value, dict) and value.get("size") == "big" else "small"


class Small(Strict):
    size: str = "small"
    width: int = 1


class Big(Strict):
    size: str = "big"
    height: int = 1


class Outer(Strict):
    name: str
    inner: Inner = Inner()
    maybe: Inner | None = None
    by_name: dict[str, Inner] = {}
    items: list[Inner] = []
    pet: Annotated[Cat | Dog, Field(discriminator="type")] | None = None
    pets: dict[str, Annotated[Cat | Dog, Field(discriminator="type")]] = {}
    box: Annotated[Annotated[Small, Tag("small")] | Annotated[Big, Tag("big")], Discriminator(_size)] = Small()


def refused(content: dict[str, Any], **options: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate({"name": "x", **content})
    return explain(caught.value, Outer, **options)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"inner": {"cuont": 1}}, "unknown key 'inner.cuont'; did you mean 'count'? (keys: count, share)"),
        ({"maybe": {"cuont": 1}}, "unknown key 'maybe.cuont'; did you mean 'count'? (keys: count, share)"),
        ({"by_name": {"a": {"zz": 1}}}, "unknown key 'by_name.a.zz' (keys: count, share)"),
        ({"items": [{}, {"shar": 1}]}, "unknown key 'items[1].shar'; did you mean 'share'? (keys: count, share)"),
        ({"pet": {"type": "cat", "live": 1}}, "unknown key 'pet.live'; did you mean 'lives'? (keys: type, lives)"),
        ({"pets": {"rex": {"type": "dog", "lives": 1}}}, "unknown key 'pets.rex.lives' (keys: type, tricks)"),
        ({"box": {"size": "big", "width": 1}}, "unknown key 'box.width' (keys: size, height)"),
        ({"inner": {"count": 0}}, "inner.count = 0 is refused: Input should be greater than or equal to 1"),
        ({"inner": {"count": 101}}, "inner: the count is above 100; lower it"),
        ({"pets": {"rex": {"type": "dog", "tricks": [1]}}}, "pets.rex.tricks[0] = 1 is refused: Input should be a"),
        ({"name": 3}, "name = 3 is refused: Input should be a valid string"),
    ],
)
def test_a_problem_names_key_value_and_remedy(content: dict[str, Any], expected: str) -> None:
    assert refused(content).startswith(expected)


def test_the_end_and_the_middle_of_a_long_value_are_left_out() -> None:
    assert len(refused({"inner": {"count": "y" * 10_000}})) < 400


def test_missing_keys_are_named() -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate({})
    assert explain(caught.value, Outer, where="a.yaml") == "a.yaml: the key 'name' is missing"


def test_several_problems_are_listed_each_with_the_source() -> None:
    text = refused({"inner": {"count": 0}, "nam": 1}, where="a.yaml")
    assert text.count("a.yaml: ") == 2
    assert "a.yaml: unknown key 'nam'; did you mean 'name'?" in text


def test_places_can_be_put_into_words_by_the_caller() -> None:
    def at(place: Place) -> str:
        return f"a.yaml:{len(place)}: {dotted(place)}"

    assert refused({"pets": {"rex": {"type": "cat", "lives": "x"}}}, at=at).startswith(
        "a.yaml:3: pets.rex.lives: 'x' is refused: Input should be a valid integer"
    )
    assert refused({"inner": {"cuont": 1}}, at=at) == (
        "a.yaml:2: inner.cuont: unknown key; did you mean 'count'? (keys: count, share)"
    )


def test_known_keys_and_suggestions_can_be_given() -> None:
    text = refused({"inner": {"cuont": 1}}, keys=lambda place: ["amount"], suggest=lambda key: f"; see {key}")
    assert text == "unknown key 'inner.cuont'; see inner.cuont (keys: amount)"


def test_without_a_schema_the_keys_are_not_listed() -> None:
    with pytest.raises(ValidationError) as caught:
        Inner.model_validate({"cuont": 1})
    assert explain(caught.value) == "unknown key 'cuont'"


def test_an_error_of_ours_inside_a_validator_speaks_for_itself() -> None:
    class Own(Strict):
        value: int

        @model_validator(mode="after")
        def _check(self) -> Own:
            raise ConfigError("the file a.yaml is wrong; mend it")

    with pytest.raises(ValidationError) as caught:
        Own.model_validate({"value": 1})
    assert explain(caught.value, Own, where="settings") == "settings: the file a.yaml is wrong; mend it"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ((), ["name", "inner", "maybe", "by_name", "items", "pet", "pets", "box"]),
        (("inner",), ["count", "share"]),
        (("items", 0), ["count", "share"]),
        (("by_name", "any"), ["count", "share"]),
        (("pets", "rex"), ["type", "lives", "tricks"]),
        (("pets", "rex", "dog"), ["type", "tricks"]),
        (("name",), []),
    ],
)
def test_the_keys_of_a_place_are_those_of_its_model(place: Place, expected: list[str]) -> None:
    assert keys_at(Outer, place) == expected
