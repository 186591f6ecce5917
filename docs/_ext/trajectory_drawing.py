"""Draw the hints of one trajectory over time, one panel per hint: steps downwards, nodes to the right."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature, Kind, Location
from graphbench.data.batches.trajectory_batch import batch_of_samples
from graphbench.data.build.generation import draw_samples

PANELS = 3
COLOURS = {Kind.POINTER: "viridis", Kind.CATEGORICAL: "Blues", Kind.SCALAR: "cividis"}


def draw_trajectory(card: Card, path: Path) -> None:
    """Write a picture of the first training trajectory; the file's bytes depend on the card alone."""
    batch = batch_of_samples(draw_samples(card, "train", np.arange(1)), card.features)
    nodes = batch.num_nodes
    states = {f: _as_rows(f, batch.hints[f.name][:, 0].numpy(), nodes) for f in card.hints}
    informative = [f for f, rows in states.items() if rows is not None and (rows != rows[0]).any()]
    shown = sorted(informative, key=lambda f: (f.location is Location.EDGE, f.kind is Kind.MASK_ONE))[:PANELS]
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    for axes, feature in zip(np.atleast_1d(figure.subplots(1, len(shown), sharey=True)), shown, strict=True):
        rows = states[feature]
        axes.imshow(rows, aspect="auto", interpolation="nearest", cmap=COLOURS.get(feature.kind, "Oranges"))
        axes.set_title(f"{feature.name} ({feature.type_name})", fontsize=9)
        axes.set_xlabel("node" if feature.location is Location.NODE else "pair of nodes", fontsize=8)
        axes.tick_params(labelsize=7)
    figure.axes[0].set_ylabel("step", fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": card.id, "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def _as_rows(feature: Feature, states: np.ndarray, nodes: int) -> np.ndarray | None:
    """Return a hint as ``[T, n]``, of pairs as ``[T, n * n]``; None for hints of the graph."""
    if feature.kind is Kind.MASK_ONE:
        return (states[:, None] == np.arange(nodes)).astype(float)
    return None if feature.location is Location.GRAPH else states.reshape(len(states), -1).astype(float)
