"""Evaluators of several predicted features together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from graphbench.catalog.features import Feature, Kind
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.evaluator import (
    BaseEvaluator,
    FeatureEvaluator,
    FeatureSums,
    add_checked,
    defined_scores,
    targets_of,
)
from graphbench.evaluation.graphs import is_graphs, one_batch
from graphbench.evaluation.metrics import Metric, metric
from graphbench.evaluation.metrics.items import Parts, check_parts
from graphbench.evaluation.score import Score


class SeveralOutputs(BaseEvaluator):
    """Base class of the evaluators of several outputs.

    Every metric is the weighted mean over the outputs that it can score; the value of one of several outputs stands
    beside it as ``<metric>_<output>``.

    Args:
        outputs: The output features.
        primary: Name of the metric that ranks models.
        also: Further metrics.
        weights: Output -> weight in the means; 1 where none is given.
        scores: As for :class:`FeatureEvaluator`.
        expected_graphs: As for :class:`FeatureEvaluator`.

    Attributes:
        metrics_of: Output -> the metrics that can score it; outputs that none can score are absent.

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
        self.outputs = tuple(outputs)
        self.weights = {f.name: (weights or {}).get(f.name, 1.0) for f in outputs}
        self.metrics = tuple(metric(name) for name in dict.fromkeys((primary, *also)))
        for m in self.metrics:
            if not any(f.kind in m.kinds for f in outputs):
                metric(m.name, outputs[0])  # its error names the metrics that could be used instead
        able = {f.name: tuple(m for m in self.metrics if f.kind in m.kinds) for f in outputs}
        self.metrics_of = {name: metrics for name, metrics in able.items() if metrics}

    def __repr__(self) -> str:
        """Return the outputs, the metrics, and the scale of floating-point predictions."""
        names = ", ".join(m.name for m in self.metrics)
        return f"Evaluator({', '.join(self.metrics_of)}; {names}; scores={self.scores.value!r})"

    def joined(self, scores: Mapping[str, Score], items: int, graphs: int | None) -> Score:
        """Return the score of all outputs, from the score of each.

        Raises:
            EvaluationError: If the primary metric is undefined for an output.
        """
        parts: dict[str, float] = {}
        undefined: dict[str, str] = {}

        def mean(m: Metric) -> float:
            values = {name: score[m.name] for name, score in scores.items() if m.name in score}
            without = {name: s.undefined[m.name] for name, s in scores.items() if m.name in s.undefined}
            if len(self.outputs) > 1:
                parts.update({f"{m.name}_{name}": value for name, value in values.items()})
                undefined.update({f"{m.name}_{name}": why for name, why in without.items()})
            if not values or (without and not m.skips_undefined):
                raise EvaluationError(next(iter(without.values()), "no output has it"))
            return sum(self.weights[name] * value for name, value in values.items()) / sum(
                self.weights[name] for name in values
            )

        values, missing = self.values(mean)
        return Score({**values, **parts}, self.primary_name, items=items, graphs=graphs, undefined=missing | undefined)


class OutputsEvaluator(SeveralOutputs):
    """Scores predictions of several output features together.

    Arguments of :meth:`evaluate` and :meth:`update`: targets and predictions are mappings output name -> argument
    of :class:`FeatureEvaluator`, or the graphs themselves as targets; ``batch`` is a mapping too, or one array where
    all outputs lie at one location. Outputs at one location may also be given as one array ``[items, columns]``, with
    the columns in the order of the outputs, as ``batch.y`` has them.
    """

    def __init__(
        self,
        outputs: Sequence[Feature],
        primary: str,
        also: Sequence[str] = (),
        *,
        parts: Parts | None = None,
        incomplete: bool = False,
        both_directions: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(outputs, primary, also, **options)
        self.scored_parts = check_parts(parts or {}, [f for f in outputs if f.name in self.metrics_of])
        features = {f.name: f for f in outputs}
        self.parts = {
            name: FeatureEvaluator(
                features[name],
                *_names(metrics),
                scores=self.scores,
                expected_graphs=self.expected_graphs,
                incomplete=incomplete,
                both_directions=both_directions,
            )
            for name, metrics in self.metrics_of.items()
        }
        for part in self.parts.values():
            part.is_part = part.metrics[0].skips_undefined
        self.reset()

    def start(self) -> dict[str, FeatureSums]:
        """Return the sums of every output."""
        return {name: FeatureSums(part.metrics, self.scored_parts) for name, part in self.parts.items()}

    def add(self, sums: dict[str, FeatureSums], y_true: Any, y_pred: Any, batch: Any = None) -> None:
        """Add predictions of whole graphs to the sums; where it raises, the sums stay as they were."""
        chosen = self._checked(y_true, y_pred, batch)
        ready = {name: self.parts[name].checked(sums[name], *arguments) for name, arguments in chosen.items()}
        add_checked(sums, ready, self.scored_parts)  # all are checked before any is added

    def finish(self, sums: dict[str, FeatureSums]) -> Score:
        """Return the score of all outputs."""
        known = {name: part for name, part in self.parts.items() if sums[name].items}  # others have no known target
        return self._joined({name: part.finish(sums[name]) for name, part in (known or self.parts).items()})

    def primary_sums(self, sums: dict[str, FeatureSums]) -> Mapping[str, Any]:
        """Return output -> the sums behind the primary metric."""
        kind = self.metrics[0].accumulator
        return {
            name: part_sums.accumulators[kind] for name, part_sums in sums.items() if kind in part_sums.accumulators
        }

    def groups(self) -> dict[str, Score]:
        """Return the scores of parts of the samples by name, where they are defined."""
        sums = {
            name: {out: output_sums.parts[name] for out, output_sums in self._sums.items()}
            for name in self.scored_parts
        }
        return defined_scores(
            {
                name: partial(self._of_part, part_sums)
                for name, part_sums in sums.items()
                if all(s.items for s in part_sums.values())
            }
        )

    def _of_part(self, sums: Mapping[str, FeatureSums]) -> Score:
        return self._joined({name: part.score_of(sums[name]) for name, part in self.parts.items()})

    def _joined(self, scores: Mapping[str, Score]) -> Score:
        graphs = {score.graphs for score in scores.values()}
        items = sum(score.items_scored for score in scores.values())
        score = self.joined(scores, items, graphs.pop() if len(graphs) == 1 else None)
        score.targets = {name: sums for output_score in scores.values() for name, sums in output_score.targets.items()}
        return score

    def _checked(self, y_true: Any, y_pred: Any, batch: Any) -> dict[str, tuple[Any, Any, Any]]:
        """Return output -> (targets, predictions, graphs of the rows)."""
        y_pred = by_output(y_pred, self.outputs, "y_pred")
        if not is_graphs(y_true):
            y_true = by_output(y_true, self.outputs, "y_true")
        missing = [name for name in self.parts if name not in y_pred]
        if missing:
            raise EvaluationError(f"y_pred lacks the output {missing[0]!r}; it has {', '.join(map(str, y_pred))}")
        if is_graphs(y_true):
            graphs = one_batch(y_true)
            targets = {name: targets_of(graphs, part.feature, batch) for name, part in self.parts.items()}
            return {name: (truth, y_pred[name], owner) for name, (truth, owner) in targets.items()}
        if any(name not in y_true for name in self.parts):
            raise EvaluationError(f"y_true must be graphs, or a mapping with the outputs {', '.join(self.parts)}")
        owners = batch if isinstance(batch, Mapping) else dict.fromkeys(self.parts, batch)
        return {name: (y_true[name], y_pred[name], owners.get(name)) for name in self.parts}


def by_output(values: Any, outputs: Sequence[Feature], name: str) -> Mapping[str, Any]:
    """Return output -> its values, of a mapping or of one array with the columns of all outputs in their order.

    Args:
        values: The mapping, or an array or tensor ``[items, columns]``.
        outputs: The outputs; scalars with a width have as many columns, all others one.
        name: How messages name the values.

    Raises:
        EvaluationError: If it is none of these, or the outputs lie at several locations.
    """
    if isinstance(values, Mapping):
        return values
    widths = [max(f.width, 1) for f in outputs]
    columns = ", ".join(f.name if f.width < 2 else f"{f.name} ({f.width})" for f in outputs)
    shape = getattr(values, "shape", None)
    together = len({f.location for f in outputs}) == 1 and all(f.kind is not Kind.TEXT for f in outputs)
    if shape is None or len(shape) != 2 or shape[1] != sum(widths) or not together:
        array = f", or one array [items, {sum(widths)}] with the columns {columns}" if together else ""
        given = f"the shape {list(shape)}" if shape is not None else f"a {type(values).__name__}"
        raise EvaluationError(
            f"there are several outputs; give {name} as a mapping name -> array: {columns}{array}; got {given}"
        )
    ends = np.cumsum(widths)
    parts = {f.name: values[:, end - width : end] for f, width, end in zip(outputs, widths, ends, strict=True)}
    return {f.name: parts[f.name] if f.width > 1 else parts[f.name][:, 0] for f in outputs}


def _names(metrics: Sequence[Metric]) -> tuple[str, list[str]]:
    """Return the name of the first metric and the names of the others."""
    return metrics[0].name, [m.name for m in metrics[1:]]
