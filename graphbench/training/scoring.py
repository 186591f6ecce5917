"""A model's outputs on a split, batch by batch, as scores."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from graphbench.catalog.features import Feature
from graphbench.core.errors import ConfigError, DecodingError
from graphbench.core.progress import progress_bar
from graphbench.evaluation.evaluator import Evaluator, Score
from graphbench.evaluation.solutions import SolutionEvaluator
from graphbench.models.losses import loss_of, predictions
from graphbench.training.items import item_graphs

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.data.dataset import GraphDataset
    from graphbench.training.settings import TrainingConfig

_MOST_GRAPHS = 1024
_ITEMS = 2**17  # nodes and directed edges of a batch: each holds a few vectors of the hidden width
_TOKEN_PAIRS = 2**22  # token pairs of a batch: each holds one number per attention head


def predicted_batches(
    model: nn.Module,
    features: Sequence[Feature],
    batches: Iterable[Any],
    device: torch.device,
    precision: Literal["fp32", "bf16"] = "fp32",
) -> Iterator[tuple[Any, dict[str, Tensor]]]:
    """Yield every batch with the model's predictions, one tensor per output feature with one row per item."""
    with torch.inference_mode():
        for batch in batches:
            batch = batch.to(device)
            with autocast(device, precision):
                outputs = model(batch)
            yield batch, predictions(outputs, features, batch)


def autocast(device: torch.device, precision: Literal["fp32", "bf16"]) -> AbstractContextManager[Any]:
    """Return the context a model runs in: bfloat16 autocast, or none."""
    return torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else nullcontext()


def evaluation_batch_size(model: nn.Module, dataset: GraphDataset) -> int:
    """Return how many graphs fit the memory budget at once: at most 1024, at least one.

    A batch holds at most 2^17 nodes and directed edges and, for attention, 2^22 pairs of tokens (the pairs of the
    largest graph, padded). Attention over a single larger graph is cut into chunks by the model itself.
    """
    flat, chosen = dataset.flat, dataset.graph_numbers
    nodes, edges = np.diff(flat.node_ptr), np.diff(flat.edge_ptr)
    if chosen is not None:
        nodes, edges = nodes[chosen], edges[chosen]
    columns = edges if flat.directed else 2 * edges
    size = min(_MOST_GRAPHS, _ITEMS // max(int((nodes + columns).max()), 1))
    if getattr(getattr(model, "processor", None), "supports_edge_tokens", False):
        tokens = nodes + edges if getattr(model, "edge_tokens", False) else nodes + 1
        size = min(size, _TOKEN_PAIRS // int(tokens.max()) ** 2)
    return max(1, size)


def require_fitting_settings(settings: TrainingConfig, card: Card) -> None:
    """Refuse settings of losses and decoders that a dataset's task does not have, or that have no such value.

    Raises:
        ConfigError: If there are any; the message names them.
    """
    loss_of(card, settings.surrogate)
    if not settings.decoding:
        return
    if card.task.type != "solve":
        raise ConfigError(
            f"training.decoding is {settings.decoding}, but {card.address} is learned from targets; leave it out"
        )
    try:
        SolutionEvaluator(card, **settings.decoding)
    except DecodingError as error:
        raise ConfigError(f"training.decoding: {error}") from error


def score_predictions(
    model: nn.Module,
    dataset: GraphDataset,
    size: int,
    device: torch.device,
    precision: Literal["fp32", "bf16"],
    progress: bool | None,
) -> Score:
    """Return the score of a model's predictions of its first output, beside the targets."""
    card = dataset.card
    target = card.outputs[0]
    evaluator = Evaluator(card, output=target.name)
    predicted_all = predicted_batches(model, card.features, dataset.batches(size), device, precision)
    with progress_bar(len(dataset), f"scoring {dataset.split}", "graph", progress) as bar:
        for batch, predicted in predicted_all:
            graphs = item_graphs(batch, target.location)
            evaluator.update(batch[target.name], predicted[target.name], graphs)
            bar.update(batch.num_graphs)
    return evaluator.compute()


def score_solutions(
    model: nn.Module,
    dataset: GraphDataset,
    size: int,
    device: torch.device,
    precision: Literal["fp32", "bf16"],
    progress: bool | None,
    *,
    decoding: Mapping[str, Any],
) -> Score:
    """Return the score of the solutions that a model's scores lead to; it counts the time of model and decoder."""
    target = dataset.card.outputs[0].name
    evaluator = SolutionEvaluator(dataset.card, output=target, **decoding)
    with progress_bar(len(dataset), f"scoring {dataset.split}", "graph", progress) as bar, torch.inference_mode():
        for batch in dataset.batches(size):
            started = time.perf_counter()
            with autocast(device, precision):
                outputs = model(batch.to(device))
            scores = outputs[target].float().cpu()
            evaluator.update(batch, scores, seconds=time.perf_counter() - started)
            bar.update(batch.num_graphs)
    return evaluator.compute()
