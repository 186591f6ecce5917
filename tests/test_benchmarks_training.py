"""The peers of the training benchmark compute what the package does."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
training = importlib.import_module("benchmarks.training")


@pytest.mark.parametrize("part", ["messages", "pairs", "typed"])
def test_both_sides_of_a_part_give_the_same_values(part):
    torch.manual_seed(0)
    sides = training.sides_of_part(part)
    ours, peer = (sides[side][0]() for side in ("ours", "peer"))
    torch.testing.assert_close(ours, peer, atol=1e-4, rtol=1e-4)
    gradients = [torch.autograd.grad(sides[side][0]().square().sum(), sides[side][1][0]) for side in ("ours", "peer")]
    torch.testing.assert_close(*gradients, atol=1e-3, rtol=1e-3)
