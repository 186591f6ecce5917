"""Tabular selectors of algorithms: methods of selection on a table of features of graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphbench.catalog.features import Location
from graphbench.core.errors import ConfigError
from graphbench.models.base import TaskFeatures, TaskModel, predicted_features
from graphbench.models.demands import require_costs
from graphbench.models.tabular.config import SelectorModelConfig
from graphbench.models.tabular.estimators import draws_nothing, fitting, make_estimator
from graphbench.models.tabular.presolving import FOLDS, best_schedule, held_out_choices, paid_costs
from graphbench.models.tabular.selectors import METHODS, Fitted, Floats, Make
from graphbench.models.tabular.table import table_of_model

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset

_ROWS = 256
_SCHEDULE = "presolving schedule"  # key of the fitted state: the presolver and its time, or nothing


class SelectorModel(TaskModel):
    """A selector of algorithms; ``predict(batch)`` returns a value per output, and the lowest value is chosen.

    The values are costs in the unit of the outputs, or other numbers with the same order; see
    :mod:`graphbench.models.tabular.selectors`.

    Args:
        config: The configuration.
        task: The task's features.

    Raises:
        ConfigError: If the outputs are not two or more scalars of graphs.
    """

    def __init__(self, config: SelectorModelConfig, task: TaskFeatures) -> None:
        super().__init__()
        self.task, self.config = task, config
        outputs = predicted_features(task.features)
        require_costs(outputs)
        self.names = sorted(f.name for f in outputs)
        self.method = METHODS[config.method]
        self.estimators: Fitted = {}
        self.draws_nothing: bool | None = None  # set by fit

    def fit(self, batches: Iterable[Any], seed: int) -> int:
        """Fit the estimators on batches of training data, and return the number of training instances.

        Args:
            batches: PyG batches with the costs.
            seed: Seed of the sample of instances and of the estimators.
        """
        tables, targets, paid = [], [], []
        for batch in batches:
            tables.append(self._table(batch))
            targets.append(np.stack([batch[name].numpy().reshape(-1) for name in self.names], axis=1))
            if self.config.presolving == "learned":
                paid.append(self._overhead(batch))
        table, costs = np.concatenate(tables), np.concatenate(targets).astype(np.float64)
        overhead = np.concatenate(paid) if paid else np.zeros(len(table))
        self.draws_nothing = draws_nothing(self.config.processor, self.config.options)
        if len(table) > self.config.most_rows:
            self.draws_nothing = False
            sample = np.random.default_rng(seed).choice(len(table), self.config.most_rows, replace=False)
            sample.sort()
            table, costs, overhead = table[sample], costs[sample], overhead[sample]

        def make(regression: bool) -> Any:
            return make_estimator(self.config.processor, regression, seed, self.config.options)

        with fitting(self.config.processor, len(table)):
            self.estimators = self.method.fit(table, costs, self.names, make)
            self.method.values(self.estimators, table[:1], self.names)  # some estimators fail only in prediction
            if self.config.presolving == "learned":
                self.estimators[_SCHEDULE] = self._learned_schedule(table, costs, overhead, make, seed)
        return len(table)

    @property
    def schedule(self) -> tuple[str, float] | None:
        """The output of the algorithm that runs first and its time, where they were learned and there is any."""
        stored = self.estimators.get(_SCHEDULE)
        return (stored[0], float(stored[1])) if stored else None

    def _learned_schedule(
        self, table: NDArray[np.float32], costs: Floats, overhead: Floats, make: Make, seed: int
    ) -> list[Any]:
        """Return the output of the presolver and its time, or nothing."""
        if len(table) < 2 * FOLDS:
            raise ConfigError(
                f"model.presolving is 'learned' on {len(table)} training instances, which takes {2 * FOLDS}; give the "
                "time as a number"
            )

        def choose(fitted: NDArray[np.int64], chosen: NDArray[np.int64]) -> NDArray[np.int64]:
            estimators = self.method.fit(table[fitted], costs[fitted], self.names, make)
            choices: NDArray[np.int64] = self.method.values(estimators, table[chosen], self.names).argmin(axis=1)
            return choices

        schedule = best_schedule(costs, held_out_choices(len(table), choose, seed), overhead)
        return [] if schedule is None else [self.names[schedule[0]], schedule[1]]

    def _overhead(self, batch: Any) -> Floats:
        """Return the cost of making a choice for every instance, float64 ``[S]``."""
        paid = paid_costs(self.task.options.get("overhead", 0.0), self.config.ignore)
        total = np.full(batch.num_graphs, paid if isinstance(paid, float) else 0.0)
        for field in () if isinstance(paid, float) else paid:
            total = total + batch[field].numpy().reshape(-1).astype(np.float64)
        return total

    def largest_batch(self, dataset: GraphDataset) -> int:
        """Return a number of instances at once, however large they are: an estimator reads one row of each."""
        return _ROWS

    def predict(self, batch: Any, task_id: str | None = None) -> dict[str, Tensor]:
        """Return output -> values of the instances of a batch, float32 ``[S]``."""
        values = self.method.values(self.estimators, self._table(batch), self.names).astype(np.float32)
        return {name: torch.from_numpy(values[:, k].copy()) for k, name in enumerate(self.names)}

    def forward(self, batch: Any, task_id: str | None = None) -> dict[str, Tensor]:
        """Return the outputs of :meth:`predict`; there are no gradients."""
        return self.predict(batch, task_id)

    def _table(self, batch: Any) -> NDArray[np.float32]:
        return table_of_model(batch, self.task, Location.GRAPH, self.config)
