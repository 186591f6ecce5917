"""One or several processes that train one model together, and each process's share of a batch.

Started under ``torchrun``, process r of n takes graphs r, r + n, r + 2n, ... of every batch. The loss of a share is
weighted by its part of the batch's items and the gradients are summed, so the update does not depend on the number of
processes up to the order of float sums (dropout masks do depend on it).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from graphbench.core.errors import ConfigError
from graphbench.core.memory import keep_freed_memory

# Other processes wait at a barrier while the first one generates the dataset or evaluates.
_TIMEOUT = timedelta(hours=4)
_MASK64 = 2**64 - 1


@dataclass(frozen=True)
class World:
    """The processes of one training run, seen from one of them.

    Attributes:
        rank: Number of this process, from 0. Only process 0 writes files.
        size: Number of processes.
        device: Where this process computes.
    """

    rank: int
    size: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether this process evaluates and writes the files."""
        return self.rank == 0

    def seed_step(self, seed: int, step: int) -> None:
        """Seed the device's generator for one update, so its random numbers are a function of (seed, step, rank)."""
        mixed = _mix(_mix(_mix(seed) ^ step) ^ self.rank) >> 1
        if self.device.type == "cuda":
            torch.cuda.default_generators[self.device.index or 0].manual_seed(mixed)
        torch.default_generator.manual_seed(mixed)

    def sum_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Replace every gradient by its sum over the processes; a missing gradient counts as zero."""
        if self.size == 1:
            return
        owners = [parameter for parameter in parameters if parameter.requires_grad]
        flat = torch.cat([(p.grad if p.grad is not None else torch.zeros_like(p)).reshape(-1) for p in owners])
        dist.all_reduce(flat)
        for parameter, part in zip(owners, torch.split(flat, [p.numel() for p in owners]), strict=True):
            parameter.grad = part.view_as(parameter)

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum of a tensor over the processes."""
        if self.size > 1:
            value = value.clone()
            dist.all_reduce(value)
        return value

    def broadcast_model(self, model: torch.nn.Module) -> None:
        """Give every process the weights and buffers of process 0."""
        if self.size > 1:
            for tensor in model.state_dict().values():
                dist.broadcast(tensor, src=0)

    def from_leader(self, value: Any) -> Any:
        """Return the value that process 0 passes (anything JSON-like) in every process."""
        if self.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0, device=self.device)
        return box[0]

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set in at least one process."""
        if self.size == 1:
            return flag
        return bool(self.sum(torch.tensor(float(flag), device=self.device)).item())

    def wait(self) -> None:
        """Return when every process has come here."""
        if self.size > 1:
            dist.barrier()


def world_size() -> int:
    """Return the number of processes that ``torchrun`` started, or 1."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def join_world(device: str = "auto") -> Iterator[World]:
    """Yield the processes ``torchrun`` started, or this process alone.

    Args:
        device: ``auto`` (a GPU if there is one, else the CPU), ``cpu``, ``cuda`` or e.g. ``cuda:1``.

    Raises:
        ConfigError: If the device does not exist on this machine.
    """
    size = world_size()
    target = choose_device(device, local_rank=int(os.environ.get("LOCAL_RANK", "0")) if size > 1 else None)
    if target.type == "cuda":
        torch.cuda.set_device(target)
    if size == 1:
        yield World(0, 1, target)
        return
    owns = not dist.is_initialized()
    if owns:
        gpu = target.type == "cuda"
        dist.init_process_group("nccl" if gpu else "gloo", timeout=_TIMEOUT, device_id=target if gpu else None)
    try:
        yield World(dist.get_rank(), dist.get_world_size(), target)
    finally:
        if owns:
            dist.destroy_process_group()


@contextmanager
def seeded_generators(seed: int, world: World) -> Iterator[None]:
    """Seed Python, NumPy and torch for the block, and restore the caller's generators afterwards."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    devices = [world.device.index] if world.device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


def choose_device(device: str = "auto", local_rank: int | None = None) -> torch.device:
    """Return the device a name stands for, and let the process keep the memory that it frees.

    Args:
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:<number>``.
        local_rank: Number of this process on its machine, when several share the machine's GPUs.

    Raises:
        ConfigError: If the name is no device, or the GPU does not exist.
    """
    keep_freed_memory()
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == "auto":
        device = "cuda" if gpus else "cpu"
    try:
        target = torch.device(device)
    except RuntimeError as error:
        raise ConfigError(f"device {device!r} does not exist; use auto, cpu, cuda or cuda:<number>") from error
    if target.type == "cuda":
        index = target.index if target.index is not None else (local_rank or 0)
        if index >= gpus:
            raise ConfigError(f"device {device!r} asks for GPU {index}, this machine has {gpus}; use auto or cpu")
        return torch.device("cuda", index)
    return target


def _mix(value: int) -> int:
    """Return the splitmix64 hash of an integer (Steele, Lea and Flood, 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK64
    return value ^ (value >> 31)
