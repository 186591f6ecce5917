"""Types of columns that are read from their values: masks, classes, numbers and texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.errors import DataImportError
from graphbench.core.words import counted
from graphbench.imports.graphs import Array, Column, RawGraph, feature_name

MOST_CLASSES = 256
"""Most classes of a column of whole numbers that is read as classes; columns with more are numbers."""

_USUAL_CLASSES = 20  # a target with more classes, some of which never occur, may be an amount
_MOST_ROUNDED = 0.9  # share of different numbers that stay different as float32
_MOST_COLUMNS_OF_CLASSES = 32
_MISSING = -1  # the stored value of a missing class or mask


def typed_features_of(
    graphs: Sequence[RawGraph], columns: Sequence[Column], notes: list[str]
) -> tuple[list[Feature], dict[str, list[Array]], dict[str, list[str]]]:
    """Return the features of the columns, feature -> its array in every graph, and feature -> names of its classes."""
    features: list[Feature] = []
    arrays: dict[str, list[Array]] = {}
    classes: dict[str, list[str]] = {}
    for column in columns:
        values = [graph.values[column.name] for graph in graphs]
        if any(array.dtype.kind in "UO" for array in values):
            feature, feature_arrays, names = _feature_of_texts(column, values)
            typed_features: Iterable[tuple[Feature, list[Array]]] = [(feature, feature_arrays)]
            classes |= {feature.name: names} if names else {}
        else:
            typed_features = _features_of_numbers(column, values, notes)
        for feature, feature_arrays in typed_features:
            if feature.name in arrays:
                raise DataImportError(f"two columns become the feature {feature.name!r}; rename one of them")
            features.append(feature)
            arrays[feature.name] = feature_arrays
    return features, arrays, classes


def _feature_of_texts(column: Column, values: list[Array]) -> tuple[Feature, list[Array], list[str]]:
    """Return the feature of a column of texts, its arrays, and the names of its classes; no names where it is a text.

    Texts with at most :data:`MOST_CLASSES` different values are classes; an empty text is a missing class of a target.
    """
    texts = [["" if text is None else str(text) for text in array.reshape(-1)] for array in values]
    names = sorted(
        {text for graph_texts in texts for text in graph_texts} - ({""} if column.stage is Stage.OUTPUT else set())
    )
    if column.type_name == "text" or (column.type_name is None and len(names) > MOST_CLASSES):
        if column.location is Location.EDGE:
            raise DataImportError(f"{column.name!r} is a text at edges, which is not supported; leave it out")
        return _feature(column, "text"), [np.array(graph_texts, object) for graph_texts in texts], []
    if column.type_name not in (None, "categorical"):
        raise DataImportError(f"{column.name!r} has texts such as {names[0]!r:.80}, which are no {column.type_name}")
    if len(names) < 2:
        raise DataImportError(
            f"{column.name!r} is {names[0]!r:.80} everywhere; leave it out"
            if names
            else (f"{column.name!r} has no value in any graph; leave it out")
        )
    number = {name: i for i, name in enumerate(names)} | ({"": _MISSING} if "" not in names else {})
    whole = [np.array([number[text] for text in graph_texts], np.int64) for graph_texts in texts]
    return _feature(column, f"categorical({len(names)})"), whole, names


def _features_of_numbers(
    column: Column, values: list[Array], notes: list[str]
) -> Iterable[tuple[Feature, list[Array]]]:
    """Return the features of a column of numbers: one, or one per column where these are masks or classes."""
    shapes = {array.shape[1:] for array in values}
    if len(shapes) > 1 or len(shape := shapes.pop()) > 1:
        raise DataImportError(
            f"{column.name!r} has rows of the shapes {sorted(map(str, {a.shape[1:] for a in values}))}; give every "
            "graph the same number of columns"
        )
    width = shape[0] if shape else 1
    if width == 0:
        raise DataImportError(f"{column.name!r} has no columns; leave it out")
    table = np.concatenate([array.reshape(len(array), width) for array in values])
    type_name = column.type_name or _type_of(table, column)
    if type_name.startswith("scalar"):
        _refuse_missing(column, table)
        _compare_rounded(column, table, notes)
        flat = [array.reshape(len(array), width)[:, 0] if width == 1 else array for array in values]
        feature = _feature(column, "scalar" if width == 1 else f"scalar({width})")
        return [(feature, [array.astype(np.float32) for array in flat])]
    typed_features = []
    for j in range(width):
        of_column = type_name
        if type_name == "categorical":
            classes = max(2, int(np.nanmax(table[:, j], initial=0)) + 1)
            of_column = f"categorical({classes})"
        feature = _feature(column, of_column, f"_{j}" if width > 1 else "")
        feature_arrays = [_whole(array.reshape(len(array), width)[:, j], feature, column) for array in values]
        typed_features.append((feature, feature_arrays))
        if column.stage is Stage.OUTPUT:
            _note_labels(feature, np.concatenate(feature_arrays), table, notes)
    if type_name == "categorical" and column.type_name is None and _may_be_amounts(column, typed_features):
        which = f"the {width} columns of {column.name!r} are" if width > 1 else f"{column.name!r} is"
        notes.append(
            f"{which} read as classes, as the values are whole numbers; if they are amounts, say "
            f"types={{{column.name!r}: 'scalar'}} (--type {column.name}=scalar)"
        )
    return typed_features


def _may_be_amounts(column: Column, typed_features: Sequence[tuple[Feature, list[Array]]]) -> bool:
    """Return whether classes that were found from values should be named: inputs, and many classes with gaps."""
    return column.stage is Stage.INPUT or any(
        feature.classes > max(_USUAL_CLASSES, len(np.unique(np.concatenate(arrays))))
        for feature, arrays in typed_features
    )


def _note_labels(feature: Feature, labels: Array, table: Array, notes: list[str]) -> None:
    """Say how many labels are missing; refuse labels of -1 and 1, of which -1 would be read as missing."""
    missing = int((labels == _MISSING).sum())
    known = np.unique(labels[labels != _MISSING])
    if missing and known.size == 1 and table.dtype.kind != "f":
        raise DataImportError(
            f"the target {feature.name!r} is {known[0]} everywhere but at {counted(missing, 'label')} of -1, which "
            "marks a missing label; if -1 is a class, write 0 for it"
        )
    if missing:
        notes.append(
            f"{missing:,} of {counted(labels.size, 'label')} of {feature.name!r} are missing (-1 or nan), and count in "
            "no loss and no score"
        )
    if known.size == 1:
        notes.append(f"all known labels of {feature.name!r} are {known[0]}")


def _compare_rounded(column: Column, table: Array, notes: list[str]) -> None:
    """Say where different numbers become equal as float32, in which numbers are stored; refuse it where all do."""
    exact, rounded = (len(np.unique(values)) for values in (table, table.astype(np.float32)))
    if exact > 1 and rounded == 1:
        raise DataImportError(
            f"the {exact:,} different numbers of {column.name!r} are all {np.float32(table.flat[0])} as float32; "
            "subtract their mean"
        )
    if rounded < _MOST_ROUNDED * exact:
        notes.append(
            f"{column.name!r} has {exact:,} different numbers, and {rounded:,} as float32, in which they are stored; "
            "subtract their mean if the difference matters"
        )


def _type_of(table: Array, column: Column) -> str:
    """Return the type of a table of all rows of a column: ``mask``, ``categorical`` or ``scalar``."""
    known = table[~np.isnan(table)] if table.dtype.kind == "f" else table
    if table.dtype.kind == "b":
        return "mask" if table.shape[1] == 1 or column.stage is Stage.OUTPUT else "scalar"
    if not known.size:
        raise DataImportError(f"{column.name!r} has no value in any graph; leave it out")
    if table.dtype.kind == "f":
        binary = column.stage is Stage.OUTPUT and bool(np.isin(known, (0, 1)).all())
        return "mask" if binary else "scalar"
    most = int(known.max())
    lowest = int(known.min())
    if column.stage is Stage.OUTPUT:
        lowest = max(lowest, 0) if lowest == _MISSING else lowest  # -1 is the usual mark of a missing label
    if lowest < 0 or most >= MOST_CLASSES or table.shape[1] > _MOST_COLUMNS_OF_CLASSES:
        return "scalar"
    return "mask" if most <= 1 and column.stage is Stage.OUTPUT else "categorical"


def _whole(values: Array, feature: Feature, column: Column) -> Array:
    """Return a column of masks or classes as int64, missing values as -1."""
    if values.dtype.kind == "f":
        missing = np.isnan(values)
        if (values[~missing] != np.floor(values[~missing])).any():
            wrong = values[~missing & (values != np.floor(values))][0]
            raise DataImportError(f"{column.name!r} holds {wrong}, which is no {feature.type_name}; call it a scalar")
        values = np.where(missing, _MISSING, values)
    whole = values.astype(np.int64)
    most = 1 if feature.kind is Kind.MASK else feature.classes - 1
    least = _MISSING if feature.stage is Stage.OUTPUT else 0
    wrong = whole[(whole < least) | (whole > most)]
    if wrong.size:
        raise DataImportError(f"{column.name!r} holds {wrong[0]}; a {feature.type_name} has values from 0 to {most}")
    return whole


def _refuse_missing(column: Column, table: Array) -> None:
    wrong = ~np.isfinite(table) if table.dtype.kind == "f" else np.zeros(table.shape, bool)
    if wrong.any():
        raise DataImportError(
            f"{column.name!r} has {counted(int(wrong.sum()), 'value')} of numbers that are not finite; leave these "
            "samples out (labels may be missing where they are masks and classes, not where they are numbers)"
        )


def _feature(column: Column, type_name: str, ending: str = "") -> Feature:
    words = [column.stage.value, column.location.value, type_name]
    return Feature.parse(feature_name(column.name) + ending, words)
