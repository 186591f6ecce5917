"""Selection of algorithms: one of several is chosen for every instance.

The functions below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench.core.lazy import lazy_exports

if TYPE_CHECKING:
    from graphbench.tasks.select.evaluator import closed_gap, par
    from graphbench.tasks.select.portfolios import best_portfolios, knee

_LAZY = {
    "closed_gap": "graphbench.tasks.select.evaluator",
    "par": "graphbench.tasks.select.evaluator",
    "best_portfolios": "graphbench.tasks.select.portfolios",
    "knee": "graphbench.tasks.select.portfolios",
}

__all__ = ["best_portfolios", "closed_gap", "knee", "par"]


if not TYPE_CHECKING:  # else type checkers would accept every name
    __getattr__, __dir__ = lazy_exports(globals(), _LAZY)
