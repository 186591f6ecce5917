"""Score predictions as a dataset's card asks, in one call or batch by batch."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphbench.catalog.features import Feature
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.inputs import ScoreScale, checked_items
from graphbench.evaluation.metrics import METRICS, Metric, default_metrics, metric
from graphbench.evaluation.metrics.accumulators import Accumulator

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card

logger = logging.getLogger(__name__)


class Score(Mapping[str, float]):
    """The value of each metric, the primary one first.

    Attributes:
        primary_name: Name of the metric that ranks models.
        higher_is_better: Direction of the primary metric.
        items_scored: Number of values scored.
        graphs: Number of graphs covered; None if the graphs were not given.
        undefined: Metric -> why it has no value for these targets; such metrics are left out.
    """

    def __init__(
        self,
        values: Mapping[str, float],
        primary_name: str,
        *,
        items: int = 0,
        graphs: int | None = None,
        undefined: Mapping[str, str] | None = None,
    ) -> None:
        """Hold the values; ``primary_name`` is one of them."""
        self._values = dict(values)
        self.primary_name = primary_name
        self.higher_is_better = METRICS[primary_name].higher_is_better
        self.items_scored = items
        self.graphs = graphs
        self.undefined = dict(undefined or {})

    @property
    def primary(self) -> float:
        """Value of the primary metric."""
        return self._values[self.primary_name]

    def __getitem__(self, name: str) -> float:
        """Return one metric's value.

        Raises:
            KeyError: If it was not computed; metrics that need the graphs are left out when these were not given, and
                those that are undefined for the targets.
        """
        if name in self._values:
            return self._values[name]
        if name in self.undefined:
            raise KeyError(f"{name!r} was left out: {self.undefined[name]}")
        if name in METRICS and METRICS[name].needs_graphs and self.graphs is None:
            raise KeyError(f"{name!r} needs the graphs; pass batch= or a list of per-graph arrays")
        raise KeyError(f"{name!r} was not computed; the score has {', '.join(self._values)}")

    def __iter__(self) -> Iterator[str]:
        """Iterate over the metrics' names."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return the number of metrics."""
        return len(self._values)

    def __repr__(self) -> str:
        """Return e.g. ``Score(f1=0.8566 ↑, accuracy=0.9012; 24000 items, 1000 graphs)``."""
        arrow = "↑" if self.higher_is_better else "↓"
        shown = ", ".join(
            f"{name}={value:.4f}" + (f" {arrow}" if name == self.primary_name else "")
            for name, value in self._values.items()
        )
        size = f"{self.items_scored} items" + (f", {self.graphs} graphs" if self.graphs is not None else "")
        return f"Score({shown}; {size})"

    def to_dict(self) -> dict[str, float]:
        """Return the metrics as a plain dictionary, ready for JSON."""
        return dict(self._values)


class _Running:
    """What has been scored so far: one accumulator for each kind of sum that the metrics need."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.accumulators: dict[Any, Accumulator] = {m.accumulator: m.accumulator() for m in metrics}
        self.needs_graphs = {m.accumulator for m in metrics if m.needs_graphs}
        self.items = 0
        self.graphs: int | None = None
        self.updates = 0


class Evaluator:
    """Scores predictions of one output feature.

    The same numbers come out of one call of :meth:`evaluate` and of any number of :meth:`update` calls: counts and
    sums are carried along, scores of batches are never averaged. A graph must not span two updates.

    Example:
        >>> evaluator = Evaluator("algoreas/mst_easy")
        >>> evaluator.evaluate(y_true, y_pred, batch).primary
        0.8566
    """

    def __new__(cls, dataset: str | Card | None = None, **_: Any) -> Evaluator:
        """Return an evaluator; for a dataset with hints one that scores all outputs, for a problem one of solutions."""
        if cls is not Evaluator or dataset is None:
            return object.__new__(cls)
        about = card_of(dataset)
        if about.hints:
            from graphbench.evaluation.trajectories import AlgorithmEvaluator

            return object.__new__(AlgorithmEvaluator)
        if about.task.type == "solve":
            from graphbench.evaluation.solutions import SolutionEvaluator

            return object.__new__(SolutionEvaluator)
        return object.__new__(cls)

    def __init__(
        self,
        dataset: str | Card,
        *,
        output: str | None = None,
        scores: str = "probability",
        expected_graphs: int | None = None,
    ) -> None:
        """Prepare to score a dataset's output with the metrics its card names.

        Args:
            dataset: Dataset id or alias, or a card.
            output: Which output feature to score, where the card has several.
            scores: What floating-point predictions of a mask are: ``"probability"`` (in [0, 1]; from 0.5 on
                positive), ``"logit"`` (from 0 on positive) or ``"label"`` (0.0 and 1.0). Boolean and integer
                predictions are always labels. Nothing is guessed from the values.
            expected_graphs: If given, :meth:`compute` and :meth:`evaluate` refuse any other number of graphs.

        Raises:
            UnknownDataset: If no dataset has that name.
            EvaluationError: If the card has several outputs and none is chosen, or its metrics cannot score them.
        """
        card = card_of(dataset)
        feature = output_of(card, output)
        self._prepare(feature, card.metrics.primary, card.metrics.also, scores, expected_graphs)

    @classmethod
    def from_features(
        cls,
        feature: Feature,
        primary: str | None = None,
        also: Sequence[str] | None = None,
        *,
        scores: str = "probability",
        expected_graphs: int | None = None,
    ) -> Evaluator:
        """Return an evaluator for a feature without a card.

        Args:
            feature: What is scored.
            primary: Name of the metric that ranks models; None for the default of the feature's type.
            also: Further metrics; None for the defaults if ``primary`` is None too, else none.
            scores: As for :class:`Evaluator`.
            expected_graphs: As for :class:`Evaluator`.
        """
        if primary is None:
            primary, defaults = default_metrics(feature)
            also = defaults if also is None else also
        evaluator = cls.__new__(cls)
        evaluator._prepare(feature, primary, also or (), scores, expected_graphs)
        return evaluator

    def _prepare(
        self, feature: Feature, primary: str, also: Sequence[str], scores: str, expected_graphs: int | None
    ) -> None:
        self._set_options(scores, expected_graphs)
        self.feature = feature
        self.metrics = tuple(metric(name, feature) for name in dict.fromkeys((primary, *also)))
        self._running = _Running(self.metrics)

    def _set_options(self, scores: str, expected_graphs: int | None) -> None:
        if scores not in list(ScoreScale):
            raise EvaluationError(f"scores={scores!r} is unknown; use one of {', '.join(ScoreScale)}")
        if expected_graphs is not None and expected_graphs < 1:
            raise EvaluationError(f"expected_graphs={expected_graphs} must be positive; leave it out for any number")
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

    def __repr__(self) -> str:
        """Return the feature and the metrics."""
        names = ", ".join(m.name for m in self.metrics)
        return f"Evaluator({self.feature.name}: {self.feature.location} {self.feature.type_name}; {names})"

    def evaluate(self, y_true: Any, y_pred: Any, batch: Any = None) -> Score:
        """Return the score of all predictions at once; running updates stay untouched.

        Args:
            y_true: Targets: array, tensor, or a list of one array per graph. One row per item (node, edge or graph):
                ``[items]``, or ``[items, K]`` for K scalar or mask targets each.
            y_pred: Predictions in the same form. Masks: labels (bool, int) or scores (float, see ``scores``);
                categorical: labels ``[items]`` or scores ``[items, classes]``, of which the highest counts;
                mask_one: labels, or scores of which the highest in each graph counts; scalars: values.
            batch: int ``[items]``, the graph of each row, in any order. Without it (and without lists) metrics over
                graphs are left out of the score, except for graph-level features, where every row is a graph.

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
        self._check_graphs(running.graphs)
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

    def _check_graphs(self, seen: int | None) -> None:
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


def card_of(dataset: str | Card) -> Card:
    """Return a dataset's card, given its id or alias or the card itself."""
    if not isinstance(dataset, str):
        return dataset
    from graphbench.catalog.names import card

    return card(dataset)


def output_of(card: Card, name: str | None) -> Feature:
    """Return an output of a card; None asks for the only one.

    Raises:
        EvaluationError: If the card has no such output, or several and none is named.
    """
    names = [feature.name for feature in card.outputs]
    if name is None and len(names) > 1:
        choice = f"Evaluator(..., output={names[0]!r})"
        raise EvaluationError(f"{card.address} has the outputs {', '.join(names)}; choose one: {choice}")
    for feature in card.outputs:
        if name is None or feature.name == name:
            return feature
    raise EvaluationError(f"{card.address} has no output {name!r}; it has {', '.join(names)}")
