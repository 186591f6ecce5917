"""The registered generators of CLRS: one per algorithm, for both protocols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from graphbench.catalog.features import Feature, Kind
from graphbench.data.samples import Generator, Samples
from graphbench.data.trajectories import Trajectories
from graphbench.domains.clrs.algorithms import NAMES

if TYPE_CHECKING:
    from graphbench.domains.clrs.algorithm import Algorithm
    from graphbench.domains.clrs.tracing import Run

Array = NDArray[Any]
RENAMED = {"x": "xs", "y": "ys"}
"""Features whose names mean something else in PyG, and their names in the datasets."""


class TrajectoryParameters(BaseModel):
    """Which samples to draw.

    Attributes:
        length: Problem size of every sample (canonical protocol).
        seed: Seed of the NumPy ``RandomState`` from which all samples are drawn one after the other, as in the
            reference: sample i of the split is its i-th draw (canonical protocol).
        lengths: Problem sizes, in turn: sample i has ``lengths[i % len(lengths)]`` (protocol multi_size). Edge
            probabilities and needle lengths are drawn at random, and each sample has a generator of its own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

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
    from graphbench.domains.clrs.samplers import draw_multi_size, sample

    if parameters.length is not None and parameters.seed is not None:
        drawn = sample(name, parameters.length, int(indices.max(initial=-1)) + 1, parameters.seed)
        yield from (drawn[i] for i in indices)
        return
    words = [int(key) & 0xFFFFFFFF, int(key) >> 32]
    for index, attempt in zip(indices.tolist(), attempts.tolist(), strict=True):
        generator = np.random.RandomState([*words, index & 0xFFFFFFFF, index >> 32, attempt])
        yield draw_multi_size(name, parameters.lengths[index % len(parameters.lengths)], generator)


def _generate(
    name: str,
    parameters: TrajectoryParameters,
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
) -> Samples:
    from graphbench.domains.clrs.algorithm import find_algorithm
    from graphbench.domains.clrs.tracing import Runner

    algorithm = find_algorithm(name)
    runner = Runner(algorithm)
    runs = [runner.run(*args) for args in _arguments(name, parameters, key, indices, attempts)]
    return samples_of_runs(algorithm, runs, runner.recorded())


def samples_of_runs(algorithm: Algorithm, runs: Sequence[Run], hints: Trajectories) -> Samples:
    """Return finished runs in the form that is stored."""
    nodes = np.array([run.nodes for run in runs], np.int64)
    values = {
        RENAMED.get(f.name, f.name): np.concatenate([_rows(f, run.inputs[f.name]) for run in runs])
        for f in algorithm.inputs
    }
    for feature in algorithm.outputs:
        values[feature.name] = np.concatenate([_output_rows(feature, run) for run in runs])
    return Samples(nodes, nodes * nodes, np.empty((0, 2), np.int32), values, hints)


def _rows(feature: Feature, value: Array) -> Array:
    """Return an input as rows: one value per node, pair or graph."""
    if feature.kind is Kind.CATEGORICAL:
        value = value.argmax(axis=-1)
    return value.reshape(-1)


def _output_rows(feature: Feature, run: Run) -> Array:
    cells = run.outputs[feature.name]
    if feature.kind is Kind.MASK_ONE:
        return (np.arange(run.nodes) == cells[0]).astype(np.uint8)
    return cells.reshape(-1)


def _check(name: str, parameters: TrajectoryParameters, samples: Samples) -> list[str]:
    from graphbench.domains.clrs.algorithm import find_algorithm
    from graphbench.domains.clrs.checks import check_outputs

    return check_outputs(find_algorithm(name), samples)


def _statistics(parameters: TrajectoryParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    assert samples.hints is not None
    return {"steps": samples.hints.lengths.astype(np.float64)}


def _shard_size(parameters: TrajectoryParameters) -> int:
    # A shard draws all samples before its own as well, so few and large ones cost least.
    largest = parameters.length or max(parameters.lengths)
    return 4096 if largest <= 64 else 32


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
    )


GENERATORS: Mapping[str, Generator] = {name: _make(name) for name in NAMES}
