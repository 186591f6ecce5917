"""Backward chaining: from the fact in question to the k facts of a story, which form a path (paper, section 3.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner
from graphbench.core.rng import below
from graphbench.domains.clutrr.relations import NO_WORD, NUM_RELATIONS

Groundings = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Scratch: ``int64[most people]`` people and the rule of each, ``int64[121]`` how many people each rule has."""


@inner
def pick_middle(
    state: NDArray[np.uint64],
    x: int,
    y: int,
    relations: NDArray[np.int8],
    num_people: int,
    in_story: NDArray[np.bool_],
    composition: NDArray[np.int8],
    groundings: Groundings,
) -> int:
    """Draw a new person between x and y: uniform over the rules that conclude the fact (x, y), then over the people.

    A rule is considered if some person outside the story fits into it.

    Returns:
        z such that the facts (x, z) and (z, y) compose to the fact (x, y); -1 if there is no such z.
    """
    people, rule_of, size_of = groundings
    size_of[:] = 0
    count, num_rules = 0, 0
    head = relations[x, y]
    for z in range(num_people):
        r1, r2 = relations[x, z], relations[z, y]
        if in_story[z] or r1 == NO_WORD or r2 == NO_WORD or composition[r1, r2] != head:
            continue
        rule = r1 * NUM_RELATIONS + r2
        people[count], rule_of[count] = z, rule
        count += 1
        num_rules += size_of[rule] == 0
        size_of[rule] += 1
    if count == 0:
        return -1
    rank = below(state, num_rules)
    rule = 0
    while size_of[rule] == 0 or rank > 0:
        rank -= size_of[rule] > 0
        rule += 1
    rank = below(state, size_of[rule])
    at = 0
    while rule_of[at] != rule or rank > 0:
        rank -= rule_of[at] == rule
        at += 1
    return people[at]


@inner
def chain_backward(
    state: NDArray[np.uint64],
    k: int,
    relations: NDArray[np.int8],
    num_people: int,
    in_story: NDArray[np.bool_],
    composition: NDArray[np.int8],
    path: NDArray[np.int64],
    groundings: Groundings,
) -> bool:
    """Expand the fact (path[0], path[1]) into a path of k facts, and return whether there is one.

    In every step, a fact that was not tried before is drawn and resolved into two; the person in between is not yet on
    the path. A fact that cannot be resolved stays.

    Args:
        state: The generator.
        k: Number of facts.
        relations: ``int8[N, N]``, the relation of y to x in ``[x, y]``.
        num_people: Number of people.
        in_story: ``bool[N]``, False on entry; True for the people of the path on exit.
        composition: ``int8[11, 11]``, the rules.
        path: ``int64[k + 1]``, on entry the two people of the question; filled on exit.
        groundings: Scratch.
    """
    stuck = np.zeros(k, np.bool_)
    in_story[path[0]] = in_story[path[1]] = True
    length, num_open = 1, 1
    while length < k and num_open > 0:
        rank = below(state, num_open)
        at = 0
        while stuck[at] or rank > 0:
            rank -= not stuck[at]
            at += 1
        middle = pick_middle(state, path[at], path[at + 1], relations, num_people, in_story, composition, groundings)
        if middle < 0:
            stuck[at] = True
            num_open -= 1
            continue
        for i in range(length, at, -1):
            path[i + 1] = path[i]
            stuck[i] = stuck[i - 1]
        path[at + 1] = middle
        stuck[at] = stuck[at + 1] = False
        in_story[middle] = True
        length += 1
        num_open += 1
    return length == k


@inner
def draw_question(
    state: NDArray[np.uint64], relations: NDArray[np.int8], num_people: int, wanted: int, path: NDArray[np.int64]
) -> bool:
    """Draw the two people of a question into ``path[0]`` and ``path[1]``, and return whether there are such people.

    Args:
        state: The generator.
        relations: ``int8[N, N]``, the relation of y to x in ``[x, y]``.
        num_people: Number of people.
        wanted: The relation of the second person to the first; -1 for any two people who are related.
        path: ``int64[at least 2]``, filled.
    """
    count = 0
    for x in range(num_people):
        for y in range(num_people):
            count += _is_asked_for(relations[x, y], wanted)
    if count == 0:
        return False
    rank = below(state, count)
    for x in range(num_people):
        for y in range(num_people):
            if _is_asked_for(relations[x, y], wanted):
                if rank == 0:
                    path[0], path[1] = x, y
                    return True
                rank -= 1
    return False


@inner
def _is_asked_for(relation: int, wanted: int) -> bool:
    return relation == wanted if wanted >= 0 else relation >= 0
