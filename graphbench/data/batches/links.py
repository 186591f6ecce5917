"""Samples whose hidden edges are asked for among candidate pairs of nodes.

A file holds all edges of a graph, and a mask that says which are hidden. A sample has the other edges, and the
candidate pairs of the hidden ones: see :class:`graphbench.catalog.links.LinksSpec` and
:mod:`graphbench.data.arrays.candidates`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

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

_MOST_KEPT = 20_000_000  # candidates, and edges, that are kept in memory, as both take longer to make than a batch

Chosen = NDArray[np.int64] | slice
_T = TypeVar("_T")


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
        self._links: _Recent[HiddenLinks] = _Recent(lambda links: len(links.links) + len(links.read))
        self._candidates: _Recent[Candidates] = _Recent(lambda drawn: len(drawn.query))

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
        stored, rows = self.stored, np.asarray(self.stored.values[self.output]) == 0
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
        samples, directed = self.stored.samples, self.schema.directed
        return self._links.get(graph, lambda: hidden_links(samples, graph, self.output, directed=directed))

    def candidates(self, graphs: Chosen) -> list[Candidates]:
        """Return the candidate pairs of some graphs."""
        numbers = range(graphs.start, graphs.stop) if isinstance(graphs, slice) else graphs.tolist()
        return [self._candidates.get(n, partial(self._drawn, n)) for n in numbers]

    def _drawn(self, graph: int) -> Candidates:
        return candidates_of(self.hidden(graph), self._spec)

    def gather(self, graphs: Chosen) -> dict[str, Any]:
        """Return the fields of a batch of graphs as NumPy arrays.

        Args:
            graphs: Graph numbers, or a slice of consecutive ones.

        Returns:
            The fields of :meth:`.FlatGraphs.gather` for the edges that models read; ``pair_index`` int64 ``[2, P]``,
            the candidate pairs; ``query_batch`` int64 ``[P]``, the query of every pair; and the output, int64 ``[P]``.
        """
        fields = self._read.gather(graphs)
        return fields | self._fields(self.candidates(graphs), fields["ptr"])

    def _fields(self, drawn: Sequence[Candidates], ptr: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Return the fields at candidate pairs of a batch; see :meth:`gather`."""
        joined = joined_candidates(drawn, ptr)
        return {PAIRS: joined.pairs, QUERIES: joined.query, self.output: joined.is_link.astype(np.int64)}

    def tensors(
        self, graphs: Chosen, device: torch.device | str | None
    ) -> tuple[dict[str, Any], torch.Tensor, torch.Tensor]:
        """Return the fields of a batch on a device, and the offsets of nodes and edges on the CPU."""
        return on_device_with_offsets(self.gather(graphs), device)

    def redrawn(self, batch: Any, graphs: Sequence[int], queries: int, rng: np.random.Generator) -> Any:
        """Return a batch itself, after replacing its candidate pairs by others.

        Args:
            batch: A batch of some graphs.
            graphs: Their numbers.
            queries: Most links of a graph that are asked for.
            rng: Source of randomness.
        """
        drawn = [self.hidden(graph).candidates(self._spec.negatives, queries, rng) for graph in graphs]
        for name, value in self._fields(drawn, batch.ptr.cpu().numpy()).items():
            batch[name] = torch.from_numpy(value).to(batch.ptr.device)
        batch.y = batch[self.output]
        PairOffsets.of(drawn).set(batch, self.output)
        return batch


class _Recent(Generic[_T]):
    """The last values by number, as long as their sizes together are at most :data:`_MOST_KEPT`; one at least.

    Args:
        size: Returns the size of a value.
    """

    def __init__(self, size: Callable[[_T], int]) -> None:
        self._size, self._total = size, 0
        self._values: dict[int, _T] = {}

    def get(self, number: int, make: Callable[[], _T]) -> _T:
        """Return the value of a number, which is made if it is not there."""
        if number not in self._values:
            value = self._values[number] = make()
            self._total += self._size(value)
            while self._total > _MOST_KEPT and len(self._values) > 1:
                self._total -= self._size(self._values.pop(next(iter(self._values))))
        return self._values[number]


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


def joined_candidates(drawn: Sequence[Candidates], ptr: NDArray[np.int64]) -> Candidates:
    """Return the candidate pairs of several graphs as those of their batch.

    Args:
        drawn: The candidates of every graph.
        ptr: int64 ``[G + 1]``, first node of every graph in the batch.
    """
    first = offsets(np.array([one.queries for one in drawn], np.int64))
    parts = [Candidates(np.empty((2, 0), np.int64), np.empty(0, np.int64), np.empty(0, bool))]
    parts += [
        Candidates(one.pairs + ptr[graph], one.query + first[graph], one.is_link) for graph, one in enumerate(drawn)
    ]
    return Candidates(
        np.concatenate([one.pairs for one in parts], axis=1),
        np.concatenate([one.query for one in parts]),
        np.concatenate([one.is_link for one in parts]),
    )
