"""Which columns of graphs become inputs and outputs, and where a row of each belongs: to nodes, edges or the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphbench.catalog.features import Kind, Location, Stage
from graphbench.core.errors import DataImportError
from graphbench.core.suggestions import closest
from graphbench.imports.graphs import Column, RawGraph

_PLACES = (Location.NODE, Location.EDGE, Location.GRAPH)
_USUAL_LOCATION = {"x": Location.NODE, "pos": Location.NODE, "z": Location.NODE}
MASKS_OF_SPLITS = {"train_mask": "train", "val_mask": "val", "test_mask": "test"}
"""Columns that say which nodes of a graph belong to which split, as PyG names them."""


@dataclass(frozen=True)
class Choice:
    """What the user says about the columns.

    Attributes:
        target: Name of the target, or of several targets.
        inputs: Names of the inputs; None for the usual ones of the source.
        meta: Names of columns that are stored and that no model reads.
        task: ``<location> <type>`` of the target, such as ``graph mask``; the type may be left out. None finds both
            from the values. ``link`` asks for hidden edges, and there is no target.
        types: Column -> type, as a card writes it: ``scalar``, ``mask``, ``categorical`` or ``categorical(5)``.
    """

    target: str | Sequence[str] = "y"
    inputs: Sequence[str] | None = None
    meta: Sequence[str] = ()
    task: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets."""
        return (self.target,) if isinstance(self.target, str) else tuple(self.target)

    def without_target(self) -> Choice:
        """Return the choice for a task whose targets are the edges; the usual target ``y`` is left out."""
        return replace(self, target=(), task=None)


def choose_columns(
    graphs: Sequence[RawGraph], choice: Choice, usual: Sequence[str] | None, by: Any = None
) -> tuple[list[Column], list[str]]:
    """Return the columns that become features, inputs first, and what was left out, in words.

    Args:
        graphs: All graphs.
        choice: What the user says.
        usual: The columns that are inputs where the user names none; None for all that are nothing else.
        by: What divides the graphs; a column of this name is no input, unless the user names it.

    Raises:
        DataImportError: If a named column is missing, a type or a location is none, or rows of a column fit nowhere.
    """
    names = list(dict.fromkeys(name for graph in graphs for name in graph.values))
    for role, wanted in (("target", choice.targets), ("inputs", choice.inputs or ()), ("meta", choice.meta)):
        for name in wanted:
            if name not in names:
                hint = closest(name, names)
                raise DataImportError(
                    f"{role} names {name!r}{hint}; the graphs have {', '.join(map(repr, names)) or 'no columns'}"
                )
    for name in choice.types:
        if name not in names:
            raise DataImportError(f"types names {name!r}, which the graphs lack{closest(name, names)}")
    only_divides = {by} if isinstance(by, str) else set()
    taken = {*choice.targets, *choice.meta, *MASKS_OF_SPLITS, *only_divides}
    left = [name for name in names if name not in taken]
    inputs = list(choice.inputs) if choice.inputs is not None else [n for n in left if usual is None or n in usual]
    both = [name for name in inputs if name in choice.targets]
    if both:
        raise DataImportError(
            f"{both[0]!r} is a target and an input; an input that is the target makes every task easy"
        )
    location, type_name = _task_words(choice.task)
    columns = [_column(graphs, name, Stage.INPUT, choice, None) for name in inputs]
    columns += [_column(graphs, name, Stage.META, choice, None) for name in choice.meta]
    for name in choice.targets:
        column = _column(graphs, name, Stage.OUTPUT, choice, location)
        columns.append(Column(column.name, column.location, column.stage, column.type_name or type_name))
    ignored = [name for name in left if name not in inputs]
    notes = (
        [f"left out: {', '.join(map(repr, ignored))}; name columns in inputs= or meta= to keep them"] if ignored else []
    )
    return columns, notes


def _task_words(task: str | None) -> tuple[Location | None, str | None]:
    if task is None:
        return None, None
    location, _, kind = task.strip().partition(" ")
    if location not in _PLACES:
        raise DataImportError(
            f"task={task!r} is unknown; write where the target is and its type, such as 'graph mask', 'node "
            "categorical', 'edge scalar', or 'link' to ask for hidden edges"
        )
    return Location(location), _checked_type(kind.strip(), f"task={task!r}") if kind.strip() else None


def _checked_type(word: str, where: str) -> str:
    kinds = (Kind.SCALAR, Kind.MASK, Kind.CATEGORICAL, Kind.TEXT)
    base = word.partition("(")[0]
    if base not in kinds or (base != word and not (word.endswith(")") and word[len(base) + 1 : -1].isdigit())):
        raise DataImportError(
            f"{where}: {word!r} is no type of a column; write scalar (numbers), mask (0 and 1), categorical (classes) "
            "or text"
        )
    return word


def _column(graphs: Sequence[RawGraph], name: str, stage: Stage, choice: Choice, location: Location | None) -> Column:
    type_name = choice.types.get(name)
    column_location = location or _location(graphs, name)
    return Column(name, column_location, stage, _checked_type(type_name, f"types[{name!r}]") if type_name else None)


def _location(graphs: Sequence[RawGraph], name: str) -> Location:
    """Return where the rows of a column belong in all graphs.

    Raises:
        DataImportError: If they fit nowhere.
    """
    fitting = set(_PLACES)
    for graph in graphs:
        rows = len(np.atleast_1d(graph.values[name])) if name in graph.values else None
        counts = {Location.NODE: graph.num_nodes, Location.EDGE: graph.edges.shape[1], Location.GRAPH: 1}
        still = {place for place in fitting if rows is None or counts[place] == rows}
        if not still:
            raise DataImportError(
                f"{graph.name} has {rows} rows of {name!r}, which are not one per graph, node ({graph.num_nodes}) or "
                f"edge ({graph.edges.shape[1]}), or not as in the other graphs; a target of several numbers per graph "
                "has the shape [1, numbers]"
            )
        fitting = still
    order = [_USUAL_LOCATION.get(name, Location.GRAPH), Location.GRAPH, Location.NODE, Location.EDGE]
    if "edge" in name:
        order.insert(0, Location.EDGE)
    return next(place for place in order if place in fitting)
