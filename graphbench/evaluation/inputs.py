"""Checks of targets and predictions: from arrays, tensors or lists of per-graph arrays to :class:`Items`.

Nothing is guessed from the values: the dtype and the ``scores`` setting define the meaning of a prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.casting import overflowing
from graphbench.core.errors import EvaluationError
from graphbench.core.foreign import class_name, text_of
from graphbench.data.arrays.answers import exact_match
from graphbench.evaluation.metrics.items import Items

Array = NDArray[Any]
AS_LOGITS = 'use Evaluator(..., scores="logit")'  # a remedy, which the command line replaces by its option
_NUMPY_FLOATS = ("float16", "float32", "float64")
_LARGEST = 1e140  # of scalars: sums of their squares stay finite
_MISSING = -1  # a target of a mask or of classes that is not known
_MAX_INTEGER = 2**62  # of node numbers and graph indices, which are int64


class ScoreScale(StrEnum):
    """How floating-point predictions of a mask are interpreted."""

    PROBABILITY = "probability"
    LOGIT = "logit"
    LABEL = "label"


@dataclass(frozen=True, slots=True)
class Table:
    """One argument as an array, with the length of each graph's part if it came as a list of arrays."""

    name: str
    values: Array
    lengths: tuple[int, ...] | None = None


def checked_items(
    feature: Feature,
    y_true: Any,
    y_pred: Any,
    batch: Any,
    scale: ScoreScale,
    *,
    incomplete: bool = False,
    ranked: bool = False,
    copies: int = 1,
) -> tuple[Items, int | None]:
    """Return the items of one update, and how many graphs it covers (None if unknown).

    Args:
        feature: The scored feature; its type says which values are allowed.
        y_true: Targets, one row per item, or a list of per-graph arrays.
        y_pred: Predictions, the same; for categorical features also ``[items, classes]``.
        batch: int ``[items]``, the graph of each row, or None.
        scale: Scale of floating-point predictions of masks.
        incomplete: Whether targets of masks and classes may be missing, as -1 or nan; the items are those whose target
            is known, and ``samples`` has the numbers of their graphs within the update.
        ranked: Whether a metric ranks the items, so that they have the scores of predictions that are no labels.
        copies: Rows of every item: 2 for undirected edges, which have a row per direction.

    Raises:
        EvaluationError: If lengths or shapes disagree, a value is not finite or not of the type, or there is no item.
    """
    if feature.kind is Kind.TEXT:
        return _text_items(y_true, y_pred)
    truth, predicted = _as_table(y_true, "y_true"), _as_table(y_pred, "y_pred")
    _check_lengths(truth, predicted)
    graph, num_graphs, seen = _membership(feature, truth, predicted, batch)
    known = _known_rows(truth) if incomplete and feature.kind in (Kind.MASK, Kind.CATEGORICAL) else None
    if known is not None:
        truth = Table(truth.name, np.where(known, truth.values, 0), truth.lengths)
    for table in (truth, predicted):
        check_finite(table, graph)
    expected = _checked_truth(feature, truth, predicted)
    if feature.kind is Kind.SCALAR:
        refuse_overflow(predicted, truth.values.dtype)
    values = _predicted_values(feature, predicted, scale, graph, num_graphs)
    if values.shape != expected.shape:
        raise EvaluationError(
            f"y_pred has shape {predicted.values.shape} but y_true has {truth.values.shape} for {feature.name!r} "
            f"({feature.type_name}); give one prediction per target, e.g. y_pred.squeeze(-1)"
        )
    scores = _scores(predicted, scale) if ranked else None
    items = Items(expected, values, graph, num_graphs, feature.classes, scores=scores, copies=copies)
    return items if known is None or known.all() else _restricted_to(items, known), seen


def _scores(predicted: Table, scale: ScoreScale) -> Array | None:
    """Return the predictions of a mask as scores, float64; None for labels, which rank nothing.

    Ranks alone count, so probabilities and logits are alike.
    """
    values = predicted.values
    return values.astype(np.float64) if values.dtype.kind == "f" and scale is not ScoreScale.LABEL else None


def _known_rows(truth: Table) -> NDArray[np.bool_]:
    """Return which targets are known, one per row: neither -1 nor nan."""
    if truth.values.ndim > 1:
        raise EvaluationError(f"{truth.name} has shape {truth.values.shape}; targets that may be missing are [items]")
    missing: NDArray[np.bool_] = truth.values == _MISSING
    return ~(missing | np.isnan(truth.values)) if truth.values.dtype.kind == "f" else ~missing


def _restricted_to(items: Items, known: NDArray[np.bool_]) -> Items:
    """Return the items of some rows; graphs without any are left out, and ``samples`` has the numbers of the others."""
    scores = None if items.scores is None else items.scores[known]
    rows = replace(items, truth=items.truth[known], predicted=items.predicted[known], scores=scores)
    if items.graph is None:
        return rows
    numbers, graph = np.unique(items.graph[known], return_inverse=True)
    return replace(rows, graph=graph, num_graphs=len(numbers), samples=numbers)


def _checked_truth(feature: Feature, truth: Table, predicted: Table) -> Array:
    """Return the targets as the feature's type has them; where the predictions would do, the message asks for it."""
    try:
        return _TRUTH[feature.kind](feature, truth)
    except EvaluationError as error:
        if truth.values.dtype.kind != "f" or not _are_targets(feature, predicted):
            raise
        raise EvaluationError(
            f"{error}; y_pred holds values that targets have: are the arguments swapped? The order is (y_true, y_pred)"
        ) from error


def _are_targets(feature: Feature, table: Table) -> bool:
    try:
        _TRUTH[feature.kind](feature, table)
    except EvaluationError:
        return False
    return True


def _text_items(y_true: Any, y_pred: Any) -> tuple[Items, int]:
    """Return one item per text: whether it ends in the answer of its reference."""
    references, texts = _strings(y_true, "y_true"), _strings(y_pred, "y_pred")
    if len(references) != len(texts):
        raise EvaluationError(f"y_pred has {len(texts)} texts and y_true {len(references)}; answer every prompt")
    if not references:
        raise EvaluationError("there is nothing to score: y_true and y_pred are empty; give at least one text")
    right = np.array([exact_match(text, reference) for text, reference in zip(texts, references, strict=True)])
    rows = len(references)
    return Items(np.ones(rows, bool), right, np.arange(rows), rows), rows


def _strings(value: Any, name: str) -> list[str]:
    texts = [value] if isinstance(value, str) else list(value) if np.iterable(value) else [value]
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise EvaluationError(f"{name}[{i}] is {text!r:.80}, no string; give one string per graph")
    return [str(text) for text in texts]


def _as_table(value: Any, name: str) -> Table:
    if isinstance(value, (list, tuple)) and any(_has_rows(part) for part in value):
        parts = [_rows(as_array(part, f"{name}[{i}]"), f"{name}[{i}]") for i, part in enumerate(value)]
        shapes = {part.shape[1:] for part in parts}
        if len(shapes) > 1:
            raise EvaluationError(f"the arrays in {name} differ in their columns: {sorted(shapes)}; give all the same")
        return Table(name, np.concatenate(parts), tuple(len(part) for part in parts))
    return Table(name, _rows(as_array(value, name), name))


def _has_rows(part: Any) -> bool:
    return isinstance(part, (list, tuple)) or getattr(part, "ndim", 0) > 0


def as_array(value: Any, name: str) -> Array:
    """Return an array or tensor, of any device and precision, as an array of numbers.

    Raises:
        EvaluationError: If it is none, some of its values are masked, or it is a tensor without plain numbers (sparse,
            nested, quantised or on the meta device); ``name`` says which one.
    """
    hidden = np.count_nonzero(np.ma.getmaskarray(value)) if isinstance(value, np.ma.MaskedArray) else 0
    if hidden:
        raise EvaluationError(
            f"{name} is a masked array with {hidden} masked values; leave these rows out, or fill them with "
            "numpy.ma.filled"
        )
    try:
        array = np.asarray(_tensor_values(value) if hasattr(value, "detach") else value)
    except (ValueError, TypeError, RuntimeError, NotImplementedError, OverflowError) as error:
        kind = f"a tensor that cannot be read as numbers{_tensor_facts(value)}" if _is_tensor(value) else "no array"
        reason = text_of(error).partition("\n")[0] or class_name(error)
        raise EvaluationError(
            f"{name} is {kind}: {reason:.200}; give a NumPy array, a dense tensor or a list of them"
        ) from error
    if array.dtype.kind not in "biuf":
        raise EvaluationError(f"{name} has dtype {array.dtype}; give booleans, integers or real numbers")
    return array


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "detach") and hasattr(value, "layout")


def _tensor_facts(tensor: Any) -> str:
    return f" ({tensor.dtype}, {tensor.layout}, on {tensor.device})"


def _tensor_values(tensor: Any) -> Array:
    """Return a tensor as an array; floating-point numbers that NumPy lacks, such as bfloat16, become float32."""
    tensor = tensor.detach().cpu()
    if tensor.is_floating_point() and str(tensor.dtype).removeprefix("torch.") not in _NUMPY_FLOATS:
        tensor = tensor.float()
    values: Array = tensor.numpy()
    return values


def _rows(array: Array, name: str) -> Array:
    if array.ndim not in (1, 2):
        raise EvaluationError(f"{name} has shape {array.shape}; give [items] or [items, columns]")
    return array


def _check_lengths(truth: Table, predicted: Table) -> None:
    if truth.lengths is not None and predicted.lengths is not None and truth.lengths != predicted.lengths:
        if len(truth.lengths) != len(predicted.lengths):
            raise EvaluationError(
                f"y_pred has {len(predicted.lengths)} graphs and y_true {len(truth.lengths)}; predict every graph"
            )
        pairs = zip(truth.lengths, predicted.lengths, strict=True)
        first, (want, got) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
        raise EvaluationError(f"graph {first} has {want} targets but {got} predictions; predict every item, in order")
    if len(truth.values) != len(predicted.values):
        raise EvaluationError(
            f"y_pred has {len(predicted.values)} rows and y_true {len(truth.values)}; predict every item, in order"
        )
    if len(truth.values) == 0 or truth.values.size == 0:
        raise EvaluationError("there is nothing to score: y_true and y_pred are empty; give at least one item")


def _membership(
    feature: Feature, truth: Table, predicted: Table, batch: Any
) -> tuple[NDArray[np.int64] | None, int, int | None]:
    """Return each row's graph, the number of graphs with items and the number of graphs covered."""
    rows, lengths = len(truth.values), truth.lengths or predicted.lengths
    if batch is not None:
        if lengths is not None:
            raise EvaluationError("the graphs are given twice: as a list of arrays and as batch; drop one of them")
        graph, count = _compact(_checked_batch(batch, rows))
        return graph, count, count
    if lengths is not None:
        graph, count = _compact(np.repeat(np.arange(len(lengths)), lengths))
        return graph, count, len(lengths)
    if feature.location is Location.GRAPH:
        return np.arange(rows), rows, rows
    return None, 0, None


def _checked_batch(batch: Any, rows: int) -> Array:
    graph = _rows(as_array(batch, "batch"), "batch")
    if graph.ndim != 1 or len(graph) != rows:
        raise EvaluationError(f"batch has shape {graph.shape}; give one graph index for each of the {rows} rows")
    if graph.dtype.kind not in "iu":
        raise EvaluationError(f"batch has dtype {graph.dtype}; give integer graph indices")
    refuse(Table("batch", graph), (graph < 0) | too_large(graph), "graph indices are whole numbers from 0 on")
    return graph.astype(np.int64)


def _compact(graph: Array) -> tuple[NDArray[np.int64], int]:
    """Return the graph numbers as 0, 1, ... without gaps, in ascending order of the given ones, and their count."""
    steps = np.diff(graph)
    if (steps >= 0).all():
        numbers = np.concatenate([[0], np.cumsum(steps > 0)]).astype(np.int64)
        return numbers, int(numbers[-1]) + 1
    graphs, inverse = np.unique(graph, return_inverse=True)
    return inverse.astype(np.int64), len(graphs)


def check_finite(table: Table, graph: NDArray[np.int64] | None) -> None:
    """Refuse NaN and infinities.

    Raises:
        EvaluationError: If there are any; the message gives the first value and its position.
    """
    if table.values.dtype.kind != "f":
        return
    bad = ~np.isfinite(table.values)
    if bad.any():
        location = _place(bad, graph)
        remedy = (
            "check the model for overflow or division by zero" if table.name.startswith("y_pred") else "check the data"
        )
        raise EvaluationError(
            f"{table.name} holds {_first(table.values, bad)} at {location} "
            f"({np.count_nonzero(bad)} of {bad.size} values are not finite); {remedy}"
        )


def _first(values: Array, flags: Array) -> Any:
    return values[tuple(np.argwhere(flags)[0])].item()


def _place(flags: Array, graph: NDArray[np.int64] | None = None) -> str:
    row, *column = (int(i) for i in np.argwhere(flags)[0])
    words = f"row {row}" + (f", column {', '.join(map(str, column))}" if column else "")
    return words if graph is None else f"{words} (graph {graph[row]})"


def refuse(table: Table, bad: Array, allowed: str) -> None:
    """Raise an error that names the first bad value, its position and the allowed values, if there is one.

    Raises:
        EvaluationError: See above.
    """
    if bad.any():
        raise EvaluationError(f"{table.name} holds {_first(table.values, bad)} at {_place(bad)}; {allowed}")


def refuse_overflow(table: Table, dtype: np.dtype[Any]) -> None:
    """Refuse finite predictions that the type of the targets cannot hold: no model whose outputs have it gives them.

    Raises:
        EvaluationError: If there are any; the message gives the first value and its position.
    """
    allowed = f"it overflows {dtype}, the type of the targets; check the model for divergence"
    refuse(table, overflowing(table.values, dtype), allowed)


def refuse_large(table: Table) -> None:
    """Refuse numbers whose squares overflow.

    Raises:
        EvaluationError: If there are any; the message gives the first value and its position.
    """
    values = table.values
    if values.dtype.kind == "f" and values.dtype.itemsize >= 8:  # smaller ones cannot be that large
        remedy = "check the model for divergence" if table.name.startswith("y_pred") else "check the data"
        refuse(table, np.abs(values) > _LARGEST, f"squares of numbers above {_LARGEST:g} overflow; {remedy}")


def too_large(values: Array) -> Array:
    """Return which values are too large for int64."""
    return values > _MAX_INTEGER if values.dtype.itemsize >= 4 else np.zeros(values.shape, bool)


def _mask_truth(feature: Feature, table: Table) -> Array:
    refuse(table, (table.values != 0) & (table.values != 1), f"the mask {feature.name!r} has targets 0 and 1 alone")
    return table.values.astype(bool)


def _scalar_values(feature: Feature, table: Table) -> Array:
    values, width = table.values, feature.width
    if width > 1 and (values.ndim != 2 or values.shape[1] != width):
        raise EvaluationError(
            f"{table.name} has shape {values.shape}; {feature.name!r} is a {feature.type_name}: give [items, {width}], "
            "one column per channel"
        )
    refuse_large(table)
    return values.astype(np.float64)


def _class_numbers(feature: Feature, table: Table) -> Array:
    values = table.values
    if values.ndim != 1:
        raise EvaluationError(f"{table.name} has shape {values.shape}; give one label ({feature.type_name}) per item")
    allowed = f"class numbers 0 to {feature.classes - 1}" if feature.classes else "node numbers from 0"
    bad = (values < 0) | too_large(values) | (values != np.floor(values))
    if feature.classes:
        bad |= values >= feature.classes
    refuse(table, bad, f"{feature.name!r} ({feature.type_name}) takes {allowed}")
    return values.astype(np.int64)


_TRUTH = {
    Kind.MASK: _mask_truth,
    Kind.MASK_ONE: _mask_truth,
    Kind.CATEGORICAL: _class_numbers,
    Kind.POINTER: _class_numbers,
    Kind.PERMUTATION: _class_numbers,
    Kind.SCALAR: _scalar_values,
}


def _predicted_values(
    feature: Feature, table: Table, scale: ScoreScale, graph: NDArray[np.int64] | None, num_graphs: int
) -> Array:
    values = table.values
    if feature.kind is Kind.SCALAR:
        return _scalar_values(feature, table)
    if feature.kind is Kind.MASK_ONE and values.dtype.kind == "f" and scale is not ScoreScale.LABEL:
        return _highest_per_graph(feature, values, graph, num_graphs)
    if feature.kind in (Kind.MASK, Kind.MASK_ONE):
        return mask_labels(feature, table, scale)
    if feature.kind is Kind.CATEGORICAL and values.ndim == 2:
        if values.shape[1] != feature.classes:
            raise EvaluationError(
                f"y_pred has {values.shape[1]} columns; {feature.name!r} has {feature.classes} classes, one column each"
            )
        labels: Array = values.argmax(axis=1)
        return labels
    if values.dtype.kind == "f" and scale is not ScoreScale.LABEL:
        remedy = "integer labels, or scores [items, classes]" if feature.classes else "integer node numbers"
        target = f"{feature.name!r} ({feature.type_name})"
        raise EvaluationError(f"y_pred has dtype {values.dtype} for {target}; give {remedy}")
    return _class_numbers(feature, table)


def mask_labels(feature: Feature, table: Table, scale: ScoreScale) -> Array:
    """Return the predictions of a mask as booleans of the same shape.

    Raises:
        EvaluationError: If a value is no label, or no probability where floats are such.
    """
    values = table.values
    if values.dtype.kind != "f" or scale is ScoreScale.LABEL:
        allowed = f"labels of the mask {feature.name!r} are 0 and 1; give scores as floating-point numbers"
        refuse(table, (values != 0) & (values != 1), allowed)
        return values.astype(bool)
    if scale is ScoreScale.LOGIT:
        return values >= 0.0
    allowed = f"a probability lies in [0, 1]; if these are logits, {AS_LOGITS}"
    refuse(table, (values < 0.0) | (values > 1.0), allowed)
    return values >= 0.5


def _highest_per_graph(feature: Feature, values: Array, graph: NDArray[np.int64] | None, num_graphs: int) -> Array:
    """Return a mask of the first row with the highest score of each graph."""
    if graph is None or values.ndim != 1:
        raise EvaluationError(
            f"scores of {feature.name!r} (mask_one) need one row per item and the rows' graphs; "
            "give [items] and batch=, or a list of per-graph arrays"
        )
    order = np.lexsort((np.arange(len(values)), -values, graph))
    first = order[np.searchsorted(graph[order], np.arange(num_graphs))]
    chosen = np.zeros(len(values), dtype=bool)
    chosen[first] = True
    return chosen
