"""What the edges of a graph alone say of candidate pairs, as an input of models that predict links."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphbench.catalog.links import PAIRS
from graphbench.data.arrays.link_heuristics import Heuristics

SCORES = "_pair_scores"
"""Attribute of a prepared batch: the scores of its candidate pairs."""


def heuristics_of(batch: Any, directed: bool) -> Heuristics:
    """Return the heuristics of the graphs of a batch, which count as one graph of several components.

    Args:
        batch: A PyG ``Batch`` with candidate pairs.
        directed: Whether each column of ``edge_index`` is a separate arc.
    """
    return Heuristics(batch.edge_index.cpu().numpy().T, int(batch.num_nodes), directed=directed)


def pair_scores(batch: Any, heuristics: Heuristics) -> Tensor:
    """Return log(1 + score) of all candidate pairs, float32 ``[P, heuristics]``, on the device of the pairs."""
    pairs = batch[PAIRS]
    scores = np.log1p(heuristics.table(pairs.cpu().numpy())).astype(np.float32)
    return torch.from_numpy(scores).to(pairs.device)
