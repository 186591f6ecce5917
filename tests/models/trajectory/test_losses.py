"""Losses, the Sinkhorn operator and cyclic permutations against the reference's values (float32 there)."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.models.trajectory.decoders import decided_order
from graphbench.models.trajectory.losses import hint_loss, output_loss, permutation_loss
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
    torch.testing.assert_close(decided_order(cycle * 10, sure), truth)
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
