"""What the system says of the machine it runs on."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path


def cpu_name() -> str:
    """Return the name of the processor."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        match = re.search(r"^model name\s*:\s*(.+)$", info.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        if match:
            return match.group(1).strip()
    return platform.processor() or platform.machine()


def memory_bytes() -> int | None:
    """Return the size of the memory in bytes; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
