"""Freed blocks of memory that the process keeps."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, resource
from graphbench.core.memory import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.memset.argtypes, libc.free.argtypes = (
    ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t), (ctypes.c_void_p,)
)
kept = keep_freed_memory()
for _ in range(3):
    before = faults()
    block = libc.malloc(100_000_000)
    libc.memset(block, 1, 100_000_000)
    libc.free(block)
print(kept, faults() - before)
"""


def run(**environment: str) -> tuple[bool, int]:
    """Return whether blocks are kept, and the page faults of a block of 100 MB that is written for the third time."""
    words = [sys.executable, "-c", SCRIPT]
    out = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    kept, faults = out.split()
    return kept == "True", int(faults)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_a_large_block_is_cleared_by_the_system_once_alone() -> None:
    kept, faults = run()
    assert kept and faults < 10
    kept, faults = run(GLIBC_TUNABLES="glibc.malloc.mmap_threshold=1000000")
    assert not kept and faults > 40  # one per page of 4 KiB or of 2 MiB


def test_settings_of_the_user_are_left_as_they_are() -> None:
    assert run(MALLOC_TRIM_THRESHOLD_="1000000")[0] is False
