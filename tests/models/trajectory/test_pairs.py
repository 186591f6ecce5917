"""The processor of pairs on trajectories: states that are kept, semirings, and settings that are refused."""

import pytest
import torch

from graphbench.core.errors import ConfigError
from graphbench.data.batches.trajectory_batch import TrajectoryBatch
from graphbench.models.trajectory.processors.pairs import TracePairs

from .test_model import batch_of, build, relabelled


def pairs_model(features, **settings):
    return build(features, processor="pairs", hidden=8, **settings)


def test_states_of_pairs_are_kept_from_step_to_step():
    features, batch = batch_of("dijkstra")
    for history, alike in (("kept", False), ("forgotten", True)):
        model = pairs_model(features, history=history, hint_mode="decoded_only").eval()
        hints = model(batch, "a").hints["d"]
        assert torch.allclose(hints[0], hints[1], atol=1e-5) == alike


@pytest.mark.parametrize("options", [{"closure": 4, "triangle": 0}, {"triangle": 4, "pools": ["mean", "max"]}])
def test_relabelling_and_learning(options):
    features, batch = batch_of("floyd_warshall")
    model = pairs_model(features, options=options, layers=2)
    model.loss(batch, "a").backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    model.eval()
    before, after = model(batch, "a"), model(relabelled(features, batch, order), "a")
    raw = before.outputs["Pi"].index_select(1, order).index_select(2, order).index_select(3, order)
    torch.testing.assert_close(after.outputs["Pi"], raw, rtol=1e-3, atol=1e-4)


def test_a_sample_alone_is_a_sample_in_a_batch():
    features, batch = batch_of("bfs", 5)
    model = pairs_model(features).eval()
    together = model(batch, "a").outputs["pi"]
    for i in range(5):
        one = TrajectoryBatch(
            {k: v[i : i + 1] for k, v in batch.inputs.items()},
            {k: v[: batch.lengths[i], i : i + 1] for k, v in batch.hints.items()},
            {k: v[i : i + 1] for k, v in batch.outputs.items()},
            batch.lengths[i : i + 1],
            batch.num_nodes,
        )
        torch.testing.assert_close(model(one, "a").outputs["pi"][0], together[i], rtol=1e-4, atol=1e-5)


def test_the_processor_of_a_model_of_trajectories_keeps_pairs():
    features, _ = batch_of("bfs")
    assert isinstance(pairs_model(features).processor, TracePairs)


def test_settings_without_a_meaning_are_refused():
    features, _ = batch_of("bfs")
    with pytest.raises(ConfigError, match="gated"):
        pairs_model(features, history="gated")
    with pytest.raises(ConfigError, match="noise"):
        pairs_model(features, options={"noise": 4})
    with pytest.raises(ConfigError, match="minima"):
        pairs_model(features, options={"minima": 1.5})
