"""Colourings with few colours, proved to be optimal if a clique needs as many colours.

DSATUR or smallest-last order gives the first colouring. A quarter of the effort goes to PartialCol and TabuCol in turn,
for longer and longer: on graphs of cliques, where both searches may be caught in local optima, many short searches are
best. The rest goes to TabuCol, which improves with longer runs on random graphs (`colouring_search`).
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from graphbench.core.neighbours import neighbour_lists
from graphbench.domains.algoreas.bits import adjacency_rows
from graphbench.domains.algoreas.clique_local_search import improve_clique, stranger_rows
from graphbench.domains.co.colouring_search import dsatur, smallest_last, use_fewer_colours
from graphbench.domains.co.decoding_kernels import number_by_first_use
from graphbench.domains.co.solvers import Edges, Effort, Label, checked_edges, random_state, timed

_SEARCH_KEY = 0x636F6C
_CLIQUE_KEY = 0x636F6D
_FIRST_ROUND = 500
_ROUNDS_SHARE = 4


class ColouringEffort(Effort):
    """Effort for colourings.

    Attributes:
        steps: Recolourings of the tabu searches.
        clique_steps: Steps of the local search for a clique, the lower bound.
    """

    steps: int = Field(50_000, ge=0)
    clique_steps: int = Field(5_000, ge=0)


@timed
def find_colouring(num_nodes: int, edges: Edges, effort: ColouringEffort | None = None, seed: int = 0) -> Label:
    """Return a colouring with few colours; see `solvers`. ``Label.effort`` has ``steps``.

    Colours are numbered by the first node that has them: node 0 has colour 0.
    """
    effort = effort or ColouringEffort()
    edges = checked_edges(num_nodes, edges)
    lists = neighbour_lists(num_nodes, edges)
    colour, colours = min(dsatur(lists), smallest_last(lists), key=itemgetter(1))
    bound = _least_colours(num_nodes, edges, int(colours), effort.clique_steps, seed)
    state = random_state(_SEARCH_KEY, seed)
    spent = 0
    for partial, most in (*_short_rounds(effort.steps // _ROUNDS_SHARE), (False, effort.steps)):
        most = min(most, effort.steps - spent)
        colour, colours, used = use_fewer_colours(lists, colour, int(colours), bound, most, partial, state)
        spent += int(used)
    number_by_first_use(colour, int(colours))
    return Label(
        value=int(colours),
        solution=colour,
        bound=bound,
        solver="local_search",
        effort={"steps": spent},
    )


def _short_rounds(steps: int) -> Iterator[tuple[bool, int]]:
    """Yield whether to use PartialCol, and for how many steps, until ``steps`` are spent."""
    length = _FIRST_ROUND
    while 2 * length <= steps:
        yield True, length
        yield False, length
        steps -= 2 * length
        length *= 2


def _least_colours(num_nodes: int, edges: NDArray[np.int32], colours: int, clique_steps: int, seed: int) -> int:
    """Return a lower bound of the number of colours; ``colours`` is an upper bound, at most the number of DSATUR."""
    if colours <= 3:
        return colours
    rows = adjacency_rows(num_nodes, edges)
    clique = np.zeros(rows.shape[1], np.uint64)
    size = improve_clique(rows, stranger_rows(rows), clique_steps, random_state(_CLIQUE_KEY, seed), clique)
    return max(int(size), 3)
