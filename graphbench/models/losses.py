"""Losses and predictions, chosen by the type of each output feature.

==================  ==========================================  ======================================
type                loss                                        prediction
==================  ==========================================  ======================================
mask                binary cross-entropy on logits              probability, [items]
categorical(k)      cross-entropy                               probabilities, [items, k]
mask_one            cross-entropy over the graph's nodes        1 at the best node of each graph, else 0
pointer,            cross-entropy over the graph's nodes        the best node's id within its graph
permutation
scalar              mean absolute error; mean squared error     the value
                    if the metric is a squared error, or as
                    ``training.task.errors`` says
==================  ==========================================  ======================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from graphbench.catalog.features import Feature, Kind, Location, Stage, select
from graphbench.core.errors import ConfigError
from graphbench.data.batches.text_batch import NOT_SCORED, TextBatch
from graphbench.models.encoders import feature_values
from graphbench.models.graphs import Layout, segment_argmax, segment_log_softmax
from graphbench.models.trajectory.losses import trace_loss_weights, trace_losses

__all__ = [
    "loss",
    "loss_weights",
    "losses",
    "predictions",
    "text_loss_weights",
    "text_losses",
    "trace_loss_weights",
    "trace_losses",
]


def loss(outputs: Mapping[str, Tensor], batch: Data, features: Sequence[Feature], *, squared: bool = False) -> Tensor:
    """Return the sum over output features of the mean loss of their items, a scalar float32.

    The two directions of an undirected edge have the same prediction and label, so they count alike.

    Args:
        outputs: The model's outputs for ``batch``.
        batch: Carries one target array per output feature.
        features: The dataset's features; features other than outputs are ignored.
        squared: Whether errors of scalars are squared; otherwise their absolute values are used.

    Raises:
        ConfigError: If the batch lacks a target, or the shapes of target and output differ.
    """
    total = torch.zeros((), device=next(iter(outputs.values())).device)
    for value in losses(outputs, batch, features, squared=squared).values():
        total = total + value
    return total


def losses(
    outputs: Mapping[str, Tensor],
    batch: Data,
    features: Sequence[Feature],
    *,
    squared: bool = False,
    incomplete: bool = False,
) -> dict[str, Tensor]:
    """Return output -> mean loss of its items, in the order of the features; see :func:`loss`.

    Args:
        outputs: As for :func:`loss`.
        batch: As for :func:`loss`.
        features: As for :func:`loss`.
        squared: As for :func:`loss`.
        incomplete: Whether targets of masks and classes may be missing, as -1; they are left out of the means, and the
            mean over no item is 0.
    """
    output_losses = {}
    for f in select(features, Stage.OUTPUT):
        target, raw = feature_values(batch, f), outputs[f.name].float()
        by_items = incomplete and f.kind in (Kind.MASK, Kind.CATEGORICAL)
        output_losses[f.name] = (
            _known_loss(raw, target, f) if by_items else _feature_loss(raw, target, batch, f, squared)
        )
    return output_losses


def loss_weights(batch: Data, features: Sequence[Feature], *, incomplete: bool = False) -> dict[str, Tensor | float]:
    """Return the number of items over which each of the means of :func:`losses` is taken.

    The items are the rows of the output, or the graphs if one node per graph is chosen. The loss of a batch is the mean
    of the losses of its parts, weighted by these numbers.

    Args:
        batch: The batch.
        features: The dataset's features.
        incomplete: Whether targets of masks and classes may be missing, as -1.
    """
    return {
        f.name: (feature_values(batch, f) >= 0).sum()
        if incomplete and f.kind in (Kind.MASK, Kind.CATEGORICAL)
        else float(_items(batch, f))
        for f in select(features, Stage.OUTPUT)
    }


def text_losses(logits: Tensor, batch: TextBatch, features: Sequence[Feature]) -> dict[str, Tensor]:
    """Return the mean cross-entropy of the references' characters in nats, by the name of the output.

    Args:
        logits: The logits that the model returned for ``batch``.
        batch: Prompts and references as tokens.
        features: The features of the card.
    """
    assert batch.targets is not None
    mean = F.cross_entropy(logits.float().flatten(0, 1), batch.targets.flatten(), ignore_index=NOT_SCORED)
    return {select(features, Stage.OUTPUT)[0].name: mean}


def text_loss_weights(batch: TextBatch, features: Sequence[Feature]) -> dict[str, Tensor | float]:
    """Return the number of characters over which the mean of :func:`text_losses` is taken."""
    assert batch.targets is not None
    return {select(features, Stage.OUTPUT)[0].name: (batch.targets != NOT_SCORED).sum()}


def predictions(
    outputs: Mapping[str, Tensor], features: Sequence[Feature], batch: Data | None = None
) -> dict[str, Tensor]:
    """Return the predictions that an evaluator scores, per output feature (see the table of this module).

    Args:
        outputs: The outputs of the model.
        features: The dataset's features; features other than outputs are ignored.
        batch: The batch; needed only for mask_one outputs and pointers of graphs, which choose among a graph's nodes.

    Raises:
        ConfigError: If ``batch`` is needed and missing.
    """
    return {f.name: _prediction(outputs[f.name].detach().float(), f, batch) for f in select(features, Stage.OUTPUT)}


def _feature_loss(raw: Tensor, target: Tensor, batch: Data, feature: Feature, squared: bool) -> Tensor:
    if feature.kind is Kind.MASK_ONE or (feature.is_pointer and feature.location is Location.GRAPH):
        return _choice_loss(raw, target, Layout.of(batch, directed=True), feature)
    if feature.kind is Kind.CATEGORICAL or feature.is_pointer:
        return F.cross_entropy(raw, target.long().reshape(-1))
    values = target.float()
    values = values.squeeze(1) if values.dim() == raw.dim() + 1 and values.shape[1] == 1 else values
    if values.shape != raw.shape:
        raise ConfigError(f"output {feature.name!r} has shape {list(raw.shape)}, its target {list(target.shape)}")
    if feature.kind is Kind.MASK:
        return F.binary_cross_entropy_with_logits(raw, values)
    return F.mse_loss(raw, values) if squared else F.l1_loss(raw, values)


def _known_loss(raw: Tensor, target: Tensor, feature: Feature) -> Tensor:
    """Return the mean loss of the items of a mask or of classes whose target is not missing; 0 if all are missing."""
    target = target.reshape(-1)
    known = target >= 0
    if feature.kind is Kind.CATEGORICAL:
        total = F.cross_entropy(raw, target.long(), ignore_index=-1, reduction="sum")
    else:
        each = F.binary_cross_entropy_with_logits(raw, target.clamp_min(0).float(), reduction="none")
        total = (each * known).sum()
    return total / known.sum().clamp_min(1)


def _items(batch: Data, feature: Feature) -> int:
    """Return the number of terms in the mean of a feature's loss."""
    if feature.kind is Kind.MASK_ONE or feature.location is Location.GRAPH:
        return int(batch.num_graphs)
    if feature.location is Location.EDGE:
        return int(batch.edge_index.shape[1])
    return int(batch.seeds if "seeds" in batch else batch.num_nodes)


def _choice_loss(logits: Tensor, target: Tensor, layout: Layout, feature: Feature) -> Tensor:
    """Return the mean over graphs of the cross-entropy of choosing the right node; ``logits`` [N]."""
    log_probability = segment_log_softmax(logits, layout.graph, layout.num_graphs)
    if feature.kind is Kind.MASK_ONE:
        right = log_probability[target.reshape(-1).bool()]
    else:
        right = log_probability[layout.ptr[:-1] + target.reshape(-1).long()]
    return -right.mean()


def _prediction(raw: Tensor, feature: Feature, batch: Data | None) -> Tensor:
    if feature.kind is Kind.MASK:
        return raw.sigmoid()
    if feature.kind is Kind.SCALAR:
        return raw
    if feature.kind is Kind.CATEGORICAL:
        return raw.softmax(dim=1)
    if feature.location is Location.NODE and feature.is_pointer:
        return raw.argmax(dim=1)
    if batch is None:
        raise ConfigError(f"predictions of {feature.name!r} choose among a graph's nodes; pass batch=")
    layout = Layout.of(batch, directed=True)
    best = segment_argmax(raw, layout.graph, layout.num_graphs)
    if feature.kind is Kind.MASK_ONE:
        return torch.zeros_like(raw, dtype=torch.long).index_fill(0, best, 1)
    return best - layout.ptr[:-1]
