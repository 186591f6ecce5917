"""Decoders: from scores of nodes to feasible solutions of a batch of graphs.

==========  ======================================================================================================
problem     decoder
==========  ======================================================================================================
mis         nodes by falling score; each joins the set where no neighbour has. No node is left that could join
max_cut     nodes of a positive score on side 1. ``conditional``: nodes by falling certainty, each takes the side of
            the larger expected cut, others being on side 1 with probability sigmoid(score): no smaller than the
            expected cut of the scores (method of conditional expectations, Erdos and Selfridge 1973).
            ``local_search`` then moves nodes, least certain ones first, to the other side while that cuts more edges
coloring    scores ``[N, K]``: nodes by falling softmax probability of their best colour, each takes the free colour
            of its highest score (a proper colouring by the best scores is kept); and again with the first free
            colour; the one of fewer colours. Scores ``[N]``: by falling score, the first free colour.
            ``local_search`` then colours anew, colour by colour, while that saves colours (Culberson 1992)
==========  ======================================================================================================

Of equal scores the first node's counts first, so results are the same everywhere. ``restarts`` above 1 decode again
with noise of the given temperature on the scores and keep the best: Gumbel noise, which draws an order or a colour in
proportion to exp(score / temperature) (Plackett and Luce; Maddison et al. 2014), or for cuts logistic noise, which
draws a side with probability sigmoid(score / temperature).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import DecodingError
from graphbench.domains.co.decoding_graphs import UndirectedGraphs
from graphbench.domains.co.decoding_kernels import Noise, colourings_by_score, cuts_by_score, sets_by_score

Solution = NDArray[np.int32]


def decode_independent_sets(
    graphs: UndirectedGraphs, scores: NDArray[Any], *, restarts: int = 1, seed: int = 0, temperature: float = 1.0
) -> Solution:
    """Return an independent set of every graph, 1 for its members, int32 ``[N]``.

    Args:
        graphs: The graphs.
        scores: Finite numbers ``[N]``: the larger, the earlier a node may join.
        restarts: Number of decodings, 1 or more; the largest set is kept.
        seed: Seed of the noise.
        temperature: Scale of the noise, above 0.

    Raises:
        DecodingError: If an argument is not as described.
    """
    values = _checked_scores(graphs, scores, dimensions=(1,))
    return sets_by_score(graphs.ptr, *graphs.neighbours, values, _noise(restarts, temperature, seed))


def decode_cuts(
    graphs: UndirectedGraphs,
    scores: NDArray[Any],
    *,
    conditional: bool = False,
    local_search: bool = False,
    restarts: int = 1,
    seed: int = 0,
    temperature: float = 1.0,
) -> Solution:
    """Return a cut of every graph, the sides 0 and 1, int32 ``[N]``.

    Args:
        graphs: The graphs.
        scores: Finite numbers ``[N]``: above 0 for side 1.
        conditional: Whether nodes choose by conditional expectation rather than by the sign of their score.
        local_search: Whether to move single nodes until no move cuts more edges.
        restarts: Number of decodings, 1 or more; the largest cut is kept.
        seed: Seed of the noise.
        temperature: Scale of the noise, above 0.

    Raises:
        DecodingError: If an argument is not as described.
    """
    values = _checked_scores(graphs, scores, dimensions=(1,))
    noise = _noise(restarts, temperature, seed)
    check_options(conditional=conditional, local_search=local_search)
    if restarts == 1 and not conditional and not local_search:
        return (values > 0).astype(np.int32)
    return cuts_by_score(graphs.ptr, *graphs.neighbours, values, noise, bool(conditional), bool(local_search))


def decode_colourings(
    graphs: UndirectedGraphs,
    scores: NDArray[Any],
    *,
    num_colors: int | None = None,
    local_search: bool = False,
    restarts: int = 1,
    seed: int = 0,
    temperature: float = 1.0,
) -> Solution:
    """Return a proper colouring of every graph, colours numbered by the first node that has them, int32 ``[N]``.

    Args:
        graphs: The graphs.
        scores: Finite numbers: ``[N, K]``, a node's scores of K colours, or ``[N]``: the larger, the earlier a node
            is coloured.
        num_colors: Most colours of a graph; None for K, or for scores ``[N]`` any number.
        local_search: Whether to colour anew while that saves colours.
        restarts: Number of decodings, 1 or more; the colouring of fewest colours is kept.
        seed: Seed of the noise.
        temperature: Scale of the noise, above 0.

    Raises:
        DecodingError: If an argument is not as described, or a graph needs more colours than allowed (it is named).
    """
    values = _checked_scores(graphs, scores, dimensions=(1, 2))
    noise = _noise(restarts, temperature, seed)
    check_options(num_colors=num_colors, local_search=local_search)
    of_colours = values.ndim == 2
    columns = np.ascontiguousarray(values.reshape(len(values), -1))
    colours = colourings_by_score(graphs.ptr, *graphs.neighbours, columns, of_colours, noise, bool(local_search))
    most = num_colors if num_colors is not None else columns.shape[1] if of_colours else None
    if most is not None:
        _refuse_many_colours(np.maximum.reduceat(colours, graphs.ptr[:-1]) + 1, most)
    return colours


def _refuse_many_colours(used: NDArray[np.int32], most: int) -> None:
    over = np.flatnonzero(used > most)
    if over.size:
        graph = int(over[0])
        raise DecodingError(
            f"graph {graph} is coloured with {used[graph]} colours, {most} are allowed ({over.size} of {len(used)} "
            "graphs need more); give a larger num_colors, scores of more colours, local_search=True or restarts"
        )


def _checked_scores(graphs: UndirectedGraphs, scores: NDArray[Any], dimensions: tuple[int, ...]) -> NDArray[np.float64]:
    n = graphs.num_nodes
    if scores.ndim not in dimensions or len(scores) != n or scores.size == 0:
        forms = " or ".join(f"[{n}]" if d == 1 else f"[{n}, colours]" for d in dimensions)
        raise DecodingError(f"the scores have the shape {list(scores.shape)}; give {forms}, one row per node")
    if scores.dtype.kind not in "biuf":
        raise DecodingError(f"the scores are {scores.dtype}; give real numbers")
    values = scores.astype(np.float64)
    finite = np.isfinite(values)
    if not finite.all():
        node = int(np.argwhere(~finite)[0, 0])
        graph = int(graphs.graph[node])
        raise DecodingError(
            f"the score of node {node - graphs.ptr[graph]} of graph {graph} is {values[node]}; "
            "check the model for overflow or division by zero"
        )
    return values


def check_options(**options: Any) -> None:
    """Raise an error for an invalid value of a decoder's option.

    Raises:
        DecodingError: If a value is invalid; the message names the valid values.
    """
    for name, value in options.items():
        number = not isinstance(value, (bool, np.bool_))
        whole = number and isinstance(value, (int, np.integer))
        if name == "num_colors" and value is None:
            continue
        if name in ("restarts", "num_colors"):
            fits, wanted = whole and value >= 1, "a whole number from 1 on"
        elif name == "seed":
            fits, wanted = whole and 0 <= value < 1 << 64, "a whole number from 0 to 2**64 - 1"
        elif name == "temperature":
            real = number and isinstance(value, (int, float, np.integer, np.floating))
            fits, wanted = real and 0 < value < float("inf"), "a number above 0"
        else:
            fits, wanted = not number, "True or False"
        if not fits:
            raise DecodingError(f"{name} is {value!r}; give {wanted}")


def _noise(restarts: int, temperature: float, seed: int) -> Noise:
    check_options(restarts=restarts, temperature=temperature, seed=seed)
    return Noise(int(restarts), float(temperature), np.uint64(seed))
