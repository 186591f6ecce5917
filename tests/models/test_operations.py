"""Counts of operations against sums over the layers of a model, and against closed forms."""

import numpy as np
import pytest
import torch
from torch import nn

import graphbench
from graphbench.models.operations import counted_operations, is_counting
from graphbench.models.pair_layout import PairLayout
from graphbench.models.semirings import semiring_closure, semiring_product
from graphbench.models.trajectory.processors.maxima import max_plus
from graphbench.training.config import load_config

ID = "algoreas/bridges_easy"


def test_a_linear_map_is_counted_forward_and_backward():
    layer, x = nn.Linear(7, 5), torch.randn(11, 7, requires_grad=True)
    with counted_operations() as operations:
        assert is_counting()
        layer(x).sum().backward()
    assert operations.count == 3 * 2 * 11 * 7 * 5 and not is_counting()


def test_semiring_products_are_counted_by_their_triples():
    layout = PairLayout(np.array([3, 5], np.int64), torch.device("cpu"))
    values = torch.rand(9 + 25, 4)
    with counted_operations() as operations:
        semiring_product(values, values, layout, 2)
    assert operations.count == 2 * 4 * (27 + 125)
    with counted_operations() as operations:
        semiring_closure(-values, layout, 2)
    assert operations.count == 2 * 4 * (27 + 125) * 2  # two squarings reach walks of four steps
    with counted_operations() as operations:
        max_plus(torch.rand(2, 6, 6, 8), torch.rand(2, 6, 6, 8))
    assert operations.count == 2 * 2 * 6**3 * 8


def train(tmp_path, model, **options):
    options = {"limit": 60, "steps": 4, "root": tmp_path / "data", "progress": False, "evaluate": "none", **options}
    return graphbench.train(ID, model, output=tmp_path / f"{model}-run", **options)


@pytest.mark.parametrize("model", ["gin_small", "gt_small"])
def test_the_operations_of_a_run_are_those_of_its_layers(tmp_path, model, monkeypatch):
    """Linear layers are counted by hooks: twice to three times their forward operations, and attention on top."""
    forward = []

    def hook(module, inputs, output):
        if isinstance(module, nn.Linear) and is_counting():
            forward.append(2.0 * output.numel() * module.in_features)

    handle = nn.modules.module.register_module_forward_hook(hook)
    try:
        result = train(tmp_path, model, overrides={"training": {"batch_size": 16}})
    finally:
        handle.remove()
    per_update = result.record.operations / 4
    linear = sum(forward) / 3  # three updates are counted
    assert 2 * linear < per_update < (3.01 if model == "gin_small" else 6) * linear


def test_counting_changes_no_bit_of_a_run(tmp_path, monkeypatch):
    first = train(tmp_path / "one", "gt_small", evaluate="val")
    monkeypatch.setattr("graphbench.training.loop.TrainingLoop.operations_per_update", lambda self: None)
    second = train(tmp_path / "two", "gt_small", evaluate="val")
    assert second.record.operations is None and first.record.operations > 0
    assert first.record.weights_hash == second.record.weights_hash and first.record.scores == second.record.scores


def test_a_run_whose_plain_form_fails_is_kept(tmp_path, monkeypatch, caplog):
    def fails(self):
        raise RuntimeError("no memory")

    monkeypatch.setattr("graphbench.training.loop.TrainingLoop._operations", fails)
    result = train(tmp_path, "gin_small", evaluate="val")
    assert result.record.operations is None and "not counted: no memory" in caplog.text


@pytest.mark.thorough
def test_more_steps_and_wider_layers_have_more_operations(tmp_path):
    config = load_config(ID, "gin_small")
    assert config.model.hidden == 96
    found = [
        train(tmp_path / str(i), "gin_small", steps=steps, overrides={"model": {"hidden": hidden}}).record.operations
        for i, (steps, hidden) in enumerate([(4, 48), (8, 48), (4, 96)])
    ]
    assert found[1] == pytest.approx(2 * found[0], rel=0.01) and 2.5 < found[2] / found[0] < 4.5
