"""The closed family of the paper's code: the relations that its rules give any two people, true or not.

The rules are applied to the couples and children of a family until nothing new follows. Of two people the first
relation derived stays, so the order matters: pairs are visited by number, before each visit facts are read backwards,
and every new fact is followed at once.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.clutrr.families import FamilyError, FamilyParameters, draw_family
from graphbench.domains.clutrr.relations import CHILD, NO_WORD, SO
from graphbench.domains.clutrr.rules import rule_set


@lru_cache(maxsize=8)
def closed_family(parameters: FamilyParameters) -> NDArray[np.int8]:
    """Return the relations that the paper's rules derive in the one family of some parameters.

    Args:
        parameters: Parameters of a single possible family: the fewest children equal the most, and everyone marries.

    Returns:
        ``int8[N, N]``, read-only: the relation of y to x by the rules in ``[x, y]``; -1 if the rules give none. The
        numbers of people are as in ``draw_family``.

    Raises:
        FamilyError: If the parameters allow more than one family.
    """
    check_is_one_family(parameters)
    closed = _closed(draw_family(parameters, 0).relations)
    closed.flags.writeable = False
    return closed


def check_is_one_family(parameters: FamilyParameters) -> None:
    """Raise where families of some parameters differ.

    Raises:
        FamilyError: If the parameters allow more than one family.
    """
    if parameters.min_children != parameters.max_children or parameters.marriage != 1:
        raise FamilyError(
            f"the paper's rules need one family, but there are {parameters.min_children} to {parameters.max_children} "
            f"children and marriage is {parameters.marriage}; give as many at least as at most, and marriage 1"
        )


def _closed(true: NDArray[np.int8]) -> NDArray[np.int8]:
    rules = rule_set("paper")
    compose, inverse = rules.composition_table, rules.inverse_table
    relation = np.where((true == CHILD) | ((true == SO) & np.triu(np.ones(true.shape, bool))), true, NO_WORD)
    unread = [(x, y) for x, y in np.argwhere(relation >= 0).tolist()]
    for i in range(len(relation)):
        for j in range(len(relation)):
            _read_backwards(relation, inverse, unread)
            open_pairs = [(i, j)] if relation[i, j] >= 0 else []
            while open_pairs:
                new = _followed(relation, compose, *open_pairs.pop())
                unread += new
                open_pairs += new
    return relation


def _read_backwards(relation: NDArray[np.int8], inverse: NDArray[np.int8], unread: list[tuple[int, int]]) -> None:
    """Add the inverses of facts not read so far; the inverse of an asymmetric relation replaces an existing entry."""
    for x, y in unread:
        back = inverse[relation[x, y]]
        if back >= 0 and (back != relation[x, y] or relation[y, x] == NO_WORD):
            relation[y, x] = back
    unread.clear()


def _followed(relation: NDArray[np.int8], compose: NDArray[np.int8], x: int, y: int) -> list[tuple[int, int]]:
    """Compose the fact (x, y) with the facts that end at x or start at y; return the newly related pairs."""
    new = []
    for z in np.flatnonzero(relation[:, x] >= 0).tolist():
        head = compose[relation[z, x], relation[x, y]]
        if head >= 0 and z != y and relation[z, y] == NO_WORD:
            relation[z, y] = head
            new.append((z, y))
    for z in np.flatnonzero(relation[y] >= 0).tolist():
        head = compose[relation[x, y], relation[y, z]]
        if head >= 0 and z != x and relation[x, z] == NO_WORD:
            relation[x, z] = head
            new.append((x, z))
    return new
