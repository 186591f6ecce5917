"""Kinship puzzles of CLUTRR: whether printed answers follow, and whether the rules are true of families."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from benchmarks.claims.model import FOLDER
from benchmarks.claims.registry import Outcome, check
from graphbench.domains.clutrr.families import PAPER_FAMILY, FamilyParameters, draw_family
from graphbench.domains.clutrr.paper_family import closed_family
from graphbench.domains.clutrr.reasoning import solve
from graphbench.domains.clutrr.relations import relation_number

_FAMILIES = 60
Facts = Sequence[tuple[str, str, str]]


@check
def facts_of_the_paper_family() -> Outcome:
    """Relations that the sixteen rules derive in the family of the authors' code, beside those that are true in it."""
    derived = closed_family(PAPER_FAMILY)
    family = draw_family(PAPER_FAMILY, 0)
    known = derived >= 0
    false = int((known & (derived != family.relations)).sum())
    total = int(known.sum())
    return Outcome(
        false > 0,
        {"people": len(family), "facts": total, "false": false, "share": false / total},
        f"{false} of {total} are false",
    )


def _puzzles(table: int) -> list[Mapping[str, Any]]:
    content = yaml.safe_load((FOLDER / "printed" / "clutrr_snapshots.yaml").read_text(encoding="utf-8"))
    puzzles: list[Mapping[str, Any]] = content[f"table {table}"]
    return puzzles


def _embeddings(facts: Facts, relations: NDArray[np.int8]) -> Iterator[dict[str, int]]:
    """Yield every way to take the people of a story for people of a family, all facts being true of them."""
    steps = [(x, y, relation_number(relation)) for x, y, relation in facts]

    def extended(chosen: dict[str, int], rest: list[tuple[str, str, int]]) -> Iterator[dict[str, int]]:
        if not rest:
            yield chosen
            return
        x, y, relation = rest[0]
        if y in chosen:
            if relations[chosen[x], chosen[y]] == relation:
                yield from extended(chosen, rest[1:])
            return
        for person in np.flatnonzero(relations[chosen[x]] == relation).tolist():
            if person not in chosen.values():
                yield from extended({**chosen, y: person}, rest[1:])

    for first in range(len(relations)):
        yield from extended({steps[0][0]: first}, steps)


@check
def snapshots_follow(table: int, unsound: Sequence[str], wrong: Sequence[str]) -> Outcome:
    """Printed answers of example puzzles: do they follow from the story in every family?

    Families with all facts of a story are searched for in random families; an answer that differs there does not
    follow. An answer is wrong if it is true in no family that was found.

    Args:
        table: Table 7 to 11, transcribed in ``printed/clutrr_snapshots.yaml``.
        unsound: Questions whose answer the paper's rules derive, though it is not true in every family.
        wrong: Questions whose printed answer is true in none.
    """
    families = [draw_family(FamilyParameters(), 7, i).relations for i in range(_FAMILIES)]
    families.append(draw_family(PAPER_FAMILY, 7).relations)
    found_unsound, found_wrong, families_found, other = [], [], [], ""
    puzzles = _puzzles(table)
    for puzzle in puzzles:
        facts = [(x, y, r) for x, y, r in puzzle["facts"]]
        x, y = puzzle["query"]
        answers: dict[int, int] = {}
        for relations in families:
            for people in _embeddings(facts, relations):
                true = int(relations[people[x], people[y]])
                answers[true] = answers.get(true, 0) + 1
        printed = relation_number(puzzle["answer"])
        families_found.append(sum(answers.values()))
        name = f"{y} of {x}"
        if printed not in answers:
            found_wrong.append(name)
            other = ", ".join(sorted(solve(facts, (x, y), "sound"))) or "none"
        elif len(answers) > 1:
            found_unsound.append(name)
    ok = sorted(found_unsound) == sorted(unsound) and sorted(found_wrong) == sorted(wrong)
    return Outcome(
        ok and min(families_found) > 0,
        {
            "puzzles": len(puzzles),
            "follow": len(puzzles) - len(found_unsound) - len(found_wrong),
            "unsound": ", ".join(found_unsound) or "none",
            "wrong": ", ".join(found_wrong) or "none",
            "right": other,
            "least": min(families_found),
        },
        f"unsound {found_unsound}, wrong {found_wrong}, found {families_found}",
    )


@check
def own_sentences() -> Outcome:
    """The sentences of our stories are Apache-2.0, and no dataset here is made of the authors' sentences."""
    import graphbench
    from graphbench.catalog.names import list_datasets

    licences = {graphbench.card(name).licence for name in list_datasets("clutrr/*")}
    return Outcome(licences == {"Apache-2.0"}, {"licence": ", ".join(sorted(licences))}, f"licences {licences}")


@check
def no_record_of_people() -> Outcome:
    """No record of people's answers is kept."""
    from graphbench.catalog.resources import baselines_dir
    from graphbench.records.files import load_records
    from graphbench.records.published import published

    people = [s for s in published("clutrr/gen_23") if s.model.startswith("human")]
    records = [r for r in load_records("clutrr/*", baselines_dir() / "results") if r.model.startswith("human")]
    return Outcome(not records, {"cells": len(people)}, f"{len(records)} records of people")


@check
def settings_of_published_data() -> Outcome:
    """Lengths and kinds of noise of our datasets after the paper's rules, beside table 6."""
    import graphbench

    problems = []
    for name, lengths in {"paper_gen_23": [2, 3], "paper_gen_234": [2, 3, 4]}.items():
        card = graphbench.card(f"clutrr/{name}")
        if card.split("train").parameters["lengths"] != lengths or list(card.ood) != [f"k{k}" for k in range(2, 11)]:
            problems.append(name)
    kinds = ["clean", "supporting", "irrelevant", "disconnected"]
    for kind in kinds:
        card = graphbench.card(f"clutrr/paper_rob_{kind}")
        noise = card.split("train").parameters.get("noise", "none")
        if noise != ("none" if kind == "clean" else kind) or list(card.ood) != kinds:
            problems.append(f"paper_rob_{kind}")
        if card.split("train").parameters["lengths"] != [2, 3]:
            problems.append(f"paper_rob_{kind}, lengths")
    return Outcome(not problems, {"datasets": 6}, ", ".join(problems))
