"""Scores, trivial and published reference numbers, run records, and the report that sets them side by side.

The functions below load on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphbench.evaluation.selection import closed_gap, par

_LAZY = {"closed_gap": "graphbench.evaluation.selection", "par": "graphbench.evaluation.selection"}

__all__ = ["closed_gap", "par"]


def __getattr__(name: str) -> Any:
    """Load an exported name on first use (PEP 562)."""
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it exports {', '.join(__all__)}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the names of the module and the exported ones."""
    return sorted(set(globals()) | set(__all__))
