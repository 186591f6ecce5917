"""What a step reads of the previous states: everything, nothing, or what a gate lets through."""

import pytest
import torch
from pydantic import ValidationError

from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.losses import PENALTY, trace_losses

from .test_model import batch_of, build


def raw_of(model, batch):
    with torch.no_grad():
        return model(batch, "a")


def test_without_history_and_hints_every_step_predicts_the_same():
    features, batch = batch_of("dijkstra")
    for history, alike in (("forgotten", True), ("kept", False)):
        hints = raw_of(build(features, history=history, hint_mode="decoded_only").eval(), batch).hints["d"]
        assert torch.allclose(hints[0], hints[-1], atol=1e-5) == alike


def test_a_closed_gate_forgets_and_an_open_gate_keeps():
    features, batch = batch_of("dijkstra")
    gated = build(features, history="gated").eval()
    for history, bias in (("forgotten", -1e4), ("kept", 1e4)):
        other = build(features, history=history).eval()
        weights = {name: value for name, value in gated.state_dict().items() if not name.startswith("history.")}
        other.load_state_dict(weights)
        with torch.no_grad():
            gated.history.share.weight.zero_()
            gated.history.share.bias.fill_(bias)
        torch.testing.assert_close(raw_of(gated, batch).outputs, raw_of(other, batch).outputs, rtol=1e-4, atol=1e-4)


def test_the_penalty_is_the_mean_square_of_running_steps_and_falls_to_nothing():
    features, batch = batch_of("bfs", 6)
    model = build(features, history="gated", gate_penalty=2.0, gate_anneal=2)
    with torch.no_grad():
        model.history.share.weight.zero_()
        model.history.share.bias.fill_(0.0)
    assert int(batch.lengths.max()) > 2
    found = [float(trace_losses(model(batch, "a"), batch, features)[PENALTY].detach()) for _ in range(3)]
    assert found == pytest.approx([2.0 * 0.25, 1.0 * 0.25, 0.0])
    model.eval()
    model(batch, "a")
    assert int(model.history.batches) == 3


def test_steps_after_the_end_of_a_sample_have_no_penalty():
    features, _ = batch_of("bfs")
    gate = build(features, history="gated", gate_penalty=1.0).history
    shares = [torch.full((2, 3, 4), value) for value in (0.5, 1.0)]  # of the second and the third step
    assert float(gate.loss(shares, torch.tensor([3, 1]))) == pytest.approx(0.25)
    assert float(gate.eval().loss(shares, torch.tensor([4, 3]))) == pytest.approx((0.25 + 1 + 0.25) / 3, rel=2e-3)
    assert float(gate.loss([], torch.tensor([1, 1]))) == 0


def test_the_gate_learns():
    features, batch = batch_of("insertion_sort")
    model = build(features, history="gated")
    model.loss(batch, "a").backward()
    assert model.history.share.weight.grad.abs().max() > 0
    assert raw_of(model, batch).penalty > 0


@pytest.mark.parametrize("setting", [{"gate_penalty": 0.5}, {"gate_anneal": 10}])
@pytest.mark.parametrize("history", ["kept", "forgotten"])
def test_settings_of_a_gate_that_is_not_there_are_refused(setting, history):
    with pytest.raises(ValidationError, match="has no gate"):
        TrajectoryModelConfig(history=history, **setting)


@pytest.mark.parametrize("setting", [{"gate_penalty": -1.0}, {"gate_anneal": 0}, {"history": "lost"}])
def test_values_without_a_meaning_are_refused(setting):
    with pytest.raises(ValidationError):
        TrajectoryModelConfig(**{"history": "gated", **setting})


def test_the_default_has_no_gate_and_no_penalty():
    features, batch = batch_of("bfs")
    model = build(features)
    assert model.history is None and raw_of(model, batch).penalty is None
    assert not any(name.startswith("history") for name in model.state_dict())
