"""Scores of candidate pairs that follow from the edges alone: no weights, no features.

The common neighbours of Liben-Nowell and Kleinberg (2003), the index of Adamic and Adar (2003), preferential attachment
(Barabasi and Albert, 1999), and the paths of length three of Kovacs and others (2019), which lead from users to items,
too. Neighbours count in either direction, loops do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.ragged import distinct_values

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Neighbours:
    """The neighbours of all nodes, in either direction and without loops.

    Attributes:
        starts: int64 ``[nodes + 1]``, where the list of every node begins.
        ends: int64, the lists, each rising.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, edges: NDArray[Any], nodes: int) -> Neighbours:
        """Return the neighbours in a graph.

        Args:
            edges: int ``[E, 2]``.
            nodes: Number of nodes.
        """
        kept = edges[edges[:, 0] != edges[:, 1]].astype(np.int64)
        keys = distinct_values(np.concatenate([kept[:, 0] * nodes + kept[:, 1], kept[:, 1] * nodes + kept[:, 0]]))
        rows, ends = np.divmod(keys, nodes)
        return cls(np.searchsorted(rows, np.arange(nodes + 1)).astype(np.int64), ends)

    @property
    def degrees(self) -> NDArray[np.int64]:
        """int64 ``[nodes]``."""
        return np.diff(self.starts)


class Heuristics:
    """The heuristics of one graph, whose lists of neighbours are made once.

    Args:
        edges: int ``[E, 2]``, the edges that models read; an undirected edge in one or in both directions.
        nodes: Number of nodes.
        directed: Whether an edge is an arc: then the reverse arc is a heuristic, too.
    """

    def __init__(self, edges: NDArray[Any], nodes: int, *, directed: bool) -> None:
        self.edges, self.nodes, self.directed = edges, nodes, directed
        self.neighbours = Neighbours.of(edges, nodes)

    @staticmethod
    def count(*, directed: bool) -> int:
        """Return the number of heuristics."""
        return len(_OF_NEIGHBOURS) + directed

    def scores(self, pairs: NDArray[np.int64]) -> dict[str, Floats]:
        """Return heuristic -> its score of every pair, float64 ``[P]``.

        Args:
            pairs: int64 ``[2, P]``; pairs of one source that follow each other are fast.
        """
        scores = {name: heuristic(self.neighbours, pairs) for name, heuristic in _OF_NEIGHBOURS.items()}
        return scores | ({"reverse_arc": has_reverse(self._arcs, self.nodes, pairs)} if self.directed else {})

    def table(self, pairs: NDArray[np.int64]) -> Floats:
        """Return the scores of every pair in a row, float64 ``[P, heuristics]``."""
        return np.stack(list(self.scores(pairs).values()), axis=1)

    @cached_property
    def _arcs(self) -> NDArray[np.int64]:
        return arc_keys(self.edges, self.nodes)


def common_neighbours(neighbours: Neighbours, pairs: NDArray[np.int64]) -> Floats:
    """Return the number of common neighbours of every pair, float64 ``[P]``."""
    return _shared_weights(neighbours.starts, neighbours.ends, np.ones(len(neighbours.degrees)), pairs)


def adamic_adar(neighbours: Neighbours, pairs: NDArray[np.int64]) -> Floats:
    """Return the sum of 1 / log(degree) over the common neighbours of every pair, float64 ``[P]``."""
    degrees = neighbours.degrees
    weights = np.zeros(len(degrees))  # a common neighbour of two nodes has two neighbours or more
    np.divide(1.0, np.log(np.maximum(degrees, 1)), out=weights, where=degrees > 1)
    return _shared_weights(neighbours.starts, neighbours.ends, weights, pairs)


def preferential_attachment(neighbours: Neighbours, pairs: NDArray[np.int64]) -> Floats:
    """Return the product of the degrees of every pair, float64 ``[P]``."""
    degrees = neighbours.degrees.astype(np.float64)
    product: Floats = degrees[pairs[0]] * degrees[pairs[1]]
    return product


def paths_of_three(neighbours: Neighbours, pairs: NDArray[np.int64]) -> Floats:
    """Return the sum over the paths u-a-b-v of 1 / sqrt(degree of a * degree of b), float64 ``[P]``.

    The paths are those of Kovacs and others, Network-based prediction of protein interactions (Nature Communications,
    2019), equation 2. Of two neighbours u and v, walks over their own edge count as well.
    """
    degrees = np.maximum(neighbours.degrees, 1).astype(np.float64)
    return _weighted_walks(neighbours.starts, neighbours.ends, 1.0 / np.sqrt(degrees), pairs)


_OF_NEIGHBOURS: Mapping[str, Callable[[Neighbours, NDArray[np.int64]], Floats]] = {
    "common_neighbours": common_neighbours,
    "adamic_adar": adamic_adar,
    "preferential_attachment": preferential_attachment,
    "paths_of_three": paths_of_three,
}


def arc_keys(edges: NDArray[Any], nodes: int) -> NDArray[np.int64]:
    """Return a number for every different arc, rising; int64.

    Args:
        edges: int ``[E, 2]``.
        nodes: Number of nodes.
    """
    return distinct_values(edges[:, 0].astype(np.int64) * nodes + edges[:, 1])


def has_reverse(arcs: NDArray[np.int64], nodes: int, pairs: NDArray[np.int64]) -> Floats:
    """Return 1 for every pair whose reverse is an arc, else 0, float64 ``[P]``; ``arcs`` is from :func:`arc_keys`."""
    if not len(arcs):
        return np.zeros(pairs.shape[1])
    reverse = pairs[1] * nodes + pairs[0]
    is_arc: Floats = (arcs[np.searchsorted(arcs, reverse).clip(max=len(arcs) - 1)] == reverse).astype(np.float64)
    return is_arc


@kernel
def _shared_weights(
    starts: NDArray[np.int64], ends: NDArray[np.int64], weights: Floats, pairs: NDArray[np.int64]
) -> Floats:
    """Return the sum of the weights of the common neighbours of every pair."""
    total = np.zeros(pairs.shape[1])
    seen = np.full(len(weights), -1, np.int64)  # the last source that a node is a neighbour of
    for p in range(pairs.shape[1]):
        source, target = pairs[0, p], pairs[1, p]
        if p == 0 or source != pairs[0, p - 1]:
            for k in range(starts[source], starts[source + 1]):
                seen[ends[k]] = source
        for k in range(starts[target], starts[target + 1]):
            if seen[ends[k]] == source:
                total[p] += weights[ends[k]]
    return total


@kernel
def _weighted_walks(
    starts: NDArray[np.int64], ends: NDArray[np.int64], weights: Floats, pairs: NDArray[np.int64]
) -> Floats:
    """Return the sum over the walks u-a-b-v of the product of the weights of a and b, of every pair (u, v)."""
    total = np.zeros(pairs.shape[1])
    two_steps = np.zeros(len(weights))  # sum over the walks source-a-b of the weight of a
    for p in range(pairs.shape[1]):
        source, target = pairs[0, p], pairs[1, p]
        if p == 0 or source != pairs[0, p - 1]:
            two_steps[:] = 0.0
            for k in range(starts[source], starts[source + 1]):
                a = ends[k]
                for j in range(starts[a], starts[a + 1]):
                    two_steps[ends[j]] += weights[a]
        for k in range(starts[target], starts[target + 1]):
            total[p] += two_steps[ends[k]] * weights[ends[k]]
    return total
