"""Losses and predictions, chosen by the type of each output feature.

==================  ==========================================  ======================================
type                loss                                        prediction
==================  ==========================================  ======================================
mask                binary cross-entropy on logits              probability, [items]
categorical(k)      cross-entropy                               probabilities, [items, k]
mask_one            cross-entropy over the graph's nodes        1 at the best node of each graph, else 0
pointer,            cross-entropy over the graph's nodes        the best node's id within its graph
permutation
scalar              mean absolute error, the paper's metric     the value
==================  ==========================================  ======================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature, Kind, Location, Stage, select
from graphbench.core.errors import ConfigError
from graphbench.models.encoders import feature_values
from graphbench.models.graphs import Layout, segment_argmax, segment_log_softmax
from graphbench.models.surrogates import surrogate_of

LossFunction = Callable[[Mapping[str, Tensor], Data, Sequence[Feature]], Tensor]


def loss_of(card: Card, surrogate: Mapping[str, float] | None = None) -> LossFunction:
    """Return the loss of a dataset's task: :func:`loss`, or that of a problem that is solved without targets.

    Args:
        card: The dataset's card, of the task.
        surrogate: Settings of the problem's loss (``training.surrogate``), see :mod:`graphbench.models.surrogates`.

    Raises:
        ConfigError: If the problem has no loss, the loss no such setting, or there is nothing to set.
    """
    if card.task.type == "solve":
        return partial(_problem_loss, surrogate_of(card.task_name or "", surrogate or {}))
    if surrogate:
        raise ConfigError(
            f"training.surrogate is {dict(surrogate)}, but {card.address} is learned from targets; leave it out"
        )
    return loss


def _problem_loss(
    surrogate: Callable[[Tensor, Data], Tensor], outputs: Mapping[str, Tensor], batch: Data, features: Sequence[Feature]
) -> Tensor:
    (feature,) = select(features, Stage.OUTPUT)
    return surrogate(outputs[feature.name], batch)


def loss(outputs: Mapping[str, Tensor], batch: Data, features: Sequence[Feature]) -> Tensor:
    """Return the sum over output features of the mean loss of their items, a scalar float32.

    The two directions of an undirected edge have the same prediction and label, so they count alike.

    Args:
        outputs: What the model returned for ``batch``.
        batch: Carries one target array per output feature.
        features: The dataset's features; those that are no outputs are ignored.

    Raises:
        ConfigError: If the batch lacks a target, or its shape is not that of the output.
    """
    total = torch.zeros((), device=next(iter(outputs.values())).device)
    for feature in select(features, Stage.OUTPUT):
        total = total + _feature_loss(outputs[feature.name].float(), feature_values(batch, feature), batch, feature)
    return total


def predictions(
    outputs: Mapping[str, Tensor], features: Sequence[Feature], batch: Data | None = None
) -> dict[str, Tensor]:
    """Return what an evaluator scores, per output feature (see the table of this module).

    Args:
        outputs: What the model returned.
        features: The dataset's features; those that are no outputs are ignored.
        batch: The batch; needed only for mask_one outputs and pointers of graphs, whose choice is among a graph's
            nodes.

    Raises:
        ConfigError: If ``batch`` is needed and missing.
    """
    return {f.name: _prediction(outputs[f.name].detach().float(), f, batch) for f in select(features, Stage.OUTPUT)}


def _feature_loss(raw: Tensor, target: Tensor, batch: Data, feature: Feature) -> Tensor:
    if feature.kind is Kind.MASK_ONE or (_is_pointer(feature) and feature.location is Location.GRAPH):
        return _choice_loss(raw, target, Layout.of(batch, directed=True), feature)
    if feature.kind is Kind.CATEGORICAL or _is_pointer(feature):
        return F.cross_entropy(raw, target.long().reshape(-1))
    values = target.float()
    values = values.squeeze(1) if values.dim() == raw.dim() + 1 and values.shape[1] == 1 else values
    if values.shape != raw.shape:
        raise ConfigError(f"output {feature.name!r} has shape {list(raw.shape)}, its target {list(target.shape)}")
    if feature.kind is Kind.MASK:
        return F.binary_cross_entropy_with_logits(raw, values)
    return F.l1_loss(raw, values)


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
    if feature.location is Location.NODE and _is_pointer(feature):
        return raw.argmax(dim=1)
    if batch is None:
        raise ConfigError(f"predictions of {feature.name!r} choose among a graph's nodes; pass batch=")
    layout = Layout.of(batch, directed=True)
    best = segment_argmax(raw, layout.graph, layout.num_graphs)
    if feature.kind is Kind.MASK_ONE:
        return torch.zeros_like(raw, dtype=torch.long).index_fill(0, best, 1)
    return best - layout.ptr[:-1]


def _is_pointer(feature: Feature) -> bool:
    return feature.kind in (Kind.POINTER, Kind.PERMUTATION)
