"""Products and closures in the semirings (max, min) and (max, +), against brute force over all walks."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch import Tensor

from graphbench.models.pair_layout import PairLayout
from graphbench.models.semirings import _factors, _sliced_gradients, _sliced_product, semiring_closure, semiring_product

SIZES = [(1,), (5, 3, 0, 2), (16, 16), (17, 33, 16)]
CHANNELS, MINIMA = 3, 1


def layout_of(sizes: tuple[int, ...]) -> PairLayout:
    return PairLayout(np.array(sizes, np.int64), torch.device("cpu"))


def distinct(sizes: tuple[int, ...], seed: int) -> Tensor:
    """Return values below 0 [P, C], in double precision sums of which are unequal, as float32."""
    rows = layout_of(sizes).size
    numbers = np.random.default_rng(seed).permutation(rows * CHANNELS) + 1
    return torch.from_numpy(-numbers.astype(np.float32).reshape(rows, CHANNELS) / 64)


def squares(values: Tensor, sizes: tuple[int, ...]) -> list[Tensor]:
    """Return [C, n, n] of every graph."""
    parts = values.split([n * n for n in sizes])
    return [part.reshape(n, n, CHANNELS).permute(2, 0, 1) for n, part in zip(sizes, parts, strict=True)]


def packed(matrices: list[Tensor]) -> Tensor:
    return torch.cat([m.permute(1, 2, 0).reshape(-1, CHANNELS) for m in matrices])


def brute_product(left: Tensor, right: Tensor) -> Tensor:
    """Return the product of matrices [C, n, n], differentiable; the gradient goes to the first maximum."""
    if not left.shape[1]:
        return left
    a, b = left.unsqueeze(3), right.unsqueeze(1)
    steps = torch.cat([torch.minimum(a[:MINIMA], b[:MINIMA]), a[MINIMA:] + b[MINIMA:]])
    return steps.gather(2, steps.argmax(2, keepdim=True)).squeeze(2)


def brute_closure(values: Tensor) -> Tensor:
    for _ in range(values.shape[1].bit_length()):
        product = brute_product(values, values)
        values = torch.where(product > values, product, values)
    return values


@pytest.mark.parametrize("sizes", SIZES)
def test_products_and_their_gradients_equal_brute_force(sizes: tuple[int, ...]) -> None:
    left, right = (distinct(sizes, seed).requires_grad_() for seed in (0, 1))
    product = semiring_product(left, right, layout_of(sizes), MINIMA)
    expected = packed([brute_product(*pair) for pair in zip(squares(left, sizes), squares(right, sizes), strict=True)])
    torch.testing.assert_close(product, expected, rtol=0, atol=0)
    weights = torch.randn_like(product)
    ours = torch.autograd.grad(product, [left, right], weights)
    plain = torch.autograd.grad(expected, [left, right], weights)
    torch.testing.assert_close(ours, plain)
    with torch.no_grad():
        torch.testing.assert_close(semiring_product(left, right, layout_of(sizes), MINIMA), product, rtol=0, atol=0)


@pytest.mark.parametrize("sizes", SIZES)
def test_closures_and_their_gradients_equal_brute_force(sizes: tuple[int, ...]) -> None:
    values = distinct(sizes, 2).requires_grad_()
    closed = semiring_closure(values, layout_of(sizes), MINIMA)
    expected = packed([brute_closure(matrix) for matrix in squares(values, sizes)])
    torch.testing.assert_close(closed, expected, rtol=0, atol=0)  # sums of multiples of 1 / 64 are exact
    weights = torch.randn_like(closed)
    (ours,) = torch.autograd.grad(closed, [values], weights)
    torch.testing.assert_close(ours.sum(0)[:MINIMA], weights.sum(0)[:MINIMA], rtol=1e-3, atol=1e-3)
    for channel in range(CHANNELS):  # an entry is the sum, or the least, of the steps with a gradient
        for row in np.random.default_rng(channel).permutation(len(values))[:20]:
            one = torch.zeros_like(closed)
            one[row, channel] = 1.0
            (steps,) = torch.autograd.grad(semiring_closure(values, layout_of(sizes), MINIMA), [values], one)
            used = steps[:, channel]
            if channel < MINIMA:
                assert used.sum() == 1 and values[used > 0, channel].unique().item() == closed[row, channel].item()
            else:
                assert (used * values[:, channel]).sum() == closed[row, channel]


def test_slices_for_other_devices_give_the_same_products() -> None:
    sizes = (17, 33, 16, 1)
    left, right, layout = distinct(sizes, 3), distinct(sizes, 4), layout_of(sizes)
    product, middles = _sliced_product(left, right, layout, MINIMA, True)
    torch.testing.assert_close(product, semiring_product(left, right, layout, MINIMA), rtol=0, atol=0)
    first, second = _factors(layout, middles)
    a, b = left.gather(0, first), right.gather(0, second)
    read = torch.cat([torch.minimum(a, b)[:, :MINIMA], (a + b)[:, MINIMA:]], dim=1)
    torch.testing.assert_close(read, product, rtol=0, atol=0)


def test_slices_for_other_devices_give_the_same_gradients() -> None:
    sizes = (17, 33, 16, 1)
    layout = layout_of(sizes)
    left, right = (distinct(sizes, seed).requires_grad_() for seed in (3, 4))
    product = semiring_product(left, right, layout, MINIMA)
    weights = torch.randn_like(product)
    _, middles = _sliced_product(left.detach(), right.detach(), layout, MINIMA, True)
    sliced = _sliced_gradients(left.detach(), right.detach(), layout, MINIMA, middles, weights)
    torch.testing.assert_close(sliced, torch.autograd.grad(product, [left, right], weights))


def test_equal_factors_of_a_minimum_share_its_gradient() -> None:
    left, right = (torch.zeros(1, 1, requires_grad=True) for _ in range(2))
    product = semiring_product(left, right, layout_of((1,)), 1)
    gradients = torch.autograd.grad(product.sum(), [left, right])
    assert [g.item() for g in gradients] == [0.5, 0.5]


EQUAL_TO_SLICES = """
import numpy as np
import torch

from graphbench.models._semiring_gpu import products
from graphbench.models.pair_layout import PairLayout
from graphbench.models.semirings import _sliced_product

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
generator = torch.Generator().manual_seed(0)
for sizes in ((1,), (5, 3, 0, 2), (), (17,)):
    layout = PairLayout(np.array(sizes, np.int64), device)
    for width, minima in ((8, 3), (5, 0), (40, 33)):
        factors = [torch.randn(layout.size, width, generator=generator) for _ in range(2)]
        equal = [factor.round() for factor in factors]
        cut = [torch.where(factor < -0.3, -torch.inf, factor) for factor in factors]
        for left, right in (factors, equal, cut):
            inputs = (left.to(device), right.to(device), layout, minima)
            for ours, expected in zip(products(*inputs, True), _sliced_product(*inputs, True), strict=True):
                assert torch.equal(ours, expected), (sizes, width, minima)
            assert torch.equal(products(*inputs, False)[0], _sliced_product(*inputs, False)[0])
print("equal")
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_the_kernel_for_gpus_gives_the_values_and_positions_of_slices() -> None:
    """Without a GPU, Triton's interpreter runs the kernel; it is a setting of a process."""
    interpreted = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", EQUAL_TO_SLICES]
    ended = subprocess.run(command, env={**os.environ, **interpreted}, capture_output=True, text=True, timeout=250)
    assert ended.stdout == "equal\n", ended.stderr
