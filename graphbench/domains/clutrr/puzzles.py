"""Puzzles: the facts of a story as a directed graph, and a question with one answer (paper, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import GraphBenchError
from graphbench.domains.clutrr.arguments import key_of, places_of, whole_number
from graphbench.domains.clutrr.clauses import (
    LONGEST_LISTED,
    Clause,
    check_share,
    clause_of,
    default_family,
    held_out_codes,
    told_relations,
)
from graphbench.domains.clutrr.deduction import deduction_tables
from graphbench.domains.clutrr.drawing import (
    ANSWER,
    ASKED,
    ASKER,
    CLAUSE,
    DRAW,
    MOST_DRAWS,
    NUM_FACTS,
    NUM_NODES,
    Task,
    draw_batch,
)
from graphbench.domains.clutrr.families import FamilyParameters
from graphbench.domains.clutrr.noise import NOISES, PATH, ROLES, most_noise
from graphbench.domains.clutrr.paper_family import check_is_one_family
from graphbench.domains.clutrr.relations import GENDERS, NEUTRAL, WORDS
from graphbench.domains.clutrr.rules import rule_set

LONGEST = 10
MODES = ("any", "avoid", "only")


class PuzzleError(GraphBenchError, ValueError):
    """Parameters that allow no puzzle."""


@dataclass(frozen=True, slots=True)
class PuzzleParameters:
    """The distribution of the puzzles to draw.

    Attributes:
        k: Number of facts on the path, 2 .. 10.
        rules: ``sound`` or ``paper``. With ``paper``, stories tell the relations that its rules give its single family.
        noise: ``none``, ``supporting``, ``irrelevant`` or ``disconnected``.
        family: The distribution of families; ``default_family(rules)`` if None.
        held_out: ``any`` clause, ``avoid`` the clauses that ``held_out`` lists, or ``only`` these clauses (k up to 4).
        share: Share of the clauses held out.
        held_out_seed: Seed of their choice.

    Raises:
        PuzzleError: If a value is out of range, or no family has as many people as a story needs.
        ClauseError: If the share is out of range.
        UnknownRules: If the set of rules is unknown.
        FamilyError: If the paper's rules are given families that differ.
    """

    k: int
    rules: str = "sound"
    noise: str = "none"
    family: FamilyParameters | None = None
    held_out: str = "any"
    share: float = 0.1
    held_out_seed: int = 0

    def __post_init__(self) -> None:
        """Check the values."""
        if not isinstance(self.k, int) or isinstance(self.k, bool) or not 2 <= self.k <= LONGEST:
            raise PuzzleError(f"k is {self.k!r}; give a whole number of facts from 2 to {LONGEST}")
        rule_set(self.rules)
        for name, value, choices in (("noise", self.noise, NOISES), ("held_out", self.held_out, MODES)):
            if value not in choices:
                raise PuzzleError(f"{name} is {value!r}; give one of {', '.join(choices)}")
        if self.held_out != "any" and self.k > LONGEST_LISTED:
            raise PuzzleError(
                f"held_out is {self.held_out!r} for k = {self.k}; clauses are held out of up to {LONGEST_LISTED} facts"
            )
        needed = self.k + 1 + {"none": 0, "disconnected": 2}.get(self.noise, 1)
        most = self.families.most_people
        if most < needed:
            raise PuzzleError(
                f"k = {self.k} with noise {self.noise!r} needs {needed} people, but a family has at most {most}; "
                "allow more generations or children, or lower k"
            )
        if self.rules == "paper":
            check_is_one_family(self.families)
        check_share(self.share)
        if self.held_out == "only" and self.share == 0:
            raise PuzzleError(f"held_out is 'only', but a share of {self.share} holds nothing out; raise it")

    @property
    def families(self) -> FamilyParameters:
        """The distribution of families."""
        return self.family or default_family(self.rules)

    @property
    def listed(self) -> NDArray[np.int64]:
        """Sorted numbers of the held-out walks (k = 2) or clauses (other k), ``int64[L]``."""
        if self.held_out == "any":
            return np.empty(0, np.int64)
        return held_out_codes(self.rules, self.k, self.share, self.held_out_seed, self.families)


@dataclass(frozen=True, slots=True)
class Puzzle:
    """One puzzle; people are numbers from 0.

    Attributes:
        facts: (x, y, word): y is the word of x; sorted.
        roles: Per fact ``path``, ``supporting``, ``irrelevant`` or ``disconnected``.
        steps: Per fact its position on the path, from 0; -1 for noise.
        genders: Per person ``male`` or ``female``.
        query: (x, y): what is y to x?
        answer: The word.
        clause: The relations along the path, without gender.
    """

    facts: tuple[tuple[int, int, str], ...]
    roles: tuple[str, ...]
    steps: tuple[int, ...]
    genders: tuple[str, ...]
    query: tuple[int, int]
    answer: str
    clause: Clause

    @property
    def edges(self) -> tuple[tuple[int, int, str], ...]:
        """The facts without gender, as ``solve`` takes them."""
        return tuple((x, y, NEUTRAL[WORDS.index(word) // 2]) for x, y, word in self.facts)

    @property
    def path(self) -> tuple[tuple[int, int, str], ...]:
        """The facts of the path, in order."""
        steps = {step: fact for step, fact in zip(self.steps, self.facts, strict=True) if step >= 0}
        return tuple(steps[i] for i in range(len(steps)))


@dataclass(frozen=True)
class Puzzles:
    """A batch of puzzles as flat arrays, with the people and facts of one puzzle after another.

    Attributes:
        k: Number of facts on each path.
        num_nodes: ``int64[S]``, people per puzzle, V in all.
        num_edges: ``int64[S]``, facts per puzzle, E in all.
        edges: ``int32[E, 2]``, people x and y of every fact, numbered within the puzzle; sorted by (x, y).
        relation: ``int8[E]``, class number of the word by which y is called as seen from x.
        role: ``int8[E]``: 0 path, 1 supporting, 2 irrelevant, 3 disconnected.
        step: ``int8[E]``, position on the path, from 0; -1 for noise.
        gender: ``int8[V]``: 0 male, 1 female.
        member: ``int16[V]``, number of the person in the family.
        asker: ``int64[S]``, number of the asking person.
        asked: ``int64[S]``, number of the asked person.
        answer: ``int8[S]``, class number of the word by which ``asked`` is called as seen from ``asker``.
        clause: ``int64[S]``, the relations along the path as ``clause_code`` writes them.
        draw: ``int64[S]``, number of the draw: the family comes from stream ``STORY_STREAM + draw``.
    """

    k: int
    num_nodes: NDArray[np.int64]
    num_edges: NDArray[np.int64]
    edges: NDArray[np.int32]
    relation: NDArray[np.int8]
    role: NDArray[np.int8]
    step: NDArray[np.int8]
    gender: NDArray[np.int8]
    member: NDArray[np.int16]
    asker: NDArray[np.int64]
    asked: NDArray[np.int64]
    answer: NDArray[np.int8]
    clause: NDArray[np.int64]
    draw: NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        """Return the number of puzzles."""
        return len(self.num_nodes)

    @cached_property
    def node_ptr(self) -> NDArray[np.int64]:
        """int64 ``[S + 1]``: the people of puzzle ``i`` are rows ``node_ptr[i]:node_ptr[i + 1]``."""
        return np.concatenate([[0], np.cumsum(self.num_nodes)])

    @cached_property
    def edge_ptr(self) -> NDArray[np.int64]:
        """int64 ``[S + 1]``: the facts of puzzle ``i`` are rows ``edge_ptr[i]:edge_ptr[i + 1]``."""
        return np.concatenate([[0], np.cumsum(self.num_edges)])

    def __getitem__(self, i: int) -> Puzzle:
        """Return one puzzle.

        Raises:
            IndexError: If ``i`` is out of range.
            TypeError: If ``i`` is not a whole number.
        """
        number = whole_number(i)
        if number is None:
            raise TypeError(f"puzzle {i!r} of {len(self)}: give a whole number")
        if not -len(self) <= number < len(self):
            raise IndexError(f"puzzle {number} of {len(self)}: give a whole number from 0 to {len(self) - 1}")
        i = number % len(self)
        nodes, edges = slice(*self.node_ptr[i : i + 2]), slice(*self.edge_ptr[i : i + 2])
        ends, words = self.edges[edges].tolist(), self.relation[edges].tolist()
        return Puzzle(
            facts=tuple((x, y, WORDS[word]) for (x, y), word in zip(ends, words, strict=True)),
            roles=tuple(ROLES[role] for role in self.role[edges]),
            steps=tuple(self.step[edges].tolist()),
            genders=tuple(GENDERS[gender] for gender in self.gender[nodes]),
            query=(int(self.asker[i]), int(self.asked[i])),
            answer=WORDS[self.answer[i]],
            clause=clause_of(int(self.clause[i]), self.k),
        )

    def __iter__(self) -> Iterator[Puzzle]:
        """Yield the puzzles one by one."""
        return (self[i] for i in range(len(self)))


def draw_puzzles(
    parameters: PuzzleParameters, key: int, indices: NDArray[Any], attempts: NDArray[Any] | None = None
) -> Puzzles:
    """Draw one puzzle per index; each is a function of (parameters, key, index, attempt) alone.

    Args:
        parameters: The distribution of the puzzles.
        key: Key of the split, from 0 to 2**64 - 1.
        indices: ``int[S]`` positions in the split.
        attempts: ``int[S]``, 0 for a first draw; None if all are first draws.

    Raises:
        PuzzleError: If a puzzle fits into none of 131,072 families, the key, an index or an attempt is not a whole
            number in its range, or the numbers of attempts and indices differ.
    """
    split_key, positions = key_of(key, PuzzleError), places_of("indices", indices, PuzzleError)
    tries = np.zeros_like(positions) if attempts is None else places_of("attempts", attempts, PuzzleError)
    if positions.shape != tries.shape:
        raise PuzzleError(f"indices and attempts have shapes {positions.shape} and {tries.shape}; give one of each")
    puzzle, nodes, edges, labels = draw_batch(split_key, positions, tries, _task(parameters))
    if not puzzle[:, NUM_NODES].all():
        family = parameters.families
        raise PuzzleError(
            f"no puzzle with k = {parameters.k}, rules {parameters.rules!r}, noise {parameters.noise!r} and held_out "
            f"{parameters.held_out!r} fits into {MOST_DRAWS} families of {family}; "
            "allow more generations, children or marriages, or lower k"
        )
    columns = np.ascontiguousarray(puzzle.T)
    return Puzzles(
        k=parameters.k,
        num_nodes=columns[NUM_NODES],
        num_edges=columns[NUM_FACTS],
        edges=edges.astype(np.int32),
        relation=labels[:, 0].astype(np.int8),
        role=labels[:, 1].astype(np.int8),
        step=labels[:, 2].astype(np.int8),
        gender=nodes[:, 1].astype(np.int8),
        member=nodes[:, 0].astype(np.int16),
        asker=columns[ASKER],
        asked=columns[ASKED],
        answer=columns[ANSWER].astype(np.int8),
        clause=columns[CLAUSE],
        draw=columns[DRAW],
    )


@lru_cache(maxsize=64)
def _task(parameters: PuzzleParameters) -> Task:
    family = parameters.families
    facts, people = most_noise(parameters.k, parameters.noise)
    return Task(
        k=parameters.k,
        noise=PATH if parameters.noise == "none" else ROLES.index(parameters.noise),
        most_nodes=min(parameters.k + 1 + people, family.most_people),
        most_facts=parameters.k + facts,
        shape=family.shape,
        most_people=family.most_people,
        closed=told_relations(parameters.rules, family),
        composition=rule_set(parameters.rules).composition_table,
        deduction=deduction_tables(parameters.rules),
        listed=parameters.listed,
        mode=MODES.index(parameters.held_out),
    )
