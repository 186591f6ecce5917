from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphbench.training.settings import learning_rate_factor


def test_warmup_rises_to_one_and_cosine_falls_to_zero():
    factors = [learning_rate_factor(step, horizon=110, warmup=10) for step in range(111)]
    assert factors[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert factors[10] == 1.0
    assert factors[60] == pytest.approx(0.5)
    assert factors[35] == pytest.approx(0.5 * (1 + math.cos(math.pi / 4)))
    assert factors[110] == pytest.approx(0.0)


def test_agrees_with_torch():
    import torch

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    reference = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50)
    for step in range(50):
        assert learning_rate_factor(step, 50) == pytest.approx(reference.get_last_lr()[0])
        optimizer.step()
        reference.step()


def test_linear_and_constant():
    assert [learning_rate_factor(s, 4, 0, "linear") for s in range(5)] == [1.0, 0.75, 0.5, 0.25, 0.0]
    assert {learning_rate_factor(s, 4, 0, "constant") for s in range(9)} == {1.0}


@given(st.integers(1, 500), st.data(), st.sampled_from(["cosine", "linear", "constant"]))
def test_every_factor_is_between_zero_and_one_and_falls_after_the_warmup(horizon, data, schedule):
    warmup = data.draw(st.integers(0, horizon - 1))
    factors = [learning_rate_factor(s, horizon, warmup, schedule) for s in range(horizon + 5)]
    assert all(0.0 <= f <= 1.0 for f in factors)
    assert factors[0] > 0
    after = factors[warmup:]
    assert after == sorted(after, reverse=True)
