"""Flows along the edges of a graph that neither begin nor end anywhere.

Any flow is the sum of the differences of a potential at the two ends of every edge, and of a circulation, of which as
much enters a node as leaves it; the two are orthogonal (the Hodge decomposition of functions on edges, see Lim, "Hodge
Laplacians on graphs", SIAM Review 62, 2020). A circulation is zero on a bridge, because nothing could flow back. The
circulation of random numbers is different from zero on every other edge, with probability one: on an edge of a single
cycle of L edges its standard deviation is ``1 / sqrt(L)``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.ragged import offsets

_MOST_DENSE = 1024  # nodes up to which the equations of a graph are solved as a dense matrix
_MOST_ENTRIES = 1 << 24  # of the matrices that are solved together


def circulations(sizes: NDArray[np.int64], edges: NDArray[np.int64], flows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the circulations in flows: their projections that are orthogonal to all differences of potentials.

    Args:
        sizes: int64 [B], the nodes of every graph.
        edges: int64 [2, M], the two ends of every edge, each edge once, in any direction; graph after graph, with nodes
            that are counted through the batch.
        flows: float64 [M, k], the flows from the first to the second end.

    Returns:
        float64 [M, k]; numbers that rounding alone keeps from zero are zero.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    (tails, heads), nodes = edges, int(sizes.sum())
    links = coo_matrix((np.ones(edges.shape[1]), (tails, heads)), shape=(nodes, nodes))
    _, component = connected_components(links, directed=False)
    excess = np.zeros((nodes, flows.shape[1]))
    np.add.at(excess, heads, flows)
    np.subtract.at(excess, tails, flows)
    potentials, ptr, edge_ptr = np.zeros_like(excess), offsets(sizes), np.searchsorted(tails, offsets(sizes))
    for size in np.unique(sizes).tolist():
        graphs = np.flatnonzero(sizes == size)
        at_once = max(1, _MOST_ENTRIES // max(size**2, 1)) if size <= _MOST_DENSE else 1
        solve = _solve_dense if size <= _MOST_DENSE else _solve_sparse
        for chunk in np.split(graphs, range(at_once, len(graphs), at_once)):
            rows = (ptr[chunk][:, None] + np.arange(size)).reshape(-1)
            local = [edges[:, edge_ptr[g] : edge_ptr[g + 1]] - ptr[g] + i * size for i, g in enumerate(chunk)]
            potentials[rows] = solve(size, np.concatenate(local, axis=1), component[rows], excess[rows])
    rest: NDArray[np.float64] = flows - (potentials[heads] - potentials[tails])
    rest[np.abs(rest) < 1e-9 * np.abs(flows).max(initial=1.0)] = 0.0
    return rest


def _solve_dense(
    size: int, edges: NDArray[np.int64], component: NDArray[np.int32], excess: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the potentials [B * size, k] of graphs of ``size`` nodes; their mean in every component is 0."""
    graphs = len(component) // size
    tails, heads = edges
    first = tails // size * size
    cells = [(u * size + v - first, sign) for u, v, sign in _entries(tails, heads)]
    positions, signs = np.concatenate([at for at, _ in cells]), np.repeat([sign for _, sign in cells], len(tails))
    laplacians = np.bincount(positions, signs, graphs * size * size).reshape(graphs, size, size)
    together = component.reshape(graphs, size)
    same = (together[:, :, None] == together[:, None, :]) / size  # makes the matrix invertible, changes no solution
    return np.linalg.solve(laplacians + same, excess.reshape(graphs, size, -1)).reshape(excess.shape)


def _solve_sparse(
    size: int, edges: NDArray[np.int64], component: NDArray[np.int32], excess: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the potentials [size, k] of one graph; the first node of every component has 0."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.linalg import splu

    cells = _entries(*edges)
    rows, columns = (np.concatenate([cell[i] for cell in cells]) for i in (0, 1))
    values = np.repeat([sign for *_, sign in cells], edges.shape[1])
    laplacian = coo_matrix((values, (rows, columns)), shape=(size, size)).tocsr()
    free = np.ones(size, np.bool_)
    free[np.unique(component, return_index=True)[1]] = False
    potentials = np.zeros_like(excess)
    if free.any():
        potentials[free] = splu(laplacian[free][:, free].tocsc()).solve(excess[free])
    return potentials


def _entries(
    tails: NDArray[np.int64], heads: NDArray[np.int64]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64], float]]:
    """Return rows, columns and values of the Laplacian's four entries of every edge."""
    return [(tails, tails, 1.0), (heads, heads, 1.0), (tails, heads, -1.0), (heads, tails, -1.0)]
