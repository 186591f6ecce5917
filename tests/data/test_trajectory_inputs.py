"""Random positions, and constant hints as inputs."""

import numpy as np
import pytest
import torch

from graphbench import card
from graphbench.catalog.features import Stage
from graphbench.core.errors import ConfigError, GraphBenchError
from graphbench.data.batches.trajectory_batch import batch_of_samples
from graphbench.data.batches.trajectory_inputs import InputRule, random_positions
from graphbench.data.build.generation import draw_samples
from graphbench.domains.clrs.names import NAMES

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


CONSTANT_ORDER = InputRule(constant_hints={"pred_h": "pred"})


def test_the_reference_s_algorithms_have_a_constant_order():
    options = {name: card(f"clrs/{name}").task.options for name in NAMES}
    assert {name for name in NAMES if options[name].get("constant_hints") == {"pred_h": "pred"}} == CONSTANT
    assert {name for name in NAMES if "constant_hints" in options[name]} == CONSTANT
    assert {options[name]["positions"] for name in NAMES} == {"pos"}


@pytest.mark.parametrize("name", sorted(CONSTANT))
@pytest.mark.thorough
def test_the_order_becomes_an_input(name):
    about, batch = batch_of(name)
    changed = CONSTANT_ORDER.batch(batch)
    features = CONSTANT_ORDER.features(about.features)
    assert {f.name for f in features if f.stage is Stage.INPUT} == set(changed.inputs)
    assert {f.name for f in features if f.stage is Stage.HINT} == set(changed.hints)
    torch.testing.assert_close(changed.inputs["pred"], batch.hints["pred_h"][-1])
    assert "pred_h" in batch.hints


def test_an_order_that_changes_is_refused():
    about, batch = batch_of("insertion_sort")
    assert InputRule().features(about.features) == about.features
    assert set(InputRule().batch(batch).hints) == set(batch.hints)
    with pytest.raises(GraphBenchError, match="changes within a sample"):
        CONSTANT_ORDER.batch(batch)


def test_rules_about_features_that_do_not_exist_are_refused():
    features = card("clrs/bfs").features
    for rule in (CONSTANT_ORDER, InputRule({"pi_h": "pos"}), InputRule(positions="s")):
        with pytest.raises(ConfigError, match="correct the card"):
            rule.features(features)


def test_random_positions_are_sorted_within_each_string():
    _, batch = batch_of("lcs_length")
    rule = InputRule(positions="pos")
    pos = rule.batch(batch, generator=torch.Generator().manual_seed(1)).inputs["pos"]
    for string in (pos[:, :8], pos[:, 8:]):
        assert (string.diff(dim=1) >= 0).all()
        assert string.min() >= 0 and string.max() <= 1
        assert 0.35 < string.mean() < 0.65
    assert len(pos.unique()) == pos.numel()
    torch.testing.assert_close(rule.batch(batch).inputs["pos"], batch.inputs["pos"])


def test_random_positions_are_a_function_of_the_seed():
    pos = torch.arange(6).repeat(3, 1) / 6
    drawn = [random_positions(pos, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    torch.testing.assert_close(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
