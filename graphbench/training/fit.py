"""Train without scoring: updates and validations alone. No split but those trained and validated on is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torch import nn

from graphbench.core.progress import progress_bar
from graphbench.training.config import RunConfig
from graphbench.training.distributed import World, join_world
from graphbench.training.interrupts import deferred_signals
from graphbench.training.loop import TrainingLoop
from graphbench.training.recording import NoBoard, log_start
from graphbench.training.scoring import require_fitting_settings
from graphbench.training.splits import require_own_splits
from graphbench.training.trainer import own_randomness, prepared_loop
from graphbench.training.trajectory_trainer import prepared_trajectory_loop

if TYPE_CHECKING:
    from graphbench.loader import Splits


@dataclass(frozen=True)
class Fit:
    """A run that was trained and not scored.

    Attributes:
        model: The model with the weights of its best validation, in evaluation mode.
        metric: What was validated: the card's primary metric, of models that write texts their ``loss``.
        higher_is_better: Direction of that metric.
        prefer_later: Whether of equal validations the last one counts.
        curve: Step and score of every validation, those of earlier calls included.
        started_at: Updates that were done before this call.
        steps: Updates done in all; fewer than asked for where the run stopped early.
        seconds: Time in the loop over all calls, validations and checkpoints included.
    """

    model: nn.Module
    metric: str
    higher_is_better: bool
    prefer_later: bool
    curve: tuple[tuple[int, float], ...]
    started_at: int
    steps: int
    seconds: float

    def best(self, steps: int | None = None) -> tuple[int, float]:
        """Return step and score of the best validation of the first ``steps`` updates (None: of all).

        Of equal ones it is the first, or the last with ``prefer_later``.

        Raises:
            ValueError: If there was no validation.
        """
        sign, order = 1 if self.higher_is_better else -1, 1 if self.prefer_later else -1
        return max(
            (point for point in self.curve if steps is None or point[0] <= steps),
            key=lambda point: (sign * point[1], order * point[0]),
        )


def fit(
    config: RunConfig,
    data: Splits,
    folder: Path,
    *,
    device: str = "auto",
    resume: bool = True,
    progress: bool | None = False,
) -> Fit:
    """Train a model as :func:`graphbench.training.trainer.train` does, score nothing and write no record.

    The folder gets ``config.json``, ``checkpoint.safetensors`` and ``best.safetensors``.

    Args:
        config: The configuration.
        data: The dataset; only its splits for training and validation are opened.
        folder: The run's folder.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:<number>``.
        resume: Continue from the folder's checkpoint; False starts anew and overwrites it.
        progress: Show a progress bar; None shows it in a terminal.

    Raises:
        ConfigError: If the configuration does not fit the dataset.
        CheckpointError: If the folder's checkpoint is damaged or belongs to another run.
        TrainingError: If the loss is no longer finite, or the device's memory is too small.
        KeyboardInterrupt: On Ctrl-C, after a checkpoint was written.
    """
    card = data.card
    require_own_splits(config, card)
    require_fitting_settings(config.training, card)
    with join_world(device) as world, own_randomness(config.training.seed, world):
        loop = _loop(config, data, folder, world, resume)
        started_at = loop.state.step
        log_start(loop, card.address)
        label = f"{config.model_name} on {card.address}"
        with progress_bar(config.training.steps, label, "step", progress) as bar, deferred_signals() as stop:
            loop.run(bar, NoBoard(), stop)
        loop.restore_best()
        loop.model.eval()
        state = loop.state
        return Fit(
            model=loop.model,
            metric=loop.val_metric,
            higher_is_better=loop.higher_is_better,
            prefer_later=loop.settings.prefer_later,
            curve=tuple(state.val_curve),
            started_at=started_at,
            steps=state.step,
            seconds=state.wall_seconds,
        )


def _loop(config: RunConfig, data: Splits, folder: Path, world: World, resume: bool) -> TrainingLoop:
    if data.card.hints:
        return prepared_trajectory_loop(config, {data.card.address: data}, folder, world, resume)
    return prepared_loop(config, data, folder, world, resume)
