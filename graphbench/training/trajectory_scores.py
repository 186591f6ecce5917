"""Scores of a trajectory model on a split, streamed batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from graphbench.core.errors import EvaluationError
from graphbench.core.progress import progress_bar
from graphbench.data.trajectory_inputs import InputRule, order_is_constant
from graphbench.evaluation.evaluator import Score
from graphbench.evaluation.trajectories import OutputScores

if TYPE_CHECKING:
    from graphbench.data.dataset import GraphDataset
    from graphbench.models.trajectory.model import TrajectoryModel

_PAIRS = 2**14  # pairs of nodes of a batch: each holds a few vectors of the hidden width, which fit the cache
_STEP_CELLS = 2**24  # cells of all hints of a batch over time
_MOST_GRAPHS = 256
_VALIDATION_SEED = 20_221_025  # random positions of validation are the same at every validation


def score_trajectories(
    model: TrajectoryModel,
    algorithm: str,
    dataset: GraphDataset,
    rule: InputRule,
    device: torch.device,
    precision: Literal["fp32", "bf16"] = "fp32",
    *,
    randomise: bool = False,
    batch_size: int | None = None,
    progress: bool | None = False,
) -> Score:
    """Return the score of a model's outputs on one split.

    Args:
        model: The model, on ``device``.
        algorithm: Name the model has for the algorithm.
        dataset: The split.
        rule: How batches become inputs.
        device: Where to compute.
        precision: ``bf16`` runs the model under autocast.
        randomise: Whether positions are drawn at random where the rule says so: in validation, not in tests.
        batch_size: Samples at once; None fits it to their size.
        progress: Show a progress bar; None for terminals only.

    Raises:
        EvaluationError: If the split is empty.
    """
    from graphbench.training.scoring import autocast

    if len(dataset) == 0:
        raise EvaluationError(f"the split {dataset.split!r} of {dataset.card.address} is empty; raise limit")
    scores = OutputScores(dataset.card.outputs)
    constant = order_is_constant(dataset.card.features)
    generator = torch.Generator().manual_seed(_VALIDATION_SEED) if randomise else None
    was_training = model.training
    model.eval()
    try:
        with (
            torch.inference_mode(),
            progress_bar(len(dataset), f"scoring {dataset.split}", "graph", progress) as bar,
        ):
            for batch in dataset.batches(batch_size or trajectories_at_once(dataset)):
                seen = rule.batch(batch, constant, generator).to(device)
                with autocast(device, precision):
                    predicted = model.predict(seen, algorithm)
                scores.update(batch.outputs, predicted)
                bar.update(batch.num_graphs)
    finally:
        model.train(was_training)
    return scores.compute()


def trajectories_at_once(dataset: GraphDataset) -> int:
    """Return how many samples of a split fit into memory at once."""
    flat = dataset.flat
    assert flat.hints is not None
    nodes = int(np.diff(flat.node_ptr).max())
    cells = int(flat.hints.lengths.max()) * sum(nodes**2 if f.location == "edge" else nodes for f in dataset.card.hints)
    return max(1, min(_MOST_GRAPHS, _PAIRS // nodes**2, _STEP_CELLS // max(cells, 1)))
