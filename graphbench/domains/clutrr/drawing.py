"""Whole batches of puzzles in one compiled function."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below, seed, shuffle
from graphbench.domains.clutrr.chaining import Groundings, chain_backward, draw_question
from graphbench.domains.clutrr.deduction import Deduction, derive_all, note
from graphbench.domains.clutrr.families import GENDER, NUM_COLUMNS, Shape, draw_people, relate
from graphbench.domains.clutrr.noise import PATH, Facts, add_noise
from graphbench.domains.clutrr.relations import NO_WORD, NUM_RELATIONS, NUM_WORDS

MOST_DRAWS = 1 << 17
DRAWS_PER_RELATION = 64
QUESTION_STREAM, STORY_STREAM = 1 << 20, 1 << 21
"""Draw d of a sample has the stream ``STORY_STREAM + d``; streams below ``1 << 20`` are free for other uses."""

ANY, AVOID, ONLY = range(3)
NUM_NODES, NUM_FACTS, ASKER, ASKED, ANSWER, CLAUSE, DRAW = range(7)
"""Columns of the array of puzzles."""


class Task(NamedTuple):
    """The distribution of the puzzles to draw.

    Attributes:
        k: Number of facts of the path.
        noise: Role of the noise, 0 for none.
        most_nodes: Most people of a story.
        most_facts: Most facts of a story.
        shape: Generations, fewest and most children, probability of marriage.
        most_people: Size of the largest family.
        closed: ``int8[N, N]`` relations to be told instead of the true ones; ``int8[0, 0]`` for none.
        composition: ``int8[11, 11]``, the rules.
        deduction: Their tables.
        listed: ``int64[L]`` codes of clauses, sorted; of words where k is 2, of relations otherwise.
        mode: ``ANY``, or ``AVOID`` or ``ONLY`` the clauses listed.
    """

    k: int
    noise: int
    most_nodes: int
    most_facts: int
    shape: Shape
    most_people: int
    closed: NDArray[np.int8]
    composition: NDArray[np.int8]
    deduction: Deduction
    listed: NDArray[np.int64]
    mode: int


class Desk(NamedTuple):
    """Scratch arrays that every draw fills anew: the family, the story, and the derived relations."""

    people: NDArray[np.int64]
    relations: NDArray[np.int8]
    groundings: Groundings
    path: NDArray[np.int64]
    in_story: NDArray[np.bool_]
    facts: Facts
    members: NDArray[np.int64]
    node_of: NDArray[np.int64]
    order: NDArray[np.int64]
    derived: NDArray[np.uint16]
    open_facts: NDArray[np.int64]


@inner
def _set_up(task: Task) -> Desk:
    most_people, most_nodes, most_facts = task.most_people, task.most_nodes, task.most_facts
    return Desk(
        np.empty((most_people, NUM_COLUMNS), np.int64),
        np.empty((most_people, most_people), np.int8) if task.closed.shape[0] == 0 else task.closed,
        (np.empty(most_people, np.int64), np.empty(most_people, np.int64), np.empty(NUM_RELATIONS**2, np.int64)),
        np.empty(task.k + 1, np.int64),
        np.empty(most_people, np.bool_),
        (np.empty((most_facts, 2), np.int64), np.empty(most_facts, np.int64), np.empty(most_facts, np.int64)),
        np.empty(most_people, np.int64),
        np.empty(most_people, np.int64),
        np.empty(most_facts, np.int64),
        np.empty((most_nodes, most_nodes), np.uint16),
        np.empty(most_nodes * most_nodes * NUM_RELATIONS, np.int64),
    )


@inner
def _clause(desk: Desk, k: int, gendered: bool) -> int:
    """Return the path as a number in base 11 (relations) or 22 (words), with the first fact as the highest digit."""
    code = 0
    for i in range(k):
        x, y = desk.path[i], desk.path[i + 1]
        if gendered:
            code = code * NUM_WORDS + 2 * desk.relations[x, y] + desk.people[y, GENDER]
        else:
            code = code * NUM_RELATIONS + desk.relations[x, y]
    return code


@inner
def _is_wanted(clause: int, listed: NDArray[np.int64], mode: int) -> bool:
    if mode == ANY:
        return True
    low, high = 0, listed.shape[0]
    while low < high:
        middle = (low + high) // 2
        if listed[middle] < clause:
            low = middle + 1
        else:
            high = middle
    is_listed = low < listed.shape[0] and listed[low] == clause
    return is_listed == (mode == ONLY)


@inner
def _number_people(state: NDArray[np.uint64], desk: Desk, num_people: int) -> int:
    """Give the people of a story their node numbers, at random, and return how many they are."""
    count = 0
    for person in range(num_people):
        if desk.in_story[person]:
            desk.members[count] = person
            count += 1
    shuffle(state, desk.members[:count])
    for node in range(count):
        desk.node_of[desk.members[node]] = node
    return count


@inner
def _order_facts(desk: Desk, num_facts: int) -> None:
    """Order the facts by the numbers of their people."""
    ends, node_of, order = desk.facts[0], desk.node_of, desk.order
    for e in range(num_facts):
        u, v = node_of[ends[e, 0]], node_of[ends[e, 1]]
        at = e
        while at > 0:
            other = order[at - 1]
            a, b = node_of[ends[other, 0]], node_of[ends[other, 1]]
            if a < u or (a == u and b < v):
                break
            order[at] = other
            at -= 1
        order[at] = e


@inner
def _has_one_answer(task: Task, desk: Desk, num_nodes: int, num_facts: int) -> bool:
    """Return whether the rules derive the answer, and nothing else, for the two people of the question."""
    ends, node_of, derived, open_facts = desk.facts[0], desk.node_of, desk.derived, desk.open_facts
    for u in range(num_nodes):
        for v in range(num_nodes):
            derived[u, v] = 0
    num_open = 0
    for e in range(num_facts):
        x, y = ends[e, 0], ends[e, 1]
        num_open = note(derived, open_facts, num_open, node_of[x], node_of[y], np.uint16(1 << desk.relations[x, y]))
    derive_all(derived, num_nodes, open_facts, num_open, task.deduction)
    x, y = desk.path[0], desk.path[task.k]
    return derived[node_of[x], node_of[y]] == 1 << desk.relations[x, y]


@inner
def _tell(state: NDArray[np.uint64], task: Task, wanted: int, desk: Desk) -> tuple[int, int]:
    """Draw a family and a story of it, and return the story's numbers of people and facts; (0, 0) if it does not fit.

    Args:
        state: The generator.
        task: The distribution of the puzzles.
        wanted: Relation to ask for, or -1 for any.
        desk: Filled.
    """
    k, path = task.k, desk.path
    num_people = draw_people(state, task.shape, desk.people)
    if task.closed.shape[0] == 0:
        relate(desk.people, num_people, desk.relations)
    desk.in_story[:] = False
    if not draw_question(state, desk.relations, num_people, wanted, path):
        return 0, 0
    if not chain_backward(
        state, k, desk.relations, num_people, desk.in_story, task.composition, path, desk.groundings
    ) or not _is_wanted(_clause(desk, k, k == 2), task.listed, task.mode):
        return 0, 0
    ends, roles, steps = desk.facts
    for i in range(k):
        ends[i, 0], ends[i, 1] = path[i], path[i + 1]
        roles[i], steps[i] = PATH, i
    num_facts = k
    if task.noise != PATH:
        num_facts = add_noise(
            state,
            task.noise,
            k,
            path,
            desk.relations,
            num_people,
            desk.in_story,
            task.composition,
            desk.groundings,
            desk.facts,
        )
        if num_facts == k:
            return 0, 0
    num_nodes = _number_people(state, desk, num_people)
    return (num_nodes, num_facts) if _has_one_answer(task, desk, num_nodes, num_facts) else (0, 0)


@inner
def _write(
    desk: Desk,
    k: int,
    puzzle: NDArray[np.int64],
    nodes: NDArray[np.int64],
    edges: NDArray[np.int64],
    labels: NDArray[np.int64],
) -> None:
    """Write a story where it belongs: one row of ``puzzle`` and rows of the others, from their first one on."""
    people, relations, node_of = desk.people, desk.relations, desk.node_of
    ends, roles, steps = desk.facts
    for node in range(puzzle[NUM_NODES]):
        nodes[node, 0] = desk.members[node]
        nodes[node, 1] = people[desk.members[node], GENDER]
    _order_facts(desk, puzzle[NUM_FACTS])
    for e in range(puzzle[NUM_FACTS]):
        fact = desk.order[e]
        x, y = ends[fact, 0], ends[fact, 1]
        edges[e, 0], edges[e, 1] = node_of[x], node_of[y]
        labels[e, 0] = 2 * relations[x, y] + people[y, GENDER]
        labels[e, 1], labels[e, 2] = roles[fact], steps[fact]
    asker, asked = desk.path[0], desk.path[k]
    puzzle[ASKER], puzzle[ASKED] = node_of[asker], node_of[asked]
    puzzle[ANSWER] = 2 * relations[asker, asked] + people[asked, GENDER]
    puzzle[CLAUSE] = _clause(desk, k, False)


@kernel
def draw_batch(
    key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64], task: Task
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Draw one puzzle per sample; draw d of a sample is from ``seed(key, index, attempt, STORY_STREAM + d)``.

    Where the relations told are the true ones, a relation to ask for is drawn first, and kept for 64 draws of a family
    and a story: so it tells nothing about how hard it is to find a story. Otherwise each draw asks for any two people.

    Arguments are not checked here: see ``puzzles.draw_puzzles``.

    Args:
        key: Key of the split, ``uint64``.
        indices: ``int64[S]`` positions in the split.
        attempts: ``int64[S]``, 0 for a first draw.
        task: The distribution of the puzzles.

    Returns:
        ``puzzle`` (``int64[S, 7]``: number of people, of facts, asker, asked, word of the answer, clause, draw),
        ``nodes`` (``int64[V, 2]``: number in the family, gender), ``edges`` (``int64[E, 2]``) and ``labels``
        (``int64[E, 3]``: word, role, position on the path). If no draw fits, the number of people is 0 and nothing
        comes after it.
    """
    num_puzzles = indices.shape[0]
    desk = _set_up(task)
    puzzle = np.zeros((num_puzzles, 7), np.int64)
    nodes = np.empty((num_puzzles * task.most_nodes, 2), np.int64)
    edges = np.empty((num_puzzles * task.most_facts, 2), np.int64)
    labels = np.empty((num_puzzles * task.most_facts, 3), np.int64)
    num_nodes, num_facts, wanted = 0, 0, NO_WORD
    for s in range(num_puzzles):
        for draw in range(MOST_DRAWS):
            if draw % DRAWS_PER_RELATION == 0 and task.closed.shape[0] == 0:
                wanted = below(seed(key, indices[s], attempts[s], QUESTION_STREAM + draw), NUM_RELATIONS)
            state = seed(key, indices[s], attempts[s], STORY_STREAM + draw)
            puzzle[s, NUM_NODES], puzzle[s, NUM_FACTS] = _tell(state, task, wanted, desk)
            if puzzle[s, NUM_NODES] > 0:
                puzzle[s, DRAW] = draw
                break
        if puzzle[s, NUM_NODES] == 0:
            break
        _write(desk, task.k, puzzle[s], nodes[num_nodes:], edges[num_facts:], labels[num_facts:])
        num_nodes += puzzle[s, NUM_NODES]
        num_facts += puzzle[s, NUM_FACTS]
    return puzzle, nodes[:num_nodes].copy(), edges[:num_facts].copy(), labels[:num_facts].copy()
