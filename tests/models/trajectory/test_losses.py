"""Losses, the Sinkhorn operator and cyclic permutations against the reference's values (float32 there)."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench import card
from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.data.batches.trajectory_batch import TrajectoryBatch, batch_of_samples
from graphbench.data.build.generation import draw_samples
from graphbench.models.base import TaskFeatures
from graphbench.models.losses import trace_loss_weights, trace_losses
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.decoders import postprocessed_order
from graphbench.models.trajectory.losses import hint_loss, output_loss, permutation_loss
from graphbench.models.trajectory.model import TrajectoryModel
from graphbench.models.trajectory.sinkhorn import cyclic_form, log_sinkhorn

GOLDEN = np.load(Path(__file__).parents[2] / "domains" / "clrs" / "golden" / "eval.npz")
KINDS = ("scalar", "mask", "mask_one", "categorical", "pointer")


def golden(key):
    return torch.from_numpy(GOLDEN[key]).float()


def in_batch_form(kind, value):
    if kind == "mask_one":
        return value.argmax(-1)
    if kind == "categorical":
        return torch.where((value == -1).any(-1), -1, value.argmax(-1))
    return value


def feature(kind):
    location = Location.EDGE if kind == "mask" else Location.NODE
    return Feature("f", Stage.OUTPUT, location, Kind(kind), 4 if kind == "categorical" else 0)


@pytest.mark.parametrize("kind", KINDS)
def test_output_losses_are_the_reference_s(kind):
    raw, truth = golden(f"loss/{kind}/pred"), in_batch_form(kind, golden(f"loss/{kind}/truth"))
    torch.testing.assert_close(output_loss(feature(kind), raw, truth), golden(f"loss/{kind}/output_loss"))


@pytest.mark.parametrize("kind", KINDS)
def test_hint_losses_are_the_reference_s(kind):
    raw, truth = golden(f"loss/{kind}/hint_pred"), in_batch_form(kind, golden(f"loss/{kind}/hint_truth"))
    found = hint_loss(feature(kind), raw, truth, golden("loss/lengths").long())
    torch.testing.assert_close(found, golden(f"loss/{kind}/hint_loss"))


@pytest.mark.parametrize("steps", [10, 25])
def test_sinkhorn_is_the_reference_s(steps):
    found = log_sinkhorn(golden("sinkhorn/in"), steps=steps)
    torch.testing.assert_close(found, golden(f"sinkhorn/log_steps{steps}_T0.1_zerodiag"), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.exp().sum(-2), torch.ones(2, 5), rtol=1e-3, atol=1e-3)


def test_the_cyclic_form_is_the_reference_s():
    cycle, head = cyclic_form(torch.from_numpy(GOLDEN["perm/pred"]).unsqueeze(0))
    np.testing.assert_array_equal(cycle[0].numpy(), GOLDEN["perm/cyclic"])
    assert head.item() == GOLDEN["perm/mask"].argmax()


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 9), st.integers(0, 10**6))
def test_orders_survive_the_cyclic_form(nodes, seed):
    order = np.random.default_rng(seed).permutation(nodes)
    pointers = np.empty(nodes, int)
    pointers[order[0]] = order[0]
    pointers[order[1:]] = order[:-1]
    truth = torch.from_numpy(pointers).unsqueeze(0)
    cycle, head = cyclic_form(truth)
    assert (cycle.sum(-1) == 1).all() and (cycle.sum(-2) == 1).all()
    assert cycle[0, order[0], order[-1]] == 1
    sure = torch.nn.functional.one_hot(head, nodes).float() * 50
    torch.testing.assert_close(postprocessed_order(cycle * 10, sure), truth)
    assert permutation_loss((cycle - 1) * 50, sure, truth) < 1e-3
    assert permutation_loss((cycle - 1) * 50, -sure, truth) > 1


def test_masked_items_count_in_no_loss():
    raw = torch.randn(2, 3, 3)
    truth = torch.full((2, 3, 3), -1.0)
    truth[:, 0, 1] = 1
    only = output_loss(feature("mask"), raw, truth)
    changed = raw.clone()
    changed[:, 2] = 9
    torch.testing.assert_close(output_loss(feature("mask"), changed, truth), only)
    expected = torch.nn.functional.softplus(-raw[:, 0, 1]).mean()
    torch.testing.assert_close(only, expected)


def part_of(batch, chosen):
    """Return some samples of a batch, their hints cut after the longest one."""
    lengths = batch.lengths[chosen]
    return TrajectoryBatch(
        {name: value[chosen] for name, value in batch.inputs.items()},
        {name: value[: int(lengths.max()), chosen] for name, value in batch.hints.items()},
        {name: value[chosen] for name, value in batch.outputs.items()},
        lengths,
        batch.num_nodes,
    )


@pytest.mark.parametrize("name", ["bfs", "dijkstra", "strongly_connected_components", "insertion_sort", "minimum"])
@pytest.mark.thorough
def test_the_losses_of_parts_add_up_with_their_weights(name):
    about = card(f"clrs/{name}")
    samples = draw_samples(about, "train", np.arange(6))
    torch.manual_seed(0)
    model = TrajectoryModel(TrajectoryModelConfig(hidden=8), {about.id: TaskFeatures.of(about)}).eval()
    batch = model.prepare(batch_of_samples(samples, about.features))
    whole = trace_losses(model(batch), batch, about.features)
    weights = trace_loss_weights(batch, about.features)
    assert list(whole) == list(weights)
    assert sum(whole.values()) == model.loss(batch)
    totals = dict.fromkeys(whole, 0.0)
    for chosen in ([0, 3, 5], [1], [2, 4]):
        part = part_of(batch, chosen)
        own = trace_loss_weights(part, about.features)
        for key, value in trace_losses(model(part), part, about.features).items():
            totals[key] += value.item() * float(own[key])
    for key, value in whole.items():
        assert totals[key] / float(weights[key]) == pytest.approx(value.item(), rel=1e-4, abs=1e-6)


def test_trajectories_of_one_step_have_no_loss_of_hints():
    about = card("clrs/bfs")
    model = TrajectoryModel(TrajectoryModelConfig(hidden=8), {about.id: TaskFeatures.of(about)})
    batch = batch_of_samples(draw_samples(about, "train", np.arange(2)), about.features)
    hints = {name: value[:1] for name, value in batch.hints.items()}
    short = TrajectoryBatch(batch.inputs, hints, batch.outputs, torch.ones(2, dtype=torch.int64), batch.num_nodes)
    found = trace_losses(model(short), short, about.features)
    assert found["hint:pi_h"] == 0 and trace_loss_weights(short, about.features)["hint:pi_h"] == 0
    assert found["pi"] > 0
