"""The batch of all graphs of a split, kept so that a later epoch does not read and convert the arrays again."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch_geometric.data import Batch

_MOST_BYTES = 1 << 30  # a larger batch is made again each time


class KeptBatch:
    """A batch that is made on its first two requests; afterwards each request gets a copy of a kept batch.

    A copy shares the memory of its tensors with the kept batch until somebody writes into a tensor of the copy, or
    asks for its address (``numpy()``, ``data_ptr()``): then PyTorch copies this tensor. So a caller may change a
    batch, and no other batch changes. Two fields of one batch that are the same memory (``x`` and the only input
    feature) stay the same memory.

    A batch that is requested once is not kept, so reading a split once takes no memory afterwards. At most 1 GB is
    kept.
    """

    def __init__(self) -> None:
        self._requests = 0
        self._batch: Batch | None = None
        self._same_memory: dict[str, str] = {}  # field -> earlier field with the same memory

    def copy(self, make: Callable[[], Batch]) -> Batch:
        """Return the batch.

        Args:
            make: Returns the batch, on the CPU, made anew.
        """
        self._requests += 1
        if self._batch is not None:
            return self._copy_of(self._batch, _copied_when_written)
        made = make()
        if self._requests == 2:
            fields = made.to_dict()
            same_memory = _fields_of_same_memory(fields)
            if same_memory is not None and _bytes_of(fields) <= _MOST_BYTES:
                self._same_memory = same_memory
                self._batch = self._copy_of(made, torch.Tensor.clone)
        return made

    def _copy_of(self, batch: Batch, copy_of_tensor: Callable[[torch.Tensor], torch.Tensor]) -> Batch:
        """Return a batch with copies of tensors and lists."""
        copied = copy.copy(batch)
        fields = copied._store._mapping
        for name, value in fields.items():
            if name in self._same_memory:
                first = fields[self._same_memory[name]]
                fields[name] = first.view(value.shape) if isinstance(value, torch.Tensor) else first
            elif isinstance(value, torch.Tensor):
                fields[name] = copy_of_tensor(value)
            else:
                fields[name] = copy.deepcopy(value)  # texts
        return copied


def _copied_when_written(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of a tensor, for which PyTorch takes memory only when the copy, or the tensor, is written to."""
    copied: torch.Tensor = tensor._lazy_clone() if hasattr(tensor, "_lazy_clone") else tensor.clone()
    return copied


def _fields_of_same_memory(fields: Mapping[str, Any]) -> dict[str, str] | None:
    """Return field -> earlier field with the same memory; None if two fields share memory in part."""
    earlier: dict[int, str] = {}
    same: dict[str, str] = {}
    for name, value in fields.items():
        is_tensor = isinstance(value, torch.Tensor)
        if not is_tensor and not isinstance(value, list):
            continue
        memory = value.untyped_storage()._cdata if is_tensor else id(value)
        first = earlier.setdefault(memory, name)
        if first == name:
            continue
        if is_tensor and not _have_same_rows(fields[first], value):
            return None
        same[name] = first
    return same


def _have_same_rows(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors with one memory hold the same numbers in the same order."""
    return (
        first.dtype == second.dtype
        and first.numel() == second.numel()
        and first.storage_offset() == second.storage_offset()
        and first.is_contiguous()
        and second.is_contiguous()
    )


def _bytes_of(fields: Mapping[str, Any]) -> int:
    return sum(value.nbytes for value in fields.values() if isinstance(value, torch.Tensor))
