"""The two sets of rules: compositions of two facts, and inverses of a fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.resources import datasets_dir, read_yaml
from graphbench.core.errors import UnknownName
from graphbench.core.suggestions import closest
from graphbench.domains.clutrr.relations import NEUTRAL, NO_WORD, NUM_RELATIONS, relation_number

RULE_SETS = ("paper", "sound")


class UnknownRules(UnknownName):
    """A set of rules that does not exist."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The conclusions of one set of rules.

    Attributes:
        name: ``paper`` or ``sound``.
        compositions: (r1, r2) -> r: if z is the r1 of x and y the r2 of z, y is the r of x.
        inverses: r -> s: if y is the r of x, x is the s of y; symmetric relations included.
        composition_table: ``int8[11, 11]``, the same by number; -1 where nothing follows.
        inverse_table: ``int8[11]``, the same by number; -1 where nothing follows.
    """

    name: str
    compositions: Mapping[tuple[str, str], str]
    inverses: Mapping[str, str]
    composition_table: NDArray[np.int8]
    inverse_table: NDArray[np.int8]


def rule_set(name: str) -> RuleSet:
    """Return a set of rules.

    Args:
        name: ``paper``: the sixteen rules of the paper, appendix 1.2, some of which are not true in every family.
            ``sound``: the 32 rules that are true in every family, whichever partner of a couple has relatives in the
            family. Nine more compositions hold only in the families that puzzles are drawn from, in which a person who
            marries in has no relatives; they are not included, see ``rules.yaml``.

    Raises:
        UnknownRules: If the set of rules is unknown.
    """
    if name not in RULE_SETS:
        remedy = closest(name, RULE_SETS) or f"; there are {' and '.join(map(repr, RULE_SETS))}"
        raise UnknownRules(f"unknown set of rules {name!r}{remedy}")
    return _read_rule_set(name)


@lru_cache(maxsize=len(RULE_SETS))
def _read_rule_set(name: str) -> RuleSet:
    raw: dict[str, Any] = read_yaml(datasets_dir() / "clutrr" / "protocol" / "rules.yaml")[name]
    compositions = {(r1, r2): r for r1, heads in raw["compositions"].items() for r2, r in heads.items()}
    inverses = {r: r for r in raw["symmetric"]} | raw["inverse"]
    composition_table = np.full((NUM_RELATIONS, NUM_RELATIONS), NO_WORD, np.int8)
    for (r1, r2), r in compositions.items():
        composition_table[relation_number(r1), relation_number(r2)] = relation_number(r)
    inverse_table = np.array([relation_number(inverses[r]) if r in inverses else NO_WORD for r in NEUTRAL], np.int8)
    composition_table.flags.writeable = inverse_table.flags.writeable = False
    return RuleSet(name, MappingProxyType(compositions), MappingProxyType(inverses), composition_table, inverse_table)
