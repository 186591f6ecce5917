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
_MIN_PROBABILITY = 1e-6  # lower bound before logarithms are taken


class TabularModel(TaskModel):
    """Estimators for the outputs of one task; ``predict(batch)`` returns raw outputs like graph models.

    Args:
        config: The configuration.
        task: The task's features.

    Raises:
        ConfigError: If there is no output, or an output has a type that no estimator predicts.
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
        self.draws_nothing: bool | None = None  # set by fit

    def fit(self, batches: Iterable[Any], seed: int) -> int:
        """Fit the estimators on batches of training data, and return the number of training rows.

        Args:
            batches: PyG batches with targets.
            seed: Seed of the sample of rows and of the estimators.
        """
        tables: dict[str, list[NDArray[Any]]] = {}
        targets: dict[str, list[NDArray[Any]]] = {}
        for batch in batches:
            location_tables = {at: self._table(batch, at) for at in {f.location for f in self.outputs}}
            for feature in self.outputs:
                tables.setdefault(feature.name, []).append(location_tables[feature.location])
                targets.setdefault(feature.name, []).append(batch[feature.name].numpy())
        rows, self.draws_nothing = 0, draws_nothing(self.config.processor, self.config.options)
        for feature in self.outputs:
            table, target = np.concatenate(tables[feature.name]), np.concatenate(targets[feature.name])
            if feature.kind in (Kind.MASK, Kind.CATEGORICAL) and (missing := target < 0).any():
                table, target = table[~missing], target[~missing]
            if len(table) > self.config.most_rows:
                self.draws_nothing = False
                sample = np.random.default_rng(seed).choice(len(table), self.config.most_rows, replace=False)
                table, target = table[np.sort(sample)], target[np.sort(sample)]
            columns = target.reshape(len(target), -1)
            with fitting(self.config.processor, len(table)):
                self.estimators[feature.name] = [
                    self._estimator(feature, seed).fit(table, columns[:, j]) for j in range(columns.shape[1])
                ]
                self._raw(feature, table[:1])  # some estimators fail only in prediction
            rows = max(rows, len(table))
        return rows

    def predict(self, batch: Any, task_id: str | None = None) -> dict[str, Tensor]:
        """Return the raw outputs of a batch: logits of masks and classes, values of scalars."""
        location_tables = {at: self._table(batch, at) for at in {f.location for f in self.outputs}}
        return {f.name: self._raw(f, location_tables[f.location]) for f in self.outputs}

    def forward(self, batch: Any, task_id: str | None = None) -> dict[str, Tensor]:
        """Return the outputs of :meth:`predict`; there are no gradients."""
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
        probabilities = np.full((len(table), feature.classes or 2), _MIN_PROBABILITY)
        probabilities[:, np.asarray(estimator.classes_).astype(int)] = estimator.predict_proba(table)
        logs = np.log(np.clip(probabilities, _MIN_PROBABILITY, None)).astype(np.float32)
        return torch.from_numpy(logs if feature.kind is Kind.CATEGORICAL else logs[:, 1] - logs[:, 0])
