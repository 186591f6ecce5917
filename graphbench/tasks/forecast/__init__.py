"""Forecasts: the change of a state on a grid within some hours.

The functions below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench.core.lazy import lazy_exports

if TYPE_CHECKING:
    from graphbench.tasks.forecast.weatherbench import weather_scores

_LAZY = {
    "weather_scores": "graphbench.tasks.forecast.weatherbench",
}

__all__ = ["weather_scores"]


if not TYPE_CHECKING:  # else type checkers would accept every name
    __getattr__, __dir__ = lazy_exports(globals(), _LAZY)
