"""The persistence predictor: every user's engagement stays the same, so the past median predicts the future median."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.data.arrays.samples import Samples
from graphbench.domains.social.tables import COUNTS

Floats = NDArray[np.float64]


def persistence_scores(samples: Samples) -> dict[str, float]:
    """Return the mean absolute error, R2 and Spearman correlation of the past medians, for each output and averaged."""
    scores: dict[str, float] = {}
    for i, name in enumerate(COUNTS):
        truth = samples.values[name].astype(np.float64)
        of_output = _scores(truth, samples.values["past"][:, i].astype(np.float64))
        scores |= {f"{metric}_{name}": value for metric, value in of_output.items()}
    metrics = ("mae", "r2", "spearman")
    means = {metric: float(np.mean([scores[f"{metric}_{name}"] for name in COUNTS])) for metric in metrics}
    return {**means, **{f"{metric}_{name}": scores[f"{metric}_{name}"] for metric in metrics for name in COUNTS}}


def _scores(truth: Floats, predicted: Floats) -> dict[str, float]:
    squared, deviation = ((truth - predicted) ** 2).sum(), ((truth - truth.mean()) ** 2).sum()
    first, second = _centred_ranks(truth), _centred_ranks(predicted)
    scale = float(np.sqrt((first @ first) * (second @ second)))
    return {
        "mae": float(np.abs(truth - predicted).mean()),
        "r2": float(1.0 - squared / deviation) if deviation else 0.0,
        "spearman": float(first @ second) / scale if scale else 0.0,
    }


def _centred_ranks(values: Floats) -> Floats:
    """Return the ranks of values minus their mean; ties share the mean of their ranks."""
    _, position, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[position]
    return np.asarray(ranks - ranks.mean())
