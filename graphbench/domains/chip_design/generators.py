"""The generator of truth tables and their structurally hashed circuits. Reference circuits are the labellers' work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator

from graphbench.core.ragged import offsets
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts
from graphbench.data.components.generators import Generator
from graphbench.domains.chip_design.checks import check_samples
from graphbench.domains.chip_design.functions import FAMILIES, draw_arithmetic, draw_biased, draw_uniform
from graphbench.domains.chip_design.graphs import TABLE, circuits_as_samples, circuits_of, tables_of
from graphbench.domains.chip_design.shannon import circuits_of_tables
from graphbench.domains.chip_design.table_kernels import texts_of_words

FAMILY = "family"
RANDOM = 0  # the family of functions of random bits; an arithmetic family has its place in FAMILIES plus 1
_SHARD_BITS = 4_000_000


def _ordered(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"{list(bounds)} is empty; give the lower end first")
    return bounds


def _checked_families(families: tuple[str, ...]) -> tuple[str, ...]:
    for name in families:
        if name not in FAMILIES:
            raise ValueError(f"there is no family {name!r}; there are {', '.join(FAMILIES)}")
    return families


_Shape = tuple[Annotated[int, Field(ge=2, le=12)], Annotated[int, Field(ge=1, le=16)]]
_Share = Annotated[float, Field(ge=0, le=1)]


class TableParameters(StrictModel):
    """The distribution of the functions of a split.

    Attributes:
        shapes: Pairs of a number of inputs and a number of outputs, in equal shares: sample i has the shape
            ``i modulo their number``.
        ones: Range of the probability of a 1, drawn for every function; None for uniform bits.
        families: Arithmetic families (``functions.FAMILIES``) in equal shares; None for functions of random bits.
    """

    shapes: Annotated[tuple[_Shape, ...], Field(min_length=1)]
    ones: Annotated[tuple[_Share, _Share], AfterValidator(_ordered)] | None = None
    families: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_checked_families)] | None = None

    @model_validator(mode="after")
    def _check(self) -> TableParameters:
        if self.ones is not None and self.families is not None:
            raise ValueError("ones and families are both given; arithmetic functions have no random bits")
        if self.families is not None and min(n for n, _ in self.shapes) < 3:
            raise ValueError(f"shapes {list(self.shapes)}: arithmetic functions have 3 inputs or more")
        return self


def draw_tables(
    parameters: TableParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]:
    """Return truth tables: numbers of inputs and outputs, int64 ``[S]``, their words, and families, int64 ``[S]``."""
    shapes = np.array(parameters.shapes, np.int64)[indices % len(parameters.shapes)]
    inputs, outputs = np.ascontiguousarray(shapes[:, 0]), np.ascontiguousarray(shapes[:, 1])
    if parameters.families is not None:
        families = np.array([FAMILIES.index(name) for name in parameters.families], np.int64)
        words, drawn = draw_arithmetic(key, indices, attempts, inputs, outputs, families)
        return inputs, outputs, words, drawn + 1
    random = np.full(len(indices), RANDOM, np.int64)
    if parameters.ones is None:
        return inputs, outputs, draw_uniform(key, indices, attempts, inputs, outputs), random
    return inputs, outputs, draw_biased(key, indices, attempts, inputs, outputs, *parameters.ones), random


def _generate(
    parameters: TableParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    inputs, outputs, words, families = draw_tables(parameters, key, indices, attempts)
    graphs = circuits_as_samples(circuits_of_tables(inputs, outputs, words))
    values = {**graphs.values, TABLE: Texts(*texts_of_words(inputs, outputs, words)), FAMILY: families}
    return Samples(graphs.num_nodes, graphs.num_edges, graphs.edges, values)


def _statistics(parameters: TableParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    inputs, outputs, words = tables_of(samples)
    circuits = circuits_of(samples)
    ones = np.bitwise_count(words) if hasattr(np, "bitwise_count") else np.array([int(w).bit_count() for w in words])
    ptr = offsets(outputs * (1 << np.maximum(inputs - 6, 0)))
    total = np.concatenate(([0], np.cumsum(ones, dtype=np.int64)))
    return {
        "inputs": inputs.astype(np.float64),
        "outputs": outputs.astype(np.float64),
        "ands": circuits.num_ands.astype(np.float64),
        "depth": circuits.depths.astype(np.float64),
        "ones": (total[ptr[1:]] - total[ptr[:-1]]) / (outputs * (1 << inputs)),
    }


def _shard_size(parameters: TableParameters) -> int:
    return max(1, _SHARD_BITS // max(m << n for n, m in parameters.shapes))


GENERATORS: Mapping[str, Generator] = {
    "functions": Generator(
        name="chip_design.functions",
        version=1,
        parameters=TableParameters,
        generate=_generate,
        check=check_samples,
        statistics=_statistics,
        shard_size=_shard_size,
    )
}
