"""Random families: trees of monogamous couples, and the true relation of any two people, from the tree itself.

A family starts with a couple. Each of its children marries with a given probability; who marries in is unrelated and
brings nobody along. The couples of every generation but the last have children, and so on. The relation of
two people follows from their parents and spouses:

* siblings have the same parents;
* a sibling-in-law is a sibling of the spouse, or the spouse of a sibling;
* an uncle or aunt is a sibling of a parent, or the spouse of one; nephews and nieces are the other way round.

No two people have two relations, and many have none of the eleven: cousins, great-grandparents, a spouse's uncle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import GraphBenchError
from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below, seed, uniform
from graphbench.domains.clutrr.arguments import key_of, place_of, whole_number
from graphbench.domains.clutrr.relations import (
    CHILD,
    GENDERS,
    GRAND,
    IN_LAW,
    INV_CHILD,
    INV_GRAND,
    INV_IN_LAW,
    INV_UN,
    NEUTRAL,
    NO_WORD,
    SIBLING,
    SIBLING_IN_LAW,
    SO,
    UN,
    WORDS,
)

MAX_PEOPLE = 256
SPOUSE, FATHER, MOTHER, GENERATION, GENDER, FIRST_CHILD, NUM_CHILDREN = range(7)
"""Columns of the array of people: person numbers, -1 for nobody; children have consecutive numbers."""

NUM_COLUMNS = 7
Shape = tuple[int, int, int, float]


class FamilyError(GraphBenchError, ValueError):
    """Parameters that allow no family, or a person that a family does not have."""


@dataclass(frozen=True, slots=True)
class FamilyParameters:
    """The distribution of families.

    Attributes:
        generations: How many, 2 .. 5; the paper's code calls them levels.
        min_children: Fewest children of a couple.
        max_children: Most children of a couple; each number in between is as likely.
        marriage: Probability that somebody born into the family marries.

    Raises:
        FamilyError: If a number is out of range or the largest family would have more than 256 people.
    """

    generations: int = 4
    min_children: int = 1
    max_children: int = 4
    marriage: float = 0.8

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, low, high in (("generations", 2, 5), ("min_children", 0, 127), ("max_children", 1, 127)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise FamilyError(f"{name} is {value!r}; give a whole number from {low} to {high}")
        if self.min_children > self.max_children:
            raise FamilyError(
                f"min_children is {self.min_children}, more than max_children, {self.max_children}; swap them"
            )
        if isinstance(self.marriage, bool) or not isinstance(self.marriage, int | float) or not 0 <= self.marriage <= 1:
            raise FamilyError(f"marriage is {self.marriage!r}; give a probability from 0 to 1")
        if self.most_people > MAX_PEOPLE:
            raise FamilyError(
                f"{self.generations} generations of up to {self.max_children} children are up to {self.most_people} "
                f"people; lower either until there are at most {MAX_PEOPLE}"
            )

    @property
    def most_people(self) -> int:
        """The number of people of the largest family."""
        partners = 1 if self.marriage > 0 else 0
        later = range(1, self.generations) if partners else range(1, 2)
        return 2 + sum((1 + partners) * self.max_children**level for level in later)

    @property
    def shape(self) -> Shape:
        """The four numbers, as compiled functions take them."""
        return self.generations, self.min_children, self.max_children, float(self.marriage)


PAPER_FAMILY = FamilyParameters(generations=3, min_children=4, max_children=4, marriage=1.0)
"""The family of the paper's code: 42 people."""


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One family; people are numbers from 0.

    Attributes:
        spouse: ``int64[N]``, -1 for nobody.
        father: ``int64[N]``, -1 for nobody.
        mother: ``int64[N]``, -1 for nobody.
        generation: ``int64[N]``, 0 for the first couple; people who marry in have the generation of their spouse.
        gender: ``int64[N]``, 0 male, 1 female.
        relations: ``int8[N, N]``: number of the relation of y to x in ``[x, y]``; -1 where no word fits.
    """

    spouse: NDArray[np.int64]
    father: NDArray[np.int64]
    mother: NDArray[np.int64]
    generation: NDArray[np.int64]
    gender: NDArray[np.int64]
    relations: NDArray[np.int8]

    def __len__(self) -> int:
        """Return the number of people."""
        return len(self.spouse)

    def relation(self, x: int, y: int) -> str | None:
        """Return the relation of y to x, without gender; None if no relation fits.

        Raises:
            FamilyError: If the family does not have this person.
        """
        number = self._number(x, y)
        return None if number == NO_WORD else NEUTRAL[number]

    def word(self, x: int, y: int) -> str | None:
        """Return the word by which x calls y; None if no word fits.

        Raises:
            FamilyError: If the family does not have this person.
        """
        number = self._number(x, y)
        return None if number == NO_WORD else WORDS[2 * number + self.gender[y]]

    def gender_of(self, x: int) -> str:
        """Return ``male`` or ``female``.

        Raises:
            FamilyError: If the family does not have this person.
        """
        return GENDERS[self.gender[self._checked(x)]]

    def children(self, x: int) -> list[int]:
        """Return the children of a person.

        Raises:
            FamilyError: If the family does not have this person.
        """
        self._checked(x)
        return np.flatnonzero((self.father == x) | (self.mother == x)).tolist()

    def _number(self, x: int, y: int) -> int:
        return int(self.relations[self._checked(x), self._checked(y)])

    def _checked(self, x: int) -> int:
        person = whole_number(x)
        if person is None or not 0 <= person < len(self):
            raise FamilyError(f"the family has no person {x!r}; give a number from 0 to {len(self) - 1}")
        return person


def draw_family(parameters: FamilyParameters, key: int, index: int = 0, attempt: int = 0, stream: int = 0) -> Family:
    """Return the family that a generator draws first.

    Args:
        parameters: The distribution of families.
        key: Key of a split, from 0 to 2**64 - 1.
        index: Position in the split.
        attempt: 0, or more for redraws.
        stream: Number of the random stream among the streams of this sample.

    Raises:
        FamilyError: If an argument is not a whole number in its range.
    """
    numbers = {"index": index, "attempt": attempt, "stream": stream}
    position, redraw, generator = (place_of(name, value, FamilyError) for name, value in numbers.items())
    shape, max_people = parameters.shape, parameters.most_people
    people, relations = _draw_one(key_of(key, FamilyError), position, redraw, generator, shape, max_people)
    columns = {name: people[:, c].copy() for name, c in _COLUMN_OF.items()}
    return Family(**columns, relations=relations)


_COLUMN_OF = {"spouse": SPOUSE, "father": FATHER, "mother": MOTHER, "generation": GENERATION, "gender": GENDER}


@inner
def _add_person(people: NDArray[np.int64], person: int, generation: int, gender: int) -> None:
    for column in (SPOUSE, FATHER, MOTHER, FIRST_CHILD):
        people[person, column] = -1
    people[person, GENERATION] = generation
    people[person, GENDER] = gender
    people[person, NUM_CHILDREN] = 0


@inner
def draw_people(state: NDArray[np.uint64], shape: Shape, people: NDArray[np.int64]) -> int:
    """Draw a family and return its number of people.

    Args:
        state: The generator.
        shape: Generations, fewest and most children, probability of marriage.
        people: ``int64[most people, 7]``, filled.
    """
    generations, min_children, max_children, marriage = shape
    _add_person(people, 0, 0, 0)
    first, num_people = 0, 1
    for generation in range(generations):
        last = num_people
        for person in range(first, last):
            if people[person, SPOUSE] >= 0 or (generation > 0 and uniform(state) >= marriage):
                continue
            partner = num_people
            _add_person(people, partner, generation, 1 - people[person, GENDER])
            people[person, SPOUSE], people[partner, SPOUSE] = partner, person
            num_people += 1
            if generation + 1 < generations:
                num_people = _add_children(state, person, min_children, max_children, people, num_people)
        first = last
    return num_people


@inner
def _add_children(
    state: NDArray[np.uint64],
    person: int,
    min_children: int,
    max_children: int,
    people: NDArray[np.int64],
    num_people: int,
) -> int:
    """Give a married person children, and return the number of people then."""
    partner = people[person, SPOUSE]
    father, mother = (person, partner) if people[person, GENDER] == 0 else (partner, person)
    count = min_children + below(state, max_children - min_children + 1)
    for parent in (person, partner):
        people[parent, FIRST_CHILD] = num_people
        people[parent, NUM_CHILDREN] = count
    for child in range(num_people, num_people + count):
        _add_person(people, child, people[person, GENERATION] + 1, below(state, 2))
        people[child, FATHER], people[child, MOTHER] = father, mother
    return num_people + count


@inner
def _set_both(matrix: NDArray[np.int8], x: int, y: int, relation: int, back: int) -> None:
    matrix[x, y] = relation
    matrix[y, x] = back


@inner
def relate(people: NDArray[np.int64], num_people: int, matrix: NDArray[np.int8]) -> None:
    """Fill ``matrix[x, y]`` with the true relation of y to x, -1 where no word fits."""
    for x in range(num_people):
        for y in range(num_people):
            matrix[x, y] = NO_WORD
    for x in range(num_people):
        spouse = people[x, SPOUSE]
        if spouse >= 0:
            matrix[x, spouse] = SO
        if people[x, FATHER] < 0:
            continue
        for column in (FATHER, MOTHER):
            parent = people[x, column]
            _set_both(matrix, x, parent, INV_CHILD, CHILD)
            if spouse >= 0:
                _set_both(matrix, spouse, parent, INV_IN_LAW, IN_LAW)
            if people[parent, FATHER] >= 0:
                _relate_across(people, x, parent, matrix)
        for sibling in _siblings(people, x):
            if sibling != x:
                matrix[x, sibling] = SIBLING
                if spouse >= 0:
                    _set_both(matrix, spouse, sibling, SIBLING_IN_LAW, SIBLING_IN_LAW)


@inner
def _siblings(people: NDArray[np.int64], x: int) -> range:
    """Return the children of the parents of x, x among them."""
    father = people[x, FATHER]
    first = people[father, FIRST_CHILD]
    return range(first, first + people[father, NUM_CHILDREN])


@inner
def _relate_across(people: NDArray[np.int64], x: int, parent: int, matrix: NDArray[np.int8]) -> None:
    """Relate x to the parents of one of its parents, and to that parent's siblings and their spouses."""
    _set_both(matrix, x, people[parent, FATHER], INV_GRAND, GRAND)
    _set_both(matrix, x, people[parent, MOTHER], INV_GRAND, GRAND)
    for uncle in _siblings(people, parent):
        if uncle != parent:
            _set_both(matrix, x, uncle, INV_UN, UN)
            if people[uncle, SPOUSE] >= 0:
                _set_both(matrix, x, people[uncle, SPOUSE], INV_UN, UN)


@kernel
def _draw_one(
    key: np.uint64, index: int, attempt: int, stream: int, shape: Shape, most_people: int
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    people = np.empty((most_people, NUM_COLUMNS), np.int64)
    num_people = draw_people(seed(key, index, attempt, stream), shape, people)
    matrix = np.empty((num_people, num_people), np.int8)
    relate(people, num_people, matrix)
    return people[:num_people].copy(), matrix
