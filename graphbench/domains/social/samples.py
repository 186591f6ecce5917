"""Snapshots as samples of a dataset, and their statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.data.arrays.samples import Samples
from graphbench.domains.social.snapshots import Snapshot
from graphbench.domains.social.tables import COUNTS


def snapshot_as_samples(snapshots: Sequence[Snapshot]) -> Samples:
    """Return snapshots as samples with the features of the ``social`` cards; the numbers of users are left out."""

    def joined(name: str) -> NDArray[Any]:
        parts = [getattr(part, name) for part in snapshots]
        return np.concatenate(parts)  # copies the array even if there is a single part

    targets = joined("targets")
    values = {
        "content": joined("content"),
        "past": joined("past"),
        "activity": np.log1p(joined("posts")).astype(np.float32),
        **{name: np.ascontiguousarray(targets[:, i]) for i, name in enumerate(COUNTS)},
    }
    return Samples(
        np.array([len(part.users) for part in snapshots], np.int64),
        np.array([len(part.edges) for part in snapshots], np.int64),
        joined("edges"),
        values,
    )


def degree_statistics(parameters: Any, samples: Samples) -> dict[str, NDArray[np.float64]]:
    """Return statistics of the in-degrees and targets, and the share of loops, per graph.

    ``top_in_degree_share`` is the share of arcs that end at the hundredth of the nodes with the largest in-degrees.
    """
    statistics: dict[str, list[float]] = {}
    for i in range(len(samples)):
        edges = samples.edges[samples.edge_ptr[i] : samples.edge_ptr[i + 1]]
        nodes = slice(int(samples.node_ptr[i]), int(samples.node_ptr[i + 1]))
        of_graph = {f"zero_{name}": float(np.mean(samples.values[name][nodes] == 0)) for name in COUNTS}
        of_graph |= {f"mean_{name}": float(np.mean(samples.values[name][nodes], dtype=np.float64)) for name in COUNTS}
        degrees = np.sort(np.bincount(edges[:, 1], minlength=nodes.stop - nodes.start))[::-1]
        of_graph["largest_in_degree"] = float(degrees[0])
        of_graph["no_in_degree"] = float(np.mean(degrees == 0))
        of_graph["top_in_degree_share"] = float(degrees[: -(-len(degrees) // 100)].sum() / max(len(edges), 1))
        of_graph["loops"] = float(np.mean(edges[:, 0] == edges[:, 1]))
        for name, value in of_graph.items():
            statistics.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in statistics.items()}
