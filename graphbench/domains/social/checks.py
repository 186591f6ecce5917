"""The check of snapshots by sets and sorted lists of the history, without the kernels that build snapshots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.data.arrays.samples import Samples
from graphbench.domains.social.simulator import Network
from graphbench.domains.social.tables import COUNTS

_CHECKED_NODES = 200  # number of nodes for which values are computed again


def check_snapshot(
    network: Network, times: tuple[int, int, int], settings: tuple[str, str, bool], samples: Samples, index: int
) -> list[str]:
    """Return the differences between a sample and the history of which it is a snapshot; empty if there are none.

    All nodes and edges are computed again from the tables; past, activity, targets and content for 200 nodes.

    Args:
        network: The history.
        times: ``(t0, t1, t2)``, as for :func:`~.snapshots.snapshot`.
        settings: Kind of interactions, definition of the median of an even number, whether loops are edges.
        samples: Samples.
        index: Position of the checked sample.
    """
    (t0, t1, t2), (kind, median, loops) = times, settings
    posts, interactions = network.posts, network.interactions[kind]
    seen, later = (posts.time > t0) & (posts.time <= t1), (posts.time > t1) & (posts.time <= t2)
    kept = np.intersect1d(posts.user[seen], posts.user[later])
    rows = (
        (interactions.time > t0)
        & (interactions.time <= t1)
        & np.isin(interactions.source, kept)
        & np.isin(interactions.target, kept)
    )
    if not loops:
        rows &= interactions.source != interactions.target
    pairs = np.unique(np.stack([interactions.source[rows], interactions.target[rows]], axis=1).astype(np.int64), axis=0)
    users = np.unique(pairs)
    nodes = slice(int(samples.node_ptr[index]), int(samples.node_ptr[index + 1]))
    edges = samples.edges[samples.edge_ptr[index] : samples.edge_ptr[index + 1]]
    if len(users) != samples.num_nodes[index] or len(pairs) != len(edges):
        return [
            f"graph {index} has {samples.num_nodes[index]:,} nodes and {len(edges):,} edges, the history gives "
            f"{len(users):,} and {len(pairs):,}"
        ]
    if not np.array_equal(np.searchsorted(users, pairs), edges):
        return [f"graph {index} has other edges than the history"]
    problems = []
    step = max(1, len(users) // _CHECKED_NODES)
    by_user = np.argsort(posts.user, kind="stable")
    ordered = posts.user[by_user]
    for node in range(0, len(users), step):
        first, last = np.searchsorted(ordered, users[node], "left"), np.searchsorted(ordered, users[node], "right")
        mine = by_user[first:last]
        expected = {
            "past": _log_medians(network, mine[seen[mine]], median),
            "targets": _log_medians(network, mine[later[mine]], median),
            "activity": np.log1p(seen[mine].sum()),
            "content": _content(network, int(users[node]), t0, t1),
        }
        values = {name: samples.values[name][nodes][node] for name in ("past", "activity", "content")}
        values["targets"] = np.array([samples.values[name][nodes][node] for name in COUNTS])
        for name, value in expected.items():
            if not np.allclose(values[name], value, rtol=2e-3, atol=2e-3 if name == "content" else 1e-6):
                problems.append(f"node {node} of graph {index} has {name} {values[name]}, the history gives {value}")
    return problems


def _log_medians(network: Network, rows: NDArray[np.int64], median: str) -> NDArray[np.float64]:
    log_medians = []
    for name in COUNTS:
        counts = sorted(getattr(network.posts, name)[rows].tolist())
        low, high = counts[(len(counts) - 1) // 2], counts[len(counts) // 2]
        log_medians.append(np.log1p(low if median == "lower" else (low + high) / 2))
    return np.array(log_medians)


def _content(network: Network, user: int, t0: int, t1: int) -> NDArray[np.float64]:
    contents = network.posts.contents
    assert contents is not None
    rows = (contents.user == user) & (contents.time > t0) & (contents.time <= t1)
    return np.asarray(contents.vectors[rows].astype(np.float64).mean(axis=0))
