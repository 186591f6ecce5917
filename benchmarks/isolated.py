"""Run one function in a fresh process, so that its time and memory are its own.

``in_fresh_process("benchmarks.build:build", workers=2)`` starts ``python -m benchmarks.isolated
benchmarks.build:build``, sends the arguments as JSON, and returns what the function returned, through JSON.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import IO, Any

from benchmarks.common import FOLDER

_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Finished:
    """What a function in a fresh process returned, and what it cost.

    Attributes:
        value: The returned value.
        wall_seconds: From the start of the process to its end.
        peak_pss: Largest proportional memory of the process and its children together, bytes (shared pages count once).
        peak_rss: Largest sum of their resident memory, bytes (shared pages count once per process).
        processes: Largest number of processes alive at once.
    """

    value: Any
    wall_seconds: float
    peak_pss: int
    peak_rss: int
    processes: int


def in_fresh_process(function: str, *, watch_memory: bool = False, **arguments: Any) -> Finished:
    """Run ``<module>:<function>(**arguments)`` in a fresh process; optionally watch the memory of its tree."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.isolated", function]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=FOLDER.parent)
    watcher = _MemoryWatcher(process.pid)
    if watch_memory:
        watcher.start()
    answer, _ = process.communicate(json.dumps(arguments))
    wall = time.perf_counter() - started
    watcher.done.set()
    if process.returncode != 0:
        raise RuntimeError(f"{function} failed with exit code {process.returncode}; its messages are above")
    return Finished(json.loads(answer), wall, watcher.peak_pss, watcher.peak_rss, watcher.processes)


class _MemoryWatcher(threading.Thread):
    """Polls the memory of a process and all its descendants."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.done = threading.Event()
        self.peak_pss = self.peak_rss = self.processes = 0

    def run(self) -> None:
        """Poll until the process ends."""
        import psutil

        try:
            root = psutil.Process(self.pid)
        except psutil.NoSuchProcess:
            return
        while not self.done.wait(_POLL_SECONDS):
            pss = rss = count = 0
            try:
                tree = [root, *root.children(recursive=True)]
            except psutil.NoSuchProcess:
                return
            for process in tree:
                try:
                    memory = process.memory_full_info()
                except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                    continue
                pss += getattr(memory, "pss", memory.rss)
                rss += memory.rss
                count += 1
            self.peak_pss, self.peak_rss = max(self.peak_pss, pss), max(self.peak_rss, rss)
            self.processes = max(self.processes, count)


def memory_now() -> dict[str, int]:
    """Return resident and private memory of this process in bytes."""
    import psutil

    memory = psutil.Process().memory_full_info()
    return {"rss": memory.rss, "private": memory.uss}


def _answer(function: str, requests: IO[str], answers: IO[str]) -> None:
    module, _, name = function.partition(":")
    found = getattr(importlib.import_module(module), name)
    json.dump(found(**json.load(requests)), answers)


if __name__ == "__main__":
    real_output, sys.stdout = sys.stdout, sys.stderr  # whatever the work prints must not mix with the answer
    _answer(sys.argv[1], sys.stdin, real_output)
