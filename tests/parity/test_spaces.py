"""Search spaces have the frozen content, and one seed draws the frozen configurations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .spaces import SPACES, facts_of_spaces

FROZEN: dict[str, Any] = json.loads(SPACES.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def spaces() -> dict[str, Any]:
    return dict(facts_of_spaces())


def test_all_spaces_are_frozen(spaces: dict[str, Any]) -> None:
    assert spaces.keys() == FROZEN.keys()


@pytest.mark.parametrize("name", FROZEN)
def test_a_space_is_the_frozen_one(name: str, spaces: dict[str, Any]) -> None:
    facts, frozen = dict(spaces[name]), dict(FROZEN[name])
    samples, expected = facts.pop("samples"), frozen.pop("samples")
    assert facts == frozen
    for sample, values in zip(samples, expected, strict=True):
        assert list(map(type, sample)) == list(map(type, values))
        for value, number in zip(sample, values, strict=True):
            assert value == (pytest.approx(number, rel=1e-5) if isinstance(number, float) else number)
