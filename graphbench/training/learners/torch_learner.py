"""The learner behind all torch models: an optimizer loop with checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch

from graphbench.catalog.cards import Card
from graphbench.core.errors import CheckpointError, ConfigError
from graphbench.core.progress import progress_bar
from graphbench.data.batches.dataset import GraphDataset
from graphbench.evaluation.score import Score
from graphbench.models.base import TaskFeatures
from graphbench.models.build import count_parameters
from graphbench.models.registry import architecture, build_task_model
from graphbench.tasks.base import Task
from graphbench.training import checkpoint
from graphbench.training.config import RunConfig
from graphbench.training.context import RunContext, TaskRun, Watch
from graphbench.training.learners.base import FitSummary
from graphbench.training.loop import BEST, CHECKPOINT, TrainingLoop
from graphbench.training.scoring import (
    BatchSize,
    ModelOnDevice,
    Precision,
    chosen_precision,
    evaluating,
    latencies_ms,
    score_split,
)

_FEWEST_TO_ESTIMATE = 16  # updates

_MODELS = "graphbench.models"  # the loggers of models


class TorchPredictor:
    """A model that predicts, as a finished run has it.

    Args:
        model: The model, in evaluation mode on ``device``.
        device: Where it computes.
        precision: ``bf16`` runs it under autocast.
    """

    def __init__(self, model: Any, device: torch.device, precision: Precision = "fp32") -> None:
        self.model, self.device, self.precision = model, device, precision

    def score(
        self,
        task: Task,
        id_: str,
        split: GraphDataset,
        name: str,
        batch_size: BatchSize,
        progress: bool | None,
        *,
        selecting: bool = False,
    ) -> dict[str, Score]:
        """Return the scores of a split, by name."""
        about: dict[str, Any] = {"device": self.device, "precision": self.precision, "progress": progress}
        about |= {"batch_size": batch_size, "selecting": selecting}
        return score_split(self.model, task, split, name=name, task_id=id_, **about)

    def latencies_ms(self, run: TaskRun, id_: str) -> tuple[float, float]:
        """Return median milliseconds to predict one sample alone, and one within a batch."""
        return latencies_ms(self.model, run, id_, self.device, self.precision)

    def predictions(self, task: Task, id_: str, split: GraphDataset, name: str, progress: bool | None) -> Iterator[Any]:
        """Yield the predictions of all samples of a split, in its order, on the CPU."""
        size = self.model.largest_batch(split)
        task.follow(self.model)
        with progress_bar(len(split), f"predicting {name}", task.samples, progress) as bar, evaluating(self.model):
            model = ModelOnDevice(self.model, id_, self.device, self.precision)
            for batch in task.file_batches(split, size):
                yield task.kept(_on_cpu(task.predict(model, batch)), batch)
                bar.update(batch.num_graphs)


def _on_cpu(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _on_cpu(part) for name, part in value.items()}
    return value.cpu() if isinstance(value, torch.Tensor) else value


class TorchLearner(TorchPredictor):
    """Trains a torch model with AdamW, selects weights on the validation split, and can be stopped and resumed."""

    files: ClassVar[tuple[str, ...]] = (CHECKPOINT, BEST)
    started = ""

    def __init__(self, context: RunContext) -> None:
        model = build_model(context.config, {id_: run.card for id_, run in context.runs.items()})
        for id_, run in context.runs.items():
            batch = run.task.normalisation_batch(run.train)
            if batch is not None:
                model.fit_normalisation(batch, id_)
        model = model.to(context.world.device)
        context.world.broadcast_model(model)
        self.loop = TrainingLoop(context, model)
        super().__init__(model, context.world.device, self.loop.precision)
        self.context = context
        self.started_at = 0

    @classmethod
    def load(
        cls, folder: Path, config: RunConfig, cards: dict[str, Card], mark: str, device: torch.device
    ) -> TorchPredictor:
        """Return the best model of a run's folder, of a run that never validated its last one.

        It computes in the precision of the run's configuration, as the run did on such a device.

        Args:
            folder: The run's folder.
            config: Its configuration.
            cards: Id -> card of the datasets it was trained on.
            mark: Fingerprint that its weights must share with the run; empty where the run does not say.
            device: Where the model will compute.

        Raises:
            CheckpointError: If the weights are damaged, missing, or another run has written them.
        """
        best, last = folder / BEST, folder / CHECKPOINT
        if not best.is_file():
            _, facts = checkpoint.load_tensors(last)
            if facts["state"]["val_curve"]:
                raise CheckpointError(
                    f"{best} is missing, the weights that the run's validations selected; put the file back, or train "
                    "the model again (checkpoint.safetensors holds the weights of the last step)"
                )
        path = best if best.is_file() else last
        tensors, facts = checkpoint.load_tensors(path)
        if mark:
            checkpoint.require_fingerprint(facts, mark, path, config)
        model = build_model(config, cards)
        checkpoint.load_model(model, tensors)
        return TorchPredictor(model.eval().to(device), device, chosen_precision(config.training.precision, device))

    def resume(self) -> bool:
        """Continue from the folder's checkpoint if there is one, and return whether there was."""
        resumed = self.loop.resume()
        self.started_at = self.loop.state.step
        return resumed

    def describe(self) -> str:
        """Return a description of the training that begins: model, dataset and device."""
        settings, state = self.loop.settings, self.loop.state
        return (
            f"training {self.context.config.model_name} ({count_parameters(self.model):,} parameters) on "
            f"{self.context.name} from step {state.step} to {settings.steps}, batches of {settings.batch_size}, "
            f"{self.loop.precision} on {self.device}; output {self.context.folder}"
        )

    def length(self) -> tuple[int, str]:
        """Return the number of units of work in training, and the noun for the units (plural)."""
        return self.loop.settings.steps, "steps"

    def seconds_ahead(self) -> float | None:
        """Return an estimate of the time of the updates that are left; None where they are too few to measure."""
        left = self.loop.settings.steps - self.loop.state.step
        return (
            None if left < _FEWEST_TO_ESTIMATE or self.context.world.size > 1 else left * self.loop.seconds_per_update()
        )

    def fit(self, watch: Watch) -> None:
        """Train until the budget or the patience is exhausted, or a stop is requested; then load the best weights."""
        self.loop.run(watch)
        self.context.world.wait()
        self.loop.restore_best()
        self.model.eval()

    def summary(self) -> FitSummary:
        """Return the summary of the training."""
        loop, state = self.loop, self.loop.state
        stopped = loop.settings.steps > state.step
        shared = f"another run shared {self.device}, so times are upper bounds"
        words = f"stopped early after {loop.settings.patience} validations without improvement"
        return FitSummary(
            metric=loop.val_metric,
            higher_is_better=loop.higher_is_better,
            curve=tuple(state.val_curve),
            started=state.started,
            started_at=self.started_at,
            steps=state.step,
            best_step=loop.best.step if loop.best is not None else None,
            curves={"train_loss": state.train_loss, f"val_{loop.val_metric}": state.val_curve},
            wall_seconds=state.wall_seconds,
            cpu_seconds=state.cpu_seconds,
            threads=state.threads,
            deterministic=False,  # weights and the order of the samples are drawn
            peak_memory_bytes=state.peak_memory_bytes or None,
            samples_per_second=state.timed_graphs / state.timed_seconds if state.timed_seconds else None,
            parameters=count_parameters(self.model),
            batch_size=loop.settings.batch_size,
            operations=state.operations,
            notes=((words,) if stopped else ()) + ((shared,) if state.shared_device else ()),
        )


def build_model(config: RunConfig, cards: Mapping[str, Card]) -> Any:
    """Return a fresh model for some datasets, initialised from torch's generator.

    Raises:
        ConfigError: If the configuration does not fit the datasets.
    """
    try:
        return build_task_model(config.model, {id_: TaskFeatures.of(card) for id_, card in cards.items()})
    except ConfigError as error:
        raise ConfigError(f"{config.model_name} on {', '.join(cards)}: {error}") from error


def require_model(config: RunConfig, cards: Mapping[str, Card]) -> None:
    """Build the model once before data are generated, so that a configuration that does not fit is refused first.

    Models whose configuration is completed from training data are left out.

    Raises:
        ConfigError: If the configuration does not fit the datasets.
    """
    if architecture(config.kind).completes:
        return
    models = logging.getLogger(_MODELS)
    level = models.level
    models.setLevel(logging.ERROR)  # warnings are given when the model is built that is trained
    try:
        with torch.random.fork_rng(devices=()):
            build_model(config, cards)
    finally:
        models.setLevel(level)
