"""Large independent sets, with proof where that is cheap.

The graph is reduced (`set_reductions`), the rest searched (`cover_search`), and the search for cliques of the
complement proves that no larger set exists, finds one, or ends with an upper bound (`set_bounds`). On Barabasi-Albert
graphs with m = 2 the reductions alone prove the optimum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from graphbench.core.neighbours import neighbour_lists
from graphbench.domains.co.cover_search import search_independent_set
from graphbench.domains.co.set_bounds import Complement
from graphbench.domains.co.set_reductions import expand_set, reduce_set
from graphbench.domains.co.solvers import Edges, Effort, Label, checked_edges, random_state, timed

_SEARCH_KEY = 0x6D6973
_PROBE_KEY = 0x6D6974
_FIRST_SHARE = 10  # one tenth of the local search comes before the proof: most sets need no more
_BOUND_NODES = 300  # that a step of the bound may open, where no proof is in sight


class IndependentSetEffort(Effort):
    """Effort for independent sets.

    Attributes:
        steps: Exchanges of the local search.
        nodes: Nodes of the search tree that may be opened for the proof, some microseconds each. The search is not
            begun where it is expected to need more; 0 leaves the bound at the root.
    """

    steps: int = Field(50_000, ge=0)
    nodes: int = Field(200_000, ge=0)


@timed
def find_independent_set(
    num_nodes: int, edges: Edges, effort: IndependentSetEffort | None = None, seed: int = 0
) -> Label:
    """Return a large independent set; see `solvers`. ``Label.effort`` has ``steps`` and ``nodes``."""
    effort = effort or IndependentSetEffort()
    edges = checked_edges(num_nodes, edges)
    reduced = reduce_set(num_nodes, edges)
    members, bound, steps, nodes = np.zeros(len(reduced.nodes), np.bool_), 0, 0, 0
    if len(members):
        members, bound, steps, nodes = _solve(len(members), reduced.edges, effort, seed)
    solution = expand_set(reduced, members)
    return Label(
        value=int(solution.sum()),
        solution=solution.astype(np.int32),
        bound=bound + int(reduced.gained),
        solver="local_search",
        effort={"steps": steps, "nodes": nodes},
    )


def _solve(
    num_nodes: int, edges: NDArray[np.int32], effort: IndependentSetEffort, seed: int
) -> tuple[NDArray[np.bool_], int, int, int]:
    """Return a set, an upper bound of the largest, and the steps and nodes of the search tree spent."""
    lists = neighbour_lists(num_nodes, edges)
    state = random_state(_SEARCH_KEY, seed)
    members = np.zeros(num_nodes, np.bool_)
    members, steps = search_independent_set(edges, lists, members, effort.steps // _FIRST_SHARE, state)
    complement = Complement(num_nodes, edges)
    members, proved, nodes = _prove(complement, members, effort.nodes, seed)
    if proved:
        return members, int(members.sum()), int(steps), nodes
    members, more = search_independent_set(edges, lists, members, effort.steps - steps, state)
    bound = complement.bound(int(members.sum()), num_nodes, min(effort.nodes, _BOUND_NODES))
    return members, bound, int(steps + more), nodes


def _prove(
    complement: Complement, members: NDArray[np.bool_], budget: int, seed: int
) -> tuple[NDArray[np.bool_], bool, int]:
    """Return the set or a larger one, whether none is larger still, and how many search nodes were opened."""
    size = int(members.sum())
    larger, left = complement.find(size + 1, 0)
    spent = 0
    if left < 0 and budget > 0 and not complement.is_hopeless(size + 1, budget, random_state(_PROBE_KEY, seed)):
        larger, left = complement.find(size + 1, budget)
        spent = budget - max(left, 0)
    return (members if larger is None else larger), left >= 0, spent
