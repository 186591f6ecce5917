"""Evaluators of predicted features: in one call or batch by batch, for one output or for several together."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from graphbench.catalog.features import Feature
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.graphs import is_graphs, item_owners, one_batch
from graphbench.evaluation.inputs import ScoreScale, checked_items
from graphbench.evaluation.metrics import Metric, default_metrics, metric
from graphbench.evaluation.metrics.accumulators import Accumulator
from graphbench.evaluation.score import Score

logger = logging.getLogger(__name__)


class BaseEvaluator(ABC):
    """What all evaluators have in common.

    The same numbers come out of one call of :meth:`evaluate` and of any number of :meth:`update` calls: counts and
    sums are carried along, scores of batches are never averaged. A graph must not span two updates.

    Attributes:
        metrics: The metrics, the primary one first.
        default_scores: What floating-point predictions are where ``scores`` is not given.
        scores: What floating-point predictions are.
        expected_graphs: Number of graphs that :meth:`compute` requires; None for any number.
    """

    default_scores: ClassVar[ScoreScale] = ScoreScale.PROBABILITY
    metrics: tuple[Metric, ...]

    def __init__(self, scores: str | None, expected_graphs: int | None) -> None:
        scores = self.default_scores if scores is None else scores
        if not isinstance(scores, str) or scores not in list(ScoreScale):
            raise EvaluationError(f"scores={scores!r} is unknown; use one of {', '.join(ScoreScale)}")
        if expected_graphs is not None and (not _is_whole(expected_graphs) or expected_graphs < 1):
            raise EvaluationError(
                f"expected_graphs={expected_graphs!r} must be positive and a whole number; leave it out for any number"
            )
        self.scores = ScoreScale(scores)
        self.expected_graphs = expected_graphs

    @property
    def primary_name(self) -> str:
        """Name of the metric that ranks models."""
        return self.metrics[0].name

    @property
    def higher_is_better(self) -> bool:
        """Direction of the primary metric."""
        return self.metrics[0].higher_is_better

    def __call__(self, y_true: Any, y_pred: Any, batch: Any = None) -> Score:
        """Return the score of all predictions at once, as :meth:`evaluate` does."""
        return self.evaluate(y_true, y_pred, batch)

    @abstractmethod
    def evaluate(self, y_true: Any, y_pred: Any, batch: Any = None) -> Score:
        """Return the score of all predictions at once; running updates stay untouched."""

    @abstractmethod
    def update(self, y_true: Any, y_pred: Any, batch: Any = None) -> None:
        """Take the predictions of some whole graphs; an update that raises changes nothing."""

    @abstractmethod
    def compute(self) -> Score:
        """Return the score of everything since the last :meth:`reset`; more updates may follow and add to it."""

    @abstractmethod
    def reset(self) -> None:
        """Forget all updates."""

    def groups(self) -> dict[str, Score]:
        """Return the scores of parts of the samples that are reported beside the whole, by name, e.g. ``n16``."""
        return {}

    def check_graphs(self, seen: int | None) -> None:
        """Refuse another number of graphs than the expected one.

        Raises:
            EvaluationError: If graphs are missing, too many, or unknown.
        """
        if self.expected_graphs is None or seen == self.expected_graphs:
            return
        if seen is None:
            raise EvaluationError(
                f"{self.expected_graphs} graphs are expected but the rows' graphs are unknown; "
                "pass batch= or a list of per-graph arrays"
            )
        verb = "missing" if seen < self.expected_graphs else "too many"
        raise EvaluationError(
            f"{seen} graphs were scored but {self.expected_graphs} are expected: "
            f"{abs(seen - self.expected_graphs)} {verb}; predict every graph of the split once"
        )


class _Running:
    """What has been scored so far: one accumulator for each kind of sum that the metrics need."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.accumulators: dict[Any, Accumulator] = {m.accumulator: m.accumulator() for m in metrics}
        self.needs_graphs = {m.accumulator for m in metrics if m.needs_graphs}
        self.items = 0
        self.graphs: int | None = None
        self.updates = 0


class FeatureEvaluator(BaseEvaluator):
    """Scores predictions of one output feature.

    Args:
        feature: What is scored.
        primary: Name of the metric that ranks models; None for the default of the feature's type.
        also: Further metrics; None for the defaults if ``primary`` is None too, else none.
        scores: What floating-point predictions of a mask are: ``"probability"`` (in [0, 1]; from 0.5 on positive),
            ``"logit"`` (from 0 on positive) or ``"label"`` (0.0 and 1.0). Boolean and integer predictions are always
            labels. Nothing is guessed from the values. None is the default of the kind of task.
        expected_graphs: If given, :meth:`compute` and :meth:`evaluate` refuse any other number of graphs.

    Raises:
        EvaluationError: If a metric cannot score the feature, or an argument is not allowed.
    """

    def __init__(
        self,
        feature: Feature,
        primary: str | None = None,
        also: Sequence[str] | None = None,
        *,
        scores: str | None = None,
        expected_graphs: int | None = None,
    ) -> None:
        super().__init__(scores, expected_graphs)
        if not isinstance(feature, Feature):
            raise EvaluationError(f"the feature is {feature!r:.80}; give a graphbench.catalog.features.Feature")
        if primary is None:
            primary, defaults = default_metrics(feature)
            also = defaults if also is None else also
        self.feature = feature
        self.metrics = tuple({m.name: m for m in (metric(name, feature) for name in (primary, *(also or ())))}.values())
        self._running = _Running(self.metrics)

    def __repr__(self) -> str:
        """Return the feature, the metrics, and what floating-point predictions are."""
        names = ", ".join(m.name for m in self.metrics)
        what = f"{self.feature.name}: {self.feature.location} {self.feature.type_name}"
        return f"Evaluator({what}; {names}; scores={self.scores.value!r})"

    def evaluate(self, y_true: Any, y_pred: Any, batch: Any = None) -> Score:
        """Return the score of all predictions at once; running updates stay untouched.

        Args:
            y_true: Targets: array, tensor, or a list of one array per graph. One row per item (node, edge or graph):
                ``[items]``, or ``[items, K]`` for K scalar or mask targets each. Or the graphs themselves: a PyG
                ``Batch`` or ``Data``, or a list of ``Data``, which hold the targets and say which row is whose.
            y_pred: Predictions in the form of the targets. Masks: labels (bool, int) or scores (float, see ``scores``);
                categorical: labels ``[items]`` or scores ``[items, classes]``, of which the highest counts;
                mask_one: labels, or scores of which the highest in each graph counts; scalars: values.
            batch: int ``[items]``, the graph of each row, in any order. Without it (and without lists or graphs)
                metrics over graphs are left out of the score, except for graph-level features, where every row is a
                graph.

        Raises:
            EvaluationError: If shapes or lengths disagree, a value is not finite or not allowed (the message says
                which and where), nothing is given, graphs are missing, or the primary metric is undefined for the
                targets. Other metrics that are undefined are left out, see ``Score.undefined``.
        """
        running = _Running(self.metrics)
        self._add(running, y_true, y_pred, batch)
        return self._finish(running)

    def update(self, y_true: Any, y_pred: Any, batch: Any = None) -> None:
        """Take the predictions of some whole graphs; arguments and errors as for :meth:`evaluate`.

        Graph indices count within the update: index 0 of the next one is another graph. An update that raises
        changes nothing.
        """
        self._add(self._running, y_true, y_pred, batch)

    def compute(self) -> Score:
        """Return the score of everything since the last :meth:`reset`; more updates may follow and add to it.

        Raises:
            EvaluationError: Before any update, if graphs are missing, or if the primary metric is undefined.
        """
        if self._running.updates == 0:
            raise EvaluationError("compute() was called before any update(); there is nothing to score yet")
        return self._finish(self._running)

    def reset(self) -> None:
        """Forget all updates."""
        self._running = _Running(self.metrics)

    def _add(self, running: _Running, y_true: Any, y_pred: Any, batch: Any) -> None:
        if is_graphs(y_true):
            y_true, batch = targets_of(y_true, self.feature, batch)
            y_pred = _of_output(y_pred, self.feature)
        items, graphs = checked_items(self.feature, y_true, y_pred, batch, self.scores)
        if running.updates and (graphs is None) != (running.graphs is None):
            raise EvaluationError("some updates name the graphs and others do not; pass batch= with all or with none")
        if graphs is None and self.metrics[0].needs_graphs:
            raise EvaluationError(f"{self.primary_name} needs the graphs; pass batch= or a list of per-graph arrays")
        for kind, accumulator in running.accumulators.items():
            if items.graph is not None or kind not in running.needs_graphs:
                accumulator.add(items)
        running.updates += 1
        running.items += items.truth.size
        running.graphs = None if graphs is None else (running.graphs or 0) + graphs

    def _finish(self, running: _Running) -> Score:
        self.check_graphs(running.graphs)
        known = [m for m in self.metrics if running.graphs is not None or not m.needs_graphs]
        if len(known) < len(self.metrics):
            logger.info("the graphs are unknown: %s left out", [m.name for m in self.metrics if m not in known])
        values: dict[str, float] = {}
        undefined: dict[str, str] = {}
        for m in known:
            try:
                values[m.name] = m.value(running.accumulators[m.accumulator])
            except EvaluationError as error:
                if m is self.metrics[0]:
                    raise
                undefined[m.name] = str(error)
                logger.info("%s is left out: %s", m.name, error)
        return Score(values, self.primary_name, items=running.items, graphs=running.graphs, undefined=undefined)


class OutputsEvaluator(BaseEvaluator):
    """Scores predictions of several output features together.

    Every metric is the weighted mean over the outputs that it can score; the value of one output stands beside it as
    ``<metric>_<output>``. Targets and predictions are mappings output name -> array, or the graphs themselves as
    targets; arguments are otherwise those of :class:`FeatureEvaluator`.

    Args:
        outputs: The output features.
        primary: Name of the metric that ranks models.
        also: Further metrics.
        weights: Output -> weight in the means; 1 where none is given.
        scores: As for :class:`FeatureEvaluator`.
        expected_graphs: As for :class:`FeatureEvaluator`.

    Raises:
        EvaluationError: If a metric can score no output.
    """

    def __init__(
        self,
        outputs: Sequence[Feature],
        primary: str,
        also: Sequence[str] = (),
        *,
        weights: Mapping[str, float] | None = None,
        scores: str | None = None,
        expected_graphs: int | None = None,
    ) -> None:
        super().__init__(scores, expected_graphs)
        self.weights = {f.name: (weights or {}).get(f.name, 1.0) for f in outputs}
        self.metrics = tuple(metric(name) for name in dict.fromkeys((primary, *also)))
        for m in self.metrics:
            if not any(f.kind in m.kinds for f in outputs):
                metric(m.name, outputs[0])  # says what could be used instead
        self.parts: dict[str, FeatureEvaluator] = {}
        for feature in outputs:
            names = [m.name for m in self.metrics if feature.kind in m.kinds]
            if names:
                options: dict[str, Any] = {"scores": scores, "expected_graphs": expected_graphs}
                self.parts[feature.name] = FeatureEvaluator(feature, names[0], names[1:], **options)

    def __repr__(self) -> str:
        """Return the outputs, the metrics, and what floating-point predictions are."""
        names = ", ".join(m.name for m in self.metrics)
        return f"Evaluator({', '.join(self.parts)}; {names}; scores={self.scores.value!r})"

    def evaluate(self, y_true: Any, y_pred: Any, batch: Any = None) -> Score:
        """Return the score of all outputs at once; running updates stay untouched.

        Args:
            y_true: Mapping output name -> targets as for :class:`FeatureEvaluator`, or the graphs themselves.
            y_pred: Mapping output name -> predictions, for all outputs.
            batch: Mapping output name -> int ``[items]``, the graph of each row; or one array where all outputs lie at
                one location. Not with graphs as targets.
        """
        chosen = self._checked(y_true, y_pred, batch)
        return self._joined({name: self.parts[name].evaluate(*args) for name, args in chosen.items()})

    def update(self, y_true: Any, y_pred: Any, batch: Any = None) -> None:
        """Take the predictions of some whole graphs; arguments and errors as for :meth:`evaluate`."""
        chosen = self._checked(y_true, y_pred, batch)
        for name, (truth, predicted, owner) in chosen.items():  # all are checked before any is taken
            part = self.parts[name]
            checked_items(part.feature, truth, predicted, owner, part.scores)
        for name, args in chosen.items():
            self.parts[name].update(*args)

    def compute(self) -> Score:
        """Return the score of everything since the last :meth:`reset`."""
        return self._joined({name: part.compute() for name, part in self.parts.items()})

    def reset(self) -> None:
        """Forget all updates."""
        for part in self.parts.values():
            part.reset()

    def _checked(self, y_true: Any, y_pred: Any, batch: Any) -> dict[str, tuple[Any, Any, Any]]:
        """Return output -> (targets, predictions, graphs of the rows)."""
        if not isinstance(y_pred, Mapping):
            names = ", ".join(self.parts)
            raise EvaluationError(f"there are several outputs; give predictions as a mapping name -> array: {names}")
        missing = [name for name in self.parts if name not in y_pred]
        if missing:
            raise EvaluationError(f"y_pred lacks the output {missing[0]!r}; it has {', '.join(map(str, y_pred))}")
        if is_graphs(y_true):
            graphs = one_batch(y_true)
            found = {name: targets_of(graphs, part.feature, batch) for name, part in self.parts.items()}
            return {name: (truth, y_pred[name], owner) for name, (truth, owner) in found.items()}
        if not isinstance(y_true, Mapping) or any(name not in y_true for name in self.parts):
            raise EvaluationError(f"y_true must be graphs, or a mapping with the outputs {', '.join(self.parts)}")
        owners = batch if isinstance(batch, Mapping) else dict.fromkeys(self.parts, batch)
        return {name: (y_true[name], y_pred[name], owners.get(name)) for name in self.parts}

    def _joined(self, scores: Mapping[str, Score]) -> Score:
        values: dict[str, float] = {}
        undefined: dict[str, str] = {}
        for m in self.metrics:
            own = {name: score[m.name] for name, score in scores.items() if m.name in score}
            without = {n: s.undefined[m.name] for n, s in scores.items() if m.name in s.undefined}
            undefined |= {f"{m.name}_{name}": why for name, why in without.items()}
            if without or not own:
                undefined[m.name] = next(iter(without.values()), "no output has it")
            else:
                total = sum(self.weights[name] for name in own)
                values[m.name] = sum(self.weights[name] * value for name, value in own.items()) / total
            values |= {f"{m.name}_{name}": value for name, value in own.items()}
        if self.primary_name not in values:
            raise EvaluationError(undefined[self.primary_name])
        ordered = {m.name: values.pop(m.name) for m in self.metrics if m.name in values}
        graphs = {score.graphs for score in scores.values()}
        items = sum(score.items_scored for score in scores.values())
        known = graphs.pop() if len(graphs) == 1 else None
        return Score({**ordered, **values}, self.primary_name, items=items, graphs=known, undefined=undefined)


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def targets_of(graphs: Any, feature: Feature, batch: Any = None) -> tuple[Any, Any]:
    """Return the targets of a feature that graphs hold, and the graph of every row.

    Args:
        graphs: A PyG ``Batch`` or ``Data``, or a list of ``Data``.
        feature: The feature.
        batch: What the caller gave as the rows' graphs: nothing.

    Raises:
        EvaluationError: If the graphs lack the feature, or ``batch`` is given too.
    """
    if batch is not None:
        raise EvaluationError("batch is given, but the graphs say which row belongs to which; leave batch out")
    graphs = one_batch(graphs)
    if feature.name not in graphs:
        raise EvaluationError(
            f"the graphs have no field {feature.name!r}, which is scored; load them with their labels"
        )
    return graphs[feature.name], item_owners(graphs, feature.location)


def _of_output(predicted: Any, feature: Feature) -> Any:
    """Return the predictions of an output, of a mapping or alone."""
    if not isinstance(predicted, Mapping):
        return predicted
    if feature.name not in predicted:
        raise EvaluationError(f"y_pred lacks the output {feature.name!r}; it has {', '.join(map(str, predicted))}")
    return predicted[feature.name]
