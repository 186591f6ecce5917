"""Losses of outputs and hints, as in the reference: the mean over the items that are not masked, by feature type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from graphbench.catalog.features import Feature, Kind, Stage, select
from graphbench.data.batches.trajectory_batch import TrajectoryBatch
from graphbench.models.base import Predicted
from graphbench.models.trajectory.decoders import head_of
from graphbench.models.trajectory.sinkhorn import cyclic_form

HINT = "hint:"  # prefix of the names of hints among the losses
PENALTY = "penalty:"  # of the model, beside the losses of features


def trace_losses(predicted: Predicted, batch: TrajectoryBatch, features: Sequence[Feature]) -> dict[str, Tensor]:
    """Return the mean loss of every output, of every hint that was predicted, as ``hint:<name>``, and the penalty.

    The loss of a permutation is the sum of the losses of its order and of its first node. A batch of trajectories of
    one step has no hint to predict: the losses of its hints are 0.

    Args:
        predicted: The model's predictions for ``batch``.
        batch: The batch that the model read.
        features: The features of the card.
    """
    losses = {}
    for feature in select(features, Stage.OUTPUT):
        raw, truth = predicted.outputs[feature.name].float(), batch.outputs[feature.name]
        head = predicted.outputs.get(head_of(feature).name) if feature.kind is Kind.PERMUTATION else None
        losses[feature.name] = (
            output_loss(feature, raw, truth) if head is None else permutation_loss(raw, head.float(), truth)
        )
    for feature in _predictable_hints(batch, features):
        if feature.name in predicted.hints:
            raw, truth = predicted.hints[feature.name].float(), batch.hints[feature.name]
            losses[HINT + feature.name] = hint_loss(feature, raw[: len(truth) - 1], truth, batch.lengths)
    if predicted.penalty is not None:
        losses[PENALTY] = predicted.penalty
    return losses


def trace_loss_weights(batch: TrajectoryBatch, features: Sequence[Feature]) -> dict[str, Tensor | float]:
    """Return the number of terms over which each of the means of :func:`trace_losses` is taken.

    Hints that a model does not predict also have a weight.

    Args:
        batch: The batch that the model read.
        features: The features of the card.
    """
    weights: dict[str, Tensor | float] = {}
    for feature in select(features, Stage.OUTPUT):
        truth = batch.outputs[feature.name]
        counted = _counted(feature, truth)
        whole = float(batch.num_graphs if feature.kind is Kind.PERMUTATION else truth.numel())
        weights[feature.name] = whole if counted is None else counted.sum()
    for feature in _predictable_hints(batch, features):
        truth = batch.hints[feature.name][1:]
        weights[HINT + feature.name] = _hint_weights(feature, truth, batch.lengths).sum()
    return weights


def _predictable_hints(batch: TrajectoryBatch, features: Sequence[Feature]) -> Iterator[Feature]:
    """Yield the hints of the batch; a model's input rule may have turned other hints into inputs."""
    return (feature for feature in select(features, Stage.HINT) if feature.name in batch.hints)


def output_loss(feature: Feature, raw: Tensor, truth: Tensor) -> Tensor:
    """Return the loss of an output, a scalar.

    Args:
        feature: The output.
        raw: Raw values ``[B, ...]``.
        truth: As in a ``TrajectoryBatch``.
    """
    losses, counted = _losses(feature, raw, truth), _counted(feature, truth)
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
    """Return the loss of a hint: step t predicts the hint of step t + 1, if the sample has that step.

    Args:
        feature: The hint.
        raw: Raw values of all steps ``[T - 1, B, ...]``.
        truth: The hint ``[T, B, ...]``.
        lengths: int64 ``[B]``.
    """
    losses = _losses(feature, raw, truth[1:])
    weights = _hint_weights(feature, truth[1:], lengths)
    return (losses * weights).sum() / weights.sum().clamp(min=1e-12)


def _hint_weights(feature: Feature, truth: Tensor, lengths: Tensor) -> Tensor:
    """Return the weights of the items of a hint ``[T - 1, B, ...]``: 0 for masked items and after a sample's end."""
    steps = torch.arange(len(truth), device=lengths.device)
    running = (lengths > steps[:, None] + 1).float().view(*truth.shape[:2], *[1] * (truth.dim() - 2))
    counted = _counted(feature, truth)
    return running.expand_as(truth) if counted is None else running * counted


def _counted(feature: Feature, truth: Tensor) -> Tensor | None:
    """Return weights, 0 for masked items and 1 for the others, or None if items of this kind are never masked."""
    return (truth != -1).float() if feature.kind in (Kind.MASK, Kind.CATEGORICAL) else None


def _losses(feature: Feature, raw: Tensor, truth: Tensor) -> Tensor:
    """Return the loss of every item; the values of masked items are undefined."""
    if feature.kind is Kind.SCALAR:
        return (raw - truth.float()).square()
    if feature.kind is Kind.MASK:
        scored = (truth != -1).float()
        return F.binary_cross_entropy_with_logits(raw, truth.float() * scored, reduction="none")
    target = truth.long().clamp(min=0).unsqueeze(-1)
    return -raw.log_softmax(-1).gather(-1, target).squeeze(-1)
