"""The interface between the driver of a run and a learner, and the learner of each architecture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from graphbench.core.errors import ConfigError
from graphbench.models.registry import architecture
from graphbench.training.fidelity import SAMPLES, STEPS, Fidelity
from graphbench.training.overrides import flat
from graphbench.training.settings import TrainingConfig

if TYPE_CHECKING:
    import torch

    from graphbench.catalog.cards import Card
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.evaluation.score import Score
    from graphbench.tasks.base import Task
    from graphbench.training.config import RunConfig
    from graphbench.training.context import RunContext, TaskRun, Watch
    from graphbench.training.scoring import BatchSize


@dataclass(frozen=True)
class FitSummary:
    """Result of fitting, for the record of a run.

    Attributes:
        metric: Name of the quantity that selects models.
        higher_is_better: Its direction.
        curve: (step, value) of every validation; one point of step 0 where there are no steps.
        started: When the run started, ISO 8601, UTC.
        started_at: Steps that were done before this call.
        steps: Optimizer steps done in all; None for a learner without steps.
        best_step: Step of the weights that are scored; None for the last ones.
        curves: Name -> (step, value), as a record has them.
        wall_seconds: Time of fitting over all calls, validations included.
        cpu_seconds: Processor time of all processes in that time; None where it was not measured.
        threads: Number of computing threads of each process; None if the learner does not report the number.
        deterministic: Whether the learner draws no random numbers, so that no seed changes the fitted model; None if
            the learner does not say.
        peak_memory_bytes: Largest memory use seen; None where it was not measured.
        samples_per_second: Training samples per second; None where it was not measured.
        parameters: Number of trained numbers; None for a learner that has none.
        batch_size: Samples per step; None for a learner without steps.
        notes: Remarks that a reader of the scores needs.
        operations: Floating-point operations of all updates; None where they were not counted.
    """

    metric: str
    higher_is_better: bool
    curve: tuple[tuple[int, float], ...]
    started: str
    started_at: int = 0
    steps: int | None = None
    best_step: int | None = None
    curves: Mapping[str, list[tuple[int, float]]] = field(default_factory=dict)
    wall_seconds: float = 0.0
    cpu_seconds: float | None = None
    threads: int | None = None
    deterministic: bool | None = None
    peak_memory_bytes: int | None = None
    samples_per_second: float | None = None
    parameters: int | None = None
    batch_size: int | None = None
    notes: tuple[str, ...] = ()
    operations: float | None = None


class Predictor(Protocol):
    """A fitted model, with the methods that a run and a finished run need.

    Attributes:
        model: The predicting model; ``RunResult.model``.
        device: Where it computes.
    """

    model: Any
    device: torch.device

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
        """Return the scores of a split, by name; ``selecting`` as for ``graphbench.training.scoring.score_split``."""
        ...

    def predictions(self, task: Task, id_: str, split: GraphDataset, name: str, progress: bool | None) -> Iterator[Any]:
        """Yield the predictions of all samples of a split, in its order, on the CPU."""
        ...


class Learner(Predictor, Protocol):
    """Something that learns tasks and predicts them.

    Attributes:
        started: What the model took from other weights, in words; empty where it began with its own.
    """

    started: str

    def resume(self) -> bool:
        """Continue from the files in the run's folder, if there are any, and return whether there were."""
        ...

    def describe(self) -> str:
        """Return a description of the training that begins, for the log."""
        ...

    def fit(self, watch: Watch) -> None:
        """Learn until the budget is exhausted or a stop is requested, and load the selected weights."""
        ...

    def summary(self) -> FitSummary:
        """Return the result of fitting."""
        ...

    def length(self) -> tuple[int, str]:
        """Return the number of units of work in fitting, and the noun for the units (plural)."""
        ...

    def seconds_ahead(self) -> float | None:
        """Return an estimate of the time of fitting; None if the learner cannot estimate the time."""
        ...

    def latencies_ms(self, run: TaskRun, id_: str) -> tuple[float, float]:
        """Return median milliseconds to predict one sample alone, and one within a batch."""
        ...


class LearnerClass(Protocol):
    """How a learner is made for a run, or read back from a run's folder.

    Attributes:
        files: Names of the files that fitting leaves in the run's folder.
    """

    files: tuple[str, ...]

    def __call__(self, context: RunContext) -> Learner:
        """Return a fresh learner of a run."""
        ...

    def load(
        self, folder: Path, config: RunConfig, cards: dict[str, Card], mark: str, device: torch.device
    ) -> Predictor:
        """Return the fitted learner of a run's folder, whose files must have the run's fingerprint ``mark``."""
        ...


_USED_WITHOUT_STEPS = {
    f"training.{name}" for name in ("seed", "train_split", "train_limit", "val_split", "eval_batch_size")
}
_DECODING = "training.task."  # how predictions are scored


def require_no_steps(config: RunConfig) -> None:
    """Refuse settings of training that have no meaning without steps.

    Raises:
        ConfigError: If one differs from its default.
    """
    values, plain = flat(config.training.model_dump(mode="json")), flat(TrainingConfig().model_dump(mode="json"))
    wrong = [f"training.{key}" for key, value in values.items() if value != plain.get(key)]
    unread = [key for key in wrong if key not in _USED_WITHOUT_STEPS and not key.startswith(_DECODING)]
    if unread:
        raise ConfigError(f"{config.model_name} is fitted without steps and has no {unread[0]}; leave it out")


def require_no_loss(config: RunConfig, task: Task) -> None:
    """Refuse options of the loss of models with steps, which models without steps do not read.

    Raises:
        ConfigError: If one differs from its default.
    """
    for name in task.train_options.model_dump(include=set(task.loss_options), exclude_defaults=True):
        raise ConfigError(
            f"{config.model_name} is fitted without steps, by another loss, and has no training.task.{name}; "
            "leave it out"
        )


_LEARNERS = {
    "torch": "graphbench.training.learners.torch_learner:TorchLearner",
    "search": "graphbench.training.learners.search:SearchLearner",
    "tabular": "graphbench.training.learners.tabular:TabularLearner",
}


def learner_class(config: RunConfig) -> LearnerClass:
    """Return the learner of a configuration's architecture."""
    learner = architecture(config.kind).learner
    module, _, name = _LEARNERS.get(learner, learner).partition(":")
    return cast(LearnerClass, getattr(import_module(module), name))


def fidelity_of(config: RunConfig) -> Fidelity:
    """Return the unit that the budget of a configuration's learner counts; the learner itself is not imported."""
    return STEPS if architecture(config.kind).has_steps else SAMPLES
