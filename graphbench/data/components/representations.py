"""Graph representations: other graphs of the same samples, derived when a batch is made.

A formula, for instance, is a graph of variables and clauses, or of variables alone. The store holds one of them; a card
names the others, and ``id:task@representation`` addresses them. Files, labels and splits are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.core.errors import CardError
from graphbench.data.arrays.samples import Samples


@dataclass(frozen=True)
class Representation:
    """A registered representation.

    Attributes:
        name: ``<domain>.<name>``, as cards write it.
        version: Raised whenever the same samples would give other graphs.
        derive: ``samples -> samples``: a pure function, the same for a graph whichever others it comes with; its result
            has the features that the card lists for the representation.
    """

    name: str
    version: int
    derive: Callable[[Samples], Samples]


def represented(
    card: Card, representation: Representation, samples: Samples, graphs: NDArray[np.int64] | slice
) -> Samples:
    """Return chosen graphs in a representation, with their labels.

    Args:
        card: The card of the representation.
        representation: The representation.
        samples: All samples of a split, as they are stored.
        graphs: Numbers of graphs, or a slice of consecutive ones.
    """
    stored = card.stored_schema
    if isinstance(graphs, slice):
        chosen = samples.part(stored, graphs.start, graphs.stop)
    else:
        chosen = samples.take(stored, graphs)
    derived = representation.derive(chosen)
    labels = {f.name: chosen.values[f.name] for f in card.label_features}
    missing = {f.name for f in card.sample_schema.stored_features} - {*derived.values, *labels}
    if missing:
        raise CardError(
            f"{card.address}: the representation {representation.name} does not give {', '.join(sorted(missing))}"
        )
    return replace(derived, values={**derived.values, **labels})
