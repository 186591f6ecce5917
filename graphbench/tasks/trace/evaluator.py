"""Scores of algorithms' outputs, as the CLRS benchmark defines them (paper, section 4; reference implementation).

================  =====================================================================================================
output            ``score``, pooled over all samples
================  =====================================================================================================
pointer,          share of positions predicted exactly (edge pointers: all pairs of nodes)
permutation
mask_one          share of samples whose node is predicted
categorical       share of positions predicted exactly, masked ones (-1) left out
mask              F1 of the positive class, masked positions left out; 1 if nothing is or is predicted positive.
                  A probability is positive from 0.5 on (the reference: above 0.5)
scalar            none: a card with such an output names ``mse`` or another metric of numbers beside it
================  =====================================================================================================

The score of an algorithm is the mean over its outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.metrics import Metric
from graphbench.evaluation.metrics.bootstrap import has_tally
from graphbench.evaluation.metrics.items import Items
from graphbench.evaluation.score import Score
from graphbench.evaluation.several import SeveralOutputs
from graphbench.tasks.trace.outputs import MASKED, checked_outputs, outputs_of

Array = NDArray[Any]


class _Sums:
    """Running sums: the accumulators of every output."""

    def __init__(self, metrics: Mapping[str, Sequence[Metric]]) -> None:
        self.accumulators: dict[str, dict[Any, Any]] = {
            name: {m.accumulator: m.accumulator() for m in metrics_of_output}
            for name, metrics_of_output in metrics.items()
        }
        self.graphs = self.items = 0


class TraceEvaluator(SeveralOutputs):
    """Scores all outputs of an algorithm; returned by ``Evaluator("clrs/bfs")``. Masked positions are left out.

    Arguments of :meth:`evaluate` and :meth:`update`:

    - ``y_true``: output name -> array or tensor ``[B, ...]`` in the form of a ``TrajectoryBatch``: masks 0 and 1,
      classes, node ids, -1 where masked; pointers, classes and mask_ones may be one-hot, with one axis more, as the
      reference has them. Or the array alone where one output is scored; or a ``TrajectoryBatch`` or PyG graphs of one
      size, which hold the outputs.
    - ``y_pred``: the same, for all outputs; a mask may be floats of the scale. Where the truth is masked, -1 is allowed
      too and nothing counts.
    - ``batch``: nothing, as row i of every output is sample i.
    """

    def __init__(
        self, outputs: Sequence[Feature], primary: str = "score", also: Sequence[str] = (), **options: Any
    ) -> None:
        super().__init__(outputs, primary, also, **options)
        self.reset()

    def start(self) -> _Sums:
        """Return the sums of no sample."""
        return _Sums(self.metrics_of)

    def add(self, sums: _Sums, y_true: Any, y_pred: Any, batch: Any = None) -> None:
        """Add the outputs of some samples to the sums; where it raises, the sums stay as they were."""
        if batch is not None:
            raise EvaluationError("batch is given, but row i of every output is sample i; leave batch out")
        truth, predicted = (
            self._named(outputs_of(values, self.outputs), name)
            for name, values in (("y_true", y_true), ("y_pred", y_pred))
        )
        pairs = checked_outputs(self.outputs, truth, predicted, self.scores)
        for feature in self.outputs:
            expected, predictions = pairs[feature.name]
            metrics = self.metrics_of.get(feature.name, ())
            if metrics:
                accumulators = sums.accumulators[feature.name].values()
                with_samples = any(m.needs_graphs for m in metrics) or any(has_tally(sums_) for sums_ in accumulators)
                items = _items(feature, expected, predictions, with_samples)
                for accumulator in accumulators:
                    accumulator.add(items)
            sums.items += expected.size
        sums.graphs += len(pairs[self.outputs[0].name][0])

    def primary_sums(self, sums: _Sums) -> Mapping[str, Any]:
        """Return output -> the sums behind the primary metric."""
        kind = self.metrics[0].accumulator
        return {name: accumulators[kind] for name, accumulators in sums.accumulators.items() if kind in accumulators}

    def finish(self, sums: _Sums) -> Score:
        """Return the score of all outputs."""
        self.check_graphs(sums.graphs)
        scores = {}
        for name, metrics in self.metrics_of.items():
            values, undefined = self.values(partial(_value, sums.accumulators[name]), metrics)
            scores[name] = Score(values, self.primary_name, undefined=undefined)
        return self.joined(scores, sums.items, sums.graphs)

    def _named(self, values: Any, name: str) -> Mapping[str, Any]:
        if isinstance(values, Mapping):
            return values
        if len(self.outputs) > 1:
            names = ", ".join(f.name for f in self.outputs)
            raise EvaluationError(
                f"{name} is a {type(values).__name__}; give a mapping from output names to arrays: {names}"
            )
        return {self.outputs[0].name: values}


def _value(accumulators: Mapping[Any, Any], metric: Metric) -> float:
    return metric.value(accumulators[metric.accumulator])


def _items(feature: Feature, truth: Array, predicted: Array, with_samples: bool) -> Items:
    """Return the positions of an output that are not masked, one row each, with their samples."""
    if feature.kind is Kind.SCALAR:
        expected, predictions, scored = truth.astype(np.float64).ravel(), predicted.ravel(), np.ones(truth.shape, bool)
    else:
        scored = truth != MASKED
        kind: Any = bool if feature.kind is Kind.MASK else np.int64
        expected, predictions = truth[scored].astype(kind), predicted[scored].astype(kind)
    if not with_samples:
        return Items(expected, predictions, classes=feature.classes)
    counts = scored.reshape(len(scored), -1).sum(axis=1)
    counts = counts[counts > 0]
    return Items(expected, predictions, np.repeat(np.arange(len(counts)), counts), len(counts), feature.classes)


def trivial_outputs(feature: Feature, rate: float, truth: Array, seed: int = 0) -> dict[str, Array]:
    """Return the outputs of predictors without knowledge of the algorithm, in the shape of ``truth [B, ...]``.

    ``initial`` leaves everything as algorithms start: pointers to themselves (edge pointers to the row), lists in the
    order given, no mask set, the first node. ``random`` draws uniformly; masks are set at the rate of training.

    Args:
        feature: The output.
        rate: Share of training items that are 1, of masks; the most frequent class, of classes.
        truth: In the form of a ``TrajectoryBatch``.
        seed: Seed of the random predictor.
    """
    rng = np.random.default_rng(seed)
    if feature.kind is Kind.MASK:
        return {"initial": np.zeros(truth.shape), "random": (rng.random(truth.shape) < rate).astype(float)}
    if feature.kind is Kind.CATEGORICAL:
        return {"initial": np.full(truth.shape, int(rate)), "random": rng.integers(0, feature.classes, truth.shape)}
    nodes = truth.shape[1] if truth.ndim > 1 else int(truth.max()) + 1
    drawn = rng.integers(0, nodes, truth.shape)
    if feature.kind is Kind.MASK_ONE:
        return {"initial": np.zeros(truth.shape, int), "random": drawn}
    pointers = np.arange(nodes)
    if feature.kind is Kind.PERMUTATION:
        pointers = np.maximum(pointers - 1, 0)
    return {
        "initial": np.broadcast_to(pointers[:, None] if truth.ndim == 3 else pointers, truth.shape),
        "random": drawn,
    }
