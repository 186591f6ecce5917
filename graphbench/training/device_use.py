"""Whether several runs compute on one GPU at the same time, so that times of one run say little."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from filelock import Timeout

from graphbench.core.files import file_lock

_locks: dict[Path, Any] = {}  # one per GPU, held until the process ends


def shares_device(device: torch.device) -> bool:
    """Return whether another process of graphbench uses the same GPU now; this process counts as using it from now on.

    Processes see each other by locked files in the folder for temporary files. A folder that cannot be written, or a
    file system without locks, hides them.

    Args:
        device: The device; a CPU is never shared in this sense: a record says how many threads a run had.
    """
    if device.type != "cuda":
        return False
    folder = Path(tempfile.gettempdir()) / f"graphbench-{os.getuid()}" / _name(device)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mine = folder / f"{os.getpid()}.lock"
        if folder not in _locks:
            lock = file_lock(mine, timeout=0)
            lock.acquire()
            _locks[folder] = lock
        return any([_is_held(path) for path in folder.glob("*.lock") if path != mine])
    except (OSError, NotImplementedError, Timeout):
        return False


def _is_held(path: Path) -> bool:
    """Return whether a process holds a lock; the file of a process that has ended is removed."""
    lock = file_lock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return True
    path.unlink(missing_ok=True)
    lock.release()
    return False


def _name(device: torch.device) -> str:
    """Return the name of a GPU that all processes share, whichever devices are visible to them."""
    identity = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return f"gpu-{device.index or 0 if identity is None else identity}"
