"""Large cliques: a local search finds one, and branch and bound proves that none is larger, or finds one that is.

Both searches are the ones of `algoreas.max_clique`, without its choice among several largest cliques.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from graphbench.domains.algoreas.bits import adjacency_rows, members_of
from graphbench.domains.algoreas.clique_local_search import improve_clique, stranger_rows
from graphbench.domains.co.set_bounds import Cliques, linked_pairs
from graphbench.domains.co.solvers import Edges, Effort, Label, checked_edges, random_state, timed

_SEARCH_KEY = 0x636C71
_BOUND_NODES = 300  # that a step of the bound may open, where the proof does not end


class CliqueEffort(Effort):
    """Effort for cliques.

    Attributes:
        steps: Additions, swaps and restarts of the local search.
        nodes: Nodes of the search tree that may be opened for the proof, some microseconds each.
    """

    steps: int = Field(5_000, ge=0)
    nodes: int = Field(200_000, ge=0)


@timed
def find_clique(num_nodes: int, edges: Edges, effort: CliqueEffort | None = None, seed: int = 0) -> Label:
    """Return a large clique; see `solvers`. ``Label.effort`` has ``steps`` and ``nodes``."""
    effort = effort or CliqueEffort()
    edges = checked_edges(num_nodes, edges)
    rows = adjacency_rows(num_nodes, edges)
    words = np.zeros(rows.shape[1], np.uint64)
    steps = max(effort.steps, num_nodes)  # fewer could end before no node can join
    improve_clique(rows, stranger_rows(rows), steps, random_state(_SEARCH_KEY, seed), words)
    members = members_of(words, num_nodes).astype(np.bool_)
    members, bound, nodes = _prove(Cliques(linked_pairs(num_nodes, edges)), members, effort.nodes)
    return Label(
        value=int(members.sum()),
        solution=members.astype(np.int32),
        bound=bound,
        solver="local_search",
        effort={"steps": steps, "nodes": nodes},
    )


def _prove(cliques: Cliques, members: NDArray[np.bool_], budget: int) -> tuple[NDArray[np.bool_], int, int]:
    """Return the clique or a larger one, an upper bound of the largest, and the nodes of the search tree opened."""
    larger, left = cliques.find(int(members.sum()) + 1, budget)
    members = members if larger is None else larger
    size = int(members.sum())
    if left >= 0:
        return members, size, budget - left
    return members, cliques.bound(size, len(members), min(budget, _BOUND_NODES)), budget
