"""Facts of the machine and of the checkout: names, processors, memory, accelerator, and the commit."""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from graphbench.core.processor import processor_fact


def cpu_name() -> str:
    """Return the name of the processor."""
    return processor_fact("model name") or platform.processor() or platform.machine()


def cpu_kind() -> str:
    """Return the name of the processor, with family and model where the name has no number, as of a virtual machine."""
    name, family, model = cpu_name(), processor_fact("cpu family"), processor_fact("model")
    return f"{name} (family {family}, model {model})" if family and model and not re.search(r"\d", name) else name


def memory_bytes() -> int | None:
    """Return the size of the memory in bytes; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def processor_seconds() -> float:
    """Return the processor time so far: of all threads of this process, and of child processes that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def hardware() -> dict[str, str | int | float | None]:
    """Return a description of this machine for a record: processor, cores, memory, GPU, library versions.

    Torch is described only when the process has loaded it already; describing never loads it.
    """
    facts: dict[str, str | int | float | None] = {
        "cpu": cpu_kind(),
        "cores": os.cpu_count(),
        "memory_bytes": memory_bytes(),
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": None,
        "threads": None,
        "gpu": None,
        "gpus": 0,
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        facts["torch"] = str(torch.__version__)
        facts["threads"] = int(torch.get_num_threads())
        if torch.cuda.is_available():
            facts["gpu"] = str(torch.cuda.get_device_name(0))
            facts["gpus"] = int(torch.cuda.device_count())
    return facts


def commit_of_checkout() -> str | None:
    """Return the git commit of the package's checkout, or None where the package is installed."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
