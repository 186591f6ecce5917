"""Checks of puzzles in plain Python: truth from parents and spouses, answers by another reasoner, noise as defined.

The checks do not call the compiled functions that made the puzzles, except to draw the family again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.clutrr.charts import derivable_along, derived
from graphbench.domains.clutrr.clauses import held_out
from graphbench.domains.clutrr.drawing import STORY_STREAM
from graphbench.domains.clutrr.families import Family, draw_family
from graphbench.domains.clutrr.noise import most_additions
from graphbench.domains.clutrr.paper_family import closed_family
from graphbench.domains.clutrr.puzzles import Puzzle, PuzzleParameters, Puzzles
from graphbench.domains.clutrr.relations import NEUTRAL, gender_of_word, relation_of_word, word_for


def check_puzzles(
    puzzles: Puzzles,
    parameters: PuzzleParameters,
    key: int,
    indices: NDArray[Any],
    attempts: NDArray[Any] | None = None,
) -> list[str]:
    """Return the problems of puzzles that ``draw_puzzles`` drew with these arguments, one line per problem."""
    tries = np.zeros_like(indices) if attempts is None else attempts
    listed: frozenset[tuple[str, ...]] = frozenset()
    if parameters.held_out != "any":
        chosen = held_out(
            parameters.rules, parameters.k, parameters.share, parameters.held_out_seed, parameters.families
        )
        listed = frozenset(chosen)
    findings = []
    for i, puzzle in enumerate(puzzles):
        stream = STORY_STREAM + int(puzzles.draw[i])
        family = draw_family(parameters.families, key, int(indices[i]), int(tries[i]), stream)
        members = puzzles.member[puzzles.node_ptr[i] : puzzles.node_ptr[i + 1]].tolist()
        problems = [
            *story_problems(puzzle, parameters.k, parameters.rules, parameters.noise),
            *_family_problems(puzzle, members, family, parameters),
            *_clause_problems(puzzle, listed, parameters.held_out),
        ]
        findings += [f"puzzle {i}: {problem}" for problem in problems]
    return findings


def story_problems(puzzle: Puzzle, k: int, rules: str, noise: str) -> list[str]:
    """Return the problems of a single puzzle: its path, its facts, its noise, and whether it has one answer."""
    problems = []
    path = [(puzzle.facts[e], step) for e, step in enumerate(puzzle.steps) if puzzle.roles[e] == "path"]
    path.sort(key=lambda pair: pair[1])
    people = [fact[0] for fact, _ in path] + [fact[1] for fact, _ in path[-1:]]
    if [step for _, step in path] != list(range(k)):
        problems.append(f"steps of the path are {[step for _, step in path]}, not 0 .. {k - 1}")
    if any(a[1] != b[0] for (a, _), (b, _) in pairwise(path)) or len(set(people)) != k + 1:
        problems.append(f"the path {[fact for fact, _ in path]} is not simple")
    if not people or puzzle.query != (people[0], people[-1]):
        problems.append(f"the people of the question {puzzle.query} are not the ends of the path {people}")
    if puzzle.clause != tuple(relation_of_word(fact[2]) for fact, _ in path):
        problems.append(f"the clause {puzzle.clause} differs from the path {[fact for fact, _ in path]}")
    pairs = [fact[:2] for fact in puzzle.facts]
    if pairs != sorted(pairs) or len({frozenset(pair) for pair in pairs}) != len(pairs):
        problems.append(f"the facts {pairs} are not sorted, or tell twice of the same two people")
    if {person for pair in pairs for person in pair} != set(range(len(puzzle.genders))):
        problems.append("somebody has no fact")
    if any(gender_of_word(word) != puzzle.genders[y] for _, y, word in puzzle.facts):
        problems.append("a fact has the wrong gender")
    if any(step != -1 for step, role in zip(puzzle.steps, puzzle.roles, strict=True) if role != "path"):
        problems.append("noise has a position on the path")
    answers = derived(puzzle.edges, rules).get(puzzle.query, set())
    if answers != {relation_of_word(puzzle.answer)}:
        problems.append(f"the answer is {puzzle.answer}, but {sorted(answers)} are derivable")
    if relation_of_word(puzzle.answer) not in derivable_along(puzzle.clause, rules):
        problems.append(f"the path {puzzle.clause} alone does not give {puzzle.answer}")
    return problems + _noise_problems(puzzle, set(people), k, noise)


def true_relations(family: Family, x: int, y: int) -> set[str]:
    """Return every relation that y has to x, from parents and spouses."""
    parents = [{int(f), int(m)} - {-1} for f, m in zip(family.father, family.mother, strict=True)]
    spouse = [{int(s)} - {-1} for s in family.spouse]

    def siblings(person: int) -> set[int]:
        return {other for other in range(len(family)) if parents[person] and parents[other] == parents[person]} - {
            person
        }

    def of(groups: Iterable[set[int]]) -> set[int]:
        return set().union(*groups)

    def uncles(person: int) -> set[int]:
        by_blood = of(siblings(parent) for parent in parents[person])
        return by_blood | of(spouse[uncle] for uncle in by_blood)

    def seen_from(a: int, b: int) -> Mapping[str, bool]:
        return {
            "inv-child": b in parents[a],
            "inv-grand": b in of(parents[parent] for parent in parents[a]),
            "inv-in-law": b in of(parents[partner] for partner in spouse[a]),
            "inv-un": b in uncles(a),
        }

    upward = {name for name, holds in seen_from(x, y).items() if holds}
    downward = {name.removeprefix("inv-") for name, holds in seen_from(y, x).items() if holds}
    level = {
        "SO": y in spouse[x],
        "sibling": y in siblings(x),
        "sibling-in-law": y in of(siblings(s) for s in spouse[x]) or x in of(siblings(s) for s in spouse[y]),
    }
    return upward | downward | {name for name, holds in level.items() if holds}


def _noise_problems(puzzle: Puzzle, on_path: set[int], k: int, noise: str) -> list[str]:
    facts = [(fact, role) for fact, role in zip(puzzle.facts, puzzle.roles, strict=True) if role != "path"]
    if any(role != noise for _, role in facts):
        return [f"noise of another kind than {noise}"]
    pairs = [(x, y) for (x, y, _), _ in facts]
    new = [person for pair in pairs for person in pair if person not in on_path]
    if noise == "supporting":
        steps = {(x, y) for (x, y, _), role in zip(puzzle.facts, puzzle.roles, strict=True) if role == "path"}
        detours = {(x, y): d for x, d in pairs for e, y in pairs if d == e and d not in on_path}
        is_right = set(detours) <= steps and 2 * len(detours) == len(pairs) and len(set(new)) == len(detours)
        size = len(detours)
    elif noise == "irrelevant":
        is_right = all(len({x, y} & on_path) == 1 for x, y in pairs) and len(set(new)) == len(pairs)
        size = len(pairs)
    else:
        is_right = not any({x, y} & on_path for x, y in pairs)
        size = len(pairs)
    is_counted = 1 <= size <= most_additions(k) if noise != "none" else size == 0
    return [] if is_right and is_counted else [f"{pairs} beside {sorted(on_path)} is no {noise} noise for {k} facts"]


def _family_problems(puzzle: Puzzle, members: list[int], family: Family, parameters: PuzzleParameters) -> list[str]:
    if len(set(members)) != len(members) or not set(members) <= set(range(len(family))):
        return [f"{members} are not different people of a family of {len(family)}"]
    problems = []
    for x, y, word in (*puzzle.facts, (*puzzle.query, puzzle.answer)):
        a, b = members[x], members[y]
        if parameters.rules == "paper":
            told = {NEUTRAL[closed_family(parameters.families)[a, b]]}
        else:
            told = true_relations(family, a, b)
        if {word_for(relation, family.gender_of(b)) for relation in told} != {word}:
            problems.append(f"{y} is called {word} by {x}, but is {sorted(told)}, {family.gender_of(b)}")
    return problems


def _clause_problems(puzzle: Puzzle, listed: frozenset[tuple[str, ...]], mode: str) -> list[str]:
    if mode == "any":
        return []
    clause = tuple(word for _, _, word in puzzle.path) if len(puzzle.clause) == 2 else puzzle.clause
    return [] if (clause in listed) == (mode == "only") else [f"{clause} is drawn though held_out is {mode}"]
