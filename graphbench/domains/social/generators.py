"""The generator of snapshots of the simulated network."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from graphbench.core.errors import ArgumentError, GenerationError
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.seeds import redrawn_seed
from graphbench.data.components.generators import CompileJob, Generator
from graphbench.domains.social.archive_source import ARCHIVE
from graphbench.domains.social.checks import check_snapshot
from graphbench.domains.social.links import check_links, link_statistics, links_as_samples, new_pairs
from graphbench.domains.social.persistence import persistence_scores
from graphbench.domains.social.samples import degree_statistics, snapshot_as_samples
from graphbench.domains.social.simulator import VERSION, Network, simulate
from graphbench.domains.social.simulator_tables import START
from graphbench.domains.social.snapshots import Snapshot, snapshot
from graphbench.domains.social.tables import end_of_day

_MAX_THREADS = 4


class SnapshotParameters(StrictModel):
    """A simulated network, and one of its snapshots.

    Attributes:
        users: Number of users of the network; the limit of a dataset replaces it. About half of them are
            nodes of a snapshot.
        seed: Number of the network; splits and kinds with the same users and seed are parts of one history.
        kind: Kind of interactions that are edges.
        seen_until: Last day of the inputs.
        predicted_until: Last day of the posts whose engagement is predicted.
        width: Columns of ``content``.
        median: Definition of the median of an even number of counts: the ``mean`` of the two middle ones, or the
            ``lower`` one, as in the published data.
        loops: Whether users' interactions with themselves are edges, as in the published data.
    """

    users: Annotated[int, Field(ge=500, le=5_000_000)]
    seed: Annotated[int, Field(ge=0, lt=1 << 32)]
    kind: Literal["quotes", "replies", "reposts"]
    seen_until: date
    predicted_until: date
    width: Annotated[int, Field(ge=8, le=1024)] = 64
    median: Literal["mean", "lower"] = "lower"
    loops: bool = True

    @model_validator(mode="after")
    def _check_dates(self) -> SnapshotParameters:
        if not START <= self.seen_until < self.predicted_until:
            raise ValueError(
                f"seen_until {self.seen_until} and predicted_until {self.predicted_until} are not in order; give days "
                f"from {START} on"
            )
        return self


@lru_cache(maxsize=1)
def network(users: int, seed: int, width: int) -> Network:
    """Return the simulated history; the last one is cached, because splits and kinds of a dataset are parts of it."""
    return simulate(users, seed, width=width, threads=min(_MAX_THREADS, os.cpu_count() or 1))


@lru_cache(maxsize=1)
def simulated_snapshot(parameters: SnapshotParameters) -> Snapshot:
    """Return the snapshot that parameters describe; the last one is cached, so its arrays must not be changed.

    Raises:
        GenerationError: If the network is too small to have a snapshot.
    """
    history = network(parameters.users, parameters.seed, parameters.width)
    times = _times(parameters)
    options = {"median": parameters.median, "loops": parameters.loops}
    try:
        return snapshot(history.posts, history.interactions, *times, parameters.kind, **options)  # type: ignore[arg-type]
    except ArgumentError as error:
        raise GenerationError(f"a network of {parameters.users:,} users is too small: {error}") from error


def _times(parameters: SnapshotParameters) -> tuple[int, int, int]:
    """Return the beginning of the history, and the ends of the inputs and of what is predicted, in minutes."""
    return end_of_day(START) - 1440, end_of_day(parameters.seen_until), end_of_day(parameters.predicted_until)


def _generate(
    parameters: SnapshotParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    """Return the snapshot once for every index; ``key`` has no influence, because splits are parts of one history."""
    return snapshot_as_samples([simulated_snapshot(parameters)] * len(indices))


def _check(parameters: SnapshotParameters, samples: Samples) -> list[str]:
    history, times = network(parameters.users, parameters.seed, parameters.width), _times(parameters)
    settings = parameters.kind, parameters.median, parameters.loops
    return [problem for i in range(len(samples)) for problem in check_snapshot(history, times, settings, samples, i)]


class LinkParameters(SnapshotParameters):
    """A simulated network, and the new interactions after one of its snapshots."""

    loops: Literal[False] = False


def _generate_links(
    parameters: LinkParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    """Return the snapshot with its links once for every index; ``key`` has no influence."""
    before = simulated_snapshot(parameters)
    interactions = network(parameters.users, parameters.seed, parameters.width).interactions[parameters.kind]
    pairs = new_pairs(before.users, before.edges, interactions, *_times(parameters)[1:])
    return links_as_samples([(before, pairs)] * len(indices))


def _check_links(parameters: LinkParameters, samples: Samples) -> list[str]:
    history = network(parameters.users, parameters.seed, parameters.width)
    settings = _times(parameters), parameters.kind, samples
    return [problem for i in range(len(samples)) for problem in check_links(history, *settings, i)]


def _redraw(parameters: SnapshotParameters, data_seed: int) -> SnapshotParameters:
    return parameters.model_copy(update={"seed": redrawn_seed(parameters.seed, data_seed)})


def _solvers(parameters: SnapshotParameters, train: Samples, samples: Samples) -> Mapping[str, Mapping[str, float]]:
    return {"persistence": persistence_scores(samples)}


def _shard_size(parameters: SnapshotParameters) -> int:
    return 1


def _compile(parameters: SnapshotParameters) -> None:
    simulated_snapshot(parameters.model_copy(update={"users": 2000}))


_LINKS = Generator(
    name="social.simulated_links",
    version=VERSION,
    parameters=LinkParameters,
    generate=_generate_links,
    check=_check_links,
    statistics=link_statistics,
    shard_size=_shard_size,
    unique=False,
    redraw=_redraw,
    compile_jobs=(CompileJob("graphbench.domains.social.snapshot_kernels:medians", _compile),),
    limited="users",
)
_ENGAGEMENT = replace(
    _LINKS,
    name="social.simulated",
    parameters=SnapshotParameters,
    generate=_generate,
    check=_check,
    statistics=degree_statistics,
    solvers=_solvers,
)
GENERATORS: Mapping[str, Generator] = {
    "simulated": _ENGAGEMENT,
    "simulated_links": _LINKS,
    "archive": ARCHIVE,
}
