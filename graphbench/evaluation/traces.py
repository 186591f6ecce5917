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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.evaluator import BaseEvaluator
from graphbench.evaluation.metrics import Metric, metric
from graphbench.evaluation.metrics.items import Items
from graphbench.evaluation.outputs import MASKED, checked_outputs, outputs_of
from graphbench.evaluation.score import Score

Array = NDArray[Any]


class _Running:
    """What has been scored so far: the accumulators of every output."""

    def __init__(self, outputs: Sequence[Feature], metrics: Mapping[str, Sequence[Metric]]) -> None:
        self.accumulators: dict[str, dict[Any, Any]] = {
            f.name: {m.accumulator: m.accumulator() for m in metrics[f.name]} for f in outputs
        }
        self.graphs = self.items = 0


class TraceEvaluator(BaseEvaluator):
    """Scores all outputs of an algorithm: what ``Evaluator("clrs/bfs")`` returns.

    Every metric is the mean over the outputs that it can score, by weight where the task has any; the values of several
    outputs stand beside it as ``<metric>_<output>``. Masked positions are left out.

    Args:
        outputs: The output features.
        primary: Name of the metric that ranks models.
        also: Further metrics.
        weights: Output -> weight in the means; 1 where none is given.
        scores: What floating-point predictions of masks are: ``probability``, ``logit`` or ``label``.
        expected_graphs: If given, :meth:`compute` and :meth:`evaluate` refuse any other number of samples.
    """

    def __init__(
        self,
        outputs: Sequence[Feature],
        primary: str = "score",
        also: Sequence[str] = (),
        *,
        weights: Mapping[str, float] | None = None,
        scores: str | None = None,
        expected_graphs: int | None = None,
    ) -> None:
        super().__init__(scores, expected_graphs)
        self.outputs = tuple(outputs)
        self.weights = {f.name: (weights or {}).get(f.name, 1.0) for f in outputs}
        self.metrics = tuple(metric(name) for name in dict.fromkeys((primary, *also)))
        for m in self.metrics:
            if not any(f.kind in m.kinds for f in outputs):
                metric(m.name, self.outputs[0])  # says what could be used instead
        self._of = {f.name: [m for m in self.metrics if f.kind in m.kinds] for f in outputs}
        self._running = _Running(self.outputs, self._of)

    def __repr__(self) -> str:
        """Return the outputs, the metrics, and what floating-point predictions are."""
        names = ", ".join(m.name for m in self.metrics)
        return f"Evaluator({', '.join(f.name for f in self.outputs)}; {names}; scores={self.scores.value!r})"

    def evaluate(self, y_true: Any, y_pred: Any, batch: Any = None) -> Score:
        """Return the score of all samples at once; running updates stay untouched.

        Args:
            y_true: Output name -> array or tensor ``[B, ...]`` in the form of a ``TrajectoryBatch``: masks 0 and 1,
                classes, node ids, -1 where masked; pointers, classes and mask_ones may be one-hot, with one axis more,
                as the reference has them. Or the array alone where one output is scored; or a ``TrajectoryBatch`` or
                PyG graphs of one size, which hold the outputs.
            y_pred: The same, for all outputs; a mask may be floats of the scale. Where the truth is masked, -1 is
                allowed too and nothing counts.
            batch: Nothing: row i of every output is sample i.

        Raises:
            EvaluationError: If an output is missing, has another shape than its truth, or holds a value that is not
                finite or not of its type; if the outputs are of different samples, or samples are missing.
        """
        running = _Running(self.outputs, self._of)
        self._add(running, y_true, y_pred, batch)
        return self._score(running)

    def update(self, y_true: Any, y_pred: Any, batch: Any = None) -> None:
        """Take the outputs of some samples; arguments and errors as for :meth:`evaluate`.

        An update that raises changes nothing.
        """
        self._add(self._running, y_true, y_pred, batch)

    def compute(self) -> Score:
        """Return the score of everything since the last ``reset``.

        Raises:
            EvaluationError: Before any update, or if samples are missing.
        """
        return self._score(self._running)

    def reset(self) -> None:
        """Forget all updates."""
        self._running = _Running(self.outputs, self._of)

    def _add(self, running: _Running, y_true: Any, y_pred: Any, batch: Any) -> None:
        if batch is not None:
            raise EvaluationError("batch is given, but row i of every output is sample i; leave batch out")
        truth, predicted = (
            self._named(outputs_of(values, self.outputs), name)
            for name, values in (("y_true", y_true), ("y_pred", y_pred))
        )
        pairs = checked_outputs(self.outputs, truth, predicted, self.scores)
        for feature in self.outputs:
            expected, found = pairs[feature.name]
            items = _items(feature, expected, found, any(m.needs_graphs for m in self._of[feature.name]))
            for accumulator in running.accumulators[feature.name].values():
                accumulator.add(items)
            running.items += expected.size
        running.graphs += len(pairs[self.outputs[0].name][0])

    def _named(self, values: Any, name: str) -> Mapping[str, Any]:
        if isinstance(values, Mapping):
            return values
        if len(self.outputs) > 1:
            names = ", ".join(f.name for f in self.outputs)
            raise EvaluationError(
                f"{name} is a {type(values).__name__}; give a mapping from output names to arrays: {names}"
            )
        return {self.outputs[0].name: values}

    def _score(self, running: _Running) -> Score:
        if not running.graphs:
            raise EvaluationError("compute() was called before any update(); there is nothing to score yet")
        self.check_graphs(running.graphs)
        values: dict[str, float] = {}
        parts: dict[str, float] = {}
        for m in self.metrics:
            own = {
                f.name: m.value(running.accumulators[f.name][m.accumulator])
                for f in self.outputs
                if m in self._of[f.name]
            }
            total = sum(self.weights[name] for name in own)
            values[m.name] = sum(self.weights[name] * value for name, value in own.items()) / total
            if len(self.outputs) > 1:
                parts |= {f"{m.name}_{name}": value for name, value in own.items()}
        return Score({**values, **parts}, self.primary_name, items=running.items, graphs=running.graphs)


def _items(feature: Feature, truth: Array, predicted: Array, with_samples: bool) -> Items:
    """Return the positions of an output that are not masked, one row each, with their samples."""
    if feature.kind is Kind.SCALAR:
        expected, found, scored = truth.astype(np.float64).ravel(), predicted.ravel(), np.ones(truth.shape, bool)
    else:
        scored = truth != MASKED
        kind: Any = bool if feature.kind is Kind.MASK else np.int64
        expected, found = truth[scored].astype(kind), predicted[scored].astype(kind)
    if not with_samples:
        return Items(expected, found, classes=feature.classes)
    counts = scored.reshape(len(scored), -1).sum(axis=1)
    counts = counts[counts > 0]
    return Items(expected, found, np.repeat(np.arange(len(counts)), counts), len(counts), feature.classes)


def trivial_outputs(feature: Feature, rate: float, truth: Array, seed: int = 0) -> dict[str, Array]:
    """Return what predictors say that know nothing of an algorithm, for outputs of the shape of ``truth [B, ...]``.

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
    own = np.arange(nodes)
    if feature.kind is Kind.PERMUTATION:
        own = np.maximum(own - 1, 0)
    return {"initial": np.broadcast_to(own[:, None] if truth.ndim == 3 else own, truth.shape), "random": drawn}
