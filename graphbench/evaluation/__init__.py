"""Scores, trivial and published reference numbers, run records, and the report that sets them side by side.

The functions below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench.core.lazy import lazy_exports

if TYPE_CHECKING:
    from graphbench.evaluation.selection import closed_gap, par

_LAZY = {"closed_gap": "graphbench.evaluation.selection", "par": "graphbench.evaluation.selection"}

__all__ = ["closed_gap", "par"]


__getattr__, __dir__ = lazy_exports(globals(), _LAZY)
