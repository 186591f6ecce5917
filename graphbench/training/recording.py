"""What a run leaves behind beside its weights: memory, speed, curves for TensorBoard, and the run record."""

from __future__ import annotations

import logging
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
from torch import nn

from graphbench.catalog.features import Feature
from graphbench.core.errors import MissingDependency, ResultError
from graphbench.evaluation.results import Budget, RunRecord, read_record
from graphbench.evaluation.texts import asks_for_text
from graphbench.models.build import count_parameters
from graphbench.models.language import TextModel
from graphbench.training.scoring import evaluation_batch_size, predicted_batches

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.data.dataset import GraphDataset
    from graphbench.training.config import RunConfig
    from graphbench.training.loop import TrainingLoop

logger = logging.getLogger(__name__)

_TIMED_GRAPHS = 16
_TIMED_BATCH = 256
_TIMED_BATCH_REPEATS = 3


class Board(Protocol):
    """Where curves are shown while a run goes on."""

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """Add one point to a curve."""

    def close(self) -> None:
        """Write what is left and stop."""


class NoBoard:
    """A board that shows nothing."""

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def open_board(folder: Path, wanted: bool, step: int) -> Board:
    """Return a TensorBoard writer in ``folder``, or a board that shows nothing.

    Args:
        folder: Where event files go.
        wanted: Whether TensorBoard was asked for.
        step: Finished updates; later points of an interrupted run are hidden.

    Raises:
        MissingDependency: If TensorBoard is asked for and not installed.
    """
    if not wanted:
        return NoBoard()
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingDependency(
            'tensorboard=True needs TensorBoard; install it with: pip install "graphbench[tensorboard]"'
        ) from error
    return SummaryWriter(str(folder), purge_step=step + 1)  # type: ignore[no-untyped-call,no-any-return]


def peak_memory_bytes(device: torch.device) -> int:
    """Return the largest memory use so far: of the device's tensors on a GPU, of the whole process on a CPU."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def latencies_ms(
    model: nn.Module,
    features: Sequence[Feature],
    dataset: GraphDataset,
    device: torch.device,
    precision: Literal["fp32", "bf16"],
) -> tuple[float, float]:
    """Return median milliseconds to predict one graph alone, and one graph within a batch of up to 256.

    Positional encodings are part of the time; fetching the graphs is not. Texts: see ``text_latencies_ms``.
    """
    if isinstance(model, TextModel):
        from graphbench.training.language_scores import text_latencies_ms

        return text_latencies_ms(model, dataset, device, precision)
    alone = [_seconds(model, features, batch, device, precision) for batch in _first_graphs(dataset)]
    size = min(_TIMED_BATCH, len(dataset), evaluation_batch_size(model, dataset))
    batch = next(iter(dataset.batches(size)))
    together = [_seconds(model, features, batch, device, precision) for _ in range(_TIMED_BATCH_REPEATS)]
    return 1e3 * statistics.median(alone), 1e3 * statistics.median(together) / size


def log_start(loop: TrainingLoop, data: str) -> None:
    """Log what is about to be trained, on what and where."""
    config, device = loop.config, loop.world.device
    logger.info(
        "training %s (%s parameters) on %s from step %d to %d, batches of %d, %s on %s; output %s",
        config.model_name,
        f"{count_parameters(loop.model):,}",
        data,
        loop.state.step,
        loop.settings.steps,
        loop.settings.batch_size,
        loop.precision,
        device,
        loop.folder,
    )


def budget_of(config: RunConfig, card: Card, steps: int, used: Mapping[str, int], scored: Mapping[str, int]) -> Budget:
    """Return what a run was given, measured against its configuration file and the card.

    Args:
        config: The run's configuration.
        card: The dataset's card.
        steps: Updates taken.
        used: Split -> graphs, of the splits trained and validated on.
        scored: Split -> graphs behind its scores.
    """
    samples = "prompts" if asks_for_text(card) else "graphs"
    together = f" over {len(config.datasets)} datasets" if config.datasets else ""
    words = [f"{steps} steps of {config.training.batch_size} {samples}{together}"]
    if config.limit is not None:
        words.append(f"first {config.limit} samples of each split")
    partly_used, partly_scored = partial_splits(card, used), partial_splits(card, scored)
    words += [text for name, text in partly_used.items() if config.limit is None or used[name] < config.limit]
    if partly_scored and config.limit is None:
        words.append(f"scored on part of the {samples}")
    if config.reference_steps is None:
        words.append("a configuration of one's own")
    elif config.overridden:
        words.append(f"a configuration of one's own ({config.model_name} with another {', '.join(config.overridden)})")
    return Budget(small=config.is_small or bool(partly_used or partly_scored), label=", ".join(words))


def partial_splits(card: Card, graphs: Mapping[str, int]) -> dict[str, str]:
    """Return split -> e.g. ``val 100 of 10,000``, for the card's splits of which fewer graphs were taken."""
    full = {name: spec.count for name, spec in card.all_splits.items() if name in graphs}
    return {name: f"{name} {graphs[name]:,} of {full[name]:,}" for name in graphs if graphs[name] < full.get(name, 0)}


def earlier_record(path: Path, **shared: Any) -> RunRecord | None:
    """Return the record that an earlier scoring of the same weights left, or None.

    Args:
        path: The record's file, of a run that was not started anew since.
        shared: Fields that must have the same value; that of another number of steps is of other weights.
    """
    try:
        found = read_record(path)
    except ResultError as error:
        if path.exists():
            logger.warning("the scores of an earlier record are lost: %s", error)
        return None
    return found if all(getattr(found, name) == value for name, value in shared.items()) else None


def commit_of_checkout() -> str | None:
    """Return the git commit of the package's checkout, or None where the package is installed."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _first_graphs(dataset: GraphDataset) -> list[Any]:
    batches = dataset.batches(1)
    return [batch for batch, _ in zip(batches, range(_TIMED_GRAPHS), strict=False)]


def _seconds(
    model: nn.Module, features: Sequence[Feature], batch: Any, device: torch.device, precision: Literal["fp32", "bf16"]
) -> float:
    started = time.perf_counter()
    for _, predicted in predicted_batches(model, features, [batch], device, precision):
        next(iter(predicted.values())).cpu()
    return time.perf_counter() - started
