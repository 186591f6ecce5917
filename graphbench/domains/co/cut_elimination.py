"""The heaviest cut of a sparse graph, exactly: branching over hubs, elimination of the rest.

If the sides of all hubs are given, elimination (`elimination_plan`) finds the best sides of the other nodes. If only
some sides are given, every edge to another hub gets a separate copy of this hub, which may choose a side independently
of the other copies. The value is then an upper bound, and a branch ends if its bound is no better than the best cut so
far. (The preference of a hub that follows from the given hubs is divided among its copies, which tightens the bound.)
Branches of one depth are bounded together in batches of 32: every table holds 32 values side by side, which a
processor handles in one instruction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.co.elimination_plan import Plan

LANES = 32
MOST_WEIGHT = 8_000  # sum of all weights: tables hold int16
_START_HUBS = 6  # bounds with fewer hubs given hardly ever end a branch


class _Tables(NamedTuple):
    """Working memory, one column per lane."""

    all: NDArray[np.int16]  # [rows of all tables, LANES]
    zero: NDArray[np.int16]  # [2 ** width, LANES] best values with the node on side 0
    one: NDArray[np.int16]  # the same for side 1
    on_zero: NDArray[np.int16]  # [k, LANES] contributions of the hubs to a node on side 0
    on_both: NDArray[np.int16]  # [k, LANES] the sum of this and the same for side 1
    total: NDArray[np.int64]  # [LANES]


@inner
def _make_tables(plan: Plan) -> _Tables:
    k, width = plan.scope.shape
    return _Tables(
        np.zeros((plan.start[k], LANES), np.int16),
        np.zeros((1 << width, LANES), np.int16),
        np.zeros((1 << width, LANES), np.int16),
        np.zeros((k, LANES), np.int16),
        np.zeros((k, LANES), np.int16),
        np.zeros(LANES, np.int64),
    )


@inner
def _give_side(plan: Plan, a: int, bit: NDArray[np.int16], tables: _Tables) -> None:
    """Add the contributions of hub a, on side ``bit[lane]``, to its neighbours."""
    near, weights, on_zero, on_both = plan.hub_near, plan.hub_weight, tables.on_zero, tables.on_both
    for row in range(plan.hub_first[a], plan.hub_first[a + 1]):
        i, weight = near[row], np.int16(weights[row])
        for lane in range(LANES):
            on_zero[i, lane] += weight * bit[lane]
        for lane in range(LANES):
            on_both[i, lane] += weight


@inner
def _give_copies(plan: Plan, a: int, liked: NDArray[np.int16], share: NDArray[np.int16], tables: _Tables) -> None:
    """Add the maximal contributions of copies of hub a; each copy gets ``share`` on the side ``liked``."""
    near, weights, on_zero, on_both = plan.hub_near, plan.hub_weight, tables.on_zero, tables.on_both
    for row in range(plan.hub_first[a], plan.hub_first[a + 1]):
        i, weight, nothing = near[row], np.int16(weights[row]), np.int16(0)
        for lane in range(LANES):
            there = max(share[lane], weight)  # for a neighbour on the side the copy likes
            across = max(share[lane] + weight, nothing)
            on_zero[i, lane] += across if liked[lane] == 1 else there
            on_both[i, lane] += there + across


@inner
def _give(plan: Plan, prefixes: NDArray[np.int64], fixed: int, tables: _Tables) -> None:
    """Write the contributions of the hubs if the first ``fixed`` hubs have the sides of the bits of each prefix."""
    between = plan.between
    bit = np.empty(LANES, np.int16)
    share = np.empty(LANES, np.int16)
    tables.on_zero[:] = 0
    tables.on_both[:] = 0
    for lane in range(LANES):
        tables.total[lane] = 0
    for a in range(plan.hubs.shape[0]):
        copies = plan.hub_first[a + 1] - plan.hub_first[a]
        for lane in range(LANES):
            on_zero = on_one = 0  # contributions of earlier hubs to hub a
            for b in range(a):
                weight = between[a, b]
                if b >= fixed:
                    tables.total[lane] += max(weight, 0)
                elif (prefixes[lane] >> b) & 1 == 1:
                    on_zero += weight
                else:
                    on_one += weight
            if a < fixed:
                bit[lane] = (prefixes[lane] >> a) & 1
                tables.total[lane] += on_one if bit[lane] == 1 else on_zero
            else:
                bit[lane] = 1 if on_one > on_zero else 0
                surplus = abs(on_one - on_zero)
                share[lane] = surplus // max(copies, 1)
                tables.total[lane] += min(on_one, on_zero) + surplus - share[lane] * copies
        if a < fixed:
            _give_side(plan, a, bit, tables)
        else:
            _give_copies(plan, a, bit, share, tables)


@inner
def _eliminate(plan: Plan, tables: _Tables) -> None:
    """Add to ``tables.total`` the best value of the eliminated nodes, in every lane."""
    every, zero, one, on_zero, on_both = tables.all, tables.zero, tables.one, tables.on_zero, tables.on_both
    maps, size, start, edge_weights = plan.maps, plan.size, plan.start, plan.weight
    for i in range(plan.order.shape[0]):
        rows = 1 << size[i]
        for lane in range(LANES):
            zero[0, lane] = on_zero[i, lane]
        weights = np.int16(0)
        filled = 1
        for b in range(size[i]):
            weight = np.int16(edge_weights[i, b])
            weights += weight
            for row in range(filled):
                for lane in range(LANES):
                    zero[filled + row, lane] = zero[row, lane] + weight
            filled *= 2
        for row in range(rows):
            for lane in range(LANES):
                one[row, lane] = on_both[i, lane] + weights - zero[row, lane]
        for c in range(plan.first_child[i], plan.first_child[i + 1]):
            child = plan.child[c]
            begin, half, row_map = start[child], 1 << (size[child] - 1), plan.first_map[child]
            for row in range(rows):
                source = begin + maps[row_map + row]
                for lane in range(LANES):
                    zero[row, lane] += every[source, lane]
                for lane in range(LANES):
                    one[row, lane] += every[source + half, lane]
        begin = start[i]
        for row in range(rows):
            for lane in range(LANES):
                every[begin + row, lane] = max(zero[row, lane], one[row, lane])
        if rows == 1:
            for lane in range(LANES):
                tables.total[lane] += every[begin, lane]


@inner
def _sides(plan: Plan, prefix: int, tables: _Tables) -> NDArray[np.bool_]:
    """Return the best sides of all nodes for given sides of the hubs, from the tables of lane 0."""
    k = plan.order.shape[0]
    by_position = np.zeros(k, np.int64)
    result = np.zeros(k + plan.hubs.shape[0], np.bool_)
    for i in range(k - 1, -1, -1):
        zero = np.int64(tables.on_zero[i, 0])
        one = np.int64(tables.on_both[i, 0]) - zero
        for b in range(plan.size[i]):
            if by_position[plan.scope[i, b]] == 1:
                zero += plan.weight[i, b]
            else:
                one += plan.weight[i, b]
        for c in range(plan.first_child[i], plan.first_child[i + 1]):
            child = plan.child[c]
            row = 0
            for b in range(plan.size[child] - 1):
                row |= by_position[plan.scope[child, b]] << b
            zero += tables.all[plan.start[child] + row, 0]
            one += tables.all[plan.start[child] + row + (1 << (plan.size[child] - 1)), 0]
        by_position[i] = 1 if one > zero else 0
        result[plan.order[i]] = one > zero
    for a in range(plan.hubs.shape[0]):
        result[plan.hubs[a]] = (prefix >> a) & 1 == 1
    return result


@kernel
def heaviest_cut(plan: Plan, lower_bound: int, step: int, most_batches: int) -> tuple[int, NDArray[np.bool_], int, int]:
    """Search for a cut of a weight of at least ``lower_bound + step``.

    Args:
        plan: From `plan_elimination`; the weights must sum to at most `MOST_WEIGHT`.
        lower_bound: Weight of the best cut so far.
        step: Minimal excess of the weight of a heavier cut.
        most_batches: Batches of branches to bound at most.

    Returns:
        The weight of the heaviest cut of the search and its sides ``bool[n]`` (``lower_bound`` and all False if no cut
        is heavier), an upper bound of the weight of any cut, equal to the first result if all branches were ended, and
        the number of batches that were bounded.
    """
    h = plan.hubs.shape[0]
    tables = _make_tables(plan)
    fixed = min(_START_HUBS, h)
    branches = 2 * np.arange(1 << (fixed - 1))  # by symmetry, the first hub is on side 0
    best, best_prefix = lower_bound, -1
    bound = 1 << 40
    prefixes = np.zeros(LANES, np.int64)
    batches = 0
    while True:
        kept = np.empty_like(branches)
        count = 0
        highest = best
        for begin in range(0, branches.shape[0], LANES):
            if batches == most_batches:
                return best, np.zeros(h + plan.order.shape[0], np.bool_), bound, batches
            batches += 1
            lanes = min(LANES, branches.shape[0] - begin)
            for lane in range(lanes):
                prefixes[lane] = branches[begin + lane]
            _give(plan, prefixes, fixed, tables)
            _eliminate(plan, tables)
            for lane in range(lanes):
                value = int(tables.total[lane])
                highest = max(highest, value)
                if value >= best + step:
                    kept[count] = branches[begin + lane]
                    count += 1
                    if fixed == h:
                        best, best_prefix = value, int(branches[begin + lane])
        if fixed == h or count == 0:
            break
        bound = min(bound, highest)
        branches = np.empty(2 * count, np.int64)
        for i in range(count):
            branches[2 * i] = kept[i]
            branches[2 * i + 1] = kept[i] | (1 << fixed)
        fixed += 1
    if best_prefix < 0:
        return best, np.zeros(h + plan.order.shape[0], np.bool_), best, batches
    prefixes[0] = best_prefix
    _give(plan, prefixes, h, tables)
    _eliminate(plan, tables)
    return best, _sides(plan, best_prefix, tables), best, batches
