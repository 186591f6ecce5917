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
    from graphbench.data.components.domain import Domain, register_domain
    from graphbench.evaluation.metrics.registry import register_metric
    from graphbench.evaluation.score import Score
    from graphbench.imports.nx import from_networkx
    from graphbench.imports.ogb import from_ogb
    from graphbench.imports.pyg import from_pyg
    from graphbench.imports.records import from_folder, from_hf
    from graphbench.imports.tables import from_csv
    from graphbench.loader import Loader, Splits
    from graphbench.models.processors import register_processor
    from graphbench.models.registry import register_architecture
    from graphbench.models.tabular.estimators import register_estimator
    from graphbench.records.measured import measure
    from graphbench.records.record import RunRecord
    from graphbench.records.table import results
    from graphbench.tasks.evaluator import Evaluator
    from graphbench.tasks.registry import register_task
    from graphbench.training.evaluate import evaluate_model, evaluate_run, load_run, predict_model
    from graphbench.training.run import train
    from graphbench.training.weights.load import load_model
    from graphbench.tuning.optimizer import Optimizer

_LAZY = {
    "register_estimator": "graphbench.models.tabular.estimators",
    "register_architecture": "graphbench.models.registry",
    "load_run": "graphbench.training.evaluate",
    "load_model": "graphbench.training.weights.load",
    "predict_model": "graphbench.training.evaluate",
    "evaluate_run": "graphbench.training.evaluate",
    "evaluate_model": "graphbench.training.evaluate",
    "RunRecord": "graphbench.records.record",
    "measure": "graphbench.records.measured",
    "from_pyg": "graphbench.imports.pyg",
    "from_networkx": "graphbench.imports.nx",
    "from_csv": "graphbench.imports.tables",
    "from_ogb": "graphbench.imports.ogb",
    "from_hf": "graphbench.imports.records",
    "from_folder": "graphbench.imports.records",
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
    "register_domain": "graphbench.data.components.domain",
    "register_data": "graphbench.catalog.resources",
    "register_metric": "graphbench.evaluation.metrics.registry",
    "register_processor": "graphbench.models.processors",
}

__all__ = [
    "Domain",
    "Evaluator",
    "Loader",
    "Optimizer",
    "RunRecord",
    "Score",
    "Splits",
    "__version__",
    "card",
    "evaluate_model",
    "evaluate_run",
    "from_csv",
    "from_folder",
    "from_hf",
    "from_networkx",
    "from_ogb",
    "from_pyg",
    "list_datasets",
    "load_model",
    "load_run",
    "measure",
    "predict_model",
    "register_architecture",
    "register_data",
    "register_domain",
    "register_estimator",
    "register_metric",
    "register_processor",
    "register_task",
    "results",
    "train",
]


if not TYPE_CHECKING:  # else type checkers would accept every name
    __getattr__, __dir__ = lazy_exports(globals(), _LAZY)
