"""The problems that models of kind stepwise solve.

================  ==========================================  =========================================================
problem           a node is decided when                      what the network reads of the undecided nodes
================  ==========================================  =========================================================
independent_set   it is in the set, or a neighbour is         the graph that they induce: a set of it may be added
vertex_cover      as for the set of the nodes outside         the same
clique            it is in the clique, or is not joined to    the graph of the nodes that are joined to all members
                  a member
max_cut           it has a side                               this graph, and how many decided neighbours have each side
coloring          it has a colour                             the pairs of a node and a colour that it may have, joined
                                                              where two pairs exclude each other
================  ==========================================  =========================================================
"""

from __future__ import annotations

from collections.abc import Mapping

from graphbench.core.errors import ConfigError
from graphbench.models.stepwise.colourings import Colourings
from graphbench.models.stepwise.cuts import Cuts
from graphbench.models.stepwise.partial import PartialSolutions
from graphbench.models.stepwise.sets import Cliques, IndependentSets, VertexCovers

PARTIAL_SOLUTIONS: Mapping[str, type[PartialSolutions]] = {
    "independent_set": IndependentSets,
    "vertex_cover": VertexCovers,
    "clique": Cliques,
    "max_cut": Cuts,
    "coloring": Colourings,
}
"""Name of a loss without targets (``Problem.surrogate``) -> the partial solutions of its problem."""


def partial_solutions(problem: str, surrogate: str | None) -> type[PartialSolutions]:
    """Return the partial solutions of a problem.

    Raises:
        ConfigError: If the problem has none.
    """
    if surrogate is None or surrogate not in PARTIAL_SOLUTIONS:
        raise ConfigError(
            f"models of kind stepwise build solutions of {', '.join(PARTIAL_SOLUTIONS)}, and {problem} is none of "
            "these; choose a model of another kind, such as gin_small"
        )
    return PARTIAL_SOLUTIONS[surrogate]
