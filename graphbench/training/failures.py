"""Errors that can occur while a model trains, each with its remedy."""

from __future__ import annotations

import torch

from graphbench.core.errors import TrainingError
from graphbench.core.foreign import text_of


class NotFinite(TrainingError, FloatingPointError):
    """A loss or a weight is no longer a finite number."""


def not_finite(what: str, value: float, step: int, last_checkpoint: int | None) -> NotFinite:
    """Return the error for a loss, gradient or weight that became infinite or NaN.

    Args:
        what: Name of the quantity, e.g. ``training loss``.
        value: Its value.
        step: The update at which it was seen, counted from 1.
        last_checkpoint: Step of the checkpoint that is kept, if any.
    """
    kept = f"the checkpoint of step {last_checkpoint} is kept" if last_checkpoint else "no checkpoint was written yet"
    return NotFinite(
        f"{what} is {value} at step {step}; {kept}. Lower training.lr, lengthen training.warmup, set "
        "training.gradient_clip (e.g. 1.0), or use training.precision=fp32"
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that there is too little memory: on a GPU, in torch on a CPU, or in NumPy."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "DefaultCPUAllocator" in text_of(error)


def out_of_memory(doing: str, batch_size: int, samples: str, remedy: str) -> TrainingError:
    """Return the error for a device that ran out of memory on a batch of ``batch_size`` samples."""
    return TrainingError(f"the device ran out of memory while {doing} with {batch_size} {samples} at once; {remedy}")
