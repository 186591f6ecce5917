"""Upper bounds of independent sets, from the search for cliques of the complement.

The bound at the root covers the nodes with cliques (colours of the complement) and unites such cliques of which a set
cannot take one node each; below the root, the search branches.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.algoreas.bits import members_of
from graphbench.domains.algoreas.clique_bound import Scratch, make_scratch
from graphbench.domains.algoreas.clique_search import estimate_nodes, find_clique, search_order

_PROBES = (20, 100)  # few probes mostly tell too little; a hopeless search is often told by few already


def linked_pairs(num_nodes: int, edges: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which nodes an edge of ``int32[m, 2]`` joins, ``bool[n, n]``."""
    linked = np.zeros((num_nodes, num_nodes), np.bool_)
    linked[edges[:, 0], edges[:, 1]] = True
    linked[edges[:, 1], edges[:, 0]] = True
    return linked


class Cliques:
    """A graph, ready for the search for its cliques.

    Args:
        linked: Which nodes are joined, ``bool[n, n]``; no node is joined to itself.
    """

    def __init__(self, linked: NDArray[np.bool_]) -> None:
        self._order, self._core = search_order(_as_words(linked))
        self._rows = _as_words(linked[np.ix_(self._order, self._order)])
        self._scratch: Scratch = make_scratch(*self._rows.shape)

    def find(self, size: int, budget: int) -> tuple[NDArray[np.bool_] | None, int]:
        """Search for a clique of at least ``size`` nodes, opening at most ``budget`` nodes of the search.

        Returns:
            The largest clique found as ``bool[n]`` or None, and the budget left. If the budget is not negative, there
            is no larger clique, or none of this size at all.
        """
        words = np.zeros(self._rows.shape[1], np.uint64)
        length, left = find_clique(
            self._rows, self._allowed(size), size, len(self._order), budget, self._scratch, words
        )
        if length == 0:
            return None, left
        members = np.zeros(len(self._order), np.bool_)
        members[self._order] = members_of(words, len(self._order))
        return members, left

    def is_hopeless(self, size: int, budget: int, state: NDArray[np.uint64]) -> bool:
        """Return whether a sample of the search says that `find` would need more than its budget."""
        return any(
            estimate_nodes(self._rows, self._allowed(size), size, probes, state, self._scratch) > budget
            for probes in _PROBES
        )

    def bound(self, least: int, most: int, budget: int) -> int:
        """Return a size between ``least`` and ``most``, known bounds, that no clique exceeds.

        Sizes are halved in with at most ``budget`` nodes of the search each.
        """
        while least < most:
            middle = (least + most) // 2
            members, left = self.find(middle + 1, budget)
            if members is None and left >= 0:
                most = middle
            else:
                least = middle + 1
        return most

    def _allowed(self, size: int) -> NDArray[np.uint64]:
        return _as_words((self._core >= size - 1)[None, :])[0]


class Complement(Cliques):
    """The complement of a graph, whose cliques are the independent sets of the graph.

    Args:
        num_nodes: Number of nodes n.
        edges: ``int32[m, 2]`` of the graph itself.
    """

    def __init__(self, num_nodes: int, edges: NDArray[np.int32]) -> None:
        absent = ~linked_pairs(num_nodes, edges)
        np.fill_diagonal(absent, False)
        super().__init__(absent)


def _as_words(rows: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return rows of truth values as sets of words, see ``algoreas.bits``."""
    padded = np.zeros((rows.shape[0], -(-rows.shape[1] // 64) * 64), np.bool_)
    padded[:, : rows.shape[1]] = rows
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
