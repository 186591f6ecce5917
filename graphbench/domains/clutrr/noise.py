"""Facts of a story that are not needed (paper, section 3.5), by where they touch its path.

* Supporting: a detour a -> d -> b around a fact (a, b) of the path, past a new person.
* Irrelevant: a fact between a person of the path and a new person: half of a detour.
* Disconnected: a fact between two people who are not on the path.

Of each there are 1 to max(1, k // 2), every number as likely, or fewer where the family has no more; detours and
irrelevant facts never share the person who is new.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner
from graphbench.core.rng import below, permutation
from graphbench.domains.clutrr.chaining import Groundings, pick_middle

ROLES = ("path", "supporting", "irrelevant", "disconnected")
NOISES = ("none", *ROLES[1:])
PATH, SUPPORTING, IRRELEVANT, DISCONNECTED = range(4)
NO_STEP = -1
_TRIES = 100
Facts = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""``int64[most facts, 2]`` x and y, ``int64[most facts]`` role and position on the path, -1 for noise."""


def most_additions(k: int) -> int:
    """Return the largest number of detours, or of irrelevant or disconnected facts, of a story of k facts."""
    return max(1, k // 2)


def most_noise(k: int, noise: str) -> tuple[int, int]:
    """Return how many facts a noise adds at most, and how many people."""
    facts, people = {"none": (0, 0), "supporting": (2, 1), "irrelevant": (1, 1), "disconnected": (1, 2)}[noise]
    return facts * most_additions(k), people * most_additions(k)


@inner
def _add_fact(facts: Facts, count: int, x: int, y: int, role: int) -> int:
    ends, roles, steps = facts
    ends[count, 0], ends[count, 1] = x, y
    roles[count] = role
    steps[count] = NO_STEP
    return count + 1


@inner
def add_noise(
    state: NDArray[np.uint64],
    noise: int,
    k: int,
    path: NDArray[np.int64],
    relations: NDArray[np.int8],
    num_people: int,
    in_story: NDArray[np.bool_],
    composition: NDArray[np.int8],
    groundings: Groundings,
    facts: Facts,
) -> int:
    """Write noise behind the k facts of the path, mark its people, and return the number of facts then.

    Args:
        state: The generator.
        noise: Role of the noise.
        k: Number of facts of the path.
        path: ``int64[k + 1]``, its people.
        relations: ``int8[N, N]``, the relation of y to x in ``[x, y]``.
        num_people: Number of people of the family.
        in_story: ``bool[N]``, True for the people of the path; set to True for the people of the noise.
        composition: ``int8[11, 11]``, the rules.
        groundings: Scratch of ``pick_middle``.
        facts: Filled from position k on.
    """
    wanted = 1 + below(state, max(1, k // 2))
    if noise == DISCONNECTED:
        return _add_disconnected(state, wanted, k, relations, num_people, in_story, facts)
    places = permutation(state, k)
    count, added, tried = k, 0, 0
    while added < wanted and tried < k:
        a, b = path[places[tried]], path[places[tried] + 1]
        d = pick_middle(state, a, b, relations, num_people, in_story, composition, groundings)
        tried += 1
        if d < 0:
            continue
        in_story[d] = True
        added += 1
        first = noise == SUPPORTING or below(state, 2) == 0
        if first:
            count = _add_fact(facts, count, a, d, noise)
        if noise == SUPPORTING or not first:
            count = _add_fact(facts, count, d, b, noise)
    return count


@inner
def _add_disconnected(
    state: NDArray[np.uint64],
    wanted: int,
    k: int,
    relations: NDArray[np.int8],
    num_people: int,
    in_story: NDArray[np.bool_],
    facts: Facts,
) -> int:
    """Add true facts of people off the path, no two of the same two people."""
    ends = facts[0]
    on_path = in_story.copy()
    count = k
    for _ in range(_TRIES * wanted):
        x, y = below(state, num_people), below(state, num_people)
        if on_path[x] or on_path[y] or relations[x, y] < 0:
            continue
        is_told = False
        for e in range(k, count):
            is_told |= (ends[e, 0] == x and ends[e, 1] == y) or (ends[e, 0] == y and ends[e, 1] == x)
        if not is_told:
            in_story[x] = in_story[y] = True
            count = _add_fact(facts, count, x, y, DISCONNECTED)
            if count == k + wanted:
                break
    return count
