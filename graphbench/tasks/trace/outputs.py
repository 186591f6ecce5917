"""Checks of the outputs of algorithms: the caller's values become arrays in the form of a ``TrajectoryBatch``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.graphs import is_graphs, one_batch
from graphbench.evaluation.inputs import (
    Array,
    ScoreScale,
    Table,
    as_array,
    check_finite,
    mask_labels,
    refuse,
    refuse_large,
    refuse_overflow,
    too_large,
)

MASKED = -1
_ONE_HOT = (Kind.CATEGORICAL, Kind.MASK_ONE, Kind.POINTER, Kind.PERMUTATION)
_SHAPES = {Location.NODE: "[B, n]", Location.EDGE: "[B, n, n]", Location.GRAPH: "[B]"}


def outputs_of(values: Any, features: Sequence[Feature]) -> Any:
    """Return the outputs that a batch holds, by name; anything else as it is.

    Args:
        values: A ``TrajectoryBatch``, PyG graphs of one size, or outputs.
        features: The outputs.

    Raises:
        EvaluationError: If the graphs differ in size, or lack an output.
    """
    if hasattr(values, "outputs") and hasattr(values, "hints"):
        return values.outputs
    if not is_graphs(values):
        return values
    graphs = one_batch(values)
    count = int(getattr(graphs, "num_graphs", 1))
    nodes, uneven = divmod(int(graphs.num_nodes), count)
    sizes = np.diff(as_array(graphs.ptr, "ptr")) if getattr(graphs, "ptr", None) is not None else np.array([nodes])
    if uneven or (sizes != nodes).any():
        raise EvaluationError(
            f"the graphs have {sizes.min()} to {sizes.max()} nodes; give graphs of one size at a time"
        )
    shapes = {Location.NODE: (count, nodes), Location.EDGE: (count, nodes, nodes), Location.GRAPH: (count,)}
    outputs = {}
    for feature in features:
        if feature.name not in graphs:
            raise EvaluationError(f"the graphs have no output {feature.name!r}; load them with their outputs")
        array = as_array(graphs[feature.name], feature.name).reshape(shapes[feature.location])
        outputs[feature.name] = array.argmax(axis=1) if feature.kind is Kind.MASK_ONE else array
    return outputs


def _from_one_hot(values: Array, feature: Feature, name: str, is_truth: bool) -> Array:
    """Return one-hot rows (or scores) along the last axis as numbers, and -1 where a row is masked.

    The reference marks a masked row of the truth by a single -1 among zeros (``lcs_length``). A row of predictions may
    be scores, of which any may be -1: it is masked where all of it is.

    Raises:
        EvaluationError: If the axis has another length than there are classes.
    """
    if feature.classes and values.shape[-1] != feature.classes:
        raise EvaluationError(
            f"{name} has {values.shape[-1]} values per item; {feature.name!r} has {feature.classes} classes, one each"
        )
    marked = values == MASKED
    masked = marked.any(axis=-1) if is_truth else marked.all(axis=-1)
    return np.where(masked, MASKED, values.argmax(axis=-1))


def checked_outputs(
    features: Sequence[Feature], truth: Mapping[str, Any], predicted: Mapping[str, Any], scale: ScoreScale
) -> dict[str, tuple[Array, Array]]:
    """Return output name -> (truth, prediction), each ``[B, ...]``; predicted masks are bool.

    Args:
        features: The outputs.
        truth: Output name -> array or tensor: masks 0 and 1, class numbers, node numbers; -1 where masked.
        predicted: The same, for all outputs. Where the truth is masked, -1 is allowed too.
        scale: Scale of floating-point predictions of masks.

    Raises:
        EvaluationError: If an output is missing or empty, shapes or the number of samples or nodes disagree, or a value
            is not finite or not of the output's type.
    """
    pairs = {
        feature.name: (_table(truth, feature, "y_true"), _table(predicted, feature, "y_pred")) for feature in features
    }
    for expected, prediction in pairs.values():
        if expected.values.shape != prediction.values.shape:
            raise EvaluationError(
                f"{prediction.name} has shape {prediction.values.shape} but {expected.name} has "
                f"{expected.values.shape}; predict every item of every sample"
            )
    _common(pairs, 0, "samples")
    nodes = _common({name: pair for name, pair in pairs.items() if pair[0].values.ndim > 1}, 1, "nodes")
    checked = {}
    for feature in features:
        expected, prediction = pairs[feature.name]
        _check_truth(feature, expected, nodes)
        checked[feature.name] = (expected.values, _prediction(feature, expected, prediction, nodes, scale))
    return checked


def _table(values: Any, feature: Feature, which: str) -> Table:
    if not isinstance(values, Mapping):
        raise EvaluationError(f"{which} is a {type(values).__name__}; give a mapping from output names to arrays")
    if feature.name not in values:
        raise EvaluationError(
            f"{which} lacks the output {feature.name!r}; it has {', '.join(map(str, values)) or 'none'}"
        )
    table = Table(f"{which}[{feature.name!r}]", as_array(values[feature.name], f"{which}[{feature.name!r}]"))
    form = "[B]" if feature.kind is Kind.MASK_ONE else _SHAPES[feature.location]
    axes = form.count(",") + 1
    if feature.kind in _ONE_HOT and table.values.ndim == axes + 1 and table.values.size:
        check_finite(table, None)
        table = Table(table.name, _from_one_hot(table.values, feature, table.name, which == "y_true"))
    shape = table.values.shape
    if len(shape) != axes or (len(shape) == 3 and shape[1] != shape[2]):
        raise EvaluationError(f"{table.name} has shape {shape}; give {form}, as a TrajectoryBatch has it")
    if not table.values.size:
        raise EvaluationError(f"there is nothing to score: {table.name} is empty; give at least one item")
    check_finite(table, None)
    return table


def _common(pairs: Mapping[str, tuple[Table, Table]], axis: int, counted: str) -> int | None:
    """Return the length that all outputs have along an axis; None if there is none."""
    lengths = {name: expected.values.shape[axis] for name, (expected, _) in pairs.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r} {length}" for name, length in lengths.items())
        raise EvaluationError(f"the outputs differ in their {counted}: {listed}; give all outputs of the same samples")
    return next(iter(lengths.values()), None)


def _check_truth(feature: Feature, table: Table, nodes: int | None) -> None:
    values = table.values
    if feature.kind is Kind.MASK:
        allowed = f"the mask {feature.name!r} has targets 0 and 1, and {MASKED} where masked"
        refuse(table, (values != 0) & (values != 1) & (values != MASKED), allowed)
    elif feature.kind is not Kind.SCALAR:
        _check_numbers(feature, table, nodes, values == MASKED)


def _prediction(feature: Feature, expected: Table, prediction: Table, nodes: int | None, scale: ScoreScale) -> Array:
    values = prediction.values
    if feature.kind is Kind.SCALAR:
        refuse_large(expected)
        refuse_overflow(prediction, expected.values.dtype)
        refuse_large(prediction)
        return values.astype(np.float64)
    left_out = (expected.values == MASKED) & (values == MASKED)
    if feature.kind is Kind.MASK:
        return mask_labels(feature, Table(prediction.name, np.where(left_out, values.dtype.type(0), values)), scale)
    _check_numbers(feature, prediction, nodes, left_out)
    return values


def _check_numbers(feature: Feature, table: Table, nodes: int | None, left_out: Array) -> None:
    """Refuse values that are no class numbers or node numbers."""
    values, most = table.values, feature.classes or nodes
    allowed = f"{'class' if feature.classes else 'node'} numbers " + (f"0 to {most - 1}" if most else "from 0")
    bad = (values < 0) | too_large(values) | (values != np.floor(values))
    if most:
        bad |= values >= most
    refuse(table, bad & ~left_out, f"{feature.name!r} ({feature.type_name}) takes {allowed}")
