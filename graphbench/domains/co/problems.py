"""The problems of the domain, for decoding, checking and scoring; `solving` holds their solvers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import DecodingError
from graphbench.data.components.problems import Problem
from graphbench.domains.co.decoding import check_options, decode_colourings, decode_cuts, decode_independent_sets
from graphbench.domains.co.decoding_checks import clique_sizes, colour_counts, cover_sizes, cut_sizes, set_sizes
from graphbench.domains.co.decoding_graphs import UndirectedGraphs
from graphbench.domains.co.reductions_to_sets import decode_cliques, decode_vertex_covers
from graphbench.domains.co.searches import RULES, SEARCHES

_WEIGHTS = ("edge_weight", "edge_attr", "weight")


def unweighted_graphs(
    ptr: NDArray[Any], edge_index: NDArray[Any], fields: Mapping[str, NDArray[Any]]
) -> UndirectedGraphs:
    """Return the checked graphs of a batch.

    Args:
        ptr: int64 ``[G + 1]``, first node of each graph.
        edge_index: int64 ``[2, E]``, both directions of every edge.
        fields: The fields of the batch that may hold weights.

    Raises:
        DecodingError: If the graphs are directed, weighted or have loops.
    """
    arcs = edge_index.shape[-1]
    for name, weights in fields.items():
        if name == "weight" and len(weights) != arcs:  # of nodes, or of graphs
            continue
        if (weights != 1).any():
            raise DecodingError(
                f"the batch has {name}, but the problem is one of graphs without weights; "
                f"drop them with `del batch.{name}` if they mean nothing here"
            )
    return UndirectedGraphs.checked(ptr, edge_index)


def _problem(
    name: str,
    objective: str,
    decode: Callable[..., NDArray[np.int32]],
    objectives: Callable[[UndirectedGraphs, NDArray[Any]], NDArray[np.int64]],
    *,
    maximise: bool,
    kind: str,
    surrogate: str,
) -> Problem:
    return Problem(
        name=f"co.{name}",
        objective=objective,
        maximise=maximise,
        output=("output", "node", kind),
        value=f"{name}_value",
        bound=f"{name}_bound",
        checked=unweighted_graphs,
        decode=decode,
        check_options=check_options,
        objectives=objectives,
        surrogate=surrogate,
        fields=_WEIGHTS,
        searches=SEARCHES[name],
        rules=RULES & SEARCHES[name].keys(),
    )


PROBLEMS: Mapping[str, Problem] = {
    "mis": _problem(
        "mis",
        "set_size",
        decode_independent_sets,
        set_sizes,
        maximise=True,
        kind="mask",
        surrogate="independent_set",
    ),
    "max_cut": _problem("max_cut", "cut_size", decode_cuts, cut_sizes, maximise=True, kind="mask", surrogate="max_cut"),
    "coloring": _problem(
        "coloring",
        "num_colors",
        decode_colourings,
        colour_counts,
        maximise=False,
        kind="scalar",
        surrogate="coloring",
    ),
    "vertex_cover": _problem(
        "vertex_cover",
        "cover_size",
        decode_vertex_covers,
        cover_sizes,
        maximise=False,
        kind="mask",
        surrogate="vertex_cover",
    ),
    "max_clique": _problem(
        "max_clique",
        "clique_size",
        decode_cliques,
        clique_sizes,
        maximise=True,
        kind="mask",
        surrogate="clique",
    ),
}
