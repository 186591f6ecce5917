"""Large cuts, with proof on sparse graphs.

The graph is reduced (`cut_reductions`) and the rest searched (`cut_search`). If a few hubs leave a graph close to a
tree, branching over them with elimination of the rest finds the heaviest cut (`cut_elimination`): this proves
Barabasi-Albert graphs with m = 2 and 300 nodes. Elsewhere there are upper bounds (`cut_bounds`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from graphbench.domains.co.cut_bounds import eigenvalue_bound, pack_odd_cycles
from graphbench.domains.co.cut_elimination import MOST_WEIGHT, heaviest_cut
from graphbench.domains.co.cut_reductions import ReducedCut, expand_cut, reduce_cut
from graphbench.domains.co.cut_search import search_cut
from graphbench.domains.co.elimination_plan import plan_elimination
from graphbench.domains.co.solvers import Edges, Effort, Label, checked_edges, random_state, timed

_SEARCH_KEY = 0x637574
_WIDTH = 8  # tables of 2 ** 8 rows of 32 lanes fit the fastest memory of a processor
_MAX_HUBS = 40  # with more hubs, the branches are not ended in any reasonable time
_SPARSE = 16  # mean degree up to which odd cycles are packed


class MaxCutEffort(Effort):
    """Effort for large cuts.

    Attributes:
        steps: Moves of the local search.
        batches: Batches of 32 branches that may be bounded for the proof; about 0.2 ms each.
    """

    steps: int = Field(20_000, ge=0)
    batches: int = Field(20_000, ge=0)


@timed
def find_cut(num_nodes: int, edges: Edges, effort: MaxCutEffort | None = None, seed: int = 0) -> Label:
    """Return a large cut; see `solvers`. ``Label.effort`` has ``steps`` and ``batches``.

    Node 0 is on side 0: a cut and the one with both sides exchanged are the same.
    """
    effort = effort or MaxCutEffort()
    edges = checked_edges(num_nodes, edges)
    rest = reduce_cut(num_nodes, edges)
    side, bound, steps, batches = np.zeros(0, np.bool_), 0, 0, 0
    if len(rest.nodes):
        state = random_state(_SEARCH_KEY, seed)
        side, value = search_cut(rest.first, rest.near, rest.weight, effort.steps, state)
        steps = effort.steps
        side, bound, batches = _prove(rest, side, int(value), effort.batches)
    solution = expand_cut(num_nodes, rest, side).astype(np.int32)
    solution ^= solution[0]
    return Label(
        value=int((solution[edges[:, 0]] != solution[edges[:, 1]]).sum()),
        solution=solution,
        bound=(bound + int(rest.constant)) // 2,
        solver="local_search",
        effort={"steps": steps, "batches": batches},
    )


def _prove(
    rest: ReducedCut, side: NDArray[np.bool_], value: int, most_batches: int
) -> tuple[NDArray[np.bool_], int, int]:
    """Return the cut of the rest or a heavier one, an upper bound of the heaviest, and the batches spent."""
    lists = (rest.first, rest.near, rest.weight)
    total = int(np.abs(rest.weight).sum()) // 2
    batches = 0
    bound = int(rest.weight[rest.weight > 0].sum()) // 2
    if most_batches > 0 and total <= MOST_WEIGHT:
        feasible, plan = plan_elimination(*lists, _WIDTH, _MAX_HUBS)
        if feasible:
            heavier, better_side, bound, batches = heaviest_cut(plan, value, 2, most_batches)
            if heavier > value:
                side, value = better_side, int(heavier)
            if bound == value:
                return side, value, int(batches)
    return side, max(min(int(bound), _quick_bound(rest)), value), int(batches)


def _quick_bound(rest: ReducedCut) -> int:
    lists = (rest.first, rest.near, rest.weight)
    bound = eigenvalue_bound(*lists)
    if len(rest.near) <= _SPARSE * len(rest.nodes):
        bound = min(bound, int(rest.weight[rest.weight > 0].sum()) // 2 - int(pack_odd_cycles(*lists)))
    return bound
