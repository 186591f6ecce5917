"""The tables with which PyG separates the candidate pairs of the graphs of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from graphbench.catalog.links import PAIRS, QUERIES
from graphbench.core.errors import GraphBenchError
from graphbench.data.arrays.candidates import Candidates


@dataclass(frozen=True)
class PairOffsets:
    """Where the candidate pairs and the queries of every graph of a batch begin.

    Attributes:
        pairs: int64 ``[G + 1]``.
        queries: int64 ``[G + 1]``.
    """

    pairs: torch.Tensor
    queries: torch.Tensor

    @classmethod
    def of(cls, drawn: Sequence[Candidates]) -> PairOffsets:
        """Return the offsets in a batch of graphs with these candidates."""
        counts = [len(one.query) for one in drawn], [one.queries for one in drawn]
        return cls(*(torch.tensor([0, *numbers], dtype=torch.long).cumsum(0) for numbers in counts))

    def set(self, batch: Any, output: str) -> None:
        """Fill the tables with which PyG separates a batch, for the fields at pairs.

        Args:
            batch: The batch.
            output: The output at pairs, which is also ``y``.
        """
        nodes, zero = batch.ptr.cpu()[:-1], torch.zeros(len(self.pairs) - 1, dtype=torch.long)
        for name, shift in ((PAIRS, nodes), (QUERIES, self.queries[:-1]), (output, zero), ("y", zero)):
            batch._slice_dict[name] = self.pairs
            batch._inc_dict[name] = shift


def check_pairs(graphs: Sequence[Any], sizes: Sequence[int]) -> None:
    """Refuse graphs whose candidate pairs no longer belong to their nodes.

    Args:
        graphs: Graphs after a transform.
        sizes: Their numbers of nodes before it.

    Raises:
        GraphBenchError: If a transform changed the number of nodes, or of the pairs alone.
    """
    for graph, nodes in zip(graphs, sizes, strict=True):
        pairs, queries = graph[PAIRS].shape[1], len(graph[QUERIES])
        if int(graph.num_nodes) != nodes or pairs != queries or pairs != len(graph.y):
            raise GraphBenchError(
                f"after the transform a graph has {int(graph.num_nodes)} nodes (before it {nodes}), {pairs} columns of "
                f"{PAIRS}, {queries} rows of {QUERIES} and {len(graph.y)} of y; a transform of graphs with candidate "
                "pairs keeps the nodes, and the rows of pairs together"
            )
