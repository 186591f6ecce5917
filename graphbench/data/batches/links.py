"""Samples whose hidden edges are asked for among candidate pairs of nodes.

A file holds all edges of a graph, and a mask that says which are hidden. A sample has the other edges, and the
candidate pairs of the hidden ones: see :class:`graphbench.catalog.links.LinksSpec` and
:mod:`graphbench.data.arrays.candidates`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature, Location
from graphbench.catalog.links import PAIRS, QUERIES, LinksSpec
from graphbench.core.ragged import offsets
from graphbench.data.arrays.candidates import Candidates, HiddenLinks
from graphbench.data.arrays.samples import Samples
from graphbench.data.batches.batching import FlatGraphs, on_device_with_offsets
from graphbench.data.batches.pair_fields import PairOffsets

_KEPT_PAIRS = 20_000_000  # candidates that are kept in memory, as their draw takes longer than a batch

Chosen = NDArray[np.int64] | slice


class LinkGraphs:
    """The samples of a file of graphs with hidden edges, with the interface of ``FlatGraphs``.

    Args:
        card: A card with links.
        stored: The stored graphs.
    """

    hints = None

    def __init__(self, card: Card, stored: FlatGraphs) -> None:
        assert card.links is not None
        self.stored, self.schema, self._spec = stored, card.sample_schema, card.links
        self.output = card.outputs[0].name
        self.values: Mapping[str, Any] = stored.values
        self._is_read = np.asarray(stored.values[self.output]) == 0
        self._kept: OrderedDict[int, Candidates] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of graphs."""
        return len(self.stored)

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features of samples, in the order of the card."""
        return self.schema.features

    @property
    def node_ptr(self) -> NDArray[Any]:
        """``[G + 1]``, first node of every graph."""
        return self.stored.node_ptr

    @property
    def edge_ptr(self) -> NDArray[np.int64]:
        """int64 ``[G + 1]``, first edge of every graph that models read."""
        return self._read.edge_ptr.astype(np.int64)

    @cached_property
    def _read(self) -> FlatGraphs:
        """The graphs with the edges that models read, and without the output."""
        stored, rows = self.stored, self._is_read
        features = tuple(f for f in stored.features if f.name != self.output)
        values = {
            f.name: stored.values[f.name][rows] if f.location is Location.EDGE else stored.values[f.name]
            for f in features
        }
        before = np.concatenate([[0], np.cumsum(rows)])
        ptr = before[np.asarray(stored.edge_ptr)]
        schema = replace(stored.schema, features=features)
        return FlatGraphs(stored.node_ptr, ptr, np.asarray(stored.edges)[: len(rows)][rows], values, schema)

    def hidden(self, graph: int) -> HiddenLinks:
        """Return the edges of a graph with its hidden links."""
        return hidden_links(self.stored.samples, graph, self.output, directed=self.schema.directed)

    def candidates(self, graph: int) -> Candidates:
        """Return the candidate pairs of a graph."""
        drawn = self._kept.get(graph)
        if drawn is None:
            drawn = candidates_of(self.hidden(graph), self._spec)
            self._kept[graph] = drawn
            while len(self._kept) > 1 and sum(len(one.query) for one in self._kept.values()) > _KEPT_PAIRS:
                self._kept.popitem(last=False)
        return drawn

    def gather(self, graphs: Chosen) -> dict[str, Any]:
        """Return the fields of a batch of graphs as NumPy arrays.

        Args:
            graphs: Graph numbers, or a slice of consecutive ones.

        Returns:
            The fields of :meth:`.FlatGraphs.gather` for the edges that models read; ``pair_index`` int64 ``[2, P]``,
            the candidate pairs; ``query_batch`` int64 ``[P]``, the query of every pair; and the output, int64 ``[P]``.
        """
        fields = self._read.gather(graphs)
        pairs, _ = joined_candidates(self._of(graphs), fields["ptr"])
        return {**fields, PAIRS: pairs.pairs, QUERIES: pairs.query, self.output: pairs.is_link.astype(np.int64)}

    def tensors(
        self, graphs: Chosen, device: torch.device | str | None
    ) -> tuple[dict[str, Any], torch.Tensor, torch.Tensor]:
        """Return the fields of a batch on a device, and the offsets of nodes and edges on the CPU."""
        return on_device_with_offsets(self.gather(graphs), device)

    def pair_offsets(self, graphs: Chosen) -> PairOffsets:
        """Return the offsets of candidate pairs and queries of a batch of graphs."""
        found = self._of(graphs)
        return PairOffsets.of([len(one.query) for one in found], [one.queries for one in found])

    def _of(self, graphs: Chosen) -> list[Candidates]:
        numbers = range(graphs.start, graphs.stop) if isinstance(graphs, slice) else graphs.tolist()
        return [self.candidates(graph) for graph in numbers]

    def redrawn(self, batch: Any, graphs: Sequence[int], queries: int, rng: np.random.Generator) -> Any:
        """Return a batch itself, after replacing its candidate pairs by others.

        Args:
            batch: A batch of some graphs.
            graphs: Their numbers.
            queries: Most links of a graph that are asked for.
            rng: Source of randomness.
        """
        drawn = [self.hidden(graph).candidates(self._spec.negatives, queries, rng) for graph in graphs]
        pairs, offsets_of_pairs = joined_candidates(drawn, batch.ptr.cpu().numpy())
        device = batch.ptr.device
        for name, value in (
            (PAIRS, pairs.pairs),
            (QUERIES, pairs.query),
            (self.output, pairs.is_link.astype(np.int64)),
        ):
            batch[name] = torch.from_numpy(value).to(device)
        batch.y = batch[self.output]
        offsets_of_pairs.set(batch, self.output)
        return batch


def hidden_links(samples: Samples, graph: int, output: str, *, directed: bool) -> HiddenLinks:
    """Return the edges of a stored graph with its hidden links.

    Args:
        samples: Stored graphs.
        graph: The number of the graph.
        output: The mask of hidden edges.
        directed: Whether an edge is an arc.
    """
    rows = samples.rows(Location.EDGE, graph, graph + 1)
    hidden = np.asarray(samples.values[output][rows])
    return HiddenLinks(int(samples.num_nodes[graph]), np.asarray(samples.edges[rows]), hidden, directed=directed)


def candidates_of(links: HiddenLinks, spec: LinksSpec) -> Candidates:
    """Return the candidate pairs of a graph that a card asks for."""
    return links.candidates(spec.negatives, spec.queries)


def joined_candidates(drawn: Sequence[Candidates], ptr: NDArray[np.int64]) -> tuple[Candidates, PairOffsets]:
    """Return the candidate pairs of several graphs as those of their batch.

    Args:
        drawn: The candidates of every graph.
        ptr: int64 ``[G + 1]``, first node of every graph in the batch.
    """
    place = PairOffsets.of([len(one.query) for one in drawn], [one.queries for one in drawn])
    before = offsets(np.array([one.queries for one in drawn], np.int64))
    empty = Candidates(np.empty((2, 0), np.int64), np.empty(0, np.int64), np.empty(0, bool))
    parts = [empty, *drawn]
    shifts = [0, *ptr[:-1].tolist()]
    pairs = np.concatenate([one.pairs + shift for one, shift in zip(parts, shifts, strict=True)], axis=1)
    first = [0, *before[:-1].tolist()]
    query = np.concatenate([one.query + number for one, number in zip(parts, first, strict=True)])
    return Candidates(pairs, query, np.concatenate([one.is_link for one in parts])), place
