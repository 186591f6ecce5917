"""How models run: compiled, in half precision, with padding, and the same every time."""

import pytest
import torch

from graphbench.data.batches.trajectory_batch import TrajectoryBatch
from graphbench.models.base import TaskFeatures
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.model import TrajectoryModel

from .test_model import batch_of, build


@pytest.mark.parametrize(
    ("name", "processor"),
    [
        ("bfs", "mpnn"),
        pytest.param("floyd_warshall", "triplet_gmpnn", marks=pytest.mark.slow),
    ],
)
@pytest.mark.thorough
def test_a_step_compiles_as_one_graph(name, processor):
    features, batch = batch_of(name)
    model = build(features, processor=processor)
    expected = model.loss(batch, "a")
    torch._dynamo.reset()
    model.step = torch.compile(model.step, backend="aot_eager", fullgraph=True)
    found = model.loss(batch, "a")
    torch.testing.assert_close(found, expected)
    parameters = list(model.parameters())
    for a, b in zip(*(torch.autograd.grad(loss, parameters) for loss in (found, expected)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("processor", ["mpnn", "triplet_gmpnn", "gatv2", "memnet", "gin", "gt"])
@pytest.mark.parametrize("name", ["floyd_warshall", "insertion_sort"])
@pytest.mark.thorough
def test_half_precision(name, processor):
    features, batch = batch_of(name)
    model = build(features, processor=processor, permutations=True).eval()
    expected = model.loss(batch, "a")
    with torch.autocast("cpu", torch.bfloat16):
        found = model.loss(batch, "a")
    assert found.dtype is torch.float32
    torch.testing.assert_close(found, expected, rtol=0.1, atol=0)
    found.backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_more_padding_changes_nothing():
    features, batch = batch_of("bfs", 6)
    padded = TrajectoryBatch(
        batch.inputs,
        {name: torch.cat([hint, hint[-1:].expand(4, *hint.shape[1:])]) for name, hint in batch.hints.items()},
        batch.outputs,
        batch.lengths,
        batch.num_nodes,
    )
    model = build(features).eval()
    torch.testing.assert_close(model.loss(padded, "a"), model.loss(batch, "a"))
    for name, value in model.predict(batch, "a").items():
        assert torch.equal(model.predict(padded, "a")[name], value)


def test_a_seed_fixes_weights_noise_and_forcing():
    features, batch = batch_of("insertion_sort")

    def loss(seed):
        torch.manual_seed(seed)
        config = TrajectoryModelConfig(hidden=16, hint_teacher_forcing=0.5)
        return TrajectoryModel(config, {"a": TaskFeatures(features)}).loss(batch, "a")

    assert torch.equal(loss(0), loss(0))
    assert not torch.equal(loss(0), loss(1))


def test_small_integers_give_what_large_ones_do():
    features, batch = batch_of("dijkstra")

    def cast(values):
        return {k: v if v.is_floating_point() else v.long() for k, v in values.items()}

    large = TrajectoryBatch(cast(batch.inputs), cast(batch.hints), cast(batch.outputs), batch.lengths, 16)
    assert any(v.dtype is torch.int8 for v in batch.hints.values())
    model = build(features)
    assert torch.equal(model.loss(batch, "a"), model.loss(large, "a"))


def test_predicting_keeps_no_hints_of_earlier_steps(monkeypatch):
    features, batch = batch_of("minimum")
    model = build(features).eval()
    kept = []
    run = model._run
    monkeypatch.setattr(model, "_run", lambda *a, **k: kept.append(run(*a, **k)) or kept[-1])
    model.predict(batch, "a")
    assert len(kept[0][1]) == 1
