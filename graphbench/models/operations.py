"""Counts of floating-point operations: matrix products, attention and semiring products, forward and backward.

Torch counts the operations of its own functions. Kernels that are compiled for the CPU are invisible to it, so the
plain forms of the models are counted, which compute the same values on every device. Semiring products have no form
that torch counts; they report themselves. Functions of single numbers (activations, norms, sums over neighbours) are
not counted, as is usual.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch


@dataclass
class Operations:
    """The number of operations of a block.

    Attributes:
        count: Floating-point operations; a multiplication and an addition are two.
    """

    count: float = 0.0


_COUNTING: ContextVar[Operations | None] = ContextVar("counting", default=None)


@contextmanager
def counted_operations() -> Iterator[Operations]:
    """Count the operations of a block, in which models compute in their plain forms.

    Yields:
        The operations, complete when the block has ended.
    """
    from torch.utils.flop_counter import FlopCounterMode

    operations = Operations()
    token = _COUNTING.set(operations)
    try:
        with FlopCounterMode(display=False) as counter:
            yield operations
        operations.count += counter.get_total_flops()
    finally:
        _COUNTING.reset(token)


def is_counting() -> bool:
    """Return whether operations are counted, so that plain forms are computed; a graph that is compiled counts none."""
    return not torch.compiler.is_compiling() and _COUNTING.get() is not None


def report(count: float) -> None:
    """Add operations that torch does not count, if operations are counted."""
    operations = _COUNTING.get() if is_counting() else None
    if operations is not None:
        operations.count += count
