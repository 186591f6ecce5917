"""graphbench: graph learning benchmarks, regenerated on your machine from readable cards.

The names below load on first use, so that ``import graphbench`` is fast and needs neither torch nor Numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphbench._version import __version__

if TYPE_CHECKING:
    from graphbench.catalog.names import card, list_datasets
    from graphbench.evaluation.evaluator import Evaluator, Score
    from graphbench.loader import Loader, Splits
    from graphbench.training.trainer import train
    from graphbench.training.trajectory_trainer import train_together
    from graphbench.tuning.optimizer import Optimizer

_LAZY = {
    "Loader": "graphbench.loader",
    "Splits": "graphbench.loader",
    "Evaluator": "graphbench.evaluation.evaluator",
    "Score": "graphbench.evaluation.evaluator",
    "Optimizer": "graphbench.tuning.optimizer",
    "train": "graphbench.training.trainer",
    "train_together": "graphbench.training.trajectory_trainer",
    "card": "graphbench.catalog.names",
    "list_datasets": "graphbench.catalog.names",
}

__all__ = [
    "Evaluator",
    "Loader",
    "Optimizer",
    "Score",
    "Splits",
    "__version__",
    "card",
    "list_datasets",
    "train",
    "train_together",
]


def __getattr__(name: str) -> Any:
    """Load an exported name on first use (PEP 562)."""
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'graphbench' has no attribute {name!r}; it exports {', '.join(__all__)}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the exported names."""
    return sorted(set(globals()) | set(__all__))
