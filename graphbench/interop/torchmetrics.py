"""The evaluator of a dataset as a metric of torchmetrics.

This module imports torchmetrics, whose ``Metric`` is the base class; ``graphbench.interop.EvaluatorMetric`` loads the
module on first use.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, distributed

from graphbench.catalog.cards import Card
from graphbench.core.errors import ArgumentError, MissingDependency
from graphbench.data.batches.sample_ids import ids_of, joined
from graphbench.evaluation.evaluator import BaseEvaluator
from graphbench.evaluation.score import Score
from graphbench.tasks.evaluator import Evaluator

try:
    from torchmetrics import Metric
except ImportError as error:
    raise MissingDependency(
        f"a metric of torchmetrics needs it ({error}); install it: pip install 'graphbench[metrics]'"
    ) from error


class EvaluatorMetric(Metric):  # type: ignore[misc]
    """The metrics of a dataset's evaluator: ``update(batch, predictions)``, ``compute()``, ``reset()``.

    ``compute`` returns metric -> float64 scalar, the primary one first, the same numbers as the evaluator; with
    ``only`` a single scalar, which Lightning can log as an object. Scores of batches are never averaged.

    With several processes (``torch.distributed``) every process keeps its targets and predictions on the CPU, and
    ``compute``, which all processes must call, gathers them. The score is then exactly the score of all graphs
    together, which sums of the processes would not give for every metric. Memory grows with the predictions in this
    case alone.

    Args:
        dataset: Id or alias of the dataset, its card, or an evaluator.
        only: Return this metric alone; ``"primary"`` for the one that ranks models.
        **options: Further arguments of ``graphbench.Evaluator``, such as ``scores="logit"``.

    Raises:
        MissingDependency: If torchmetrics is not installed.
        ArgumentError: If ``only`` is no metric of the evaluator.
    """

    full_state_update = False
    is_differentiable = False

    def __init__(self, dataset: str | Card | BaseEvaluator, *, only: str | None = None, **options: Any) -> None:
        super().__init__()
        evaluator = copy.deepcopy(dataset) if isinstance(dataset, BaseEvaluator) else Evaluator(dataset, **options)
        self.evaluator: BaseEvaluator = evaluator  # of this metric alone, as its updates are
        self.only = self.evaluator.primary_name if only == "primary" else only
        names = [metric.name for metric in self.evaluator.metrics]
        if self.only is not None and self.only not in names:
            raise ArgumentError(f"only is {only!r}; the evaluator has {', '.join(names)}")
        self._kept: list[tuple[Any, ...]] = []

    @property
    def higher_is_better(self) -> bool:
        """Direction of ``only``, or else of the primary metric."""
        wanted = self.only or self.evaluator.primary_name
        return next(metric.higher_is_better for metric in self.evaluator.metrics if metric.name == wanted)

    def update(self, y_true: Any, y_pred: Any, batch: Any = None, **further: Any) -> None:
        """Take the predictions of some whole graphs; arguments and errors are the evaluator's.

        A batch without graphs, as the last one of an epoch may be on one of several processes, adds nothing.
        """
        if _is_empty(y_true):
            return
        self.evaluator.update(y_true, y_pred, batch, **further)
        if _processes() > 1:
            self._kept.append((_on_cpu(y_true), _on_cpu(y_pred), _on_cpu(batch), further))

    def compute(self) -> dict[str, Tensor] | Tensor:
        """Return the score of everything since the last :meth:`reset`, of all processes."""
        return self._as_tensors(self.score())

    def score(self) -> Score:
        """Return the values of :meth:`compute` as a ``Score``, with the numbers of items and graphs."""
        count = _processes()
        if count == 1:
            return self.evaluator.compute()
        gathered: list[Any] = [None] * count
        distributed.all_gather_object(gathered, self._kept)
        sums, updates = self.evaluator.start(), [update for kept in gathered for update in kept]
        for y_true, y_pred, batch, further in updates:
            self.evaluator.add(sums, y_true, y_pred, batch, **further)
        score = self.evaluator.finish(sums)
        score.samples = joined(ids_of(y_true) for y_true, *_ in updates)
        return score

    def forward(self, y_true: Any, y_pred: Any, batch: Any = None, **further: Any) -> dict[str, Tensor] | Tensor:
        """Take the predictions of some whole graphs, and return the score of these alone; nan without graphs."""
        if _is_empty(y_true):
            score: Mapping[str, float] = {metric.name: float("nan") for metric in self.evaluator.metrics}
        else:
            self.update(y_true, y_pred, batch, **further)
            score = self.evaluator.evaluate(y_true, y_pred, batch, **further)
        self._forward_cache = self._as_tensors(score)
        return self._forward_cache

    def reset(self) -> None:
        """Forget all updates."""
        super().reset()
        self.evaluator.reset()
        self._kept = []

    def _as_tensors(self, score: Mapping[str, float]) -> dict[str, Tensor] | Tensor:
        if self.only is not None:
            return torch.tensor(score[self.only], dtype=torch.float64)
        return {name: torch.tensor(value, dtype=torch.float64) for name, value in score.items()}


def _is_empty(y_true: Any) -> bool:
    count = getattr(y_true, "num_graphs", None)
    return count == 0 if count is not None else isinstance(y_true, Tensor) and len(y_true) == 0


def _processes() -> int:
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def _on_cpu(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _on_cpu(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_on_cpu(item) for item in value]
    value = value.detach() if hasattr(value, "detach") else value
    return value.to("cpu") if hasattr(value, "to") else value
