"""Losses of outputs and hints, as the reference defines them: the mean over what is not masked, by feature type."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from graphbench.catalog.features import Feature, Kind
from graphbench.models.trajectory.sinkhorn import cyclic_form


def output_loss(feature: Feature, raw: Tensor, truth: Tensor) -> Tensor:
    """Return the loss of an output, a scalar.

    Args:
        feature: The output.
        raw: Raw values ``[B, ...]``.
        truth: As in a ``TrajectoryBatch``.
    """
    losses, counted = _losses(feature, raw, truth)
    return losses.mean() if counted is None else (losses * counted).sum() / counted.sum().clamp(min=1)


def permutation_loss(raw: Tensor, head: Tensor, truth: Tensor) -> Tensor:
    """Return the loss of a permutation and of its first node.

    Args:
        raw: Logarithms ``[B, n, n]`` from ``log_sinkhorn``.
        head: Raw values of the first node ``[B, n]``.
        truth: Pointers ``[B, n]``, the first node's to itself.
    """
    cycle, first = cyclic_form(truth.long())
    return -(cycle * raw).sum(-1).mean() + F.cross_entropy(head, first)


def hint_loss(feature: Feature, raw: Tensor, truth: Tensor, lengths: Tensor) -> Tensor:
    """Return the loss of a hint: step t predicts the hint of step t + 1, where the sample has one.

    Args:
        feature: The hint.
        raw: Raw values of all steps ``[T - 1, B, ...]``.
        truth: The hint ``[T, B, ...]``.
        lengths: int64 ``[B]``.
    """
    losses, counted = _losses(feature, raw, truth[1:])
    steps = torch.arange(len(losses), device=lengths.device)
    running = (lengths > steps[:, None] + 1).float().view(*losses.shape[:2], *[1] * (losses.dim() - 2))
    weights = running.expand_as(losses) if counted is None else running * counted
    return (losses * weights).sum() / weights.sum().clamp(min=1e-12)


def _losses(feature: Feature, raw: Tensor, truth: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the loss of every item, and a weight of 0 for those that are masked (None: none is)."""
    if feature.kind is Kind.SCALAR:
        return (raw - truth.float()).square(), None
    if feature.kind is Kind.MASK:
        scored = (truth != -1).float()
        return F.binary_cross_entropy_with_logits(raw, truth.float() * scored, reduction="none"), scored
    scored = truth != -1
    chosen = truth.long().clamp(min=0).unsqueeze(-1)
    losses = -raw.log_softmax(-1).gather(-1, chosen).squeeze(-1)
    return losses, scored.float() if feature.kind is Kind.CATEGORICAL else None
