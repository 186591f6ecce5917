"""Scores of algorithms' outputs, as the CLRS benchmark defines them (paper, section 4; reference implementation).

================  =====================================================================================================
output            score, pooled over all samples
================  =====================================================================================================
pointer,          share of positions predicted exactly (edge pointers: all pairs of nodes)
permutation
mask_one          share of samples whose node is predicted
categorical       share of positions predicted exactly, masked ones (-1) left out
mask              F1 of the positive class, masked positions left out; 1 if nothing is or is predicted positive.
                  A probability is positive from 0.5 on (the reference: above 0.5)
scalar            mean squared error (no algorithm has such an output)
================  =====================================================================================================

The score of an algorithm is the mean over its outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature, Kind
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.evaluator import Evaluator, Score, card_of, output_of
from graphbench.evaluation.inputs import ScoreScale
from graphbench.evaluation.metrics import METRICS
from graphbench.evaluation.outputs import checked_outputs

Array = NDArray[Any]


class OutputScores:
    """Scores all outputs of an algorithm, batch by batch; counts are carried along, scores are never averaged.

    Args:
        outputs: The output features.
        scale: What floating-point predictions of masks are.
    """

    def __init__(self, outputs: Sequence[Feature], scale: ScoreScale = ScoreScale.PROBABILITY) -> None:
        self.outputs = tuple(outputs)
        self.scale = scale
        self.reset()

    def reset(self) -> None:
        """Forget all updates."""
        self._sums = {feature.name: np.zeros(3) for feature in self.outputs}
        self._graphs = self._items = 0

    def update(self, truth: Mapping[str, Any], predicted: Mapping[str, Any]) -> None:
        """Take the outputs of some samples; an update that raises changes nothing.

        Args:
            truth: Output name -> array or tensor ``[B, ...]`` in the form of a ``TrajectoryBatch``: masks 0 and 1,
                classes, node ids; -1 where masked.
            predicted: The same, for all outputs; a mask may be floats of the scale. Where the truth is masked, -1 is
                allowed too and nothing counts.

        Raises:
            EvaluationError: If an output is missing, has another shape than its truth, or holds a value that is not
                finite or not of its type; or if the outputs are of different samples.
        """
        pairs = checked_outputs(self.outputs, truth, predicted, self.scale)
        for feature in self.outputs:
            expected, found = pairs[feature.name]
            self._sums[feature.name] += _sums(feature, expected, found)
            self._items += expected.size
        self._graphs += len(pairs[self.outputs[0].name][0])

    def compute(self) -> Score:
        """Return the score, ``score``, and that of each output under its own name.

        Raises:
            EvaluationError: Before any update.
        """
        if not self._graphs:
            raise EvaluationError("compute() was called before any update(); there is nothing to score yet")
        values = {feature.name: _value(feature, self._sums[feature.name]) for feature in self.outputs}
        mean = sum(values.values()) / len(values)
        own = {f"score_{name}": value for name, value in values.items()} if len(values) > 1 else {}
        return Score({"score": mean, **own}, "score", items=self._items, graphs=self._graphs)


class AlgorithmEvaluator(Evaluator):
    """Scores all outputs of an algorithm: what ``Evaluator("clrs/bfs")`` returns.

    Targets and predictions are mappings output name -> ``[B, ...]`` as a ``TrajectoryBatch`` has them; an algorithm of
    one output takes the array alone as well.
    """

    def __init__(
        self,
        dataset: str | Card,
        *,
        output: str | None = None,
        scores: str = "probability",
        expected_graphs: int | None = None,
    ) -> None:
        """Prepare to score a dataset's outputs.

        Args:
            dataset: Dataset id or alias, or a card.
            output: Score this output alone; None scores all.
            scores: What floating-point predictions of masks are, as for ``Evaluator``.
            expected_graphs: As for ``Evaluator``.

        Raises:
            UnknownDataset: If no dataset has that name.
            EvaluationError: If the card has no such output, or an argument is not allowed.
        """
        self._set_options(scores, expected_graphs)
        outputs = card_of(dataset).outputs
        self._outputs = outputs if output is None else (output_of(card_of(dataset), output),)
        self.feature, self.metrics = self._outputs[0], (METRICS["score"],)
        self._scores = OutputScores(self._outputs, self.scores)

    def evaluate(self, y_true: Any, y_pred: Any, batch: Any = None) -> Score:
        """Return the score of all samples at once; running updates stay untouched. See ``OutputScores.update``.

        Args:
            y_true: Output name -> ``[B, ...]``, or the array alone where one output is scored.
            y_pred: The same.
            batch: Nothing: row i of every output is sample i.
        """
        scores = OutputScores(self._outputs, self.scores)
        self._take(scores, y_true, y_pred, batch)
        return self._checked(scores.compute())

    def update(self, y_true: Any, y_pred: Any, batch: Any = None) -> None:
        """Take the outputs of some samples; arguments as for :meth:`evaluate`. See ``OutputScores.update``."""
        self._take(self._scores, y_true, y_pred, batch)

    def compute(self) -> Score:
        """Return the score of everything since the last ``reset``."""
        return self._checked(self._scores.compute())

    def reset(self) -> None:
        """Forget all updates."""
        self._scores.reset()

    def _take(self, scores: OutputScores, y_true: Any, y_pred: Any, batch: Any) -> None:
        if batch is not None:
            raise EvaluationError("batch is given, but row i of every output is sample i; leave batch out")
        scores.update(self._named(y_true), self._named(y_pred))

    def _named(self, values: Any) -> Mapping[str, Any]:
        if isinstance(values, Mapping):
            return values
        if len(self._outputs) > 1:
            names = ", ".join(f.name for f in self._outputs)
            raise EvaluationError(f"the algorithm has the outputs {names}; give a mapping name -> array")
        return {self._outputs[0].name: values}

    def _checked(self, score: Score) -> Score:
        self._check_graphs(score.graphs)
        return score


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


def _sums(feature: Feature, truth: Array, predicted: Array) -> Array:
    """Return what an update adds: hits, false positives and false negatives; or right ones and all of them."""
    if feature.kind is Kind.SCALAR:
        return np.array([np.square(truth - predicted).sum(), truth.size, 0.0])
    if feature.kind is not Kind.MASK:
        scored = truth != -1
        return np.array([np.count_nonzero((truth == predicted) & scored), np.count_nonzero(scored), 0])
    actual, scored = truth == 1, truth != -1
    hits, false = predicted & actual, predicted & scored & ~actual
    return np.array([hits.sum(), false.sum(), (actual & ~predicted).sum()])


def _value(feature: Feature, sums: Array) -> float:
    first, second, third = sums.tolist()
    if feature.kind is Kind.MASK:
        marked = 2 * first + second + third
        return 2 * first / marked if marked else 1.0
    return first / second if second else 0.0
