"""Algorithm selection: for every instance a model chooses one of several algorithms, each with a cost."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.errors import CardError, ConfigError, EvaluationError
from graphbench.core.validation import StrictModel
from graphbench.evaluation.array_files import read_arrays
from graphbench.evaluation.evaluator import BaseEvaluator
from graphbench.models.tabular.presolving import paid_costs
from graphbench.tasks.base import OptionsType, Task
from graphbench.tasks.files import (
    SAME_LIMIT,
    SINGLE,
    are_words,
    most_array_bytes,
    read_texts,
    rows_of_output,
    write_arrays,
)
from graphbench.tasks.select.evaluator import SelectionEvaluator, checked_costs, checked_train_costs, single_best
from graphbench.tasks.select.metrics import TIED

if TYPE_CHECKING:
    from torch import Tensor

    from graphbench.catalog.cards import Card
    from graphbench.data.arrays.samples import Samples
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.evaluation.score import Score
    from graphbench.loader import Splits

logger = logging.getLogger(__name__)

LOSS = "choice"
_READING_BATCH = 256
_READS, _PRESOLVING, _PRESOLVER = "reads", "presolving", "presolver"


class SelectOptions(StrictModel):
    """The options of a ``select`` task on a card.

    Attributes:
        overhead: The cost of making a choice, in the unit of the costs: a number, the name of a scalar feature of
            graphs, or input -> name of a scalar feature of graphs.
    """

    overhead: Any = 0.0


class SelectTrainOptions(StrictModel):
    """The options of training for a ``select`` task, which decide how choices are scored.

    Attributes:
        overhead: The cost of making a choice, which replaces the overhead on the card; None if the card's overhead
            holds.
        train_costs: Output -> mean cost on the training split, which replaces the facts on the card.
    """

    overhead: Any = None
    train_costs: Any = None

    @model_validator(mode="before")
    @classmethod
    def _from_earlier_versions(cls, values: Any) -> Any:
        """Accept configurations of version 0.2, which have both options in a section ``decoding``."""
        if not isinstance(values, Mapping) or not isinstance(section := values.get("decoding"), Mapping):
            return values
        return {**section, **{name: value for name, value in values.items() if name != "decoding"}}


class SelectTask(Task):
    """Choose one of K algorithms for every instance: ``task: {type: select}``, with K outputs ``[graph, scalar]``.

    Each output is the cost of an algorithm on the instance, in seconds or another unit: positive, and with penalties
    for unsolved instances applied. The model's value for an output is read as a cost: the lower, the better. With
    ``c = t / m``, where ``t`` are costs and ``m`` is the mean cost of all algorithms on the training split, logits are
    ``-c`` of the model's values, probabilities their softmax, and the loss is the one of GraphBench, section 3.3.1,
    ``mean over instances of (sum_k p_k c_k - min_k c_k)^2``: the costs are in units of ``m``.

    The facts of the training split are the mean costs of the algorithms there, by output: the single best algorithm of
    ``closed_gap`` follows from them. The options of the run come first, then the
    card, then the dataset.

    The overhead of a choice (:class:`SelectOptions`) counts for every model.
    """

    type: ClassVar[str] = "select"
    options_type: ClassVar[OptionsType] = SelectOptions
    train_options_type: ClassVar[OptionsType] = SelectTrainOptions
    options: SelectOptions
    train_options: SelectTrainOptions
    samples: ClassVar[str] = "instances"
    floor_predictors: ClassVar[str] = "selectors that see the training costs only"
    solvers_given: ClassVar[str] = "the cost of every algorithm"
    reads_training: ClassVar[bool] = True

    @classmethod
    def options_of_evaluator(cls, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments: they are options of training."""
        return arguments

    def __init__(self, card: Card, train_options: Mapping[str, Any] | None = None) -> None:
        """Prepare the task.

        Args:
            card: The card.
            train_options: :class:`SelectTrainOptions`.

        Raises:
            CardError: If the outputs are not two or more scalars of graphs, or ``task.options`` are not allowed.
            ConfigError: If there is no such option of the run, or its value is not allowed.
        """
        super().__init__(card, train_options)
        chosen = self.train_options
        overhead = self.options.overhead if chosen.overhead is None else chosen.overhead
        self._cost_of_input = dict(overhead) if isinstance(overhead, Mapping) else {}
        self.overhead = tuple(self._cost_of_input.values()) or overhead
        self.presolving = 0.0
        self.presolver: str | None = None
        if chosen.train_costs is not None:
            self.facts = chosen.train_costs
        elif set(self.facts) != set(self.names):  # measured for other outputs
            self.facts = {}
        if train_options:
            try:
                self.evaluator()
            except EvaluationError as error:
                raise ConfigError(f"{card.address}: {error}") from error

    # ------------------------------------------------------------------------------------------------ the card

    def check_card(self) -> None:
        """Refuse a card whose outputs are not two or more scalars of graphs, or whose options are unknown."""
        super().check_card()
        where, outputs = f"{self.card.path} ({self.card.address})", self.card.outputs
        wrong = [f for f in outputs if (f.location, f.kind, f.width) != (Location.GRAPH, Kind.SCALAR, 1)]
        if wrong or len(outputs) < 2:
            problem = f"{wrong[0].name!r} is [{wrong[0].location}, {wrong[0].type_name}]" if wrong else "there is one"
            raise CardError(f"{where}: a select task needs two or more outputs [output, graph, scalar]; {problem}")
        if self.card.task.weights:
            raise CardError(f"{where}: the outputs of a select task make one choice; leave task.weights out")
        self._check_overhead(f"{where}: task.options.overhead", self.options.overhead)

    def _check_overhead(self, where: str, overhead: Any) -> None:
        """Refuse an overhead that is no number from 0 on, no scalar of graphs, and no mapping of inputs to such."""
        by_input = overhead if isinstance(overhead, Mapping) else {}
        named = list(by_input.values()) or ([overhead] if isinstance(overhead, str) else [])
        fields = [f.name for f in self.card.features if f not in self.card.outputs and _is_scalar_of_graph(f)]
        unknown = [name for name in named if name not in fields]
        if unknown:
            raise CardError(f"{where} is {unknown[0]!r}; the scalars of graphs are {', '.join(fields) or 'none'}")
        inputs = {f.name for f in self.card.inputs}
        unread = [name for name in by_input if name not in inputs]
        if unread:
            raise CardError(
                f"{where} names {unread[0]!r}, which is no input; the inputs are {', '.join(sorted(inputs))}"
            )
        number = isinstance(overhead, (int, float)) and not isinstance(overhead, bool) and 0 <= overhead < math.inf
        if not named and not number:
            raise CardError(f"{where} is {overhead!r}; give a number from 0 on, a feature, or features by input")

    @property
    def names(self) -> tuple[str, ...]:
        """The outputs, one for each algorithm."""
        return tuple(f.name for f in self.card.outputs)

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Names of the algorithms: the names of the outputs without their common ending, such as ``_cost``."""
        endings = {name.rpartition("_")[2] for name in self.names}
        shared = len(endings) == 1 and all("_" in name.strip("_") for name in self.names)
        return tuple(name.rpartition("_")[0] for name in self.names) if shared else self.names

    def configure(self, model: Any) -> None:
        """Count presolving, and the costs of the inputs that the model reads, where the card states costs of inputs."""
        stated = getattr(model, "presolving", 0.0)
        self.presolving, self.presolver = 0.0 if isinstance(stated, str) else stated, None
        if self._cost_of_input:
            ignored = getattr(model, "ignore", ())
            self.overhead = paid_costs(self._cost_of_input, ignored)

    def follow(self, model: Any) -> None:
        """Count the presolving that a model has learned."""
        if schedule := getattr(model, "schedule", None):
            self.presolver, self.presolving = schedule

    # ------------------------------------------------------------------------------------------------ splits

    def training_facts(self, train: GraphDataset) -> dict[str, float]:
        """Return the mean cost of every algorithm on the training split, over the instances that have a label."""
        return dict(zip(self.names, self.cost_table(train).mean(axis=0).tolist(), strict=True))

    def cost_table(self, split: GraphDataset) -> NDArray[np.float64]:
        """Return the costs of the algorithms on the instances of a split that have a label, float64 ``[S, K]``."""
        if split.is_changed:
            batches = [[batch[name].numpy() for name in self.names] for batch in split.batches(_READING_BATCH)]
            columns = [np.concatenate(parts).reshape(-1) for parts in zip(*batches, strict=True)]
        else:
            chosen = split.graph_numbers
            numbers = np.setdiff1d(np.arange(len(split)) if chosen is None else chosen, split.failed_graphs)
            columns = [np.asarray(split.flat.values[name])[numbers] for name in self.names]
        return checked_costs(np.stack(columns, axis=1), f"the costs of {self.card.address} {split.split}")

    def _mean_training_cost(self) -> float:
        """Return the mean cost of all algorithms on the training split, the unit of costs in loss and logits.

        Raises:
            EvaluationError: If the mean costs are unknown.
        """
        if not self.facts:
            raise EvaluationError(
                f"the mean training costs of {self.card.address} are unknown: `graphbench verify --update` writes them "
                "next to the card, Task.read_training(data) computes them, or give train_costs={output: mean cost}"
            )
        return float(np.mean([self.facts[name] for name in self.names]))

    # ------------------------------------------------------------------------------------------------ training

    def losses(self, outputs: Mapping[str, Tensor], batch: Any) -> dict[str, Tensor]:
        """Return the mean over instances of the squared excess of the expected cost over the lowest; see the class."""
        import torch

        unit = self._mean_training_cost()
        costs = torch.stack([batch[name].reshape(-1).float() / unit for name in self.names], dim=1)
        expected = (self._logits(outputs).softmax(dim=1) * costs).sum(dim=1)
        return {LOSS: (expected - costs.min(dim=1).values).square().mean()}

    def loss_weights(self, batch: Any) -> dict[str, Any]:
        """Return the number of instances."""
        return {LOSS: int(batch.num_graphs)}

    def _logits(self, outputs: Mapping[str, Tensor]) -> Tensor:
        """Return the logits of the algorithms, float32 ``[S, K]``: in units, minus the model's values."""
        import torch

        unit = self._mean_training_cost()
        return -torch.stack([outputs[name].reshape(-1).float() / unit for name in self.names], dim=1)

    # ------------------------------------------------------------------------------------------------ scores

    def predictions(self, outputs: Mapping[str, Tensor], batch: Any) -> Tensor:
        """Return the logits of the algorithms, float32 ``[S, K]`` on the CPU."""
        return self._logits(outputs).detach().cpu()

    def evaluator(self, *, scores: str | None = None, expected_graphs: int | None = None) -> BaseEvaluator:
        """Return an evaluator of choices."""
        metrics = self.card.metrics
        options: dict[str, Any] = {"scores": scores, "expected_graphs": expected_graphs, "overhead": self.overhead}
        options["train_costs"] = self.facts or None
        options |= {"presolving": self.presolving, "presolver": self.presolver}
        return SelectionEvaluator(self.card.outputs, metrics.primary, metrics.also, **options)

    def floors(self, train: Samples, samples: Samples) -> dict[str, dict[str, float]]:
        """Return the scores of the single best algorithm on the training split, and of random choices.

        None of them has an overhead. Of algorithms that tie for the single best, the first in the alphabet is scored.
        """
        costs = self._costs(samples)
        facts = self.facts or dict(zip(self.names, self._costs(train).mean(axis=0).tolist(), strict=True))
        best = self.names.index(single_best(facts))
        by_chance = np.random.default_rng(0).integers(0, len(self.names), len(costs))
        return self._scores(costs, facts, single_best=np.full(len(costs), best), random=by_chance)

    def solvers(self, samples: Samples) -> dict[str, dict[str, float]]:
        """Return the score of the virtual best algorithm: the cheapest one of every instance."""
        costs = self._costs(samples)
        return self._scores(costs, self.facts, virtual_best=costs.argmin(axis=1))

    def _scores(
        self, costs: NDArray[np.float64], facts: Mapping[str, float], **choices: NDArray[np.int64]
    ) -> dict[str, dict[str, float]]:
        metrics = self.card.metrics
        options: dict[str, Any] = {"train_costs": checked_train_costs(facts, self.names)}
        evaluator = SelectionEvaluator(self.card.outputs, metrics.primary, metrics.also, **options)
        return {name: evaluator.evaluate(costs, chosen).to_dict() for name, chosen in choices.items()}

    def _costs(self, samples: Samples) -> NDArray[np.float64]:
        """Return the costs of samples that have a label, float64 ``[S, K]``."""
        costs = np.stack([np.asarray(samples.values[name], np.float64) for name in self.names], axis=1)
        if not self.card.labellers:
            return costs
        from graphbench.data.store.labels import is_unlabelled

        labelled: NDArray[np.float64] = costs[~is_unlabelled(self.card, samples.values)]
        return labelled

    def notes(self, model: Any, data: Splits, settings: Any, scored: Sequence[str]) -> list[str]:
        """Return which algorithm is the single best one on the training split, and what presolving has learned."""
        lowest = min(self.facts.values(), default=0.0)
        algorithm_of = dict(zip(self.names, self.algorithms, strict=True))
        best = sorted(algorithm_of[name] for name, cost in self.facts.items() if cost <= lowest * (1 + TIED))
        notes = [f"single best algorithm on the training split: {' and '.join(best)}"] if best else []
        if schedule := getattr(model, "schedule", None):
            presolver, time = schedule
            notes.append(f"learned presolving: {algorithm_of[presolver]} for {time:.4g}")
        elif getattr(getattr(model, "config", None), "presolving", None) == "learned":
            notes.append("learned presolving: none")
        return notes

    # ------------------------------------------------------------------------------------------------ files

    def score_file(self, path: Path, split: GraphDataset, scores: str | None = None) -> dict[str, Score]:
        """Return the scores of a file; the card's costs of inputs are added unless the file says that they are unread.

        An array ``reads`` of the file holds the names of the inputs that the selector reads; an array ``presolving``
        holds one number, how long the presolver runs; and an array ``presolver`` its name, where it is not the single
        best algorithm.
        """
        stated = {} if are_words(path) else self._read_arrays(path, split)
        self.presolving = _one_number(stated.get(_PRESOLVING), path)
        self.presolver = self._named_presolver(stated.get(_PRESOLVER), path)
        if self._cost_of_input and not are_words(path):
            reads = stated.get(_READS)
            if reads is None:
                inputs = " and ".join(self._cost_of_input)
                logger.warning("%s names no reads of arrays, so each choice pays for %s (array reads)", path, inputs)
            self.overhead = self._costs_of(self._cost_of_input if reads is None else reads.tolist(), path)
        return super().score_file(path, split, scores)

    def _read_arrays(self, path: Path, split: GraphDataset) -> dict[str, NDArray[Any]]:
        """Return the arrays of a file; a row has at most a number for every algorithm, or one for every output."""
        return read_arrays(path, most_array_bytes(split, columns=len(self.algorithms)), numbers=(_PRESOLVING,))

    def _costs_of(self, inputs: Iterable[str], path: Path) -> tuple[str, ...]:
        """Return the features that hold the costs of inputs."""
        input_names = {f.name for f in self.card.inputs}
        if unknown := [name for name in inputs if name not in input_names]:
            raise EvaluationError(
                f"{path}: reads holds {unknown[0]!r}; the inputs are {', '.join(sorted(input_names))}"
            )
        return tuple(self._cost_of_input[name] for name in inputs if name in self._cost_of_input)

    def describe_rows(self) -> str:
        """Return the meaning of a row."""
        return "a row per instance with the number of an algorithm or a score for each, or an array of costs per output"

    def read_predictions(self, path: Path, split: GraphDataset, scores: str | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield (batch, predictions) from a file of choices, of scores, or of predicted costs.

        The file holds one array, int ``[S]`` (numbers of algorithms) or float ``[S, K]`` (scores, of which the highest
        is chosen), or an array ``[S]`` of every output (predicted costs, of which the lowest is chosen); or it is a
        text with the name of an algorithm in every line.
        """
        arrays_of_file = {SINGLE: self._named_choices(path)} if are_words(path) else self._read_arrays(path, split)
        single = not any(name in arrays_of_file for name in self.names)
        arrays = rows_of_output(arrays_of_file, [SINGLE] if single else self.names, path)
        for name, rows in arrays.items():
            if len(rows) != len(split):
                raise EvaluationError(
                    f"{path} has {len(rows):,} rows of {name}, {self.card.address} {split.split} has {len(split):,} "
                    f"instances here; write one row per instance, and {SAME_LIMIT}"
                )
        table = arrays.get(SINGLE)
        if single and table is not None and table.ndim == 2 and table.size and table.min() > 0 and table.max() > 1:
            logger.warning(
                "all numbers of %s are positive; they are read as scores, of which the highest is chosen. "
                "Give predicted costs as one array per output: %s",
                path,
                ", ".join(self.names),
            )
        first = 0
        for batch in split.batches(_READING_BATCH):
            predictions = {name: rows[first : first + batch.num_graphs] for name, rows in arrays.items()}
            yield batch, predictions[SINGLE] if single else predictions
            first += batch.num_graphs

    def write_predictions(self, path: Path, predictions: Iterable[Any]) -> Path:
        """Write the logits of all instances, float32 ``[S, K]``, and the names of paid inputs to a ``.npz`` file."""
        arrays = {SINGLE: np.concatenate([np.asarray(rows) for rows in predictions])}
        if self._cost_of_input:
            paid = self.overhead if isinstance(self.overhead, tuple) else ()
            arrays[_READS] = np.array([name for name, cost in self._cost_of_input.items() if cost in paid], np.str_)
        if self.presolving:
            arrays[_PRESOLVING] = np.array([self.presolving])
        if self.presolver is not None:
            arrays[_PRESOLVER] = np.array([self.algorithms[self.names.index(self.presolver)]])
        return write_arrays(path, arrays)

    def _named_presolver(self, values: NDArray[Any] | None, path: Path) -> str | None:
        """Return the output of the algorithm that an array ``presolver`` of a file names; None without the array."""
        if values is None:
            return None
        name = str(values.reshape(-1)[0]) if values.size == 1 else f"{values.size} values"
        if name not in self.algorithms:
            raise EvaluationError(f"{path}: presolver is {name[:60]!r}; give one of {', '.join(self.algorithms)}")
        return self.names[self.algorithms.index(name)]

    def _named_choices(self, path: Path) -> NDArray[np.int64]:
        """Return the numbers of the algorithms that the lines of a file name, int64 ``[S]``."""
        texts, numbers = read_texts(path), {name: i for i, name in enumerate(self.algorithms)}
        for line, text in enumerate(texts, 1):
            if text.strip() not in numbers:
                raise EvaluationError(
                    f"{path}, line {line}: {text[:60]!r} is no algorithm; they are {', '.join(numbers)}"
                )
        return np.array([numbers[text.strip()] for text in texts], np.int64)


def _one_number(values: NDArray[Any] | None, path: Path) -> float:
    """Return the number of an array ``presolving`` of a file; 0 where the file has none."""
    if values is None:
        return 0.0
    if values.size != 1 or values.dtype.kind not in "fiu":
        raise EvaluationError(f"{path}: presolving is {values.dtype} {list(values.shape)}; give one number, a time")
    return float(values.reshape(()))


def _is_scalar_of_graph(feature: Feature) -> bool:
    return feature.location is Location.GRAPH and feature.kind is Kind.SCALAR and feature.width == 1
