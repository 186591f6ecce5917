"""The representation of reference circuits: their graphs in place of the structurally hashed ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphbench.core.errors import CircuitError
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.representations import Representation
from graphbench.domains.chip_design.aig import Circuits
from graphbench.domains.chip_design.graphs import TABLE, circuits_as_samples, circuits_of, decoded
from graphbench.domains.chip_design.labellers import REFERENCE


def _derive(samples: Samples) -> Samples:
    """Return the graphs of the reference circuits; a sample without a reference circuit keeps its graph.

    Raises:
        CircuitError: If the samples have no labels.
    """
    if REFERENCE not in samples.values:
        raise CircuitError(
            "the representation needs reference circuits, which are labels; address it as <id>:<task>@reference"
        )
    drawn = circuits_of(samples)
    texts = samples.values[REFERENCE].strings()
    references = circuits_as_samples(Circuits.of([decoded(text) if text else drawn[i] for i, text in enumerate(texts)]))
    return replace(references, values={**references.values, TABLE: samples.values[TABLE]})


REPRESENTATIONS: Mapping[str, Representation] = {
    "reference": Representation("chip_design.reference", version=1, derive=_derive)
}
