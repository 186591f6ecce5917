"""Compiled operations of models on one core of the CPU, beside torch's: attention, the cell of NeuroSAT, and memory.

``python -m benchmarks.kernels`` takes about a minute.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from unittest.mock import patch

import torch
from torch import Tensor

from benchmarks.common import Row, Sizes, main
from graphbench.models import lstm
from graphbench.models.lstm import NormalisedLSTMCell
from graphbench.models.processors.sparse_bias import BiasedPairs, ordered_pairs, pairs_attention

HEADS, WIDTH, BIASED = 4, 16, 4  # heads, their width, and biased pairs per token
TOKENS = (256, 1024, 2048)
ITEMS, STATE = 100_000, 32
SETTINGS = {
    "attention": f"8 sequences, {HEADS} heads of width {WIDTH}, {BIASED} biased pairs per token; peer: "
    "torch.nn.functional.scaled_dot_product_attention with the dense bias, which is made once and not timed",
    "cell": f"{ITEMS:,} states of width {STATE}; peer: the same cell in operations of torch",
    "memory": "three operations on tensors of 51 MB in a process that keeps freed memory; peer: in one that does not",
    "time": "median seconds of 10 runs after two for warming up, one thread",
}
CHILD = """
import sys, time, statistics, torch
from graphbench.core.memory import keep_freed_memory

torch.set_num_threads(1)
if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit("the allocator of this machine is not glibc's")
x, times = torch.ones(100_000, 128), []
for _ in range(int(sys.argv[2]) + 2):
    started = time.perf_counter()
    torch.relu(x * 2 + 1)
    times.append(time.perf_counter() - started)
print(statistics.median(times[2:]))
"""


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``kernels.json``."""
    torch.set_num_threads(1)
    repeats = sizes(10, 1)
    for tokens in TOKENS[: sizes(len(TOKENS), 1)]:
        for gradients in (False, True):
            ours, peer = _attention(tokens, gradients, repeats)
            yield Row(f"attention of {tokens:,} tokens, {_way(gradients)}", "s", ours, peer, n={"tokens": tokens})
    for gradients in (False, True):
        ours, peer = _cell(sizes(ITEMS, 1_000), gradients, repeats)
        yield Row(f"LSTM cell with layer normalisations, {_way(gradients)}", "s", ours, peer)
    kept, returned = (_memory(way, repeats) for way in ("keep", "return"))
    yield Row("operations on tensors of 51 MB, memory kept", "s", kept, returned)


def _way(gradients: bool) -> str:
    return "with gradients" if gradients else "forward"


def _attention(tokens: int, gradients: bool, repeats: int) -> tuple[float, float]:
    generator = torch.Generator().manual_seed(0)
    batch = 8
    ends = torch.randint(tokens, (BIASED * batch * tokens,), generator=generator)
    chosen = torch.arange(batch * tokens).repeat(BIASED) * tokens + ends
    starts, pairs, _ = ordered_pairs(chosen, tokens, batch)
    values = torch.randn(pairs.shape[1], HEADS, generator=generator)
    bias = BiasedPairs(starts, pairs, values, torch.full((batch,), tokens))
    groups = starts.diff()
    dense = torch.zeros(batch, HEADS, tokens, tokens)
    graph = torch.repeat_interleave(torch.arange(len(groups)), groups) // (len(groups) // batch)
    dense[graph, :, pairs[0], pairs[1]] = values
    inputs = [torch.randn(batch, HEADS, tokens, WIDTH, generator=generator) for _ in range(3)]
    ours = pairs_attention(bias)

    def peer(*tensors: Tensor) -> Tensor:
        return torch.nn.functional.scaled_dot_product_attention(*tensors, attn_mask=dense)

    if not torch.allclose(ours(*inputs), peer(*inputs), atol=1e-4):
        raise ArithmeticError(f"attention differs at {tokens} tokens")
    return _seconds(ours, inputs, gradients, repeats), _seconds(peer, inputs, gradients, repeats)


def _cell(items: int, gradients: bool, repeats: int) -> tuple[float, float]:
    torch.manual_seed(0)
    cell = NormalisedLSTMCell(STATE, STATE, "relu", 0.0)
    inputs = [torch.randn(items, STATE) for _ in range(3)]

    def work(received: Tensor, hidden: Tensor, memory: Tensor) -> Tensor:
        state, updated = cell([received], hidden, memory)
        return torch.stack([state, updated])

    compiled, result = _seconds(work, inputs, gradients, repeats), work(*inputs)
    with patch.object(lstm, "is_compiled", lambda *_: False):
        if not torch.allclose(work(*inputs), result, atol=1e-4):
            raise ArithmeticError("the cells differ")
        return compiled, _seconds(work, inputs, gradients, repeats)


def _seconds(work: Callable[..., Tensor], inputs: list[Tensor], gradients: bool, repeats: int) -> float:
    """Return the median seconds of some work on tensors."""
    given = [tensor.clone().requires_grad_(gradients) for tensor in inputs]
    times = []
    for _ in range(repeats + 2):
        started = perf_counter()
        result = work(*given)
        if gradients:
            torch.autograd.grad(result.sum(), given)
        times.append(perf_counter() - started)
    return median(times[2:])


def _memory(way: str, repeats: int) -> float:
    words = [sys.executable, "-c", CHILD, way, str(repeats)]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main("kernels", "Operations of models on the CPU", measure, SETTINGS)
