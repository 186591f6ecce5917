"""GIN and GT of prepared batches are traced by ``torch.compile`` as one graph, which serves batches of other sizes."""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from .conftest import random_batch, small_model


@pytest.mark.slow
@pytest.mark.parametrize("positional", ["rwse", "lpe"])
@pytest.mark.parametrize(("processor", "task"), [("gin", "bridges"), ("gt", "bridges"), ("gt", "flow")])
def test_models_are_one_graph_for_all_sizes(processor: str, task: str, positional: str) -> None:
    torch._dynamo.reset()
    encoding = {"type": positional, "k": 4, "hidden": 16}
    model = small_model(processor, task, positional=encoding, dropout=0.0, stochastic_depth=0.0).eval()
    graphs = CompileCounter()
    compiled = torch.compile(model, dynamic=True, backend=graphs, fullgraph=True)
    for sizes in ((4, 6, 5), (7, 5, 6), (9, 8, 8), (5, 6, 9)):
        batch = model.prepare(random_batch(task, sizes))
        traced, direct = compiled(batch), model(batch)
        for name, raw in direct.items():
            torch.testing.assert_close(traced[name], raw, atol=1e-4, rtol=1e-4)
    assert graphs.frame_count == 1
