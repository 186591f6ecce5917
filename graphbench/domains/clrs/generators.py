"""The registered generators of CLRS: one per algorithm, for both protocols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from graphbench.catalog.features import Feature, Kind
from graphbench.core.ragged import offsets, take_runs
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.seeds import redrawn_seed
from graphbench.data.arrays.trajectories import Trajectories
from graphbench.data.components.generators import Generator
from graphbench.domains.clrs.names import NAMES

if TYPE_CHECKING:
    from graphbench.domains.clrs.algorithm import Algorithm
    from graphbench.domains.clrs.tracing import Runs

Array = NDArray[Any]
RENAMED = {"x": "xs", "y": "ys"}
"""Features whose names mean something else in PyG, and their names in the datasets."""


class TrajectoryParameters(StrictModel):
    """Which samples to draw.

    Attributes:
        length: Problem size of every sample (canonical protocol).
        seed: Seed of the NumPy ``RandomState`` from which all samples are drawn one after the other, as in the
            reference: sample i of the split is its i-th draw (canonical protocol).
        lengths: Problem sizes, in turn: sample i has ``lengths[i % len(lengths)]`` (protocol multi_size). Edge
            probabilities and needle lengths are drawn at random, and each sample has a separate random generator.
    """

    length: int | None = Field(default=None, ge=1)
    seed: int | None = Field(default=None, ge=0, lt=2**32)
    lengths: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> TrajectoryParameters:
        if bool(self.lengths) == (self.length is not None) or (self.length is None) != (self.seed is None):
            raise ValueError("give length and seed (canonical protocol), or lengths (protocol multi_size)")
        return self


def _arguments(
    name: str, parameters: TrajectoryParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of every sample asked for."""
    from graphbench.domains.clrs.samplers import a_generator, draw_multi_size, sample

    if parameters.length is not None and parameters.seed is not None:
        drawn = sample(name, parameters.length, int(indices.max(initial=-1)) + 1, parameters.seed)
        yield from (drawn[i] for i in indices)
        return
    words = [int(key) & 0xFFFFFFFF, int(key) >> 32]
    with a_generator() as rng:
        for index, attempt in zip(indices.tolist(), attempts.tolist(), strict=True):
            rng.seed([*words, index & 0xFFFFFFFF, index >> 32, attempt])
            yield draw_multi_size(name, parameters.lengths[index % len(parameters.lengths)], rng)


def _generate(
    name: str,
    parameters: TrajectoryParameters,
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
) -> Samples:
    from graphbench.domains.clrs.algorithm import find_algorithm
    from graphbench.domains.clrs.tracing import run_all

    instances = list(_arguments(name, parameters, key, indices, attempts))
    return samples_of_runs(find_algorithm(name), *run_all(name, instances))


def samples_of_runs(algorithm: Algorithm, runs: Sequence[Runs], hints: Trajectories) -> Samples:
    """Return finished runs in the form that is stored, instance by instance."""
    order = np.argsort(np.concatenate([r.places for r in runs]))
    nodes = np.concatenate([np.full(len(r.places), r.nodes) for r in runs])[order]
    inputs = {RENAMED.get(f.name, f.name): [_rows(f, r, r.inputs) for r in runs] for f in algorithm.inputs}
    outputs = {f.name: [_rows(f, r, r.outputs) for r in runs] for f in algorithm.outputs}
    values = {name: _joined(parts, order) for name, parts in (inputs | outputs).items()}
    return Samples(nodes, nodes * nodes, np.empty((0, 2), np.int32), values, hints)


def _rows(feature: Feature, runs: Runs, cells: Mapping[str, Array]) -> Array:
    """Return a feature as ``[S, rows]``: one value per node, pair or graph."""
    values = cells[feature.name]
    return np.arange(runs.nodes) == values if feature.kind is Kind.MASK_ONE else values.reshape(len(values), -1)


def _joined(parts: Sequence[Array], order: NDArray[np.int64]) -> Array:
    """Return the rows of all instances, one instance after the other in the order given."""
    if len(parts) == 1:
        return parts[0].reshape(-1)
    sizes = np.concatenate([np.full(len(part), part.shape[1]) for part in parts])
    first = offsets(sizes)[order]
    return take_runs(np.concatenate([part.reshape(-1) for part in parts]), first, offsets(sizes[order]))


def _check(name: str, parameters: TrajectoryParameters, samples: Samples) -> list[str]:
    from graphbench.domains.clrs.algorithm import find_algorithm
    from graphbench.domains.clrs.checks import check_outputs

    return check_outputs(find_algorithm(name), samples)


def _statistics(parameters: TrajectoryParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    assert samples.hints is not None
    return {"steps": samples.hints.lengths.astype(np.float64)}


def _shard_size(parameters: TrajectoryParameters) -> int:
    # A shard also draws all samples before its first one, so few and large shards cost least.
    largest = parameters.length or max(parameters.lengths)
    return 4096 if largest <= 64 else 32


def _redraw(parameters: TrajectoryParameters, data_seed: int) -> TrajectoryParameters:
    """Return the parameters of another draw: another ``RandomState`` where one is named (canonical protocol)."""
    if parameters.seed is None:
        return parameters
    return parameters.model_copy(update={"seed": redrawn_seed(parameters.seed, data_seed)})


def _make(name: str) -> Generator:
    return Generator(
        name=f"clrs.{name}",
        version=1,
        parameters=TrajectoryParameters,
        generate=partial(_generate, name),
        check=partial(_check, name),
        statistics=_statistics,
        shard_size=_shard_size,
        unique=False,
        scalars=np.float64,
        masks_cells=True,
        redraw=_redraw,
    )


GENERATORS: Mapping[str, Generator] = {name: _make(name) for name in NAMES}
