"""Evaluators of predicted features: in one call or batch by batch, for one output or for several together."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Location
from graphbench.core.errors import EvaluationError
from graphbench.data.batches.sample_ids import SampleIds, ids_of, joined
from graphbench.data.components.measures import Measure
from graphbench.evaluation.graphs import is_graphs, item_owners, one_batch, refuse_unlabelled
from graphbench.evaluation.inputs import AS_LOGITS, ScoreScale, as_array, checked_items
from graphbench.evaluation.metrics import Metric, default_metrics, metric
from graphbench.evaluation.metrics.accumulators import Accumulator
from graphbench.evaluation.metrics.bootstrap import Tally, has_tally, replicate_seed, replicates, start_tallies
from graphbench.evaluation.metrics.items import Items, Parts, TargetSums, check_parts, restricted, rows_of_parts
from graphbench.evaluation.score import Score

logger = logging.getLogger(__name__)


class BaseEvaluator(ABC):
    """Base class of all evaluators.

    The same numbers come out of one call of :meth:`evaluate` and of any number of :meth:`update` calls: counts and
    sums are carried along, scores of batches are never averaged. A graph must not span two updates.

    A subclass sets ``metrics``, calls :meth:`reset` at the end of its ``__init__`` and implements :meth:`start`,
    :meth:`add` and :meth:`finish`.

    Attributes:
        metrics: The metrics, the primary one first.
        default_scores: Scale of floating-point predictions where ``scores`` is not given.
        scores: Scale of floating-point predictions.
        expected_graphs: Number of graphs that :meth:`compute` requires; None for any number.
        labellers: Names of the labellers behind the targets; graphs on which one failed are refused.
        weights: Output -> weight in means over outputs; 1 where none is given.
        is_part: Whether the primary metric may be undefined, as the mean over several outputs then leaves it out.
    """

    is_part = False
    labellers: tuple[str, ...] = ()
    weights: Mapping[str, float] = MappingProxyType({})
    default_scores: ClassVar[ScoreScale] = ScoreScale.PROBABILITY
    metrics: tuple[Metric, ...]
    _sums: Any
    _updates: list[SampleIds | None]  # the samples of every update
    _seed: int | None = None  # of replicates; None for none
    _is_paired = False  # whether replicates are drawn as for records, if every update names its samples

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

    def evaluate(self, y_true: Any, y_pred: Any, batch: Any = None, **further: Any) -> Score:
        """Return the score of all predictions at once; running updates stay untouched.

        Args:
            y_true: Targets, or the graphs that hold them; see the class.
            y_pred: Predictions; see the class.
            batch: The graph of each row, where the targets do not say it; see the class.
            **further: Further arguments for the task's predictions; see the class.

        Raises:
            EvaluationError: If shapes or lengths disagree, a value is not finite or not allowed (the message says which
                and where), nothing is given, graphs are missing or too many, or the primary metric is undefined for
                the targets. Other metrics that are undefined are left out, see ``Score.undefined``.
        """
        refuse_unlabelled(y_true, self.labellers)
        sums, ids = self.start(), ids_of(y_true)
        self._name_samples(sums, ids, is_first=True)
        self.add(sums, y_true, y_pred, batch, **further)
        score = self.finish(sums)
        score.samples = joined([ids])
        return self._with_replicates(score, sums)

    def update(self, y_true: Any, y_pred: Any, batch: Any = None, **further: Any) -> None:
        """Take the predictions of some whole graphs; arguments and errors as for :meth:`evaluate`.

        Graph indices count within the update: index 0 of the next one is another graph. An update that raises changes
        nothing.
        """
        refuse_unlabelled(y_true, self.labellers)
        ids = ids_of(y_true)
        self._name_samples(self._sums, ids, is_first=not self._updates)
        self.add(self._sums, y_true, y_pred, batch, **further)
        self._updates.append(ids)

    def compute(self) -> Score:
        """Return the score of everything since the last :meth:`reset`; more updates may follow and add to it.

        Raises:
            EvaluationError: Before any update, if graphs are missing, or if the primary metric is undefined.
        """
        if not self._updates:
            raise EvaluationError("compute() was called before any update(); there is nothing to score yet")
        score = self.finish(self._sums)
        score.samples = joined(self._updates)
        return self._with_replicates(score, self._sums)

    def reset(self) -> None:
        """Forget all updates."""
        self._sums, self._updates = self.start(), []
        if self._seed is not None:
            start_tallies(self.primary_sums(self._sums).values(), self._seed)

    def draw_replicates(self, seed: int | None = None) -> None:
        """Forget all updates, and from here on compute bootstrap replicates of the primary metric as well.

        ``Score.replicates`` has them. Replicates of two evaluators with the same seed on the same samples are paired,
        see :mod:`graphbench.evaluation.metrics.bootstrap`: batches of a dataset say which samples they hold, and other
        targets are taken as the samples that follow the samples of the update before.

        Args:
            seed: A whole number from 0 on; None for the seed of records of the split that the first batch is of. Then
                there are no replicates where an update does not say which samples it holds.
        """
        self._seed, self._is_paired = seed, seed is None
        self.reset()

    def _name_samples(self, sums: Any, ids: SampleIds | None, *, is_first: bool) -> None:
        """Say which samples the next update of sums is of, to their replicates."""
        parts = self.primary_sums(sums).values()
        if self._is_paired and is_first and ids is not None:
            start_tallies(parts, replicate_seed(ids.split.dataset, ids.split.split))
        for part in parts:
            if has_tally(part):
                part.tally.numbers = None if ids is None else ids.numbers

    def _with_replicates(self, score: Score, sums: Any) -> Score:
        """Return a score with the replicates of its sums, where they have any."""
        parts = self.primary_sums(sums)
        seeds = {part.tally.seed for part in parts.values() if has_tally(part)}
        if seeds and not (self._is_paired and len(score.samples) != 1):
            score.replicates = replicates(parts, self.primary_value)
            score.replicate_seed = seeds.pop() if score.replicates else None
        return score

    def primary_sums(self, sums: Any) -> Mapping[str, Any]:
        """Return output -> the sums behind the primary metric, for its replicates; here none.

        Args:
            sums: From :meth:`start`.
        """
        return {}

    def primary_value(self, parts: Mapping[str, Any]) -> float:
        """Return the primary metric of sums as :meth:`primary_sums` returns them: the weighted mean over outputs."""
        primary, values = self.metrics[0], {}
        for name, part in parts.items():
            try:
                values[name] = primary.value(part)
            except EvaluationError:
                if not primary.skips_undefined:
                    raise
        if not values:
            raise EvaluationError(f"{primary.name} is undefined for all outputs")
        weights = {name: self.weights.get(name, 1.0) for name in values}
        return sum(weights[name] * value for name, value in values.items()) / sum(weights.values())

    @abstractmethod
    def start(self) -> Any:
        """Return the sums of no prediction, to which :meth:`add` adds."""

    @abstractmethod
    def add(self, sums: Any, y_true: Any, y_pred: Any, batch: Any = None) -> None:
        """Add predictions of whole graphs to the sums; where it raises, the sums stay as they were."""

    @abstractmethod
    def finish(self, sums: Any) -> Score:
        """Return the score of sums to which predictions were added."""

    def values(
        self, value_of: Callable[[Metric], float], metrics: Sequence[Metric] | None = None
    ) -> tuple[dict[str, float], dict[str, str]]:
        """Return the values of the metrics by name, and why others are undefined.

        Args:
            value_of: Returns the value of a metric, or raises an ``EvaluationError`` where it is undefined.
            metrics: Which metrics; None for all.

        Raises:
            EvaluationError: If the primary metric is undefined.
        """
        values: dict[str, float] = {}
        undefined: dict[str, str] = {}
        for m in self.metrics if metrics is None else metrics:
            try:
                values[m.name] = value_of(m)
            except EvaluationError as error:
                if m is self.metrics[0] and not self.is_part:
                    raise
                undefined[m.name] = str(error)
        return values, undefined

    def groups(self) -> dict[str, Score]:
        """Return the scores of parts of the samples that are reported beside the whole, by name, e.g. ``n16``.

        The scores cover the updates so far; :meth:`evaluate` does not change them.
        """
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


class FeatureSums:
    """Running sums of one output: one accumulator for each kind of sum that the metrics need.

    Args:
        metrics: The metrics.
        parts: Names of the parts of the samples that have separate sums.
    """

    def __init__(self, metrics: Sequence[Metric], parts: Iterable[str] = ()) -> None:
        self.accumulators: dict[Any, Accumulator] = {m.accumulator: m.accumulator() for m in metrics}
        self.needs_graphs = {m.accumulator for m in metrics if m.needs_graphs}
        self.needs_measure = {m.accumulator for m in metrics if m.needs_measure}
        self.needs_scores = {m.accumulator for m in metrics if m.needs_scores}
        self.measured = self.scored = False
        self.items = 0
        self.graphs: int | None = None
        self.targets = TargetSums()
        self.parts = {name: FeatureSums(metrics) for name in parts}

    def add(self, items: Items, graphs: int | None) -> None:
        """Add checked items of some graphs; None if the graphs are unknown."""
        for kind, accumulator in self.accumulators.items() if items.truth.size else ():
            if (
                (items.graph is None and kind in self.needs_graphs)
                or (items.within is None and kind in self.needs_measure)
                or (items.scores is None and kind in self.needs_scores)
            ):
                continue
            accumulator.add(items)
        self.measured = self.measured or items.within is not None
        self.scored = self.scored or items.scores is not None
        self.items += items.truth.size
        self.targets = self.targets.plus(items.truth)
        self.graphs = None if graphs is None else (self.graphs or 0) + graphs


Checked = tuple[Items, int | None]


def add_checked(sums: Mapping[str, FeatureSums], ready: Mapping[str, Checked], parts: Parts) -> None:
    """Add checked items of every output to its sums, and the items of parts of the samples to the sums of the parts."""
    for name, (items, graphs) in ready.items():
        sums[name].add(items, graphs)
    chosen = rows_of_parts(parts, {name: items for name, (items, _) in ready.items()})
    for part, rows in chosen.items():
        if rows.any():
            for name, (items, _) in ready.items():
                part_items = restricted(items, rows)
                sums[name].parts[part].add(part_items, part_items.num_graphs)


class FeatureEvaluator(BaseEvaluator):
    """Scores predictions of one output feature.

    Arguments of :meth:`evaluate` and :meth:`update`:

    - ``y_true``: array, tensor, or a list of one array per graph. One row per item (node, edge or graph): ``[items]``,
      or ``[items, K]`` for K scalar or mask targets each. Or the graphs themselves: a PyG ``Batch`` or ``Data``, or a
      list of ``Data``, which hold the targets and say which row belongs to which graph.
    - ``y_pred``: in the form of the targets. Masks: labels (bool, int) or scores (float, see ``scores``); categorical:
      labels ``[items]`` or scores ``[items, classes]`` (the highest counts); mask_one: labels, or scores of
      which the highest in each graph counts; scalars: values.
    - ``batch``: int ``[items]``, the graph of each row, in any order. Without it (and without lists or graphs) metrics
      over graphs are left out of the score, except for graph-level features, where every row is a graph.

    Args:
        feature: The scored feature.
        primary: Name of the metric that ranks models; None for the default of the feature's type.
        also: Further metrics; None for the defaults if ``primary`` is None too, else none.
        scores: Scale of floating-point predictions of a mask: ``"probability"`` (in [0, 1]; from 0.5 on positive),
            ``"logit"`` (from 0 on positive) or ``"label"`` (0.0 and 1.0). Boolean and integer predictions are always
            labels. Nothing is guessed from the values. None is the default of the kind of task.
        expected_graphs: If given, :meth:`compute` and :meth:`evaluate` refuse any other number of graphs.
        parts: Parts of the samples that :meth:`groups` scores, by name.
        measure: The measure of sets of nodes of metrics that need one. Where there is none, or the targets do not come
            as graphs, these metrics are left out of the score.
        incomplete: Whether targets of masks and classes may be missing, as -1 or nan. Their rows are not scored, and
            graphs without a target count in no metric over graphs.
        both_directions: Whether edges are undirected and have a row per direction, as in the batches of such graphs.

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
        parts: Parts | None = None,
        measure: Measure | None = None,
        incomplete: bool = False,
        both_directions: bool = False,
    ) -> None:
        super().__init__(scores, expected_graphs)
        self.measure = measure
        self.incomplete = incomplete
        self.both_directions = both_directions
        if not isinstance(feature, Feature):
            raise EvaluationError(f"the feature is {feature!r:.80}; give a graphbench.catalog.features.Feature")
        if primary is None:
            primary, defaults = default_metrics(feature)
            also = defaults if also is None else also
        self.feature, self.parts = feature, check_parts(parts or {}, [feature])
        self.metrics = tuple({m.name: m for m in (metric(name, feature) for name in (primary, *(also or ())))}.values())
        self.ranks = any(m.needs_scores for m in self.metrics)
        self.reset()

    def __repr__(self) -> str:
        """Return the feature, the metrics, and the scale of floating-point predictions."""
        names = ", ".join(m.name for m in self.metrics)
        target = f"{self.feature.name}: {self.feature.location} {self.feature.type_name}"
        return f"Evaluator({target}; {names}; scores={self.scores.value!r})"

    def start(self) -> FeatureSums:
        """Return the sums of no prediction."""
        return FeatureSums(self.metrics, self.parts)

    def add(self, sums: FeatureSums, y_true: Any, y_pred: Any, batch: Any = None) -> None:
        """Add predictions of whole graphs to the sums; where it raises, the sums stay as they were."""
        name = self.feature.name
        add_checked({name: sums}, {name: self.checked(sums, y_true, y_pred, batch)}, self.parts)

    def primary_sums(self, sums: FeatureSums) -> Mapping[str, Any]:
        """Return the sums behind the primary metric."""
        return {self.feature.name: sums.accumulators[self.metrics[0].accumulator]}

    def groups(self) -> dict[str, Score]:
        """Return the scores of parts of the samples by name, where they are defined."""
        return defined_scores(
            {name: partial(self.score_of, part_sums) for name, part_sums in self._sums.parts.items() if part_sums.items}
        )

    def checked(self, sums: FeatureSums, y_true: Any, y_pred: Any, batch: Any) -> Checked:
        """Return the input of the sums: the items, and the number of their graphs (None if unknown)."""
        edges = None
        if is_graphs(y_true):
            y_true = one_batch(y_true)
            edges = y_true.edge_index
            y_true, batch = targets_of(y_true, self.feature, batch)
            y_pred = _of_output(y_pred, self.feature)
        how: dict[str, Any] = {"incomplete": self.incomplete, "ranked": bool(sums.needs_scores)}
        how["copies"] = 2 if self.both_directions and self.feature.location is Location.EDGE else 1
        items, graphs = checked_items(self.feature, y_true, y_pred, batch, self.scores, **how)
        if self.metrics[0].needs_scores and items.scores is None:
            raise EvaluationError(
                f"{self.primary_name} ranks items by scores, and y_pred holds labels; give probabilities, or logits "
                f"({AS_LOGITS}), as floating-point numbers"
            )
        if sums.needs_scores and sums.items and sums.scored != (items.scores is not None):
            raise EvaluationError("some updates have scores and others labels; give scores in all of them")
        if items.samples is not None:
            items = replace(items, samples=_numbers_of(sums, items.samples))
        if edges is not None and self.measure is not None and sums.needs_measure:
            items = replace(items, within=_sizes_within(self.measure, items, as_array(edges, "edge_index")))
        if sums.items and (graphs is None) != (sums.graphs is None):
            raise EvaluationError("some updates name the graphs and others do not; pass batch= with all or with none")
        if sums.needs_measure and sums.items and sums.measured != (items.within is not None):
            raise EvaluationError("some updates come as graphs and others as arrays; give all of them as graphs")
        if self.metrics[0].needs_measure and items.within is None:
            raise EvaluationError(
                f"{self.primary_name} needs the edges of the graphs, and the measure of a task; pass graphs as y_true "
                "to the evaluator of a dataset"
            )
        if graphs is None and self.metrics[0].needs_graphs:
            raise EvaluationError(f"{self.primary_name} needs the graphs; pass batch= or a list of per-graph arrays")
        return items, graphs

    def finish(self, sums: FeatureSums) -> Score:
        """Return the score of sums to which predictions were added."""
        self.check_graphs(sums.graphs)
        return self.score_of(sums)

    def score_of(self, sums: FeatureSums) -> Score:
        """Return the score of any number of graphs; metrics over graphs are left out where the graphs are unknown."""
        computable = [
            m
            for m in self.metrics
            if (sums.graphs is not None or not m.needs_graphs)
            and (sums.measured or not m.needs_measure)
            and (sums.scored or not m.needs_scores)
        ]
        if len(computable) < len(self.metrics):
            left_out = [m.name for m in self.metrics if m not in computable]
            logger.info("the graphs or the scores of items are unknown: %s left out", left_out)
        if not sums.items:
            raise EvaluationError(f"no target of {self.feature.name!r} is known; there is nothing to score")
        values, undefined = self.values(lambda m: m.value(sums.accumulators[m.accumulator]), computable)
        for name, why in undefined.items():
            logger.info("%s is left out: %s", name, why)
        score = Score(values, self.primary_name, items=sums.items, graphs=sums.graphs, undefined=undefined)
        score.targets = {self.feature.name: sums.targets}
        return score


def _numbers_of(sums: FeatureSums, graphs: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the numbers in their split of some graphs of an update; None where no replicates are drawn.

    Args:
        sums: The sums, whose tallies know the numbers of the graphs of the update.
        graphs: The graphs, counted within the update.
    """
    parts: Iterable[Any] = sums.accumulators.values()
    tally: Tally | None = next((part.tally for part in parts if has_tally(part)), None)
    if tally is None or tally.samples is None:
        return None
    return graphs + (sums.graphs or 0) if tally.numbers is None else tally.numbers[graphs]


def defined_scores(scores: Mapping[str, Callable[[], Score]]) -> dict[str, Score]:
    """Return the scores of parts of the samples; parts with an undefined primary metric are left out."""
    defined = {}
    for name, score in scores.items():
        try:
            defined[name] = score()
        except EvaluationError as error:
            logger.info("the part %s is left out: %s", name, error)
    return defined


def _sizes_within(measure: Measure, items: Items, edges: Any) -> Any:
    """Return the sizes of :attr:`Items.within` by a measure.

    Args:
        measure: The measure.
        items: Items of nodes, in the order of the graphs.
        edges: int ``[2, E]``, the edges between the nodes.

    Raises:
        EvaluationError: If the nodes are not in the order of the graphs.
    """
    graph = items.graph
    if graph is None or (np.diff(graph) < 0).any():
        raise EvaluationError("the nodes of the batch are not in the order of its graphs; use Batch.from_data_list")
    node_ptr = np.concatenate([[0], np.cumsum(np.bincount(graph, minlength=items.num_graphs))])
    largest = measure.sizes(node_ptr, edges, items.truth)
    is_equal = np.array_equal(items.predicted, items.truth)
    return np.stack([largest if is_equal else measure.sizes(node_ptr, edges, items.predicted), largest])


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def targets_of(graphs: Any, feature: Feature, batch: Any = None) -> tuple[Any, Any]:
    """Return the targets of a feature that graphs hold, and the graph of every row.

    Args:
        graphs: A PyG ``Batch`` or ``Data``, or a list of ``Data``.
        feature: The feature.
        batch: The caller's graphs of the rows, which must be None.

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
