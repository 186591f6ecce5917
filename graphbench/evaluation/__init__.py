"""Scores, trivial and published reference numbers, run records, and the report that sets them side by side.

The functions below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench.core.lazy import lazy_exports

if TYPE_CHECKING:
    from graphbench.evaluation.portfolios import best_portfolios, knee
    from graphbench.evaluation.selection import closed_gap, par
    from graphbench.evaluation.weather import weather_scores

_LAZY = {
    "best_portfolios": "graphbench.evaluation.portfolios",
    "closed_gap": "graphbench.evaluation.selection",
    "knee": "graphbench.evaluation.portfolios",
    "par": "graphbench.evaluation.selection",
    "weather_scores": "graphbench.evaluation.weather",
}

__all__ = ["best_portfolios", "closed_gap", "knee", "par", "weather_scores"]


if not TYPE_CHECKING:  # else type checkers would accept every name
    __getattr__, __dir__ = lazy_exports(globals(), _LAZY)
