"""Parts of the samples that are scored beside the whole: samples on which an output's target exceeds a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.catalog.sections import ScoredPart
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.metrics.items import Items

Parts = Mapping[str, ScoredPart]


def check_parts(parts: Parts, outputs: Sequence[Feature]) -> dict[str, ScoredPart]:
    """Return the parts, after checking that the outputs fit them.

    Raises:
        EvaluationError: If a part names something else than a scalar output of graphs, or an output lies elsewhere.
    """
    features = {f.name: f for f in outputs}
    for name, part in parts.items():
        feature = features.get(part.output)
        if feature is None:
            raise EvaluationError(f"the part {name!r} names {part.output!r}; the outputs are {', '.join(features)}")
        if feature.kind is not Kind.SCALAR or any(f.location is not Location.GRAPH for f in outputs):
            raise EvaluationError(f"the part {name!r} needs outputs of graphs, and {part.output!r} to be a scalar")
    return dict(parts)


def rows_of_parts(parts: Parts, items: Mapping[str, Items]) -> dict[str, NDArray[np.bool_]]:
    """Return the rows that belong to every part, bool ``[graphs]``.

    Args:
        parts: The parts by name.
        items: Output -> its checked items, one row per graph.
    """
    rows = {}
    for name, part in parts.items():
        size = np.abs(items[part.output].truth)
        rows[name] = (size if size.ndim == 1 else size.max(axis=1)) > part.above
    return rows


def restricted(items: Items, rows: NDArray[np.bool_]) -> Items:
    """Return the chosen rows of items of graphs."""
    count = int(np.count_nonzero(rows))
    graph = None if items.graph is None else np.arange(count)
    return replace(items, truth=items.truth[rows], predicted=items.predicted[rows], graph=graph, num_graphs=count)
