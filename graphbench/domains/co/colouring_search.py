"""Colourings with few colours: two greedy ones, and two tabu searches that ask for one colour less.

- DSATUR (Brelaz 1979) colours in turn the node that sees most colours, with the first colour it does not see.
- Smallest last (Matula and Beck 1983) takes away nodes of least degree one by one and colours them in reverse: where
  each had at most d neighbours left, d + 1 colours suffice.
- TabuCol (Hertz and de Werra 1987) keeps all nodes coloured and recolours a node in conflict, whichever leaves the
  fewest conflicts.
- PartialCol (Bloechliger and Zufferey 2008) keeps a part coloured without conflict, colours one more node and uncolours
  the nodes it conflicts with, choosing the node with the fewest conflicts.

Both searches are tabu searches: for some steps, a node may not take again a colour that it has left, unless the result
is better than every colouring before. The number of these steps grows with the number of wrong nodes (Galinier and Hao
1999). Both searches keep the number of neighbours of every colour for every node, so a step costs the number of wrong
nodes times the number of colours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.neighbours import Neighbours
from graphbench.core.rng import below

_TENURE_SHARE = 0.6
_TENURE_SPREAD = 10


@kernel
def dsatur(lists: Neighbours) -> tuple[NDArray[np.int32], int]:
    """Return a colouring ``int32[n]`` and its number of colours; ties go to the node with most neighbours to colour."""
    n = lists.first.shape[0] - 1
    first, node = lists.first, lists.node
    most = 1
    for v in range(n):
        most = max(most, first[v + 1] - first[v] + 1)
    sees = np.zeros((n, most), np.bool_)
    seen = np.zeros(n, np.int64)
    waiting = np.empty(n, np.int64)
    colour = np.full(n, -1, np.int32)
    for v in range(n):
        waiting[v] = first[v + 1] - first[v]
    used = 0
    for _ in range(n):
        best = -1
        for v in range(n):
            if colour[v] >= 0:
                continue
            if best < 0 or seen[v] > seen[best] or (seen[v] == seen[best] and waiting[v] > waiting[best]):
                best = v
        c = 0
        while sees[best, c]:
            c += 1
        colour[best] = c
        used = max(used, c + 1)
        for row in range(first[best], first[best + 1]):
            u = node[row]
            waiting[u] -= 1
            if not sees[u, c]:
                sees[u, c] = True
                seen[u] += 1
    return colour, used


@kernel
def smallest_last(lists: Neighbours) -> tuple[NDArray[np.int32], int]:
    """Return a colouring ``int32[n]`` and its number of colours; of nodes of least degree, the first goes first."""
    n = lists.first.shape[0] - 1
    first, node = lists.first, lists.node
    degree = np.empty(n, np.int64)
    for v in range(n):
        degree[v] = first[v + 1] - first[v]
    gone = np.zeros(n, np.bool_)
    order = np.empty(n, np.int64)
    for i in range(n):
        least = -1
        for v in range(n):
            if not gone[v] and (least < 0 or degree[v] < degree[least]):
                least = v
        order[i] = least
        gone[least] = True
        for row in range(first[least], first[least + 1]):
            degree[node[row]] -= 1
    colour = np.full(n, -1, np.int32)
    seen_by = np.full(n + 1, -1, np.int64)
    used = 0
    for i in range(n - 1, -1, -1):
        v = order[i]
        for row in range(first[v], first[v + 1]):
            if colour[node[row]] >= 0:
                seen_by[colour[node[row]]] = v
        c = 0
        while seen_by[c] == v:
            c += 1
        colour[v] = c
        used = max(used, c + 1)
    return colour, used


@inner
def _add_to(members: NDArray[np.int32], position: NDArray[np.int32], size: int, v: int) -> int:
    """Add v to a set that is kept as a list with positions; return the size of the set."""
    members[size] = v
    position[v] = size
    return size + 1


@inner
def _drop_from(members: NDArray[np.int32], position: NDArray[np.int32], size: int, v: int) -> int:
    last = members[size - 1]
    members[position[v]] = last
    position[last] = position[v]
    position[v] = -1
    return size - 1


@inner
def _tenure(wrong: int, state: NDArray[np.uint64]) -> int:
    return int(_TENURE_SHARE * wrong) + below(state, _TENURE_SPREAD)


@inner
def _count_colours(lists: Neighbours, colour: NDArray[np.int32], colours: int) -> NDArray[np.int32]:
    """Return how many neighbours of each colour every node has, ``int32[n, colours]``; colour -1 is none."""
    first, node = lists.first, lists.node
    n = colour.shape[0]
    around = np.zeros((n, colours), np.int32)
    for v in range(n):
        for row in range(first[v], first[v + 1]):
            c = colour[node[row]]
            if c >= 0:
                around[v, c] += 1
    return around


@kernel
def remove_conflicts(
    lists: Neighbours, colour: NDArray[np.int32], colours: int, steps: int, state: NDArray[np.uint64]
) -> tuple[bool, int]:
    """TabuCol: recolour in place until no edge joins equal colours; return whether this worked, and the steps taken.

    Args:
        lists: Neighbour lists.
        colour: A colour from 0 to ``colours - 1`` for every node, ``int32[n]``.
        colours: Number of colours.
        steps: Recolourings at most.
        state: State of the random generator, advanced.
    """
    n = colour.shape[0]
    first, node = lists.first, lists.node
    around = _count_colours(lists, colour, colours)
    until = np.zeros((n, colours), np.int32)
    wrong, position = np.empty(n, np.int32), np.full(n, -1, np.int32)
    count = conflicts = 0
    for v in range(n):
        if around[v, colour[v]] > 0:
            count = _add_to(wrong, position, count, v)
            conflicts += around[v, colour[v]]
    conflicts //= 2
    fewest = conflicts
    for step in range(1, steps + 1):
        if conflicts == 0:
            return True, step - 1
        best, best_colour, least, ties = -1, -1, 1 << 30, 0
        for i in range(count):
            v = wrong[i]
            current = colour[v]
            for c in range(colours):
                change = around[v, c] - around[v, current]
                if change > least or c == current or (until[v, c] >= step and conflicts + change >= fewest):
                    continue
                if change < least:
                    best, best_colour, least, ties = v, c, change, 1
                else:
                    ties += 1
                    if below(state, ties) == 0:
                        best, best_colour = v, c
        if best < 0:
            continue
        old = colour[best]
        colour[best] = best_colour
        conflicts += least
        fewest = min(fewest, conflicts)
        until[best, old] = step + _tenure(count, state)
        for row in range(first[best], first[best + 1]):
            u = node[row]
            around[u, old] -= 1
            around[u, best_colour] += 1
            if colour[u] == old and around[u, old] == 0:
                count = _drop_from(wrong, position, count, u)
            elif colour[u] == best_colour and around[u, best_colour] == 1:
                count = _add_to(wrong, position, count, u)
        if around[best, best_colour] == 0:
            count = _drop_from(wrong, position, count, best)
    return conflicts == 0, steps


@kernel
def complete_colouring(
    lists: Neighbours, colour: NDArray[np.int32], colours: int, steps: int, state: NDArray[np.uint64]
) -> tuple[bool, int]:
    """PartialCol: colour the nodes of colour -1 too; arguments and result as `remove_conflicts`.

    Nodes that are coloured must have no neighbour of their colour; where the search fails, some are left at -1.
    """
    n = colour.shape[0]
    first, node = lists.first, lists.node
    around = _count_colours(lists, colour, colours)
    until = np.zeros((n, colours), np.int32)
    bare, position = np.empty(n, np.int32), np.full(n, -1, np.int32)
    count = 0
    for v in range(n):
        if colour[v] < 0:
            count = _add_to(bare, position, count, v)
    fewest = count
    for step in range(1, steps + 1):
        if count == 0:
            return True, step - 1
        best, best_colour, least, ties = -1, -1, 1 << 30, 0
        for i in range(count):
            v = bare[i]
            for c in range(colours):
                clashes = around[v, c]
                if clashes > least or (until[v, c] >= step and count - 1 + clashes >= fewest):
                    continue
                if clashes < least:
                    best, best_colour, least, ties = v, c, clashes, 1
                else:
                    ties += 1
                    if below(state, ties) == 0:
                        best, best_colour = v, c
        if best < 0:
            continue
        count = _drop_from(bare, position, count, best)
        colour[best] = best_colour
        free_again = step + 1 + _tenure(count, state)
        for row in range(first[best], first[best + 1]):
            u = node[row]
            around[u, best_colour] += 1
            if colour[u] == best_colour:
                colour[u] = -1
                count = _add_to(bare, position, count, u)
                until[u, best_colour] = free_again
                for other in range(first[u], first[u + 1]):
                    around[node[other], best_colour] -= 1
        fewest = min(fewest, count)
    return count == 0, steps


@kernel
def use_fewer_colours(
    lists: Neighbours,
    colour: NDArray[np.int32],
    colours: int,
    least: int,
    steps: int,
    partial: bool,
    state: NDArray[np.uint64],
) -> tuple[NDArray[np.int32], int, int]:
    """Ask for one colour less again and again; return the last colouring, its number of colours, and the steps taken.

    Each search starts from the colouring before with a random class of nodes dissolved.

    Args:
        lists: Neighbour lists.
        colour: A colouring without conflicts, ``int32[n]``.
        colours: Its number of colours.
        least: A number of colours to stop at.
        steps: Steps of all searches together.
        partial: Whether to search with PartialCol rather than TabuCol.
        state: State of the random generator, advanced.
    """
    best = colour.copy()
    spent = 0
    while colours > least and spent < steps:
        trial = best.copy()
        dissolved = below(state, colours)
        for v in range(trial.shape[0]):
            if trial[v] == dissolved:
                trial[v] = -1 if partial else below(state, colours - 1)
            elif trial[v] == colours - 1:
                trial[v] = dissolved
        if partial:
            solved, used = complete_colouring(lists, trial, colours - 1, steps - spent, state)
        else:
            solved, used = remove_conflicts(lists, trial, colours - 1, steps - spent, state)
        spent += used
        if not solved:
            break
        best = trial
        colours -= 1
    return best, colours, spent
