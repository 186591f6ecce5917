"""Augmentations: changes of training graphs that keep their labels.

A domain brings augmentations (``Domain(augmentations={...})``), and a configuration names what it trains with:
``training: {augment: [<domain>.<name>]}``. Graphs of validation and test are never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class BatchArrays:
    """The graphs of a batch as arrays, which an augmentation reads and does not write to.

    Attributes:
        graph: int64 ``[N]``, the number of the graph of every node.
        num_graphs: Number of graphs.
        arcs: int64 ``[2, E]``, senders and receivers; every undirected edge in both directions.
        values: Input -> its values, with one row per node, arc or graph, as batches hold them.
    """

    graph: NDArray[np.int64]
    num_graphs: int
    arcs: NDArray[np.int64]
    values: Mapping[str, NDArray[Any]]


AugmentFunction = Callable[[BatchArrays, np.random.Generator], Mapping[str, NDArray[Any]]]


@dataclass(frozen=True)
class Augmentation:
    """A random change of graphs after which every label is the same.

    Attributes:
        description: The change in one sentence, as documentation pages print it.
        changes: Names of the inputs that are changed, never nodes and edges; a dataset without one of them cannot be
            trained with it.
        apply: ``graphs, random -> input -> values``: the new values of the inputs that are changed, of the same shapes
            and dtypes; a function of the graphs and of the numbers that the generator gives. ``graphs.values`` holds
            the inputs of ``changes``.
    """

    description: str
    changes: tuple[str, ...]
    apply: AugmentFunction
