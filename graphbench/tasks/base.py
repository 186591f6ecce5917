"""The interface of all kinds of tasks; loader, trainer, evaluator, command line and reports use nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from pydantic import ValidationError

from graphbench.core.errors import CardError, ConfigError, EvaluationError
from graphbench.core.suggestions import closest
from graphbench.core.validation import StrictModel, explain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from graphbench.catalog.cards import Card
    from graphbench.data.arrays.samples import Samples
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.evaluation.evaluator import BaseEvaluator
    from graphbench.evaluation.score import Score
    from graphbench.loader import Splits


OptionsType = type[StrictModel]
_NORMALISATION_SAMPLES = 4096


class FurtherBatches(NamedTuple):
    """Batches that are scored in addition to the samples of a split.

    Attributes:
        samples: How many samples they have.
        batches: The batches.
    """

    samples: int
    batches: Iterable[Any]


class BoundModel(Protocol):
    """A model as a function of a batch, on the device and in the precision in which it is scored."""

    @property
    def gives_predictions(self) -> bool:
        """Whether the function returns predictions as the evaluator takes them, and not the outputs of a TaskModel."""

    def __call__(self, batch: Any) -> Any:
        """Return the outputs for a batch, or the predictions."""


class NoOptions(StrictModel):
    """The options of a kind of task that has none."""


class Task(ABC):
    """One task of a dataset: the batching of samples, the meaning of outputs, the loss and the scoring.

    A user's kind of task is a subclass with another ``type``, registered with ``graphbench.register_task``; a
    card names it as ``task: {type: ...}``. This class implements the parts that most tasks on graphs share; a subclass
    defines at least the losses, the conversion of outputs to predictions, and the evaluator that scores them.

    Attributes:
        type: Name of the kind of task, as cards write it.
        options_type: The options that a card gives in ``task.options``.
        train_options_type: The options that a configuration gives in ``training.task``.
        loss_options: Names of the options of ``training.task`` that only the loss of models with steps reads.
        samples: The noun for samples, in the plural.
        floor_predictors: A description of the predictors of :meth:`floors`.
        follows_rules: Whether :meth:`floors` scores the rules that a card's task names.
        solvers_given: What :meth:`solvers` are given that models have to predict, in words; empty if the solvers only
            know the task. No model can do what a solver with a part of the answer does, so its score is a bound.
        several_processes: Whether several processes can share the batches of a training run.
        reads_training: Whether scores refer to facts of the training split, such as the mean cost of an algorithm on
            it; see :meth:`training_facts`.
        validation_seed: Seed of the random inputs of a model on the validation split, which are the same every time.
        timing: Samples that latencies are measured on: the number of samples that are predicted alone, the number of
            samples that are predicted together, and the number of repetitions of the joint prediction.
        endings: Endings of the names of files of predictions.
        size_grows_by_factors: Whether figures over the sizes of :attr:`size_axis` have a logarithmic axis.
        card: The dataset's card.
        options: The options on the card, of :attr:`options_type`.
        train_options: The options of the run, of :attr:`train_options_type`.
        facts: The facts of the training split that scores refer to, by name; empty if there are none or they are not
        computed yet. The card holds the facts if ``graphbench verify --update`` has written them; otherwise
            :meth:`read_training` computes them.
    """

    type: ClassVar[str]
    options_type: ClassVar[OptionsType] = NoOptions
    train_options_type: ClassVar[OptionsType] = NoOptions
    loss_options: ClassVar[tuple[str, ...]] = ()
    samples: ClassVar[str] = "graphs"
    floor_predictors: ClassVar[str] = "predictors that see the training labels only"
    follows_rules: ClassVar[bool] = False
    solvers_given: ClassVar[str] = ""
    several_processes: ClassVar[bool] = True
    reads_training: ClassVar[bool] = False
    validation_seed: ClassVar[int] = 0
    timing: ClassVar[tuple[int, int, int]] = (16, 256, 3)
    endings: ClassVar[tuple[str, ...]] = (".npz", ".npy", ".jsonl", ".txt")
    size_grows_by_factors: ClassVar[bool] = True

    def __init__(self, card: Card, train_options: Mapping[str, Any] | None = None) -> None:
        """Prepare the task of a card.

        Args:
            card: The card.
            train_options: The options of the run, ``training.task`` of its configuration; None for the defaults.

        Raises:
            CardError: If the card does not fit this kind of task, or an option on the card is refused.
            ConfigError: If an option of the run is unknown, or its value is refused.
        """
        self.card = card
        self.facts: Mapping[str, float] = card.training_facts
        self.options: Any = self._checked_options()
        self.train_options: Any = self._checked_train_options(train_options or {})
        self.check_card()

    @classmethod
    def options_of_evaluator(cls, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options of training that further arguments of ``graphbench.Evaluator`` stand for.

        Raises:
            EvaluationError: If there are arguments, unless a kind of task has options of how predictions are scored.
        """
        if arguments:
            raise EvaluationError(
                f"the scores of {cls.type} tasks have no options, got {', '.join(arguments)}; leave them out"
            )
        return {}

    def _checked_options(self) -> StrictModel:
        try:
            return self.options_type.model_validate(self.card.task.options)
        except ValidationError as error:
            where = f"{self.card.path} ({self.card.address}): task.options"
            raise CardError(explain(error, self.options_type, where=where)) from error

    def _checked_train_options(self, train_options: Mapping[str, Any]) -> StrictModel:
        known = self.train_options_type.model_fields
        try:
            return self.train_options_type.model_validate(train_options)
        except ValidationError as error:
            unknown = {name: value for name, value in train_options.items() if name not in known}
            if unknown:
                remedy = closest(next(iter(unknown)), known) or "; leave them out"
                raise ConfigError(
                    f"training.task has the options {unknown}, but {self.card.address} is a {self.type} task, which "
                    f"has {', '.join(known) or 'none'}{remedy}"
                ) from error
            where = f"training.task of {self.card.address}"
            raise ConfigError(explain(error, self.train_options_type, where=where)) from error

    # ------------------------------------------------------------------------------------------------ the card

    def check_card(self) -> None:
        """Refuse a card that does not fit.

        Raises:
            CardError: With the reason.
        """
        if not self.card.outputs:
            raise CardError(f"{self.card.path} ({self.card.address}): a {self.type} task needs at least one output")
        if self.card.task.rules and not self.follows_rules:
            raise CardError(
                f"{self.card.path} ({self.card.address}): task.rules names {', '.join(self.card.task.rules)}, but no "
                f"rules are scored on a {self.type} task; leave task.rules out"
            )

    @property
    def report_metric(self) -> str:
        """The metric that is compared from split to split in reports: the primary one."""
        return self.card.metrics.primary

    @property
    def metric_beside_time(self) -> str | None:
        """The metric that reports show together with the time of an answer; None where models do not search."""
        return None

    def sample_size(self, split: str) -> float | None:
        """Return the size of a split's samples for reports: nodes per graph; None where it is unknown."""
        return self.card.nodes(split)

    @property
    def size_name(self) -> str:
        """The noun for the size of a sample, as the head of a column."""
        return "nodes"

    @property
    def size_axis(self) -> tuple[str, Any] | None:
        """The axis of figures over sizes, and the sizes of training; None where the names of the splits tell."""
        return None

    def protocol(self, train_split: str) -> str | None:
        """Return the protocol that a run on a training split follows, where a benchmark has several."""
        return self.card.protocol

    @property
    def protocols(self) -> tuple[str | None, ...]:
        """The protocols that runs may follow, the one of ``train`` first; None where there is only one way."""
        return tuple(dict.fromkeys(self.protocol(name) for name in self.splits_for("train")))

    def configure(self, model: Any) -> None:  # noqa: B027
        """Read the settings of the trained or scored model that the task needs from the model's configuration."""

    def follow(self, model: Any) -> None:  # noqa: B027
        """Read what a fitted model has learned about the way in which its predictions are used and scored."""

    # ------------------------------------------------------------------------------------------------ splits

    def splits_for(self, role: str) -> list[str]:
        """Return the splits that may be used as ``train`` or ``val``, such as ``val`` and ``val_large``."""
        return [name for name in self.card.all_splits if name == role or name.startswith(f"{role}_")]

    @property
    def unlabelled(self) -> tuple[str, ...]:
        """Splits that training uses without labels: none."""
        return ()

    def is_stored(self, split: str) -> bool:
        """Return whether a split lies in a file; others are drawn while training."""
        return True

    def open(self, data: Splits, split: str, seed: int) -> Any:
        """Return the source of the training batches of a split; missing data are generated.

        Args:
            data: The dataset.
            split: Name of the split.
            seed: Seed of the run, for data that are drawn while training.
        """
        return data[split]

    def data_mark(self, train: Any, val: GraphDataset) -> str:
        """Return the part of a run's fingerprint that distinguishes its data from other data."""
        return f"{train.content_hash} {val.content_hash}"

    def require_labels(self, split: GraphDataset) -> None:
        """Refuse a split some of whose samples have no target to learn or to score.

        Raises:
            GraphBenchError: If there are any; the message names them.
        """
        split.require_labels()

    def training_facts(self, train: GraphDataset) -> dict[str, float]:
        """Return the facts of the training split that scores refer to, by name; none for most kinds of tasks.

        Args:
            train: The split ``train``, with its labels.
        """
        return {}

    def read_training(self, data: Splits) -> None:
        """Compute :attr:`facts` from the training split, unless they are set; called before anything is scored.

        Args:
            data: The dataset; its split ``train`` is opened, and generated where it is missing, only if it is needed.
        """
        if self.reads_training and not self.facts:
            self.facts = self.training_facts(data.labelled("train"))

    def find_training(self, root: str | Path | None = None) -> None:
        """Compute :attr:`facts` from the training split's files, unless they are set; nothing is generated.

        Args:
            root: Folder of the datasets; None for the default one.
        """
        if self.reads_training and not self.facts:
            from graphbench.data.batches.dataset import finished_split

            train = finished_split(self.card, "train", root)
            if train is not None:
                self.facts = self.training_facts(train)

    # ------------------------------------------------------------------------------------------------ batches

    def per_update(self, train: Any, size: int) -> int:
        """Return how many samples one update trains on."""
        return min(size, len(train))

    def batches(
        self, train: Any, size: int, *, seed: int, start: int = 0, share: tuple[int, int] = (0, 1)
    ) -> Iterator[Any]:
        """Yield training batches without end; they are a function of (seed, number of the batch) alone.

        Args:
            train: The return value of :meth:`open`.
            size: Samples per batch.
            seed: Seed of the order.
            start: Number of the first batch.
            share: ``(rank, parts)``: take every ``parts``-th sample of each batch, from the ``rank``-th on. A share of
                no samples is None.
        """
        count = len(train)
        fixed = not getattr(train, "is_changed", True)  # a transform may give another graph every time
        if count == 1 and share[1] == 1 and fixed:  # one graph, such as a network: every batch is the same
            (batch,) = train.batches(1)
            while True:
                yield batch
        epoch, first = divmod(start, max(1, count // size))
        whole = count >= size
        while True:
            yield from train.batches(
                size, shuffle=True, seed=seed, epoch=epoch, drop_last=whole, start=first, share=share
            )
            epoch, first = epoch + 1, 0

    def scoring_batches(self, split: GraphDataset, size: int, model: Any = None) -> Iterable[Any]:
        """Return batches of all samples of a split, each once.

        Args:
            split: The split.
            size: Most samples per batch.
            model: The model that will predict them, for tasks that limit their batches to the capacity of the model.
        """
        return split.batches(size)

    def further_batches(self, split: GraphDataset, size: int) -> FurtherBatches:
        """Return further batches to score with a split that does not select models; none by default.

        Their scores are among the evaluator's ``groups``.

        Args:
            split: The split.
            size: Most samples per batch.
        """
        return FurtherBatches(0, ())

    def file_batches(self, split: GraphDataset, size: int) -> Iterable[Any]:
        """Return batches of all samples of a split in its order, as files of predictions have them."""
        return split.batches(size)

    def timed(self, split: GraphDataset, model: Any) -> GraphDataset:
        """Return the samples of a split on which a model's latency is measured."""
        return split

    def validation_batches(self, split: GraphDataset, size: int) -> Iterable[Any]:
        """Return batches on which the loss of the validation split is taken, where models are selected by it."""
        return self.scoring_batches(split, size)

    def normalisation_batches(self, train: Any) -> Iterable[Any]:
        """Return batches of all training samples, from which models take statistics; none where they need none."""
        batches: Iterable[Any] = train.batches(_NORMALISATION_SAMPLES)
        return batches

    def normalisation_batch(self, train: Any) -> Any:
        """Return a batch of the first training samples, from which models take means; None where they need none.

        Of a series, features of nodes have rows at the nodes with stored values alone.
        """
        from graphbench.data.batches.series import with_stored_rows

        batch = next(iter(train.batches(min(_NORMALISATION_SAMPLES, len(train)))))
        return with_stored_rows(self.card, train, batch)

    # ------------------------------------------------------------------------------------------------ training

    @property
    def selection(self) -> tuple[str, bool]:
        """The quantity that selects models on the validation split, and whether higher values are better.

        The primary metric; a task whose metric costs too much says ``("loss", False)``.
        """
        from graphbench.evaluation.metrics import metric

        primary = metric(self.card.metrics.primary)
        return primary.name, primary.higher_is_better

    @abstractmethod
    def losses(self, outputs: Any, batch: Any) -> dict[str, Tensor]:
        """Return the mean loss of every output, scalars; training minimises their sum.

        Args:
            outputs: The return value of the model for the batch.
            batch: The batch, on the model's device.
        """

    @abstractmethod
    def loss_weights(self, batch: Any) -> dict[str, Any]:
        """Return how many terms are behind each mean of :meth:`losses`, numbers or scalars.

        With them the losses of parts of a batch add up to the loss of the whole.
        """

    # ------------------------------------------------------------------------------------------------ scores

    @abstractmethod
    def predictions(self, outputs: Any, batch: Any) -> Any:
        """Return a model's outputs for a batch as predictions in the form that the evaluator takes."""

    def predict(self, model: BoundModel, batch: Any) -> Any:
        """Return a model's predictions for a batch. By default the model is called once.

        Args:
            model: The model.
            batch: From :meth:`scoring_batches` or :meth:`further_batches`.
        """
        outputs = model(batch)
        return outputs if model.gives_predictions else self.predictions(outputs, batch)

    def completed(self, predictions: Any, batch: Any) -> Any:
        """Return predictions with all work done, which the time to predict a sample counts.

        By default every tensor is in memory, and data that are computed on demand have been computed. A task
        that decodes its predictions when they are scored decodes them here.

        Args:
            predictions: From :meth:`predict`.
            batch: The batch.
        """
        return in_memory(predictions)

    def kept(self, predictions: Any, batch: Any) -> Any:
        """Return predictions as they are kept in a file, whose scores must be those of the model.

        By default nothing is changed. A task whose options of training take part in its scores applies them here.

        Args:
            predictions: From :meth:`predict`, on the CPU.
            batch: The batch.
        """
        return predictions

    @abstractmethod
    def evaluator(self, *, scores: str | None = None, expected_graphs: int | None = None) -> BaseEvaluator:
        """Return a fresh evaluator over all outputs.

        Args:
            scores: Scale of floating-point predictions; None for the task's default.
            expected_graphs: If given, the evaluator refuses any other number of samples.
        """

    def detailed_scores(self) -> frozenset[str]:
        """Return the names of the scores that the evaluator gives in addition to the card's metrics.

        By default every metric of each of several outputs, as ``<metric>_<output>``.
        """
        metrics, outputs = (self.card.metrics.primary, *self.card.metrics.also), self.card.outputs
        return frozenset(f"{m}_{f.name}" for m in metrics for f in outputs) if len(outputs) > 1 else frozenset()

    def score(self, evaluator: BaseEvaluator, batch: Any, predictions: Any, seconds: float) -> None:
        """Let an evaluator take the predictions of a batch.

        Args:
            evaluator: From :meth:`evaluator`.
            batch: The batch.
            predictions: From :meth:`predict`.
            seconds: Time of the model and of the prediction.
        """
        evaluator.update(batch, predictions)

    def floors(self, train: Samples, samples: Samples) -> dict[str, dict[str, float]]:
        """Return trivial predictor -> metric -> score. A model must beat these scores before its score is informative.

        Args:
            train: Training samples; the predictors may know their targets.
            samples: The samples that are predicted.
        """
        return {}

    def group_floors(self, train: Samples, samples: Samples) -> dict[str, dict[str, dict[str, float]]]:
        """Return group -> trivial predictor -> metric -> score, for tasks with :meth:`further_batches`.

        Args:
            train: As in :meth:`floors`.
            samples: The samples of the test split.
        """
        return {}

    def solvers(self, samples: Samples) -> dict[str, dict[str, float]]:
        """Return reference solver -> metric -> score on some samples, for tasks that know any."""
        return {}

    @classmethod
    def solver_basis(cls) -> str:
        """Return in words what the reference solvers of this kind of task know."""
        return f"is given {cls.solvers_given}" if cls.solvers_given else "knows the task"

    def parts(self, samples: Samples) -> dict[str, NDArray[np.int64]]:
        """Return part of some samples -> their numbers, for tasks with evaluators that score parts as well."""
        return {}

    def notes(self, model: Any, data: Splits, settings: Any, scored: Sequence[str]) -> list[str]:
        """Return the facts that a reader of a run's scores must know, in sentences.

        Args:
            model: The trained model.
            data: The dataset.
            settings: The run's ``TrainingConfig``.
            scored: The splits that were scored.
        """
        return []

    # ------------------------------------------------------------------------------------------------ files

    def read_predictions(self, path: Path, split: GraphDataset, scores: str | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield (batch, predictions) for all samples of a split, from a file that holds them in the split's order.

        Args:
            path: The file.
            split: The split.
            scores: Scale of floating-point predictions.

        Raises:
            EvaluationError: If the file cannot be read, or does not hold the predictions of the split.
        """
        raise EvaluationError(f"predictions of {self.type} tasks are not read from files; score them from Python")

    def is_one_split(self, path: Path) -> bool:
        """Return whether a path holds the predictions of one split, and is no folder with a file for each."""
        return not path.is_dir()

    def find_predictions(self, folder: Path, split: str) -> Path | None:
        """Return the file of a split's predictions in a folder with a file for each; None if there is none."""
        return next((file for end in self.file_endings() if (file := folder / f"{split}{end}").is_file()), None)

    def describe_files(self, split: str) -> str:
        """Return the names of the files of a split's predictions and a description of their content, for messages."""
        rows, endings = self.describe_rows(), self.file_endings()
        named = f"a file is named after its split, e.g. {split}{endings[0]} (endings: {', '.join(endings)})"
        return f"{named}, and holds {rows}" if rows else named

    def file_endings(self) -> tuple[str, ...]:
        """Return the endings of files of predictions that this dataset's can have."""
        return self.endings

    def describe_rows(self) -> str:
        """Return a description of a file of predictions, for messages; empty where the kind of task gives none."""
        return ""

    def score_file(self, path: Path, split: GraphDataset, scores: str | None = None) -> dict[str, Score]:
        """Return the scores of a file of predictions, by name: the score of the split and the scores of its parts.

        Args:
            path: The file; see :meth:`read_predictions`.
            split: The split, with its labels.
            scores: Scale of floating-point predictions.
        """
        from graphbench.evaluation.metrics.bootstrap import replicate_seed

        evaluator = self.evaluator(scores=scores, expected_graphs=len(split))
        evaluator.draw_replicates(replicate_seed(self.card.address, split.split))
        for batch, predictions in self.read_predictions(path, split, scores):
            evaluator.update(batch, predictions)
        return named_scores(split.split, evaluator)

    def write_predictions(self, path: Path, predictions: Iterable[Any]) -> Path:
        """Write the predictions of a split to a file that :meth:`read_predictions` reads, and return its path.

        Args:
            path: The file without an ending; the task chooses it.
            predictions: The results of :meth:`predictions` for the batches of :meth:`scoring_batches`, on the CPU.

        Raises:
            EvaluationError: If this kind of task has no file for its predictions.
        """
        raise EvaluationError(f"predictions of {self.type} tasks are not written to files")


def in_memory(value: Any) -> Any:
    """Return predictions with their tensors on the CPU and their iterators as lists; other values as they are."""
    if isinstance(value, Mapping):
        return {name: in_memory(part) for name, part in value.items()}
    if isinstance(value, (list, tuple, Iterator)):
        return [in_memory(part) for part in value]
    return value.cpu() if hasattr(value, "cpu") else value


def named_scores(split: str, evaluator: BaseEvaluator) -> dict[str, Score]:
    """Return the scores of an evaluator for a split, by name: the whole split, and its parts as ``<split>_<part>``."""
    whole, parts = evaluator.compute(), evaluator.groups()
    for part in parts.values():
        part.samples = whole.samples
    return {split: whole, **{f"{split}_{name}": part for name, part in parts.items()}}
