"""Random positions, and constant hints as inputs."""

import numpy as np
import pytest
import torch

from graphbench import card
from graphbench.catalog.features import Stage
from graphbench.core.errors import GraphBenchError
from graphbench.data.generation import draw_samples
from graphbench.data.trajectory_batch import batch_of_samples
from graphbench.data.trajectory_inputs import InputRule, order_is_constant, random_positions
from graphbench.domains.clrs.algorithms import NAMES

CONSTANT = {
    "binary_search",
    "minimum",
    "find_maximum_subarray_kadane",
    "matrix_chain_order",
    "lcs_length",
    "optimal_bst",
    "activity_selector",
    "task_scheduling",
    "naive_string_matcher",
    "kmp_matcher",
    "jarvis_march",
}


def batch_of(name, count=16):
    about = card(f"clrs/{name}")
    return about, batch_of_samples(draw_samples(about, "train", np.arange(count)), about.features)


def test_the_reference_s_algorithms_have_a_constant_order():
    assert {name for name in NAMES if order_is_constant(card(f"clrs/{name}").features)} == CONSTANT


@pytest.mark.parametrize("name", sorted(CONSTANT))
def test_the_order_becomes_an_input(name):
    about, batch = batch_of(name)
    rule = InputRule(constant_hints_as_inputs=True)
    changed = rule.batch(batch, constant=True)
    features = rule.features(about.features, constant=True)
    assert {f.name for f in features if f.stage is Stage.INPUT} == set(changed.inputs)
    assert {f.name for f in features if f.stage is Stage.HINT} == set(changed.hints)
    torch.testing.assert_close(changed.inputs["pred"], batch.hints["pred_h"][-1])
    assert "pred_h" in batch.hints


def test_an_order_that_changes_is_refused():
    about, batch = batch_of("insertion_sort")
    rule = InputRule(constant_hints_as_inputs=True)
    assert rule.features(about.features, constant=False) == about.features
    assert set(rule.batch(batch, constant=False).hints) == set(batch.hints)
    with pytest.raises(GraphBenchError, match="changes within a sample"):
        rule.batch(batch, constant=True)


def test_random_positions_are_sorted_within_each_string():
    _, batch = batch_of("lcs_length")
    rule = InputRule(random_positions=True)
    pos = rule.batch(batch, constant=False, generator=torch.Generator().manual_seed(1)).inputs["pos"]
    for string in (pos[:, :8], pos[:, 8:]):
        assert (string.diff(dim=1) >= 0).all()
        assert string.min() >= 0 and string.max() <= 1
        assert 0.35 < string.mean() < 0.65
    assert len(pos.unique()) == pos.numel()
    torch.testing.assert_close(rule.batch(batch, constant=False).inputs["pos"], batch.inputs["pos"])


def test_random_positions_are_a_function_of_the_seed():
    pos = torch.arange(6).repeat(3, 1) / 6
    drawn = [random_positions(pos, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    torch.testing.assert_close(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
