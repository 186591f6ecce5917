"""The kind of task ``choose``: one of several things is chosen for every graph, each of which has a cost.

The card has one output, a scalar of graphs with a column per thing. A model learns a value per column; the prediction
is the number of the column with the lowest value; the score is what the chosen one costs beyond the best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import graphbench
from graphbench.catalog.features import Kind, Location
from graphbench.core.errors import CardError, EvaluationError
from graphbench.evaluation.array_files import read_arrays
from graphbench.evaluation.evaluator import BaseEvaluator, targets_of
from graphbench.evaluation.graphs import is_graphs
from graphbench.evaluation.metrics.registry import Metric, metric
from graphbench.evaluation.score import Score
from graphbench.tasks.base import Task
from graphbench.tasks.files import rows_of_output, write_arrays


class Costs:
    """Sums over graphs: the cost of what was chosen, and of the best."""

    def __init__(self) -> None:
        self.graphs, self.chosen, self.best = 0, 0.0, 0.0

    def update(self, costs: Any, choices: Any) -> None:
        """Add graphs: costs, float ``[G, K]``, and choices, int ``[G]``."""
        self.graphs += len(costs)
        self.chosen += float(costs[np.arange(len(costs)), choices].sum(dtype=np.float64))
        self.best += float(costs.min(axis=1).sum(dtype=np.float64))


graphbench.register_metric(
    Metric(
        name="excess_cost",
        higher_is_better=False,
        lowest=0.0,
        highest=float("inf"),
        description="Mean of what the chosen thing costs beyond the best one.",
        kinds=frozenset(),
        accumulator=Costs,
        value=lambda sums: (sums.chosen - sums.best) / sums.graphs,
    )
)
graphbench.register_metric(
    Metric(
        name="chosen_cost",
        higher_is_better=False,
        lowest=-float("inf"),
        highest=float("inf"),
        description="Mean cost of the chosen thing.",
        kinds=frozenset(),
        accumulator=Costs,
        value=lambda sums: sums.chosen / sums.graphs,
    )
)


class ChoiceEvaluator(BaseEvaluator):
    """Scores choices: ``y_true`` are costs ``[G, K]`` or graphs that hold them, ``y_pred`` column numbers ``[G]``."""

    def __init__(self, card: Any, scores: str | None = None, expected_graphs: int | None = None) -> None:
        super().__init__(scores, expected_graphs)
        self.output = card.outputs[0]
        self.metrics = tuple(metric(name) for name in (card.metrics.primary, *card.metrics.also))
        self.reset()

    def start(self) -> Costs:
        return Costs()

    def add(self, sums: Costs, y_true: Any, y_pred: Any, batch: Any = None) -> None:
        sums.update(*self._checked(y_true, y_pred))

    def finish(self, sums: Costs) -> Score:
        self.check_graphs(sums.graphs)
        values = {m.name: m.value(sums) for m in self.metrics}
        return Score(values, self.primary_name, items=sums.graphs, graphs=sums.graphs)

    def _checked(self, y_true: Any, y_pred: Any) -> tuple[Any, Any]:
        costs = np.asarray(targets_of(y_true, self.output)[0] if is_graphs(y_true) else y_true)
        choices = np.asarray(y_pred[self.output.name] if isinstance(y_pred, Mapping) else y_pred)
        if choices.dtype.kind not in "iu" or choices.shape != costs.shape[:1]:
            raise EvaluationError(
                f"choices are column numbers, int [{len(costs)}], got {choices.dtype} {list(choices.shape)}"
            )
        if len(choices) and not 0 <= choices.min() <= choices.max() < costs.shape[1]:
            raise EvaluationError(f"choices are numbers from 0 to {costs.shape[1] - 1}, got {choices.max()}")
        return costs, choices


@graphbench.register_task
class ChooseTask(Task):
    """Choose the cheapest of several things for every graph."""

    type: ClassVar[str] = "choose"

    def check_card(self) -> None:
        super().check_card()
        output = self.card.outputs[0]
        if output.location is not Location.GRAPH or output.kind is not Kind.SCALAR or output.width < 2:
            raise CardError(f"{self.card.address}: a choose task needs an output [output, graph, scalar(K)], K >= 2")

    @property
    def output(self) -> str:
        """Name of the output that holds the costs."""
        return self.card.outputs[0].name

    def losses(self, outputs: Any, batch: Any) -> dict[str, Any]:
        """Return the expected cost beyond the best one, where each column is chosen by the softmax of its value."""
        costs, chances = batch[self.output], (-outputs[self.output]).softmax(dim=1)
        return {self.output: ((chances * costs).sum(dim=1) - costs.min(dim=1).values).mean()}

    def loss_weights(self, batch: Any) -> dict[str, Any]:
        return {self.output: batch.num_graphs}

    def predictions(self, outputs: Any, batch: Any) -> dict[str, Any]:
        return {self.output: outputs[self.output].argmin(dim=1)}

    def evaluator(self, *, scores: str | None = None, expected_graphs: int | None = None) -> ChoiceEvaluator:
        return ChoiceEvaluator(self.card, scores, expected_graphs)

    def floors(self, train: Any, samples: Any) -> dict[str, dict[str, float]]:
        """Return the scores of always choosing one thing: the best in training, and each other."""
        known, costs = train.values[self.output], samples.values[self.output]
        names = [str(name) for name in self.card.channels.get(self.output, range(costs.shape[1]))]
        best, evaluator = int(known.mean(axis=0).argmin()), self.evaluator()
        return {
            ("single_best" if k == best else f"always_{name}"): dict(
                evaluator.evaluate(costs, np.full(len(costs), k, np.int64))
            )
            for k, name in enumerate(names)
        }

    def read_predictions(self, path: Path, split: Any, scores: str | None = None) -> Iterator[tuple[Any, Any]]:
        rows = rows_of_output(read_arrays(path), [self.output], path)[self.output]
        first = 0
        for batch in split.batches(4096):
            yield batch, rows[first : first + batch.num_graphs]
            first += batch.num_graphs
        if first != len(rows):
            raise EvaluationError(f"{path} has {len(rows)} choices, {self.card.address} has {first} graphs")

    def write_predictions(self, path: Path, predictions: Iterable[Any]) -> Path:
        return write_arrays(path, {"y_pred": np.concatenate([np.asarray(part[self.output]) for part in predictions])})
