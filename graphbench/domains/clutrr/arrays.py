"""Puzzles with stories as flat arrays, and choosing some of them in any order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.ragged import offsets, take_runs
from graphbench.core.rng import next_u64, seed
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts

Array = NDArray[Any]


@dataclass(frozen=True)
class PuzzlesWithStories:
    """Puzzles with their stories, one after the other.

    Attributes:
        num_nodes: int64 ``[S]``, people per puzzle, V in all.
        num_edges: int64 ``[S]``, facts per puzzle, E in all.
        edges: int ``[E, 2]``, people (x, y) of every fact, numbered within the puzzle.
        by_node: Features with one value per person, ``[V]``.
        by_edge: Features with one value per fact, ``[E]``.
        by_graph: Features with one value per puzzle, ``[S]``.
        names: V names.
        texts: Feature -> S texts.
    """

    num_nodes: NDArray[np.int64]
    num_edges: NDArray[np.int64]
    edges: Array
    by_node: dict[str, Array]
    by_edge: dict[str, Array]
    by_graph: dict[str, Array]
    names: Sequence[str]
    texts: dict[str, Sequence[str]]


def chosen_samples(parts: Sequence[PuzzlesWithStories], chosen: NDArray[np.int64]) -> Samples:
    """Return the chosen puzzles, numbered through all parts, in the form that is stored."""
    nodes = np.concatenate([part.num_nodes for part in parts])
    edges = np.concatenate([part.num_edges for part in parts])

    def taken(counts: NDArray[np.int64], arrays: Iterable[Array]) -> Array:
        joined = np.ascontiguousarray(np.concatenate(list(arrays)))
        return take_runs(joined, offsets(counts)[chosen], offsets(counts[chosen]))

    values: dict[str, Any] = {}
    for name in parts[0].by_node:
        values[name] = taken(nodes, (part.by_node[name] for part in parts))
    for name in parts[0].by_edge:
        values[name] = taken(edges, (part.by_edge[name] for part in parts))
    for name in parts[0].by_graph:
        values[name] = np.concatenate([part.by_graph[name] for part in parts])[chosen]
    for name in parts[0].texts:
        values[name] = Texts.of([text for part in parts for text in part.texts[name]])[chosen]
    names = Texts.of([name for part in parts for name in part.names])
    values["name"] = names.take(offsets(nodes)[chosen], offsets(nodes[chosen]))
    local = taken(edges, (part.edges for part in parts))
    return Samples(nodes[chosen], edges[chosen], local, values)


def marks(places: NDArray[np.int64], num_nodes: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return 1 at one person of every puzzle, 0 at the others; uint8 ``[V]``.

    Args:
        places: int64 ``[S]``, the number of a person within the puzzle.
        num_nodes: int64 ``[S]``, people per puzzle.
    """
    flags = np.zeros(int(num_nodes.sum()), np.uint8)
    flags[offsets(num_nodes)[:-1] + places] = 1
    return flags


@kernel
def story_seeds(key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a random number for the story of every sample; uint64 ``[S]``, a function of key, index and attempt."""
    seeds = np.empty(indices.shape[0], np.uint64)
    for i in range(indices.shape[0]):
        state = seed(key, indices[i], attempts[i], 0)
        seeds[i] = next_u64(state)
    return seeds
