"""The cost of a training, measured around it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from graphbench.records.machine import hardware, processor_seconds
from graphbench.records.memory import MemoryPeak
from graphbench.records.stated import StatedCost


@contextmanager
def measure() -> Iterator[StatedCost]:
    """Measure the cost of the training in a ``with`` block, for :meth:`graphbench.RunRecord.from_scores`.

    Time on the clock, processor time of all threads and of child processes that have ended, threads of torch, the peak
    memory of the process within the block, and the machine are known when the block has ended. The peak counts what the
    process held before the block, such as the data; on other systems than Linux it is that of the process since it
    began. On a GPU the peak is of the tensors of the current device, and the clock is read when the device has done all
    its work.

    Example:
        >>> with graphbench.measure() as cost:
        ...     train(model)
        >>> graphbench.RunRecord.from_scores({"test": splits.test}, {"test": score}, model="mine", cost=cost)

    Yields:
        The cost, whose attributes are None until the block has ended.
    """
    cost, device, memory = StatedCost(), _device(), MemoryPeak()
    if device is not None:
        device.reset_peak_memory_stats()
    clock, processors = time.perf_counter(), processor_seconds()
    try:
        yield cost
    finally:
        device = _device()
        if device is not None:
            device.synchronize()
        cost.wall_seconds = time.perf_counter() - clock
        cost.cpu_seconds = processor_seconds() - processors
        facts = hardware()
        cost.hardware = {**facts, "device": "cpu" if device is None else "cuda"}
        threads = facts.get("threads")
        cost.threads = threads if isinstance(threads, int) else None
        cost.peak_memory_bytes = memory.bytes if device is None else int(device.max_memory_allocated())


def _device() -> Any:
    """Return torch's module of GPUs where this process uses one, else None."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None
