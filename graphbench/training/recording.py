"""What a run leaves behind beside its weights: memory, speed, curves for TensorBoard, and the run record."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
from torch import nn

from graphbench.catalog.features import Feature
from graphbench.errors import MissingDependency
from graphbench.training.evaluate import evaluation_batch_size, predicted_batches

if TYPE_CHECKING:
    from graphbench.data.dataset import GraphDataset

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

    Positional encodings are part of the time; fetching the graphs is not.
    """
    alone = [_seconds(model, features, batch, device, precision) for batch in _first_graphs(dataset)]
    size = min(_TIMED_BATCH, len(dataset), evaluation_batch_size(model, dataset))
    batch = next(iter(dataset.batches(size)))
    together = [_seconds(model, features, batch, device, precision) for _ in range(_TIMED_BATCH_REPEATS)]
    return 1e3 * statistics.median(alone), 1e3 * statistics.median(together) / size


def budget_label(steps: int, batch_size: int, limit: int | None) -> str:
    """Return a training budget in words."""
    data = f", first {limit} samples of each split" if limit is not None else ""
    return f"{steps} steps of {batch_size} graphs{data}"


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
