"""New interactions of the simulated network: who answers whom for the first time after a day."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.ragged import distinct_values
from graphbench.data.arrays.samples import Samples
from graphbench.domains.social.simulator import Network
from graphbench.domains.social.snapshots import Snapshot
from graphbench.domains.social.tables import Interactions

LINK = "link"


def new_pairs(
    users: NDArray[np.int64], edges: NDArray[Any], interactions: Interactions, after: int, until: int
) -> NDArray[np.int32]:
    """Return the pairs of users who interact in an interval for the first time, rising, int32 ``[L, 2]``.

    Args:
        users: int64 ``[n]``, rising: the nodes.
        edges: int ``[E, 2]``, the pairs of nodes who interacted before.
        interactions: The interactions, of one kind.
        after: The interval begins after this minute.
        until: The interval ends with this minute.
    """
    table = np.full(int(max(users[-1], interactions.source.max(initial=0), interactions.target.max(initial=0))) + 1, -1)
    table[users] = np.arange(len(users))
    rows = (interactions.time > after) & (interactions.time <= until)
    source, target = table[interactions.source[rows]], table[interactions.target[rows]]
    kept = (source >= 0) & (target >= 0) & (source != target)
    keys = distinct_values(source[kept] * len(users) + target[kept])
    before = edges[:, 0].astype(np.int64) * len(users) + edges[:, 1]
    keys = keys[~np.isin(keys, before, assume_unique=True)]
    return np.stack(np.divmod(keys, len(users)), axis=1).astype(np.int32)


def links_as_samples(snapshots: list[tuple[Snapshot, NDArray[np.int32]]]) -> Samples:
    """Return snapshots with new pairs as samples: the edges of the snapshot, and the new pairs, which are links."""
    joined = [_sorted(snapshot.edges, pairs) for snapshot, pairs in snapshots]
    edges, hidden = zip(*joined, strict=True)
    values = {
        "content": np.concatenate([snapshot.content for snapshot, _ in snapshots]),
        "past": np.concatenate([snapshot.past for snapshot, _ in snapshots]),
        "activity": np.log1p(np.concatenate([snapshot.posts for snapshot, _ in snapshots])).astype(np.float32),
        LINK: np.concatenate(hidden),
    }
    nodes = np.array([len(snapshot.users) for snapshot, _ in snapshots], np.int64)
    return Samples(nodes, np.array([len(part) for part in edges], np.int64), np.concatenate(edges), values)


def _sorted(edges: NDArray[Any], links: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Return edges and links together, rising, int ``[E + L, 2]``, and 1 for every link, uint8 ``[E + L]``."""
    both = np.concatenate([edges, links])
    order = np.lexsort((both[:, 1], both[:, 0]))
    return both[order], (order >= len(edges)).astype(np.uint8)


def check_links(network: Network, times: tuple[int, int, int], kind: str, samples: Samples, index: int) -> list[str]:
    """Return the differences between the edges of a sample and the history, by sorted pairs of users.

    Args:
        network: The history.
        times: ``(t0, t1, t2)``: edges are of ``(t0, t1]``, links of ``(t1, t2]``.
        kind: Kind of interactions.
        samples: Samples.
        index: Position of the checked sample.
    """
    t0, t1, t2 = times
    posts, interactions = network.posts, network.interactions[kind]
    seen, later = (np.unique(posts.user[(posts.time > a) & (posts.time <= b)]) for a, b in ((t0, t1), (t1, t2)))
    both = np.intersect1d(seen, later)

    def pairs_of(after: int, until: int, users: NDArray[Any]) -> NDArray[Any]:
        rows = (interactions.time > after) & (interactions.time <= until) & (interactions.source != interactions.target)
        rows &= np.isin(interactions.source, users) & np.isin(interactions.target, users)
        return np.stack([interactions.source[rows], interactions.target[rows]], axis=1).astype(np.int64)

    before = np.unique(pairs_of(t0, t1, both), axis=0)
    users = np.unique(before)
    twice = np.concatenate([before, before, np.unique(pairs_of(t1, t2, users), axis=0)])
    pairs, times_listed = np.unique(twice, axis=0, return_counts=True)
    expected = {0: before, 1: pairs[times_listed == 1]}
    rows = slice(int(samples.edge_ptr[index]), int(samples.edge_ptr[index + 1]))
    edges, hidden = samples.edges[rows], np.asarray(samples.values[LINK][rows])
    if samples.num_nodes[index] != len(users):
        return [f"graph {index} has {samples.num_nodes[index]:,} nodes, and the history gives {len(users):,}"]
    problems = []
    for mark, name in ((0, "edges"), (1, "links")):
        stored = users[edges[hidden == mark]]
        if not np.array_equal(stored[np.lexsort((stored[:, 1], stored[:, 0]))], expected[mark]):
            problems.append(
                f"graph {index} has {len(stored):,} {name}, and the history other ones ({len(expected[mark]):,})"
            )
    return problems


def link_statistics(parameters: Any, samples: Samples) -> dict[str, NDArray[np.float64]]:
    """Return the number of links per graph, and the share of them whose target has no edge into it yet."""
    links, new = [], []
    for i in range(len(samples)):
        rows = slice(int(samples.edge_ptr[i]), int(samples.edge_ptr[i + 1]))
        edges, hidden = samples.edges[rows], np.asarray(samples.values[LINK][rows]) == 1
        reached = np.bincount(edges[~hidden, 1], minlength=int(samples.num_nodes[i])) > 0
        links.append(float(hidden.sum()))
        new.append(float(np.mean(~reached[edges[hidden, 1]])) if hidden.any() else 0.0)
    return {"links": np.array(links), "links_to_new_targets": np.array(new)}
