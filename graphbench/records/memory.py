"""The largest memory use since some moment."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakSet

from graphbench.core.memory import return_freed_memory

if TYPE_CHECKING:
    import torch

_FACTS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
_PEAK = "VmHWM:"  # peak resident memory in kB, see proc(5)


class MemoryPeak:
    """The largest memory use since the object was made: of this process, or of the tensors of a GPU.

    Linux counts anew; on other systems the peak of a process is of its whole life. Several peaks of a process may be
    measured at once, one within the time of the other.

    Args:
        device: The device that computes; None for the process.
    """

    _open: ClassVar[WeakSet[MemoryPeak]] = WeakSet()

    def __init__(self, device: torch.device | None = None) -> None:
        self._before, self._gpu = 0, None
        if device is not None and device.type == "cuda":
            import torch

            self._gpu = device
            torch.cuda.reset_peak_memory_stats(device)
            return
        for other in self._open:
            other._before = other.bytes
        return_freed_memory()
        with suppress(OSError):
            _RESET.write_text("5", encoding="ascii")
        self._open.add(self)

    @property
    def bytes(self) -> int:
        """The peak so far in bytes: of resident memory, on a GPU of tensors."""
        if self._gpu is not None:
            import torch

            return int(torch.cuda.max_memory_allocated(self._gpu))
        return max(self._before, _peak_bytes())


def _peak_bytes() -> int:
    with suppress(OSError, StopIteration, ValueError):
        lines = _FACTS.read_text(encoding="utf-8", errors="replace").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith(_PEAK)).split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
