"""Scores, trivial and published reference numbers, run records, and the report that sets them side by side.

The functions below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench.core.lazy import lazy_exports

if TYPE_CHECKING:
    from graphbench.tasks.forecast.weatherbench import weather_scores
    from graphbench.tasks.select.evaluator import closed_gap, par
    from graphbench.tasks.select.portfolios import best_portfolios, knee

_LAZY = {
    "best_portfolios": "graphbench.tasks.select.portfolios",
    "closed_gap": "graphbench.tasks.select.evaluator",
    "knee": "graphbench.tasks.select.portfolios",
    "par": "graphbench.tasks.select.evaluator",
    "weather_scores": "graphbench.tasks.forecast.weatherbench",
}

__all__ = ["best_portfolios", "closed_gap", "knee", "par", "weather_scores"]


if not TYPE_CHECKING:  # else type checkers would accept every name
    __getattr__, __dir__ = lazy_exports(globals(), _LAZY)
