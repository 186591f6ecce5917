"""Memory that a process frees and soon needs again."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of the settings in glibc's malloc.h
_LARGEST_BLOCK, _MOST_KEPT = 1 << 30, (1 << 31) - 1  # bytes
_SETTINGS_OF_USER = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")


@cache
def keep_freed_memory() -> bool:
    """Let the process keep freed blocks of up to 1 GiB, 2 GiB in all, and return whether its allocator does.

    glibc returns blocks of more than 32 MB to the system when they are freed, so every step of a training with large
    batches waits until the system has cleared the same pages again. Settings in the environment
    (``GLIBC_TUNABLES``, ``MALLOC_MMAP_THRESHOLD_``, ``MALLOC_TRIM_THRESHOLD_``) are left as they are, and so are other
    allocators.
    """
    if any(name in os.environ for name in _SETTINGS_OF_USER) or "malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # no glibc
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST_BLOCK) and mallopt(_TRIM_THRESHOLD, _MOST_KEPT))


def return_freed_memory() -> None:
    """Give memory that the process has freed, and kept, back to the system; where glibc allocates, else do nothing."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
