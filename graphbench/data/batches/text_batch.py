"""Batches of prompts and their references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphbench.data.batches.batching import move
from graphbench.data.batches.sample_ids import SampleIds

NOT_SCORED = -100  # in targets


@dataclass(frozen=True)
class TextBatch:
    """Prompts of a split, as strings, and as tokens after a model has prepared them.

    Attributes:
        prompts: The inputs.
        references: The expected answers.
        sizes: Problem sizes.
        tokens: int64 ``[B, T - 1]``: the tokens of prompt and reference but for the last one; None until prepared.
        targets: int64 ``[B, T - 1]``: the next token at each position, -100 unless that token belongs to the reference.
        positions: int64 ``[B, T - 1]``: the position of each token; None if the model chooses them.
        numbers: Numbers of the samples in their split; None where they are unknown.
        sample_ids: Split and numbers of the samples; None where they are unknown.
    """

    prompts: Sequence[str]
    references: Sequence[str]
    sizes: Sequence[int]
    tokens: Tensor | None = None
    targets: Tensor | None = None
    positions: Tensor | None = None
    numbers: Sequence[int] | None = None
    sample_ids: SampleIds | None = None

    @property
    def num_graphs(self) -> int:
        """Number of samples B."""
        return len(self.prompts)

    def to(self, device: torch.device | str) -> TextBatch:
        """Return the batch with its tensors on a device."""
        tokens, targets, positions = (
            None if tensor is None else move(tensor, device) for tensor in (self.tokens, self.targets, self.positions)
        )
        return replace(self, tokens=tokens, targets=targets, positions=positions)
