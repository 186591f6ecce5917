"""Scores of trivial predictors: a model must beat them before its score is informative."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind
from graphbench.catalog.sections import Numbers
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.evaluator import FeatureEvaluator
from graphbench.evaluation.inputs import as_array
from graphbench.evaluation.metrics import METRICS
from graphbench.evaluation.references import SampleSet, measured_references, references_on

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card

Array = NDArray[Any]


def trivial_scores(
    feature: Feature, y_train: Any, y_test: Any, batch: Any, metrics: Sequence[str], seed: int = 0
) -> dict[str, dict[str, float]]:
    """Return predictor -> metric -> score of predictors that read the training targets alone.

    Masks: ``all_positive``, ``all_negative``, ``majority`` (the more frequent value of the training targets) and
    ``random`` (positive with the training rate). Classes: ``majority`` and ``random`` (with the training
    frequencies). Scalars: ``mean`` and ``median`` of each training column. Texts: ``majority``, the most frequent
    answer of the training references.

    Args:
        feature: The predicted feature.
        y_train: Training targets, ``[items]`` or ``[items, K]``, array or tensor; of ``scalar(d)`` ``[items, d]``.
        y_test: Targets to score on, the same form.
        batch: int ``[items]``, the graph of each test row, or None; without it metrics over graphs are left out.
        metrics: Names of the metrics.
        seed: Seed of the random predictor.

    Raises:
        EvaluationError: If the feature's type has no trivial predictor or the targets cannot be scored.
    """
    if not metrics:
        raise EvaluationError("no metric is named; give at least one, e.g. ['f1']")
    if feature.kind not in _PREDICTORS and feature.kind is not Kind.TEXT:
        able = ", ".join(_PREDICTORS)
        raise EvaluationError(f"{feature.name!r} is a {feature.kind.value}; trivial predictors exist for {able}")
    if feature.kind is Kind.TEXT:
        evaluator = FeatureEvaluator(feature, metrics[0], metrics[1:])
        return {"majority": evaluator.evaluate(y_test, [most_frequent_answer(y_train)] * len(y_test)).to_dict()}
    train, test = _array(y_train, "y_train"), _array(y_test, "y_test")
    if train.shape[1:] != test.shape[1:]:
        raise EvaluationError(f"y_train has shape {train.shape} and y_test {test.shape}; their columns must agree")
    predictions = _PREDICTORS[feature.kind](train, test.shape, np.random.default_rng(seed))
    return scores_of_predictors(feature, test, predictions, batch, metrics)


def scores_of_predictors(
    feature: Feature, y_test: Any, predictions: Mapping[str, Any], batch: Any, metrics: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return predictor -> metric -> score of the predictions of one feature.

    Args:
        feature: The predicted feature.
        y_test: Targets, as for :func:`trivial_scores`.
        predictions: Predictor -> predictions of the shape of the targets.
        batch: int ``[items]``, the graph of each row, or None; without it metrics over graphs are left out.
        metrics: Names of the metrics.
    """
    names = _computable(metrics, graphs_known=batch is not None or feature.location == "graph")
    evaluator = FeatureEvaluator(feature, names[0], names[1:])
    evaluator.is_part = evaluator.metrics[0].skips_undefined  # undefined metrics are left out
    if evaluator.ranks:  # labels are scores of 0 and 1
        predictions = {name: np.asarray(values).astype(np.float64) for name, values in predictions.items()}
    return {name: evaluator.evaluate(y_test, values, batch).to_dict() for name, values in predictions.items()}


def without_rules(floor: Numbers, card: Card) -> Numbers:
    """Return the scores of the trivial predictors that are no rules: a rule that the card names reads the graph."""
    return {name: scores for name, scores in floor.items() if name not in card.task.rules}


def best_of(floor: Mapping[str, Mapping[str, float]], metric: str) -> tuple[str, float] | None:
    """Return name and score of the best of some trivial predictors by a metric, or None if none has a score of it.

    Args:
        floor: Predictor -> metric -> score, all on the same samples.
        metric: Name of the metric.
    """
    scores = {name: values[metric] for name, values in floor.items() if metric in values}
    if not scores:
        return None
    sign = 1 if METRICS[metric].higher_is_better else -1
    best = max(scores, key=lambda name: sign * scores[name])
    return best, scores[best]


def best_floor(
    card: Card, split: str, metric: str, samples: SampleSet | None = None, *, rules: bool = True
) -> tuple[str, float] | None:
    """Return name and score of the best trivial predictor on a split or a part of it, or None if none was measured.

    Args:
        card: The card of the task.
        split: Name of the split, or of a part of the test split.
        metric: Name of the metric.
        samples: The samples that the predictor's score is compared on; scores on other samples do not count. None
            takes the score on the most samples that was measured, of most datasets on the whole split.
        rules: Whether the rules that the card names count, which read the inputs of graphs.
    """
    if samples is None:
        measured = next(iter(measured_references(card, split)), None)
    else:
        measured = references_on(card, split, samples)
    if measured is None:
        return None
    return best_of(measured.floor if rules else without_rules(measured.floor, card), metric)


def most_frequent_answer(references: Sequence[str]) -> str:
    """Return the answer that most references end in; of equally frequent ones the first in alphabetical order."""
    from graphbench.data.arrays.answers import final_answer

    counts = Counter(final_answer(reference) for reference in references)
    return min(counts, key=lambda answer: (-counts[answer], answer))


def _computable(metrics: Sequence[str], graphs_known: bool) -> list[str]:
    names = [name for name in metrics if graphs_known or name not in METRICS or not METRICS[name].needs_graphs]
    if not names:
        raise EvaluationError(f"{', '.join(metrics)} need the graphs; pass batch=")
    return names


def _array(value: Any, name: str) -> Array:
    array = as_array(value, name)
    if array.size == 0:
        raise EvaluationError(f"{name} is empty; give at least one target")
    return array


def _mask_predictions(train: Array, shape: tuple[int, ...], rng: np.random.Generator) -> dict[str, Array]:
    rate = float(np.mean(train))
    return {
        "all_positive": np.ones(shape, dtype=bool),
        "all_negative": np.zeros(shape, dtype=bool),
        "majority": np.full(shape, rate > 0.5),
        "random": rng.random(shape) < rate,
    }


def _class_predictions(train: Array, shape: tuple[int, ...], rng: np.random.Generator) -> dict[str, Array]:
    labels, counts = np.unique(train.astype(np.int64), return_counts=True)
    return {
        "majority": np.full(shape, labels[counts.argmax()]),
        "random": rng.choice(labels, size=shape, p=counts / counts.sum()),
    }


def _scalar_predictions(train: Array, shape: tuple[int, ...], rng: np.random.Generator) -> dict[str, Array]:
    values = train.astype(np.float64)
    return {
        "mean": np.broadcast_to(values.mean(axis=0), shape),
        "median": np.broadcast_to(np.median(values, axis=0), shape),
    }


_PREDICTORS: dict[Kind, Callable[[Array, tuple[int, ...], np.random.Generator], dict[str, Array]]] = {
    Kind.MASK: _mask_predictions,
    Kind.CATEGORICAL: _class_predictions,
    Kind.SCALAR: _scalar_predictions,
}

LABEL_PREDICTORS = ("all_positive", "all_negative", "majority", "random", "mean", "median")
"""Names of the trivial predictors that read training labels alone."""
