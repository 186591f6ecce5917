"""Random numbers for the graphs of a batch: the same for a graph alone and in any batch.

The generator of a graph depends on the graph's arcs and on one number, which is drawn for every training step and is 0
when a model is scored. Isomorphic graphs whose nodes have other numbers draw other values.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphbench.models.arcs import occurrences
from graphbench.models.circulations import circulations
from graphbench.models.graphs import Layout

_FINEST = 1000.0  # circulations that are much smaller than its reciprocal are hardly told from zero


class GraphNoise:
    """One random generator per graph of a batch.

    Args:
        layout: The batch, on the CPU.
        draw: The number that all generators depend on, at least 0.
    """

    def __init__(self, layout: Layout, draw: int = 0) -> None:
        self.layout, self.draw = layout, draw

    def normal(self, counts: NDArray[np.int64], width: int) -> Tensor:
        """Return ``width`` standard normal numbers for ``counts[g]`` items of every graph g, float32 [items, width]."""
        parts = [
            generator.standard_normal((count, width), dtype=np.float32)
            for generator, count in zip(self.generators(), counts.tolist(), strict=True)
        ]
        return torch.from_numpy(np.concatenate(parts)) if parts else torch.zeros(0, width)

    def of_edges(self, width: int) -> Tensor:
        """Return ``width`` standard normal numbers for every edge, float32 [M, width].

        The two directions of an undirected edge share them.
        """
        layout = self.layout
        counts = occurrences(layout.graph[layout.edges[0]], layout.num_graphs)
        return self.normal(counts.numpy(), width)

    def circulations(self, width: int) -> Tensor:
        """Return ``width`` circulations of standard normal numbers on a logarithmic scale, float32 [M, width].

        A number c is ``sign(c) log(1 + 1000 |c|) / log(1001)``, because circulations on long cycles are small, see
        :mod:`~graphbench.models.circulations`.
        An undirected edge has its number in the direction from its smaller to its larger node, and the opposite number
        in the other direction. A directed edge has its number in its direction.
        """
        flows = self.of_edges(width).numpy().astype(np.float64)
        edges = self.layout.edges.numpy()
        circulating = circulations(self.layout.sizes.numpy(), edges, flows)
        scaled = np.sign(circulating) * np.log1p(_FINEST * np.abs(circulating)) / np.log1p(_FINEST)
        return torch.from_numpy(scaled.astype(np.float32))

    def generators(self) -> list[np.random.Generator]:
        """Return the generators of all graphs, newly started."""
        layout = self.layout
        arcs = layout.edge_index.numpy()
        owners = layout.graph.numpy()[arcs[0]]
        order = np.argsort(owners, kind="stable")
        local = np.ascontiguousarray((arcs - layout.ptr.numpy()[owners])[:, order].T)
        bounds = np.searchsorted(owners[order], np.arange(layout.num_graphs + 1))
        return [
            np.random.Generator(np.random.Philox(key=[self.draw, _key(nodes, local[first:end])]))
            for nodes, first, end in zip(layout.sizes.tolist(), bounds[:-1], bounds[1:], strict=True)
        ]


def _key(nodes: int, arcs: NDArray[np.int64]) -> int:
    """Return a number that tells graphs apart."""
    digest = hashlib.blake2b(arcs.tobytes(), digest_size=8, key=nodes.to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little")
