"""Graphs of the user's own become folds: every split of each has its samples, and equal graphs are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphbench.catalog.cards import CORE_SPLITS
from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.errors import DataImportError
from graphbench.core.words import counted
from graphbench.data.arrays.hashing import sample_hashes
from graphbench.data.arrays.samples import Samples
from graphbench.imports.collect import Collected, collect
from graphbench.imports.columns import MASKS_OF_SPLITS, Choice, choose_columns
from graphbench.imports.graphs import Column, RawGraph
from graphbench.imports.links import TASK, LinkRule, folds_of_edges, notes_of_links, with_hidden_edges
from graphbench.imports.settings import Settings
from graphbench.imports.splits import SplitRule, divided


def collected_folds(
    given: Mapping[str, Sequence[RawGraph]] | Sequence[RawGraph], settings: Settings, usual: Sequence[str] | None
) -> tuple[list[Collected], list[str], bool]:
    """Return the graphs of every fold, notes for the user, and whether splits share graphs.

    Args:
        given: As for :func:`~graphbench.imports.dataset.import_graphs`.
        settings: How the graphs become a dataset.
        usual: Columns that are inputs where the user names none; None for all that are nothing else.

    Raises:
        DataImportError: If an option is wrong, a column or a split is missing, or splits share graphs unasked.
    """
    _check_task(settings)
    graphs = [g for part in given.values() for g in part] if isinstance(given, Mapping) else list(given)
    if not graphs:
        raise DataImportError("there are no graphs; give at least one per split")
    choice = settings.choice.without_target() if settings.asks_links else settings.choice
    columns, notes = choose_columns(graphs, choice, usual, settings.by)
    how: dict[str, Any] = {"directed": settings.directed, "repair": settings.repair}
    if settings.asks_links and not isinstance(given, Mapping) and len(graphs) == 1:
        folds = _folds_of_edges(graphs[0], columns, settings, how, notes)
        return folds, notes + folds[0].notes, True
    if isinstance(given, Mapping):
        missing = [split for split in CORE_SPLITS if not given.get(split)]
        if missing:
            raise DataImportError(
                f"there are no graphs for {missing[0]!r}, but for {', '.join(map(repr, given))}; give train, val and "
                "test, or all graphs together and a rule that divides them (split=)"
            )
        if not settings.asks_links and (settings.rule != SplitRule() or settings.by is not None):
            raise DataImportError(
                "the splits are given, so split=, by=, fractions=, seed= and folds= would divide nothing; leave them "
                "out, or give all graphs together"
            )
        whole = collect(given, columns, **how)
        folds = _asking([whole], settings, notes)
        return folds, notes + whole.notes, _shares_graphs(whole, settings)
    if len(graphs) == 1 and columns[-1].location is Location.NODE:
        folds = _folds_of_nodes(graphs[0], columns, settings, how, notes)
        return folds, notes + folds[0].notes, True
    whole = collect({"all": graphs}, columns, **how)
    folds = _asking(_folds_of_graphs(graphs, whole, settings, notes), settings, notes)
    return folds, notes + whole.notes, any(_shares_graphs(fold, settings) for fold in folds)


def _check_task(settings: Settings) -> None:
    """Refuse options of links that are wrong, or belong to another task than the one that is asked for."""
    choice = settings.choice
    if settings.asks_links:
        settings.links.spec()
        if choice.target != Choice().target:
            raise DataImportError(
                f"target={choice.target!r} and task='link' exclude each other: hidden edges are the target"
            )
    else:
        if (choice.task or "").split(" ")[0] in (TASK, Location.PAIR.value):
            raise DataImportError(f"task={choice.task!r} is unknown; say task='link' to hide edges and ask for them")
        if settings.links != LinkRule():
            raise DataImportError("hidden, negatives and queries are options of task='link', which is not asked for")


def _folds_of_edges(
    graph: RawGraph, columns: Sequence[Column], settings: Settings, how: Mapping[str, Any], notes: list[str]
) -> list[Collected]:
    if settings.by is not None and not isinstance(settings.by, str):
        raise DataImportError("by= of the edges of a graph is the name of a column; put the values into the graph")
    masks = [name for name in MASKS_OF_SPLITS if name in graph.values]
    if masks:
        notes.append(f"{', '.join(masks)} divide nodes; edges are divided by split={settings.rule.how!r}")
    folds = folds_of_edges(graph, columns, settings.rule, settings.links, settings.by, how)
    notes += notes_of_links(folds[0], settings.links.spec())
    return folds


def _asking(folds: list[Collected], settings: Settings, notes: list[str]) -> list[Collected]:
    """Return folds of several graphs with hidden edges, if the dataset asks for links; else the folds themselves."""
    if not settings.asks_links:
        return folds
    hidden = with_hidden_edges(folds, settings.rule, settings.links)
    notes += notes_of_links(hidden[0], settings.links.spec())
    return hidden


def _folds_of_graphs(
    graphs: Sequence[RawGraph], whole: Collected, settings: Settings, notes: list[str]
) -> list[Collected]:
    schema, samples = whole.schema, whole.samples["all"]
    by: Any = settings.by
    if isinstance(by, str):
        lacking = next((graph.name for graph in graphs if len(np.atleast_1d(graph.values.get(by, ()))) != 1), None)
        if lacking is not None:
            raise DataImportError(f"by={by!r}: {lacking} has no single value of this name; name a column of graphs")
        by = np.array([np.atleast_1d(graph.values[by])[0] for graph in graphs])
    elif by is None and settings.rule.how == "size":
        by = samples.num_nodes
    elif by is None:
        hashes = sample_hashes(samples, schema, unique_inputs=True)
        _, by = np.unique(hashes, axis=0, return_inverse=True)
        by = by.reshape(-1)
        copies = len(by) - len(np.unique(by))
        if copies and settings.rule.how == "random":
            notes.append(f"{counted(copies, 'graph')} equal others in edges and inputs; equal graphs are in one split")
        by = by if settings.rule.how == "random" else None
    return [
        Collected(
            whole.features,
            whole.classes,
            whole.directed,
            {split: samples.take(schema, numbers) for split, numbers in fold.items()},
            whole.notes,
        )
        for fold in divided(settings.rule, len(graphs), by)
    ]


def _folds_of_nodes(
    graph: RawGraph, columns: Sequence[Column], settings: Settings, how: Mapping[str, Any], notes: list[str]
) -> list[Collected]:
    """Return every fold of a single graph: each split has the graph, with the labels of its own nodes alone."""
    whole = collect({"all": [graph]}, columns, **how)
    targets = [f for f in whole.features if f.stage is Stage.OUTPUT]
    numbers = [
        f.name for f in targets if f.kind not in (Kind.MASK, Kind.CATEGORICAL) or f.location is not Location.NODE
    ]
    if numbers:
        raise DataImportError(
            f"the target {numbers[0]!r} of a single graph cannot be divided by nodes: only masks and classes of nodes "
            "may be missing; give several graphs"
        )
    masks = {split: np.asarray(graph.values[mask]) for mask, split in MASKS_OF_SPLITS.items() if mask in graph.values}
    if masks and settings.rule == SplitRule() and settings.by is None:
        folds = _folds_of_masks(graph, masks)
    else:
        if masks:
            notes.append("the masks of the graph are not used, because a rule of division is given")
        by = graph.values[settings.by] if isinstance(settings.by, str) else settings.by
        folds = divided(settings.rule, graph.num_nodes, by)
    samples = whole.samples["all"]
    return [
        Collected(
            whole.features,
            whole.classes,
            whole.directed,
            {split: _with_labels_at(samples, targets, nodes, split) for split, nodes in fold.items()},
            whole.notes,
        )
        for fold in folds
    ]


def _folds_of_masks(graph: RawGraph, masks: Mapping[str, Any]) -> list[dict[str, Any]]:
    if masks.keys() != set(CORE_SPLITS):
        raise DataImportError(
            f"{graph.name} has masks for {', '.join(masks)} alone; give train_mask, val_mask, test_mask"
        )
    tables = {split: mask.reshape(len(mask), -1).astype(bool) for split, mask in masks.items()}
    if any(len(table) != graph.num_nodes for table in tables.values()):
        raise DataImportError(f"the masks of {graph.name} have not one row per node; give [nodes] or [nodes, folds]")
    folds = []
    for k in range(next(iter(tables.values())).shape[1]):
        fold = {split: np.flatnonzero(table[:, min(k, table.shape[1] - 1)]) for split, table in tables.items()}
        if (np.bincount(np.concatenate(list(fold.values())), minlength=1) > 1).any():
            raise DataImportError(f"a node of {graph.name} is in two masks; give every node to one split")
        empty = [split for split, nodes in fold.items() if not nodes.size]
        if empty:
            raise DataImportError(f"the mask of {empty[0]} of {graph.name} has no node")
        folds.append(fold)
    return folds


def _with_labels_at(samples: Samples, targets: Sequence[Feature], nodes: Any, split: str) -> Samples:
    values = dict(samples.values)
    for feature in targets:
        kept = np.full_like(values[feature.name], -1)
        kept[nodes] = values[feature.name][nodes]
        if not (kept >= 0).any():
            raise DataImportError(f"no node of the split {split!r} has a label {feature.name!r}; choose other splits")
        values[feature.name] = kept
    return Samples(samples.num_nodes, samples.num_edges, samples.edges, values)


def _shares_graphs(collected: Collected, settings: Settings) -> bool:
    """Return whether splits have equal graphs.

    Raises:
        DataImportError: If they have, and the settings do not allow it.
    """
    schema = collected.schema
    known: dict[str, Any] = {}
    for split, samples in collected.samples.items():
        known[split] = np.unique(sample_hashes(samples, schema, unique_inputs=True), axis=0)
    names = list(known)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            both = np.concatenate([known[first], known[second]])
            common = len(both) - len(np.unique(both, axis=0))
            if common and not settings.overlap:
                raise DataImportError(
                    f"{counted(common, 'graph')} of {second!r} also occur in {first!r} (equal edges and inputs), so "
                    "scores there would reward remembering; remove the copies, let split='random' divide all graphs, "
                    "which keeps equal ones together, or say overlap=True (--overlap)"
                )
            if common:
                return True
    return False
