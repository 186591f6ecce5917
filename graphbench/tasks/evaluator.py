"""``graphbench.Evaluator``: the evaluator of a dataset's task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.evaluator import BaseEvaluator, FeatureEvaluator
from graphbench.evaluation.metrics import metric
from graphbench.tasks.registry import task_class


class _EvaluatorType(type):
    """Lets ``isinstance(x, Evaluator)`` hold for the evaluators of all tasks."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, BaseEvaluator)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, BaseEvaluator)


class Evaluator(metaclass=_EvaluatorType):
    """Scores predictions as a dataset's card and its kind of task ask: ``Evaluator("algoreas/mst_easy")``.

    The same numbers come out of one call of ``evaluate(y_true, y_pred, batch)`` and of any number of ``update`` calls
    followed by ``compute``: counts and sums are carried along, scores of batches are never averaged. Instead of targets
    every evaluator takes the graphs themselves: ``update(batch, predictions)`` with a PyG batch.

    Example:
        >>> evaluator = Evaluator("algoreas/mst_easy")
        >>> evaluator.evaluate(batch, predictions).primary
        0.8566
    """

    def __new__(
        cls,
        dataset: str | Card,
        *,
        output: str | None = None,
        scores: str | None = None,
        expected_graphs: int | None = None,
        root: str | Path | None = None,
        **options: Any,
    ) -> Any:
        """Return the evaluator of a dataset's task, over all outputs of its card.

        Args:
            dataset: Dataset id or alias, with its task where it has several (``co/rb_small:mis``), or a card.
            output: Score this output alone, with the card's metrics that can score it.
            scores: Scale of floating-point predictions of a mask: ``"probability"`` (in [0, 1]; from 0.5 on positive),
                ``"logit"`` (from 0 on positive) or ``"label"``; None for the default of the kind of task:
                ``logit`` for problems to solve, whose decoders read logits, and for the selection of algorithms,
                ``probability`` for all others.
            expected_graphs: If given, ``compute`` and ``evaluate`` refuse any other number of graphs.
            root: Folder of the datasets, for scores that refer to the training split and whose facts are not on the
                card: the climatology of forecasts, mean training costs of other data than the card's. They are taken
                from the split's files there; None for the default folder. Nothing is generated: a metric whose facts
                are missing says how to get them.
            **options: Settings of how predictions are scored: of the task's decoder, for problems to solve; for the
                selection of algorithms ``train_costs`` and ``overhead``, see ``SelectionEvaluator``.

        Raises:
            UnknownDataset: If no dataset has that name.
            EvaluationError: If the card has no such output, its metrics cannot score it, or an argument is not allowed.
        """
        card = card_of(dataset)
        if output is not None:
            card = _with_output(card, output)
        kind = task_class(card.task.type)
        task = kind(card, kind.options_of_evaluator(options))
        task.find_training(root)
        evaluator = task.evaluator(scores=scores, expected_graphs=expected_graphs)
        evaluator.draw_replicates()
        return evaluator

    @classmethod
    def from_features(
        cls,
        feature: Feature,
        primary: str | None = None,
        also: Sequence[str] | None = None,
        *,
        scores: str | None = None,
        expected_graphs: int | None = None,
    ) -> FeatureEvaluator:
        """Return an evaluator for a feature without a card; see ``FeatureEvaluator``."""
        return FeatureEvaluator(feature, primary, also, scores=scores, expected_graphs=expected_graphs)


def card_of(dataset: Any) -> Card:
    """Return a dataset's card, given its id or alias or the card itself.

    Raises:
        EvaluationError: If it is neither.
    """
    if isinstance(dataset, Card):
        return dataset
    if not isinstance(dataset, str):
        raise EvaluationError(f"the dataset is {dataset!r}; give an id such as 'algoreas/mst_easy', or a card")
    from graphbench.catalog.names import card

    return card(dataset)


def _with_output(card: Card, name: str) -> Card:
    """Return a card with one of its outputs alone, and the metrics that can score it.

    Raises:
        EvaluationError: If the card has no such output.
    """
    names = [feature.name for feature in card.outputs]
    if name not in names:
        raise EvaluationError(f"{card.address} has no output {name!r}; it has {', '.join(names) or 'none'}")
    others = set(names) - {name}
    kind = card.outputs[names.index(name)].kind
    able = tuple(m for m in (card.metrics.primary, *card.metrics.also) if kind in metric(m).kinds)
    selected: dict[str, Any] = {
        "parts": {part: spec for part, spec in card.metrics.parts.items() if spec.output == name}
    }
    if able:  # without any, the evaluator names the metrics that could be used
        selected |= {"primary": able[0], "also": able[1:]}
    return card.model_copy(
        update={
            "features": tuple(f for f in card.features if f.name not in others),
            "metrics": card.metrics.model_copy(update=selected),
        }
    )
