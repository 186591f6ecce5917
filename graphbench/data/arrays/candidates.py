"""Candidate pairs of nodes: hidden edges of a graph, each with negatives that are drawn by rule.

The candidates are a function of the graph and of the numbers of negatives alone: equal graphs have equal candidates, in
any split, batch or subset. Their seed is a hash of the stored edges.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.ragged import distinct_values

_ROUNDS = 16  # attempts to draw a node that may be a negative, before all such nodes of a source are listed
_SEED_BYTES = 8

Nodes = NDArray[np.int64]


@dataclass(frozen=True)
class Candidates:
    """The candidate pairs of one graph, query after query.

    Attributes:
        pairs: int64 ``[2, P]``, sources and targets, local to the graph.
        query: int64 ``[P]``, the number of the query of every pair, ascending.
        is_link: bool ``[P]``, whether the pair is the link that the query asks for: one pair per query.
    """

    pairs: Nodes
    query: Nodes
    is_link: NDArray[np.bool_]

    @property
    def queries(self) -> int:
        """Number of queries."""
        return int(self.query[-1]) + 1 if len(self.query) else 0


class HiddenLinks:
    """One graph with edges that models read, and links that they are asked for.

    Args:
        nodes: Number of nodes.
        edges: int ``[E, 2]``, the stored edges.
        hidden: ``[E]``, 1 for links that are asked for.
        directed: Whether an edge is an arc.

    Attributes:
        links: int64 ``[L, 2]``, the links.
        read: int64 ``[R, 2]``, the edges that models read.
    """

    def __init__(self, nodes: int, edges: NDArray[Any], hidden: NDArray[Any], *, directed: bool) -> None:
        self.nodes, self.directed = nodes, directed
        self._edges = np.ascontiguousarray(edges, np.int64)
        self._is_hidden = np.asarray(hidden) != 0
        self.links = self._edges[self._is_hidden]
        arcs = self._edges if directed else np.concatenate([self._edges, self._edges[:, ::-1]])
        self._taken = distinct_values(arcs[:, 0] * nodes + arcs[:, 1])
        self.read = self._edges[~self._is_hidden]
        self._arcs = self.read if directed else np.concatenate([self.read, self.read[:, ::-1]])

    def seed(self) -> int:
        """Return the seed of the candidates: the first bytes of SHA-256 of the number of nodes and the stored edges."""
        digest = hashlib.sha256(f"candidates|{self.nodes}|{self.directed}|".encode())
        digest.update(np.ascontiguousarray(self._edges, "<i8").data)
        digest.update(self._is_hidden.tobytes())
        return int.from_bytes(digest.digest()[:_SEED_BYTES], "little")

    def candidates(
        self, negatives: Mapping[str, int], queries: int | None = None, rng: np.random.Generator | None = None
    ) -> Candidates:
        """Return candidate pairs, in an order within every query that says nothing.

        A query has fewer negatives where the graph has fewer, and a link without any is not asked for.

        Args:
            negatives: Rule -> number of negatives of every link; see :class:`graphbench.catalog.links.LinksSpec`.
            queries: Most links that are asked for; None for all.
            rng: Source of randomness; None for the one of the graph's seed, which gives the same candidates always.
        """
        rng = np.random.Generator(np.random.Philox(self.seed())) if rng is None else rng
        links = self.links
        if queries is not None and len(links) > queries:
            links = links[np.sort(rng.choice(len(links), queries, replace=False))]
        if not self.directed:  # either end may be the source
            links = np.where(rng.random(len(links))[:, None] < 0.5, links, links[:, ::-1])
        sources, total = links[:, 0], sum(negatives.values())
        rule_of = np.repeat(np.arange(len(negatives)), list(negatives.values()))  # of every column
        of_ends = np.array(list(negatives))[rule_of] == "ends"
        drawn = np.zeros((len(links), total), np.int64)
        missing = np.ones((len(links), total), bool)
        for _ in range(_ROUNDS):
            rows, columns = np.nonzero(missing)
            if not len(rows):
                break
            for number, rule in enumerate(negatives):
                here = rule_of[columns] == number
                drawn[rows[here], columns[here]] = self._drawn(rule, sources[rows[here]], rng)
            missing = self._unfit(sources, drawn)
        for row in np.flatnonzero(missing.any(axis=1)):
            missing[row] = self._filled(int(sources[row]), drawn[row], missing[row], of_ends, rng)
        asked = ~missing.all(axis=1)
        links, sources, drawn, missing = links[asked], sources[asked], drawn[asked], missing[asked]
        kept = np.concatenate([np.ones((len(links), 1), bool), ~missing], axis=1).reshape(-1)
        targets = np.concatenate([links[:, 1:], drawn], axis=1).reshape(-1)
        query = np.repeat(np.arange(len(links)), total + 1)
        order = np.lexsort((rng.random(len(query)), query))
        order = order[kept[order]]
        is_link = (np.arange(len(query)) % (total + 1) == 0)[order]
        return Candidates(np.stack([np.repeat(sources, total + 1)[order], targets[order]]), query[order], is_link)

    def _unfit(self, sources: Nodes, drawn: Nodes) -> NDArray[np.bool_]:
        """Return which drawn nodes are no negatives: the source itself, a neighbour, or drawn already."""
        keys = sources[:, None] * self.nodes + drawn
        position = np.searchsorted(self._taken, keys).clip(max=max(len(self._taken) - 1, 0))
        unfit: NDArray[np.bool_] = (drawn == sources[:, None]) | (self._taken[position] == keys)
        order = np.argsort(drawn, axis=1, kind="stable")
        ordered = np.take_along_axis(drawn, order, axis=1)
        repeated = np.zeros_like(unfit)
        repeated[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
        again = np.zeros_like(unfit)
        np.put_along_axis(again, order, repeated, axis=1)
        return unfit | again

    def _filled(
        self, source: int, drawn: Nodes, missing: Any, of_ends: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.bool_]:
        """Write nodes that no rule found into the missing places of a query, and return what is still missing.

        They are chosen among all nodes that may be negatives, as the rules rarely draw them; the rule ``ends`` leaves
        places missing rather than break its promise.
        """
        first, last = np.searchsorted(self._taken, [source * self.nodes, (source + 1) * self.nodes])
        free = np.ones(self.nodes, bool)
        free[source] = False
        free[self._taken[first:last] - source * self.nodes] = False
        free[drawn[~missing]] = False
        still = np.zeros(len(drawn), bool)
        for restricted in (True, False):
            places = np.flatnonzero(missing & (of_ends == restricted))
            if not len(places):
                continue
            chosen = rng.permutation(np.flatnonzero(free & self._is_end if restricted else free))[: len(places)]
            drawn[places[: len(chosen)]] = chosen
            free[chosen] = False
            still[places[len(chosen) :]] = True
        return still

    def _drawn(self, rule: str, sources: Nodes, rng: np.random.Generator) -> Nodes:
        """Return int64 ``[sources]``, a node that a rule draws for every source."""
        if rule == "uniform" or not len(self._arcs):
            return rng.integers(0, self.nodes, len(sources))
        if rule == "degree":
            ends: Nodes = self._arcs[rng.integers(0, len(self._arcs), len(sources)), 1]
            return ends
        if rule == "ends":
            return self._ends[rng.integers(0, len(self._ends), len(sources))]
        return self._step(self._step(sources, rng), rng)

    def _step(self, nodes: Nodes, rng: np.random.Generator) -> Nodes:
        """Return a random neighbour of every node, in either direction; any node where there is none."""
        starts, ends = self._neighbours
        first, count = starts[nodes], starts[nodes + 1] - starts[nodes]
        moved = first + np.floor(rng.random(nodes.shape) * count).astype(np.int64)
        anywhere = rng.integers(0, self.nodes, nodes.shape)
        return np.where(count > 0, ends[moved.clip(max=len(ends) - 1)], anywhere)

    @cached_property
    def _is_end(self) -> NDArray[np.bool_]:
        """Whether an edge that models read ends at a node, bool ``[nodes]``; all nodes, if they read no edge."""
        is_end = np.full(self.nodes, not len(self._arcs))
        is_end[self._arcs[:, 1]] = True
        return is_end

    @cached_property
    def _ends(self) -> Nodes:
        """The nodes at which an edge ends that models read."""
        return np.flatnonzero(self._is_end)

    @cached_property
    def _neighbours(self) -> tuple[Nodes, Nodes]:
        """Offsets int64 ``[nodes + 1]`` and ends of the edges that models read, in both directions."""
        both = np.concatenate([self._arcs, self._arcs[:, ::-1]]) if self.directed else self._arcs
        order = np.argsort(both[:, 0], kind="stable")
        return np.searchsorted(both[order, 0], np.arange(self.nodes + 1)), both[order, 1]
