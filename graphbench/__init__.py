"""graphbench: graph learning benchmarks, regenerated on your machine from readable cards.

The names below load on first use, so that ``import graphbench`` is fast and needs neither torch nor Numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench._version import __version__
from graphbench.core.lazy import lazy_exports

if TYPE_CHECKING:
    from graphbench.catalog.names import card, list_datasets
    from graphbench.catalog.resources import register_data
    from graphbench.data.components.domain import Domain, register
    from graphbench.evaluation.metrics.registry import register_metric
    from graphbench.evaluation.score import Score
    from graphbench.loader import Loader, Splits
    from graphbench.models.processors import register_processor
    from graphbench.records.table import results
    from graphbench.tasks.evaluator import Evaluator
    from graphbench.tasks.registry import register_task
    from graphbench.training.run import train
    from graphbench.tuning.optimizer import Optimizer

_LAZY = {
    "Domain": "graphbench.data.components.domain",
    "Loader": "graphbench.loader",
    "Splits": "graphbench.loader",
    "Evaluator": "graphbench.tasks.evaluator",
    "Score": "graphbench.evaluation.score",
    "Optimizer": "graphbench.tuning.optimizer",
    "train": "graphbench.training.run",
    "register_task": "graphbench.tasks.registry",
    "card": "graphbench.catalog.names",
    "list_datasets": "graphbench.catalog.names",
    "results": "graphbench.records.table",
    "register": "graphbench.data.components.domain",
    "register_data": "graphbench.catalog.resources",
    "register_metric": "graphbench.evaluation.metrics.registry",
    "register_processor": "graphbench.models.processors",
}

__all__ = [
    "Domain",
    "Evaluator",
    "Loader",
    "Optimizer",
    "Score",
    "Splits",
    "__version__",
    "card",
    "list_datasets",
    "register",
    "register_data",
    "register_metric",
    "register_processor",
    "register_task",
    "results",
    "train",
]


if not TYPE_CHECKING:  # else type checkers would accept every name
    __getattr__, __dir__ = lazy_exports(globals(), _LAZY)
