"""Datasets that ask for hidden edges: which edges of the graphs models read, and which links they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import CORE_SPLITS
from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.catalog.links import LinksSpec
from graphbench.core.errors import DataImportError
from graphbench.core.words import counted
from graphbench.data.arrays.samples import Samples
from graphbench.imports.graphs import Collected, Column, RawGraph, collect, feature_name
from graphbench.imports.splits import SplitRule, divided

TASK = "link"
"""The task, as ``task=`` names it."""

METRICS = ("mrr", ("hits_at_1", "hits_at_3", "hits_at_10"))
"""The metric that ranks models by default, and those that stand beside it."""

_LINK = "link"


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
        if not 0 < self.hidden < 1:
            raise DataImportError(f"hidden={self.hidden} is no share; give a number between 0 and 1, such as 0.3")
        try:
            return LinksSpec(negatives=dict(self.negatives), queries=self.queries)
        except ValueError as error:
            raise DataImportError(
                f"negatives={dict(self.negatives)} or queries={self.queries} is refused: {error}"
            ) from error


def folds_of_links(
    given: Mapping[str, Sequence[RawGraph]] | Sequence[RawGraph],
    columns: Sequence[Column],
    rule: SplitRule,
    links: LinkRule,
    by: str | None,
    how: Mapping[str, Any],
) -> list[Collected]:
    """Return every fold of a dataset that asks for hidden edges.

    The edges of a single graph are divided: models read the training edges, and are asked for the other ones. Of the
    training edges themselves a share is hidden. Of several graphs a share of the edges of each is hidden, at random.

    Args:
        given: Split -> its graphs; or all graphs, which the rule divides; or a single graph, whose edges it divides.
        columns: The columns that become features.
        rule: How samples are divided.
        links: Which edges are hidden.
        by: Column of edges (of a single graph) or graphs with the group or time that the rule divides by.
        how: Further arguments of :func:`~graphbench.imports.graphs.collect`.

    Raises:
        DataImportError: If there are too few edges, or ``by`` names no fitting column.
    """
    if any(feature_name(column.name) == _LINK for column in columns):
        raise DataImportError(f"a column is named {_LINK!r}, as the mask of hidden edges is; rename it")
    parts = given if isinstance(given, Mapping) else {"all": given}
    single = not isinstance(given, Mapping) and len(given) == 1
    helper = [] if by is None or by in {c.name for c in columns} else [_column_of(parts, by, single=single)]
    collected = collect(parts, [*columns, *helper], **how)
    values = None if by is None else next(iter(collected.samples.values())).values.get(feature_name(by))
    collected = _without(collected, [feature_name(column.name) for column in helper])
    rng = np.random.default_rng(rule.seed)
    if isinstance(given, Mapping):
        return [_with_hidden(collected, collected.samples, links, rng)]
    whole = collected.samples["all"]
    if not single:
        folds = divided(rule, len(whole), values)
        schema = collected.schema
        return [
            _with_hidden(collected, {split: whole.take(schema, rows) for split, rows in fold.items()}, links, rng)
            for fold in folds
        ]
    times = values if rule.how == "time" else None
    folds = divided(rule, int(whole.num_edges[0]), values)
    return [_fold_of_edges(collected, whole, fold, links, times, rng) for fold in folds]


def _column_of(parts: Mapping[str, Sequence[RawGraph]], name: str, *, single: bool) -> Column:
    graph = next(graph for graphs in parts.values() for graph in graphs)
    rows, wanted = len(np.atleast_1d(graph.values.get(name, ()))), graph.edges.shape[1] if single else 1
    if rows != wanted:
        what = "edge" if single else "graph"
        raise DataImportError(
            f"by={name!r}: {graph.name} has {rows} values of it; links of {'a graph' if single else 'graphs'} are "
            f"divided by a column of {what}s, which has {counted(wanted, 'value')}"
        )
    return Column(name, Location.EDGE if single else Location.GRAPH, Stage.META, "scalar")


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
