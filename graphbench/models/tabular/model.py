"""Tabular models: one estimator per column of every output, on the tables of :mod:`graphbench.models.tabular.table`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.errors import ConfigError
from graphbench.models.base import TaskFeatures, TaskModel, predicted_features
from graphbench.models.tabular.config import TabularModelConfig
from graphbench.models.tabular.estimators import draws_nothing, fitting, make_estimator
from graphbench.models.tabular.table import table_of_model

_SUPPORTED = (Kind.MASK, Kind.MASK_ONE, Kind.CATEGORICAL, Kind.SCALAR)
_LEAST = 1e-6  # of probabilities, before logarithms are taken


class TabularModel(TaskModel):
    """Estimators for the outputs of one task; ``predict(batch)`` returns raw outputs as graph models do.

    Args:
        config: The configuration.
        task: The task's features.

    Raises:
        ConfigError: If there is no output, or one has a type that no estimator predicts.
    """

    def __init__(self, config: TabularModelConfig, task: TaskFeatures) -> None:
        super().__init__()
        self.task, self.config = task, config
        self.outputs = predicted_features(task.features)
        for feature in self.outputs:
            if feature.kind not in _SUPPORTED or (
                feature.kind is Kind.MASK_ONE and feature.location is not Location.NODE
            ):
                raise ConfigError(
                    f"output {feature.name!r} is a {feature.type_name} at {feature.location} level, which tabular "
                    "models do not predict; use mask, scalar, categorical, or a mask_one of nodes"
                )
        self.estimators: dict[str, list[Any]] = {}
        self.draws_nothing: bool | None = None  # known once it was fitted

    def fit(self, batches: Iterable[Any], seed: int) -> int:
        """Fit the estimators on batches of training data, and return the number of rows they have learned from.

        Args:
            batches: PyG batches with targets.
            seed: Seed of the sample of rows and of the estimators.
        """
        tables: dict[str, list[NDArray[Any]]] = {}
        targets: dict[str, list[NDArray[Any]]] = {}
        for batch in batches:
            made = {at: self._table(batch, at) for at in {f.location for f in self.outputs}}
            for feature in self.outputs:
                tables.setdefault(feature.name, []).append(made[feature.location])
                targets.setdefault(feature.name, []).append(batch[feature.name].numpy())
        rows, self.draws_nothing = 0, draws_nothing(self.config.processor, self.config.options)
        for feature in self.outputs:
            table, target = np.concatenate(tables[feature.name]), np.concatenate(targets[feature.name])
            if len(table) > self.config.most_rows:
                self.draws_nothing = False
                chosen = np.random.default_rng(seed).choice(len(table), self.config.most_rows, replace=False)
                table, target = table[np.sort(chosen)], target[np.sort(chosen)]
            columns = target.reshape(len(target), -1)
            with fitting(self.config.processor, len(table)):
                self.estimators[feature.name] = [
                    self._estimator(feature, seed).fit(table, columns[:, j]) for j in range(columns.shape[1])
                ]
                self._raw(feature, table[:1])  # some estimators find out only here
            rows = max(rows, len(table))
        return rows

    def predict(self, batch: Any, task_id: str | None = None) -> dict[str, Tensor]:
        """Return the raw outputs of a batch: logits of masks and classes, values of scalars."""
        made = {at: self._table(batch, at) for at in {f.location for f in self.outputs}}
        return {f.name: self._raw(f, made[f.location]) for f in self.outputs}

    def forward(self, batch: Any, task_id: str | None = None) -> dict[str, Tensor]:
        """Return what :meth:`predict` returns; there are no gradients."""
        return self.predict(batch, task_id)

    def _estimator(self, feature: Feature, seed: int) -> Any:
        return make_estimator(self.config.processor, feature.kind is Kind.SCALAR, seed, self.config.options)

    def _table(self, batch: Any, location: Location) -> NDArray[np.float32]:
        return table_of_model(batch, self.task, location, self.config)

    def _raw(self, feature: Feature, table: NDArray[np.float32]) -> Tensor:
        estimators = self.estimators[feature.name]
        if feature.kind is Kind.SCALAR:
            values = np.stack([estimator.predict(table) for estimator in estimators], axis=1).astype(np.float32)
            return torch.from_numpy(values[:, 0] if feature.width == 1 else values)
        (estimator,) = estimators
        found = np.full((len(table), feature.classes or 2), _LEAST)
        found[:, np.asarray(estimator.classes_).astype(int)] = estimator.predict_proba(table)
        logs = np.log(np.clip(found, _LEAST, None)).astype(np.float32)
        return torch.from_numpy(logs if feature.kind is Kind.CATEGORICAL else logs[:, 1] - logs[:, 0])
