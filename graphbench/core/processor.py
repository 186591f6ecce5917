"""What Linux says about the processor of this machine."""

from __future__ import annotations

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


def processor_fact(name: str) -> str:
    """Return a fact of the first processor, such as ``model name`` or ``flags``; nothing on systems but Linux."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    pairs = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in pairs if key.strip() == name), "")
