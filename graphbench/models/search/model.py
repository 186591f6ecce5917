"""A search of a combinatorial problem with the interface of a trained model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from graphbench.catalog.features import Kind
from graphbench.core.errors import ConfigError
from graphbench.data.components.domain import find
from graphbench.data.components.problems import Problem
from graphbench.models.base import TaskFeatures, TaskModel, predicted_features
from graphbench.models.search.config import SearchModelConfig

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset

_GRAPHS_AT_ONCE = 64


class SearchModel(TaskModel):
    """A search; ``predict(batch)`` returns scores that decode to the solutions that it found.

    Nodes of a set, and of side 1, have the score 1, the others -1; a node has the score 1 for its colour and 0 for the
    others.

    Args:
        config: The configuration.
        task: The properties of the task.

    Raises:
        ConfigError: If the task names no problem, the problem has no such search, or the search has no such option.
    """

    def __init__(self, config: SearchModelConfig, task: TaskFeatures) -> None:
        super().__init__()
        self.config, self.seed = config, 0
        name = task.options.get("problem")
        if name is None:
            raise ConfigError("models of kind search solve problems, and the task names none; choose another model")
        self.problem: Problem = find("problem", name)
        (self.output,) = predicted_features(task.features)
        self.search = self.problem.search(config.method, config.options)

    def predict(self, batch: Any, task_id: str | None = None) -> Mapping[str, Tensor]:
        """Return the scores of every node, float32 [N], or [N, K] for K colours."""
        edge_index = batch.edge_index.cpu().numpy()
        known = {name: getattr(batch, name, None) for name in self.problem.fields}
        fields = {name: values.cpu().numpy() for name, values in known.items() if values is not None}
        graphs = self.problem.checked(batch.ptr.cpu().numpy().astype(np.int64), edge_index, fields)
        solution = torch.from_numpy(self.search(graphs, self.seed)).long()
        if self.output.kind is Kind.MASK:
            return {self.output.name: 2.0 * solution - 1.0}
        return {self.output.name: torch.nn.functional.one_hot(solution).float()}

    def forward(self, batch: Any, task_id: str | None = None) -> Mapping[str, Tensor]:
        """Return the scores of :meth:`predict`; there are no gradients."""
        return self.predict(batch, task_id)

    def largest_batch(self, dataset: GraphDataset) -> int:
        """Return the number of graphs that are searched between two reports of progress."""
        return _GRAPHS_AT_ONCE
