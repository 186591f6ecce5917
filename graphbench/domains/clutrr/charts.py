"""The rules applied in plain Python: for checks, and for short lists of facts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from graphbench.domains.clutrr.rules import rule_set

Fact = tuple[int, int, str]
Relation = TypeVar("Relation", bound=Hashable)
Compositions = Mapping[tuple[Relation, Relation], Relation]


def derived(facts: Iterable[Fact], rules: str) -> dict[tuple[int, int], set[str]]:
    """Return all facts that follow from some facts: facts are composed with each other until no new fact appears.

    Args:
        facts: (x, y, relation): y is the relation of x.
        rules: ``sound`` or ``paper``.

    Raises:
        UnknownRules: If the set of rules is unknown.
    """
    chosen = rule_set(rules)
    pairs: dict[tuple[int, int], set[str]] = {}
    leaving: dict[int, list[tuple[int, str]]] = {}
    arriving: dict[int, list[tuple[int, str]]] = {}
    unread = list(facts)
    while unread:
        x, y, r = unread.pop()
        derived_relations = pairs.setdefault((x, y), set())
        if r in derived_relations:
            continue
        derived_relations.add(r)
        leaving.setdefault(x, []).append((y, r))
        arriving.setdefault(y, []).append((x, r))
        if r in chosen.inverses:
            unread.append((y, x, chosen.inverses[r]))
        for z, r2 in leaving.get(y, ()):
            if z != x and (r, r2) in chosen.compositions:
                unread.append((x, z, chosen.compositions[r, r2]))
        for z, r1 in arriving.get(x, ()):
            if z != y and (r1, r) in chosen.compositions:
                unread.append((z, y, chosen.compositions[r1, r]))
    return pairs


def derivable_along(clause: Sequence[str], rules: str) -> set[str]:
    """Return the relations to which the relations along a path compose, in any order of composition.

    Raises:
        UnknownRules: If the set of rules is unknown.
    """
    return chart_of(clause, rule_set(rules).compositions)[0, len(clause)]


def chart_of(clause: Sequence[Relation], compositions: Compositions[Relation]) -> dict[tuple[int, int], set[Relation]]:
    """Return the chart of a path: (i, j) -> the relations to which its relations i to j - 1 compose, in any order.

    Args:
        clause: The relations along the path, at least one.
        compositions: Two relations -> the relation that they compose to.
    """
    chart = {(i, i + 1): {r} for i, r in enumerate(clause)}
    for span in range(2, len(clause) + 1):
        for i in range(len(clause) - span + 1):
            chart[i, i + span] = {
                compositions[r1, r2]
                for m in range(i + 1, i + span)
                for r1 in chart[i, m]
                for r2 in chart[m, i + span]
                if (r1, r2) in compositions
            }
    return chart
