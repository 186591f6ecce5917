"""The largest memory use of this process since some moment."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import ClassVar
from weakref import WeakSet

from graphbench.core.memory import return_freed_memory

_FACTS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
_PEAK = "VmHWM:"  # peak resident memory in kB, see proc(5)


class MemoryPeak:
    """The largest memory use of this process since the object was made.

    Linux counts anew; on other systems the peak is of the whole life of the process. Several peaks may be measured at
    once, one within the time of the other.
    """

    _open: ClassVar[WeakSet[MemoryPeak]] = WeakSet()

    def __init__(self) -> None:
        self._before = 0
        for other in self._open:
            other._before = other.bytes
        return_freed_memory()
        with suppress(OSError):
            _RESET.write_text("5", encoding="ascii")
        self._open.add(self)

    @property
    def bytes(self) -> int:
        """The peak so far, of resident memory, in bytes."""
        return max(self._before, _peak_bytes())


def _peak_bytes() -> int:
    with suppress(OSError, StopIteration, ValueError):
        lines = _FACTS.read_text(encoding="utf-8", errors="replace").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith(_PEAK)).split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
