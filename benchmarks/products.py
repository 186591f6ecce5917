"""Products of pairs on a GPU: the Triton kernel beside the slices of torch, forward and with gradients.

``python -m benchmarks.products`` needs a CUDA device; one row per size of graphs, and rows of the compiled kernel on
one core of the CPU of that machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from statistics import median
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from benchmarks.common import Row, Sizes, main
from graphbench.models import semirings
from graphbench.models.pair_layout import PairLayout

CHANNELS, MINIMA = 32, 16
GRAPHS = {16: 64, 64: 16, 128: 8, 256: 2, 512: 1}  # nodes -> graphs of a batch
SETTINGS = {
    "product": f"{CHANNELS} channels, {MINIMA} of them (max, min), the others (max, +); random float32",
    "time": "median seconds of 10 products after two for warming up, the device synchronised",
    "peer": "the same product in slices of torch on the same GPU, or the compiled kernel on one core of its machine",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``products.json``."""
    if not torch.cuda.is_available():
        sys.exit("no CUDA device is visible; run this on a machine with a GPU")
    torch.set_num_threads(1)
    device, cpu = torch.device("cuda"), torch.device("cpu")
    for nodes, graphs in GRAPHS.items():
        repeats = sizes(10, 1)
        for gradients in (False, True):
            kernel, expected = _seconds(nodes, graphs, device, gradients, repeats)
            slices, values = _seconds(nodes, graphs, device, gradients, repeats, kernel=False)
            core, _ = _seconds(nodes, graphs, cpu, gradients, repeats)
            if not torch.equal(values, expected):
                raise ArithmeticError(f"kernel and slices differ at {nodes} nodes")
            what = f"{graphs} graphs of {nodes} nodes, {'with gradients' if gradients else 'forward'}"
            facts: dict[str, Any] = {"n": {"graphs": graphs}, "details": {"gpu": torch.cuda.get_device_name()}}
            yield Row(f"{what}: beside slices", "s", kernel, slices, **facts)
            yield Row(f"{what}: beside one core", "s", kernel, core, **facts)


def _seconds(
    nodes: int, graphs: int, device: torch.device, gradients: bool, repeats: int, *, kernel: bool = True
) -> tuple[float, Tensor]:
    """Return the median seconds of a product, and the product."""
    layout = PairLayout(np.full(graphs, nodes, np.int64), device)
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(layout.size, CHANNELS, generator=generator).to(device) for _ in range(2))
    if gradients:
        left.requires_grad_()
        right.requires_grad_()

    def work() -> Tensor:
        product = semirings.semiring_product(left, right, layout, MINIMA)
        if gradients:
            torch.autograd.grad(product.sum(), [left, right])
        return product.detach()

    with nullcontext() if kernel else patch.object(semirings, "_kernel_works", lambda _: False):
        times = [_timed(work, device) for _ in range(repeats + 2)][2:]
        return median(times), work()


def _timed(work: Callable[[], Tensor], device: torch.device) -> float:
    started = perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return perf_counter() - started


if __name__ == "__main__":
    main("products", "Products of pairs on a GPU", measure, SETTINGS)
