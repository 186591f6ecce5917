"""How long a model takes to predict."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import torch

from graphbench.training.scoring import Precision, evaluating, predicted

if TYPE_CHECKING:
    from graphbench.training.context import TaskRun


def latencies_ms(
    model: Any, run: TaskRun, id_: str, device: torch.device, precision: Precision = "fp32"
) -> tuple[float, float]:
    """Return median milliseconds to predict one sample alone, and one within a batch.

    The samples are the first ones of the validation split (of the training split where that is empty); the task says
    how many. Positional encodings are part of the time; fetching the samples is not.

    Args:
        model: The model, on ``device``.
        run: The dataset.
        id_: Name that the model has for the dataset.
        device: Where to compute.
        precision: ``bf16`` runs the model under autocast.
    """
    task = run.task
    alone, together, repeats = task.timing
    split = task.timed(run.val if len(run.val) else run.train, model)
    size = min(together, len(split), model.largest_batch(split))

    def seconds(batch: Any) -> float:
        started = time.perf_counter()
        with evaluating(model):
            predicted(model, task, id_, batch, device, precision)
        return time.perf_counter() - started

    singles = [seconds(batch) for batch in task.scoring_batches(split[: min(alone, len(split))], 1)]
    (batch,) = task.scoring_batches(split[:size], size)
    whole = [seconds(batch) for _ in range(repeats)]
    return 1e3 * statistics.median(singles), 1e3 * statistics.median(whole) / int(batch.num_graphs)
