"""Datasets that ask for hidden edges: which edges of the graphs models read, and which links they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import CORE_SPLITS
from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.catalog.links import MOST_NEGATIVES, RULES, LinksSpec
from graphbench.core.errors import DataImportError
from graphbench.core.ragged import offsets
from graphbench.core.words import counted
from graphbench.data.arrays.link_heuristics import arc_keys, has_reverse
from graphbench.data.arrays.samples import Samples
from graphbench.data.batches.links import candidates_of, hidden_links
from graphbench.imports.collect import Collected, collect
from graphbench.imports.graphs import Column, RawGraph, feature_name
from graphbench.imports.splits import SplitRule, divided, numbered

TASK = "link"
"""The task, as ``task=`` names it."""

METRICS = ("mrr", ("hits_at_1", "hits_at_3", "hits_at_10"))
"""The metric that ranks models by default, and those that stand beside it."""

_LINK = "link"
_MOST_REVERSED = 0.5  # share of arcs with their reverse from which on a note says so


@dataclass(frozen=True)
class LinkRule:
    """Which edges are hidden, and how the candidates of a link are drawn.

    Attributes:
        hidden: Share of the edges of a graph that are links to ask for; of a single graph that of the training edges.
        negatives: Rule -> number of negatives of every link, see :class:`graphbench.catalog.links.LinksSpec`.
        queries: Most links of a graph that are asked for when it is scored.
    """

    hidden: float = 0.3
    negatives: Mapping[str, int] = field(default_factory=lambda: {"uniform": 25, "degree": 25})
    queries: int | None = 5000

    def spec(self) -> LinksSpec:
        """Return the section of the card.

        Raises:
            DataImportError: If a rule or a number is refused.
        """
        if isinstance(self.hidden, bool) or not isinstance(self.hidden, int | float) or not 0 < self.hidden < 1:
            raise DataImportError(f"hidden={self.hidden!r} is no share; give a number between 0 and 1, such as 0.3")
        if self.queries is not None and not _is_count(self.queries):
            raise DataImportError(f"queries={self.queries!r} is no number of links; give a whole number from 1 on")
        known = isinstance(self.negatives, Mapping) and self.negatives and set(self.negatives) <= set(RULES)
        if not known or not all(_is_count(count) and count <= MOST_NEGATIVES for count in self.negatives.values()):
            raise DataImportError(
                f"negatives={self.negatives!r:.200} is refused; give the number of negatives of every link by rule, "
                f"such as {{'uniform': 25, 'degree': 25}}: the rules are {', '.join(RULES)}, a number is at most "
                f"{MOST_NEGATIVES:,}"
            )
        return LinksSpec(negatives=dict(self.negatives), queries=self.queries)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def with_hidden_edges(folds: Sequence[Collected], rule: SplitRule, links: LinkRule) -> list[Collected]:
    """Return folds of several graphs, after hiding a share of the edges of each graph, at random.

    Raises:
        DataImportError: If a split has no graph with two edges.
    """
    rng = np.random.default_rng(rule.seed)
    return [_with_hidden(fold, fold.samples, links, rng) for fold in folds]


def folds_of_edges(
    graph: RawGraph,
    columns: Sequence[Column],
    rule: SplitRule,
    links: LinkRule,
    by: str | None,
    how: Mapping[str, Any],
) -> list[Collected]:
    """Return every fold of a single graph, whose edges are divided.

    Models read the training edges, and are asked for the other ones. Of the training edges themselves a share is
    hidden: at random, or the latest ones where the rule divides by time.

    Args:
        graph: The graph.
        columns: The columns that become features.
        rule: How edges are divided.
        links: Which training edges are hidden.
        by: Column of edges with the group or time that the rule divides by.
        how: Further arguments of :func:`~graphbench.imports.collect.collect`.

    Raises:
        DataImportError: If there are too few edges, or ``by`` names no column of edges.
    """
    if by is not None:
        order = _free_name(graph, by)
        numbers = numbered(rule, _values_of_edges(graph, by), "edge")
        graph = replace(graph, values={**graph.values, order: numbers})
        columns = [*columns, Column(order, Location.EDGE, Stage.META, "scalar")]
    collected = collect({"all": [graph]}, columns, **how)
    whole = collected.samples["all"]
    values = None
    if by is not None:
        values = whole.values[feature_name(order)]
        collected = _without(collected, [feature_name(order)])
    rng = np.random.default_rng(rule.seed)
    times = values if rule.how == "time" else None
    folds = divided(rule, int(whole.num_edges[0]), values, noun="edge")
    return [_fold_of_edges(collected, whole, fold, links, times, rng) for fold in folds]


def _values_of_edges(graph: RawGraph, name: str) -> NDArray[Any]:
    values = np.atleast_1d(graph.values.get(name, ()))
    if len(values) != graph.edges.shape[1]:
        raise DataImportError(
            f"by={name!r}: {graph.name} has {len(values)} values of it and {counted(graph.edges.shape[1], 'edge')}; "
            "the links of a single graph are divided by a column of edges"
        )
    return values


def _free_name(graph: RawGraph, by: str) -> str:
    """Return a name for the order of the values of a column, whose feature no column of the graph has."""
    name, taken = f"order of {by}", {feature_name(column) for column in graph.values}
    while feature_name(name) in taken:
        name += "_"
    return name


def notes_of_links(collected: Collected, spec: LinksSpec) -> list[str]:
    """Return what a user should know of the links of a dataset, one sentence each.

    Raises:
        DataImportError: If no link of a split has a negative.
    """
    return _short_queries(collected, spec) + _reversed_arcs(collected) + _two_sides(collected, spec)


def _short_queries(collected: Collected, spec: LinksSpec) -> list[str]:
    """Return notes on queries with fewer negatives than asked for, one per split that has any.

    Raises:
        DataImportError: If no link of a split has a negative.
    """
    notes, wanted = [], sum(spec.negatives.values())
    for split, samples in collected.samples.items():
        links = asked = short = 0
        for graph in range(len(samples)):
            hidden = hidden_links(samples, graph, _LINK, directed=collected.directed)
            drawn = candidates_of(hidden, spec)
            sizes = np.bincount(drawn.query) - 1 if len(drawn.query) else np.empty(0, np.int64)
            links += min(len(hidden.links), spec.queries or len(hidden.links))
            asked, short = asked + len(sizes), short + int((sizes < wanted).sum())
        if not asked:
            raise DataImportError(
                f"no link of the split {split!r} has a negative: every pair of nodes has an edge; links of complete "
                "graphs cannot be asked for"
            )
        if short or asked < links:
            left = f", and {counted(links - asked, 'link')} without any are left out" if asked < links else ""
            notes.append(
                f"{split}: {short:,} of {asked:,} links have fewer than {wanted} negatives, as their graph has no more"
                f"{left}"
            )
    return notes


def _reversed_arcs(collected: Collected) -> list[str]:
    """Return a note if edges are arcs and most arcs have their reverse, which then tells hidden arcs."""
    if not collected.directed:
        return []
    pairs, nodes = _numbered_nodes(collected.samples["train"])
    reverse = has_reverse(arc_keys(pairs.T, nodes), nodes, pairs)
    share = float(reverse[pairs[0] != pairs[1]].sum()) / max(len(reverse), 1)
    if share < _MOST_REVERSED:
        return []
    return [
        f"{share:.0%} of the arcs have their reverse, which models read while the arc is hidden; if edges have no "
        "direction, say directed=False (--undirected)"
    ]


def _two_sides(collected: Collected, spec: LinksSpec) -> list[str]:
    """Return a note if all arcs lead from some nodes to others, and negatives are drawn among both."""
    if not collected.directed or not {"uniform", "near"} & spec.negatives.keys():
        return []
    (sources, targets), nodes = _numbered_nodes(collected.samples["train"])
    is_source = np.zeros(nodes, bool)
    is_source[sources] = True
    if is_source[targets].any():
        return []
    return [
        "arcs lead from some nodes to other nodes, as from users to items, and many negatives are no items; draw them "
        "among the items with negatives={'ends': 50} (--negatives ends=50)"
    ]


def _numbered_nodes(samples: Samples) -> tuple[NDArray[np.int64], int]:
    """Return both ends of all edges, int64 ``[2, E]``, with nodes counted over all graphs, and the number of nodes."""
    first = offsets(samples.num_nodes)
    return samples.edges.T + np.repeat(first[:-1], samples.num_edges), int(first[-1])


def _without(collected: Collected, names: Sequence[str]) -> Collected:
    samples = {
        split: Samples(
            part.num_nodes, part.num_edges, part.edges, {k: v for k, v in part.values.items() if k not in names}
        )
        for split, part in collected.samples.items()
    }
    return replace(collected, features=tuple(f for f in collected.features if f.name not in names), samples=samples)


def _with_hidden(
    collected: Collected, samples: Mapping[str, Samples], links: LinkRule, rng: np.random.Generator
) -> Collected:
    """Return graphs with a share of the edges of each hidden, at random."""
    hidden = {}
    for split, part in samples.items():
        masks = [_share(int(edges), links.hidden, rng) for edges in part.num_edges]
        hidden[split] = _masked(part, np.concatenate(masks))
        if not hidden[split].values[_LINK].any():
            raise DataImportError(f"no graph of the split {split!r} has two edges or more, so that one can be hidden")
    return _finished(collected, hidden)


def _fold_of_edges(
    collected: Collected,
    whole: Samples,
    fold: Mapping[str, NDArray[np.int64]],
    links: LinkRule,
    times: NDArray[np.float64] | None,
    rng: np.random.Generator,
) -> Collected:
    """Return a graph per split: later splits read the edges of the splits before, and ask for their own ones."""
    edges = int(whole.num_edges[0])
    part = np.empty(edges, np.int64)
    for number, split in enumerate(CORE_SPLITS):
        part[fold[split]] = number
    train = fold["train"]
    if times is None:
        mask = _share(len(train), links.hidden, rng)
    else:  # the latest of the training edges
        mask = np.zeros(len(train), np.uint8)
        mask[np.argsort(times[train], kind="stable")[len(train) - _count(len(train), links.hidden) :]] = 1
    if not mask.any():
        raise DataImportError(f"{counted(edges, 'edge')} are too few to hide some in every split; give more edges")
    samples = {}
    for number, split in enumerate(CORE_SPLITS):
        kept = part <= number
        marks = (part == number).astype(np.uint8)
        if number == 0:
            marks[train] = mask
        values = {
            f.name: whole.values[f.name][kept] if f.location is Location.EDGE else whole.values[f.name]
            for f in collected.features
        }
        one = Samples(whole.num_nodes, np.array([int(kept.sum())], np.int64), whole.edges[kept], values)
        samples[split] = _masked(one, marks[kept])
    return _finished(collected, samples)


def _count(edges: int, share: float) -> int:
    """Return how many of some edges are hidden: at least one of two, and never all."""
    return min(max(round(share * edges), 1), edges - 1) if edges > 1 else 0


def _share(edges: int, share: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    mask = np.zeros(edges, np.uint8)
    mask[rng.permutation(edges)[: _count(edges, share)]] = 1
    return mask


def _masked(samples: Samples, mask: NDArray[np.uint8]) -> Samples:
    return Samples(samples.num_nodes, samples.num_edges, samples.edges, {**samples.values, _LINK: mask})


def _finished(collected: Collected, samples: dict[str, Samples]) -> Collected:
    link = Feature(_LINK, Stage.OUTPUT, Location.EDGE, Kind.MASK)
    return replace(collected, features=(*collected.features, link), samples=samples)
