"""Measures: sizes of structures within a set of nodes, by which metrics score sets of nodes without a single right one.

A domain brings measures (``Domain(measures={...})``), and a card names the measure of its task:
``task: {options: {measure: <domain>.<name>}}``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SizesFunction = Callable[[NDArray[np.int64], NDArray[Any], NDArray[np.bool_]], NDArray[np.int64]]


@dataclass(frozen=True)
class Measure:
    """The number of nodes of the largest structure of one kind within a set of nodes.

    Attributes:
        description: The structure in one sentence.
        sizes: ``(node_ptr, edge_index, chosen) -> int64 [G]``: the number of nodes of the largest structure among the
            chosen nodes of every graph, 0 where there is none: a pure function. ``node_ptr`` is int64 ``[G + 1]``, the
            first node of each graph; ``edge_index`` is ``[2, E]`` with numbers of nodes that count through all graphs,
            where an edge may stand in both directions; ``chosen`` is bool ``[N]``.
    """

    description: str
    sizes: SizesFunction
