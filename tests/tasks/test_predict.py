"""Supervised tasks: what models of scalars learn by follows from the primary metric."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Batch, Data

import graphbench
from graphbench.tasks.registry import task_of


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("circuits/converters_5:ratio", F.mse_loss),  # scored by RSE
        ("sat/small:kissat", F.mse_loss),  # by RMSE
        ("chip_design/aig:ands", F.l1_loss),  # by MAE
    ],
)
def test_scalars_scored_by_squared_errors_are_learned_by_them(dataset: str, expected: object) -> None:
    task = task_of(graphbench.card(dataset))
    (output,) = (feature.name for feature in task.card.outputs)
    targets = torch.tensor([3.0, -1.0, 0.5, 2.0])
    graphs = [Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2, **{output: target[None]}) for target in targets]
    raw = torch.tensor([2.5, 1.0, 0.0, 2.0])
    found = task.losses({output: raw}, Batch.from_data_list(graphs))
    torch.testing.assert_close(found, {output: expected(raw, targets)})  # type: ignore[operator]
