"""Supervised prediction: every output is a feature of nodes, edges or graphs that is learned from targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.errors import CardError, ConfigError, EvaluationError
from graphbench.core.validation import StrictModel
from graphbench.data.batches.sample_ids import ids_of, joined
from graphbench.data.components.domain import find, rules_of
from graphbench.evaluation.array_files import read_arrays
from graphbench.evaluation.evaluator import BaseEvaluator, FeatureEvaluator
from graphbench.evaluation.metrics import METRICS, metric
from graphbench.evaluation.several import OutputsEvaluator, by_output
from graphbench.evaluation.trivial import LABEL_PREDICTORS, scores_of_predictors, trivial_scores
from graphbench.tasks.base import OptionsType, Task
from graphbench.tasks.files import (
    OF_WORDS,
    SAME_LIMIT,
    SINGLE,
    are_words,
    most_array_bytes,
    rows_of_batches,
    rows_of_output,
    write_arrays,
)
from graphbench.tasks.predict.class_names import classes_of_words, has_named_classes, score_answers
from graphbench.tasks.predict.rules import rule_predictions

if TYPE_CHECKING:
    from torch import Tensor

    from graphbench.catalog.cards import Card
    from graphbench.data.arrays.samples import Samples
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.evaluation.score import Score

_ITEMS = {Location.GRAPH: "graphs", Location.NODE: "nodes", Location.EDGE: "items of its edges"}
_ROWS = {
    Location.GRAPH: "a row per graph",
    Location.NODE: "a row per node, graph after graph,",
    Location.EDGE: "a row per column of edge_index, graph after graph,",
}
_READING_BATCH = 4096


def _content(feature: Feature) -> str:
    """Return a description of a prediction of a feature."""
    if feature.kind is Kind.MASK:
        return "a probability or a label"
    if feature.kind is Kind.CATEGORICAL:
        return f"a class from 0 to {feature.classes - 1}, or a score for each"
    if feature.kind is Kind.SCALAR:
        return "a number" if feature.width == 1 else f"{feature.width} numbers"
    return f"a {feature.type_name}"


class PredictOptions(StrictModel):
    """The options of a ``predict`` task on a card.

    Attributes:
        measure: The domain's measure of sets of nodes, as ``<domain>.<name>``, for the metric ``within_ratio``.
    """

    measure: str | None = None


class PredictTrainOptions(StrictModel):
    """``training.task`` of ``predict`` tasks.

    Attributes:
        errors: Which errors of scalars the loss has. ``metric``: squared errors if the primary metric is made of
            squared errors, and absolute errors otherwise. ``absolute`` or ``squared``: these. A model that is trained
            on absolute errors predicts medians; one that is trained on squared errors predicts means, as R2 asks for.
            The weights that are scored are chosen by the primary metric on validation data in either case.
    """

    errors: Literal["metric", "absolute", "squared"] = "metric"


class PredictTask(Task):
    """Predict the outputs of the card from its inputs."""

    type: ClassVar[str] = "predict"
    options_type: ClassVar[OptionsType] = PredictOptions
    options: PredictOptions
    train_options_type: ClassVar[OptionsType] = PredictTrainOptions
    train_options: PredictTrainOptions
    loss_options: ClassVar[tuple[str, ...]] = ("errors",)
    follows_rules: ClassVar[bool] = True

    def __init__(self, card: Card, train_options: Mapping[str, Any] | None = None) -> None:
        """Prepare the task.

        Args:
            card: The card.
            train_options: :class:`PredictTrainOptions`.

        Raises:
            CardError: If ``task.options`` or ``task.rules`` are not allowed.
            ConfigError: If there is no such option of the run, its value is not allowed, or no output is a scalar whose
                errors it could choose.
        """
        super().__init__(card, train_options)
        if self.train_options.errors != "metric" and not any(f.kind is Kind.SCALAR for f in card.outputs):
            raise ConfigError(
                f"training.task.errors is {self.train_options.errors!r}, but no output of {card.address} is a scalar; "
                "leave it out"
            )

    def check_card(self) -> None:
        """Refuse a card whose rules or measure do not exist, do not fit, or have the name of something else."""
        super().check_card()
        self._check_measure()
        taken = [name for name in self.card.task.rules if name in LABEL_PREDICTORS]
        if taken:
            raise CardError(
                f"{self.card.path} ({self.card.address}): task.rules names {taken[0]!r}, which is a predictor that "
                "reads training labels; choose another name, such as structural"
            )
        rules_of(self.card)

    def _check_measure(self) -> None:
        """Refuse a measure of a task without a set of nodes as its only output, and metrics that lack a measure."""
        where, names = f"{self.card.path} ({self.card.address})", (self.card.metrics.primary, *self.card.metrics.also)
        lacking = [name for name in names if name in METRICS and METRICS[name].needs_measure]
        if self.options.measure is None:
            if lacking:
                raise CardError(
                    f"{where}: the metric {lacking[0]!r} needs a measure of sets of nodes; name one in "
                    "task.options.measure"
                )
            return
        find("measure", self.options.measure)
        if [(f.kind, f.location) for f in self.card.outputs] != [(Kind.MASK, Location.NODE)]:
            outputs = ", ".join(f"{f.name} ({f.location} {f.type_name})" for f in self.card.outputs)
            raise CardError(f"{where}: task.options.measure measures a mask of nodes, but the outputs are {outputs}")

    @cached_property
    def incomplete(self) -> bool:
        """Whether targets of masks and classes may be missing, as -1: they count in no loss and in no score."""
        try:
            return find("generator", self.card.generator).masks_cells
        except CardError:  # predictions are scored without the generator, too
            return False

    @property
    def _both_directions(self) -> bool:
        """Whether batches have a row per direction of every edge."""
        return not self.card.directed and not self.card.complete

    def losses(self, outputs: Mapping[str, Tensor], batch: Any) -> dict[str, Tensor]:
        """Return the mean loss of every output, with the errors of scalars that ``training.task.errors`` says."""
        from graphbench.models.losses import losses

        errors = self.train_options.errors
        squared = metric(self.card.metrics.primary).squared if errors == "metric" else errors == "squared"
        return losses(outputs, batch, self.card.features, squared=squared, incomplete=self.incomplete)

    def loss_weights(self, batch: Any) -> dict[str, Any]:
        """Return the items behind the loss of every output, or the graphs where a node of each is chosen."""
        from graphbench.models.losses import loss_weights

        return loss_weights(batch, self.card.features, incomplete=self.incomplete)

    def predictions(self, outputs: Mapping[str, Tensor], batch: Any) -> dict[str, Tensor]:
        """Return probabilities of masks and classes, values of scalars, and the chosen nodes, by output."""
        from graphbench.models.losses import predictions

        return predictions(outputs, self.card.features, batch)

    def evaluator(self, *, scores: str | None = None, expected_graphs: int | None = None) -> BaseEvaluator:
        """Return an evaluator of the output, or of all outputs together."""
        metrics, outputs = self.card.metrics, self.card.outputs
        options: dict[str, Any] = {"scores": scores, "expected_graphs": expected_graphs, "parts": metrics.parts}
        options |= {"incomplete": self.incomplete, "both_directions": self._both_directions}
        evaluator: BaseEvaluator
        if len(outputs) == 1:
            measure = None if self.options.measure is None else find("measure", self.options.measure)
            evaluator = FeatureEvaluator(outputs[0], metrics.primary, metrics.also, measure=measure, **options)
        else:
            weights = self.card.task.weights
            evaluator = OutputsEvaluator(outputs, metrics.primary, metrics.also, weights=weights, **options)
        evaluator.labellers = self.card.labellers
        return evaluator

    def floors(self, train: Samples, samples: Samples) -> dict[str, dict[str, float]]:
        """Return the scores of predictors that know the training targets alone, and of the card's rules.

        See ``trivial_scores`` and ``rule_predictions``.
        """
        by_predictor: dict[str, dict[str, dict[str, float]]] = {}  # predictor -> output -> metric -> score
        names = (self.card.metrics.primary, *self.card.metrics.also)
        rules = rule_predictions(self.card, samples)
        for output in self.card.outputs:
            fitting = [name for name in names if output.kind in _kinds_of(name)]
            if not fitting:
                continue
            train_truth, _ = self._targets(train, output)
            truth, owners = self._targets(samples, output)
            ruled = {rule: self._labelled(samples, output, values[output.name])[0] for rule, values in rules.items()}
            measured = trivial_scores(output, train_truth, truth, owners, fitting)
            measured |= scores_of_predictors(output, truth, ruled, owners, fitting)
            for predictor, scores in measured.items():
                by_predictor.setdefault(predictor, {})[output.name] = scores
        return {predictor: self._joined(by_output) for predictor, by_output in by_predictor.items()}

    def _targets(self, samples: Samples, output: Feature) -> tuple[Any, Any]:
        """Return the targets of samples that have a label, and the graph of every row; None for rows of graphs."""
        values = samples.values[output.name]
        if output.kind is Kind.TEXT:
            return values.strings(), None
        return self._labelled(samples, output, values)

    def _labelled(self, samples: Samples, output: Feature, values: Any) -> tuple[Any, Any]:
        """Return the rows of an output in samples that have a label, and their graphs; None for rows of graphs."""
        counts = samples.num_nodes if output.location is Location.NODE else samples.num_edges
        owners = None if output.location is Location.GRAPH else np.repeat(np.arange(len(samples)), counts)
        if self.incomplete and output.kind in (Kind.MASK, Kind.CATEGORICAL):
            rows = samples.values[output.name] >= 0
            return values[rows], None if owners is None else owners[rows]
        if not self.card.labellers:
            return values, owners
        from graphbench.data.store.labels import is_unlabelled

        labelled = ~is_unlabelled(self.card, samples.values)
        rows = labelled if owners is None else labelled[owners]
        return values[rows], None if owners is None else owners[rows]

    def _joined(self, by_output: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        """Return the scores of one predictor as an evaluator of several outputs names them."""
        if len(self.card.outputs) == 1:
            return dict(next(iter(by_output.values())))
        weights = self.card.task.weights
        joined: dict[str, float] = {}
        for name in dict.fromkeys(chain.from_iterable(by_output.values())):
            values = {output: scores[name] for output, scores in by_output.items() if name in scores}
            total = sum(weights.get(output, 1.0) for output in values)
            joined[name] = sum(weights.get(output, 1.0) * value for output, value in values.items()) / total
            joined |= {f"{name}_{output}": value for output, value in values.items()}
        return joined

    def read_predictions(self, path: Path, split: GraphDataset, scores: str | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield (batch, predictions), with one row per item of every output."""
        arrays = read_arrays(path, most_array_bytes(split))
        if len(self.card.outputs) > 1 and arrays.keys() == {SINGLE}:
            arrays = dict(by_output(arrays[SINGLE], self.card.outputs, f"{SINGLE} of {path}"))
        arrays = rows_of_output(arrays, [f.name for f in self.card.outputs], path)
        batches = split.batches(_READING_BATCH)
        yield from rows_of_batches(arrays, batches, lambda: self._wrong_rows(arrays, split, path))

    def file_endings(self) -> tuple[str, ...]:
        """Return the endings of files; files of words name the classes of graphs."""
        return self.endings if has_named_classes(self.card) else tuple(e for e in self.endings if e not in OF_WORDS)

    def describe_rows(self) -> str:
        """Return the meaning and the content of a row of every output's array."""
        rows = [f"{_ROWS[feature.location]} with {_content(feature)}" for feature in self.card.outputs]
        if len(rows) == 1:
            return rows[0]
        named = (f"{feature.name}, {row}" for feature, row in zip(self.card.outputs, rows, strict=True))
        return f"an array per output: {'; '.join(named)}"

    def _wrong_rows(self, arrays: Mapping[str, Any], split: GraphDataset, path: Path) -> EvaluationError:
        """Return an error that names the first output whose array has not one row per item."""
        expected = {
            f.name: sum(len(batch[f.name]) for batch in split.batches(_READING_BATCH)) for f in self.card.outputs
        }
        wrong = next(f for f in self.card.outputs if len(arrays[f.name]) != expected[f.name])
        return EvaluationError(
            f"{path} has {len(arrays[wrong.name]):,} rows, {self.card.address} {split.split} has "
            f"{expected[wrong.name]:,} {_ITEMS[wrong.location]} here; write one row per item, graph after graph, "
            f"and {SAME_LIMIT}"
        )

    def score_file(self, path: Path, split: GraphDataset, scores: str | None = None) -> dict[str, Score]:
        """Return the scores of a file of predictions; in a file of class names, an unknown name counts as wrong."""
        if not are_words(path):
            return super().score_file(path, split, scores)
        answered = classes_of_words(self.card, path, len(split), split.split)
        batches = list(split.batches(_READING_BATCH))
        truth = np.concatenate([batch[self.card.outputs[0].name].numpy() for batch in batches])
        score = score_answers(self.card, truth, answered)
        score.samples = joined(map(ids_of, batches))
        return {split.split: score}

    def write_predictions(self, path: Path, predictions: Iterable[Any]) -> Path:
        """Write an array per output to a ``.npz`` file; the array of a single output is named ``y_pred``.

        Predictions of a single output may be arrays, as models from elsewhere return them.
        """
        parts: dict[str, list[Any]] = {f.name: [] for f in self.card.outputs}
        for batch in predictions:
            for name, rows in parts.items():
                rows.append(np.asarray(batch[name] if isinstance(batch, Mapping) else batch))
        single = len(parts) == 1
        return write_arrays(path, {"y_pred" if single else name: np.concatenate(rows) for name, rows in parts.items()})


def _kinds_of(name: str) -> frozenset[Kind]:
    return metric(name).kinds
