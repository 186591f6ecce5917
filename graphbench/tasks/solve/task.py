"""Combinatorial problems: a model learns from the graphs alone, and its scores are decoded into solutions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field, field_validator

from graphbench.core.errors import CardError, ConfigError, EvaluationError
from graphbench.core.validation import StrictModel
from graphbench.data.components.domain import find
from graphbench.data.components.problems import Problem
from graphbench.evaluation.array_files import read_arrays
from graphbench.evaluation.evaluator import BaseEvaluator
from graphbench.evaluation.metrics import metric
from graphbench.tasks.base import OptionsType, Task, in_memory
from graphbench.tasks.files import SAME_LIMIT, SINGLE, most_array_bytes, rows_of_output, write_arrays
from graphbench.tasks.solve.evaluator import SolutionEvaluator, Solutions, decode, problem_of
from graphbench.tasks.solve.metrics import SolutionSums, SolvedGraphs

if TYPE_CHECKING:
    from torch import Tensor

    from graphbench.catalog.cards import Card
    from graphbench.data.arrays.samples import Samples
    from graphbench.data.batches.dataset import GraphDataset

_MAX_COLUMNS = 16  # of scores of a node, such as the scores of colours
_READING_BATCH = 4096


class SolveOptions(StrictModel):
    """The options of a ``solve`` task on a card.

    Attributes:
        problem: The domain's problem, as ``<domain>.<name>``.
    """

    problem: str


class SolveTrainOptions(StrictModel):
    """The options of training for a ``solve`` task.

    Attributes:
        surrogate: Options of the loss without targets, such as ``beta`` or ``weight``
            (``graphbench.models.surrogates``).
        imitation: Whether the model learns the solutions in the labels, item by item, in place of the loss without
            targets; labels of the training split are then computed.
        decoding: Options of the decoder, which turns scores into solutions wherever they are scored, such as
            ``local_search`` or ``restarts`` (``graphbench.domains.co.decoding``).
    """

    surrogate: dict[str, float] = Field(default_factory=dict)
    imitation: bool = False
    decoding: dict[str, Any] = Field(default_factory=dict)

    @field_validator("decoding", mode="before")
    @classmethod
    def _require_plain_values(cls, options: Any) -> Any:
        for name, value in options.items() if isinstance(options, Mapping) else ():
            if not isinstance(value, bool | int | float):
                raise ValueError(f"{name} is {value!r}; give true, false or a number")
        return options


class SolveTask(Task):
    """Solve the problem that the card names: ``task: {type: solve, options: {problem: co.mis}}``."""

    type: ClassVar[str] = "solve"
    options_type: ClassVar[OptionsType] = SolveOptions
    train_options_type: ClassVar[OptionsType] = SolveTrainOptions
    options: SolveOptions
    train_options: SolveTrainOptions
    endings: ClassVar[tuple[str, ...]] = (".npz", ".npy")
    floor_predictors: ClassVar[str] = "simple rules"

    def __init__(self, card: Card, train_options: Mapping[str, Any] | None = None) -> None:
        """Prepare the task.

        Args:
            card: The card.
            train_options: :class:`SolveTrainOptions`.

        Raises:
            CardError: If the card names no problem, or has several outputs.
            ConfigError: If the loss has no such option, or refuses its value.
            DecodingError: If the decoder has no such option, or refuses its value.
        """
        super().__init__(card, train_options)
        self.evaluator()
        if self.train_options.surrogate and self.train_options.imitation:
            raise ConfigError(
                "training.task has options of the loss without targets (surrogate), but imitation is set, which does "
                "not use it; leave one of the two out"
            )
        if self.train_options.surrogate:
            self._surrogate_loss()

    @property
    def unlabelled(self) -> tuple[str, ...]:
        """The training split, unless the model imitates its labels."""
        return () if self.train_options.imitation else ("train",)

    @classmethod
    def options_of_evaluator(cls, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options of training that options of the decoder stand for."""
        return {"decoding": arguments} if arguments else {}

    def check_card(self) -> None:
        """Refuse a card that names no problem or has several outputs."""
        super().check_card()
        if len(self.card.outputs) != 1:
            raise CardError(
                f"{self.card.path} ({self.card.address}): a solve task needs exactly one output, not "
                f"{len(self.card.outputs)}"
            )

    @property
    def report_metric(self) -> str:
        """The ratio to the labels where objectives are scored, which are larger on larger graphs anyway."""
        primary = self.card.metrics.primary
        return "ratio" if primary == self.problem.objective and "ratio" in self.card.metrics.also else primary

    @property
    def metric_beside_time(self) -> str | None:
        """The gap to the labels where it is scored: a solver that searches longer comes closer to them."""
        return "gap" if "gap" in self.card.metrics.also else self.card.metrics.primary

    def require_labels(self, split: GraphDataset) -> None:
        """Accept every split: a graph without a label is solved all the same."""

    def _surrogate_loss(self) -> Any:
        from graphbench.models.surrogates import surrogate_of

        if self.problem.surrogate is None:
            raise ConfigError(f"the problem {self.problem.name} has no loss without targets; train on another task")
        return surrogate_of(self.problem.surrogate, self.train_options.surrogate)

    def losses(self, outputs: Mapping[str, Tensor], batch: Any) -> dict[str, Tensor]:
        """Return the problem's loss without targets, averaged over graphs, or the loss of an imitation, over nodes."""
        name = self.card.outputs[0].name
        if self.train_options.imitation:
            from graphbench.models.losses import losses

            return losses(outputs, batch, self.card.features)
        return {name: self._surrogate_loss()(outputs[name], batch)}

    def loss_weights(self, batch: Any) -> dict[str, Any]:
        """Return the number of graphs, or of nodes in an imitation."""
        if self.train_options.imitation:
            from graphbench.models.losses import loss_weights

            return loss_weights(batch, self.card.features)
        return {self.card.outputs[0].name: int(batch.num_graphs)}

    def predictions(self, outputs: Mapping[str, Tensor], batch: Any) -> Tensor:
        """Return the model's scores, which the evaluator decodes; float32 ``[N]`` or ``[N, K]`` on the CPU."""
        return outputs[self.card.outputs[0].name].float().cpu()

    def completed(self, predictions: Any, batch: Any) -> Solutions:
        """Return the solutions that the decoder makes of a model's scores."""
        return decode(self.problem, batch, in_memory(predictions), **self.train_options.decoding)

    def kept(self, predictions: Any, batch: Any) -> Any:
        """Return scores, or solutions, int32 ``[N]``, where options of the decoder are set: a file has no options."""
        return self.completed(predictions, batch).nodes if self.train_options.decoding else predictions

    def evaluator(self, *, scores: str | None = None, expected_graphs: int | None = None) -> BaseEvaluator:
        """Return an evaluator that decodes scores, checks solutions and scores them."""
        return SolutionEvaluator(
            self.card, scores=scores, expected_graphs=expected_graphs, **self.train_options.decoding
        )

    def score(self, evaluator: BaseEvaluator, batch: Any, predictions: Any, seconds: float) -> None:
        """Let an evaluator take the scores of a batch; it counts the time of model and decoder."""
        assert isinstance(evaluator, SolutionEvaluator)
        evaluator.update(batch, predictions, seconds=seconds)

    def floors(self, train: Samples, samples: Samples) -> dict[str, dict[str, float]]:
        """Return the scores of simple rules that need no training."""
        rules = [find("labeller", name).baselines(samples) for name in self.card.labellers]
        return {name: self._scores_of(samples, values) for by_rule in rules for name, values in by_rule.items()}

    def solvers(self, samples: Samples) -> dict[str, dict[str, float]]:
        """Return the scores of the labels."""
        return {"labels": self._scores_of(samples, samples.values[self.problem.value])}

    @property
    def problem(self) -> Problem:
        """The problem that the card names."""
        return problem_of(self.card)

    def _scores_of(self, samples: Samples, objectives: Any) -> dict[str, float]:
        """Return the scores of solutions that have these objectives, of the graphs that have a label."""
        from graphbench.data.store.labels import is_unlabelled

        problem, is_labelled = self.problem, ~is_unlabelled(self.card, samples.values)
        values, labels, bounds = (
            np.asarray(array)[is_labelled].astype(np.int64)
            for array in (objectives, samples.values[problem.value], samples.values[problem.bound])
        )
        sums = SolutionSums()
        sums.add(SolvedGraphs(values, problem.maximise, labels, bounds))
        names = (self.card.metrics.primary, *self.card.metrics.also)
        return {name: metric(name).value(sums) for name in names if metric(name).repeatable}

    def describe_rows(self) -> str:
        """Return the meaning of a row."""
        return "a row per node, graph after graph, with its part of a solution or with scores that are decoded"

    def read_predictions(self, path: Path, split: GraphDataset, scores: str | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield (batch, rows): solutions, or scores that are decoded; one row per node, graph after graph."""
        name, nodes = self.card.outputs[0].name, int(split.flat.node_ptr[-1])
        most_bytes = most_array_bytes(split, items=nodes, columns=_MAX_COLUMNS)
        loaded = rows_of_output(read_arrays(path, most_bytes), [name], path)[name]
        if len(loaded) != nodes:
            raise EvaluationError(
                f"{path} has {len(loaded):,} rows, the graphs of {self.card.address} {split.split} have {nodes:,} "
                f"nodes here; write one row per node, graph after graph, and {SAME_LIMIT}"
            )
        first = 0
        for batch in split.batches(_READING_BATCH):
            yield batch, loaded[first : first + batch.num_nodes]
            first += batch.num_nodes

    def write_predictions(self, path: Path, predictions: Iterable[Any]) -> Path:
        """Write the scores of all nodes to a ``.npz`` file."""
        return write_arrays(path, {SINGLE: np.concatenate([np.asarray(rows) for rows in predictions])})
