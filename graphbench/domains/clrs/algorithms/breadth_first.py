"""Breadth-first search (Cormen et al., section 22.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.arguments import directed_graph_with_source
from graphbench.domains.clrs.recording import Log, NodeMask, NodePointer, record

_GRAPH_AND_SOURCE = "pos:node/scalar, s:node/mask_one, A:edge/scalar, adj:edge/mask"


class BfsHints(NamedTuple):
    """The hints of ``bfs``."""

    reach_h: NodeMask
    pi_h: NodePointer


@algorithm(directed_graph_with_source, inputs=_GRAPH_AND_SOURCE, hints=BfsHints, outputs="pi:node/pointer")
def bfs(log: Log, A: NDArray[np.float64], s: int, hints: BfsHints, pi: NDArray[np.int32]) -> None:
    """Breadth-first search (section 22.2): one step per level of the tree; a node's parent is its lowest neighbour."""
    n = A.shape[0]
    hints.pi_h[:] = np.arange(n)
    hints.reach_h[s] = 1
    record(log)
    while True:
        reached = hints.reach_h.copy()
        for u in range(n):
            for v in range(n):
                if reached[u] and A[u, v] != 0 and not hints.reach_h[v]:
                    hints.reach_h[v] = 1
                    hints.pi_h[v] = u
        if np.array_equal(reached, hints.reach_h):
            break
        record(log)
    pi[:] = hints.pi_h
