"""Deductive closure of some facts under a set of rules, in compiled code.

The derived relations of an ordered pair of people are a mask: bit r is set if relation r is derived. Facts are added
until nothing new follows: two facts (x, z) and (z, y) add their composition, and one fact adds its inverse.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.clutrr.relations import NUM_RELATIONS
from graphbench.domains.clutrr.rules import rule_set

Integer = int | np.integer[Any]
MASKS = 1 << NUM_RELATIONS
Deduction = tuple[NDArray[np.uint16], NDArray[np.uint16], NDArray[np.uint16]]
"""``after[r1, m]``: the relations that follow from r1 and then any relation of mask m; ``before[r2, m]``: from any
relation of m and then r2; ``back[r]``: the inverse of r. All as masks: ``uint16[11, 2048]`` twice, ``uint16[11]``."""


def deduction_tables(rules: str) -> Deduction:
    """Return the tables with which a set of rules composes masks.

    Raises:
        UnknownRules: If the set of rules is unknown.
    """
    chosen = rule_set(rules)
    heads, back = _bits(chosen.composition_table), _bits(chosen.inverse_table)
    return _of_masks(heads), _of_masks(heads.T), back


def _bits(relation: NDArray[np.int8]) -> NDArray[np.uint16]:
    """Return masks of one bit, 0 where there is no relation."""
    bits = np.left_shift(1, np.maximum(relation, 0), dtype=np.int64)
    return np.where(relation >= 0, bits, 0).astype(np.uint16)


def _of_masks(heads: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return ``table[a, m]``, the union of ``heads[a, b]`` over the bits b of m."""
    has_bit = (np.arange(MASKS)[:, None] >> np.arange(NUM_RELATIONS)) & 1
    table = np.bitwise_or.reduce(np.where(has_bit[None], heads[:, None, :], 0), axis=2)
    return np.ascontiguousarray(table.astype(np.uint16))


@inner
def note(
    derived: NDArray[np.uint16], open_facts: NDArray[np.int64], count: int, x: Integer, y: Integer, mask: Integer
) -> int:
    """Add the relations of ``mask`` to the relations of (x, y), and list the new ones; return the list size."""
    fresh = mask & ~derived[x, y]
    if fresh != 0:
        derived[x, y] |= np.uint16(fresh)
        for r in range(NUM_RELATIONS):
            if (fresh >> r) & 1:
                open_facts[count] = (x * derived.shape[0] + y) * NUM_RELATIONS + r
                count += 1
    return count


@inner
def derive_all(
    derived: NDArray[np.uint16], num_nodes: int, open_facts: NDArray[np.int64], count: int, deduction: Deduction
) -> None:
    """Complete ``derived`` with all that follows from the ``count`` facts listed in ``open_facts``.

    Args:
        derived: ``uint16[N, N]`` masks, in which the listed facts are already set; the first ``num_nodes`` are people.
        num_nodes: Number of people.
        open_facts: ``int64[N * N * 11]``, facts put there by ``note``.
        count: Number of listed facts.
        deduction: The tables from ``deduction_tables``.
    """
    after, before, back = deduction
    width = derived.shape[0]
    while count > 0:
        count -= 1
        pair, r = divmod(open_facts[count], NUM_RELATIONS)
        x, y = divmod(pair, width)
        if back[r] != 0:
            count = note(derived, open_facts, count, y, x, back[r])
        for z in range(num_nodes):
            if z in (x, y):
                continue
            if derived[y, z] != 0:
                count = note(derived, open_facts, count, x, z, after[r, derived[y, z]])
            if derived[z, x] != 0:
                count = note(derived, open_facts, count, z, y, before[r, derived[z, x]])


@kernel
def derivable_masks(
    num_nodes: int, edges: NDArray[np.int64], relation: NDArray[np.int64], deduction: Deduction
) -> NDArray[np.uint16]:
    """Return the derivable relations of every ordered pair of people.

    Args:
        num_nodes: Number of people.
        edges: ``int64[E, 2]``, x and y of every fact.
        relation: ``int64[E]``, relations by number.
        deduction: The tables from ``deduction_tables``.

    Returns:
        ``uint16[N, N]``: bit r of ``[x, y]`` is set if y is derivably the relation r of x; the diagonal is 0.
    """
    derived = np.zeros((num_nodes, num_nodes), np.uint16)
    open_facts = np.empty(num_nodes * num_nodes * NUM_RELATIONS, np.int64)
    count = 0
    for e in range(edges.shape[0]):
        count = note(derived, open_facts, count, edges[e, 0], edges[e, 1], 1 << relation[e])
    derive_all(derived, num_nodes, open_facts, count, deduction)
    return derived
