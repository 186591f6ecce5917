"""Scenarios of algorithm selection: run times of algorithms on instances, and features of the instances.

Bischl et al., "ASlib: A benchmark library for algorithm selection", Artificial Intelligence 237, 2016. A scenario is
read from a folder by :mod:`graphbench.domains.sat.aslib_files`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import StoreError

STATUSES = ("ok", "timeout", "memout", "not_applicable", "crash", "other")
"""The possible statuses of a run of an algorithm; all but the first count as unsolved."""

FEATURE_STATUSES = ("ok", "timeout", "memout", "presolved", "crash", "other")
"""The possible statuses of a measurement of features."""

OK = 0
NO_RUN = -1
PENALTY = 10
LEAST_SECONDS = 1e-3
"""Lower bound of a cost in seconds: costs must be positive, but some scenarios have times of 0."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scenario:
    """Run times of K algorithms on S instances in R repetitions, and F features of the instances.

    Attributes:
        name: Name of the scenario.
        instances: The S instances.
        algorithms: The K algorithms.
        cutoff: Time at which runs were stopped, in seconds.
        seconds: float64 ``[S, K, R]``, the times of the runs in seconds, nan where unknown.
        status: int8 ``[S, K, R]``, positions in ``STATUSES``, -1 where there is no such repetition.
        feature_names: The F features.
        features: float64 ``[S, F]``, nan where a value is missing; with repetitions the mean of their values.
        steps: Feature step -> the features that it provides.
        step_seconds: float64 ``[S, steps]``, times of the steps in seconds, nan where unknown; None if not recorded.
        step_status: int8 ``[S, steps]``, positions in ``FEATURE_STATUSES``, -1 where unknown; None if not recorded.
        default_steps: The steps that selectors use by default; empty for all steps.
        folds: int64 ``[S]``, the folds of cross-validation, numbered from 1 on; None if there are none.
        measure: Name of the performance measure.
    """

    name: str
    instances: tuple[str, ...]
    algorithms: tuple[str, ...]
    cutoff: float
    seconds: Floats
    status: NDArray[np.int8]
    feature_names: tuple[str, ...]
    features: Floats
    steps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    step_seconds: Floats | None = None
    step_status: NDArray[np.int8] | None = None
    default_steps: tuple[str, ...] = ()
    folds: NDArray[np.int64] | None = None
    measure: str = "runtime"

    def costs(self, factor: float = PENALTY) -> Floats:
        """Return the penalised average time of every algorithm on every instance, float64 ``[S, K]`` in seconds.

        A run counts its time if its status is ``ok`` and the time is at most the cutoff, else ``factor`` cutoffs. Times
        below 0.001 s count as 0.001 s. The mean is over repetitions.

        Raises:
            StoreError: If an algorithm has no run on an instance.
        """
        exists = self.status != NO_RUN
        without = np.argwhere(~exists.any(axis=2))
        if len(without):
            i, k = without[0].tolist()
            raise StoreError(
                f"the scenario {self.name} has no run of {self.algorithms[k]!r} on {self.instances[i]!r}; every "
                "algorithm needs one on every instance"
            )
        with np.errstate(invalid="ignore"):
            solved = (self.status == OK) & (self.seconds <= self.cutoff)
        counted = np.where(solved, np.maximum(self.seconds, LEAST_SECONDS), factor * self.cutoff)
        means: Floats = np.where(exists, counted, 0.0).sum(axis=2) / exists.sum(axis=2)
        return means

    @property
    def used_steps(self) -> tuple[str, ...]:
        """The steps that provide the features of selectors: the default steps, or all steps if none are default."""
        return self.default_steps or tuple(self.steps)

    @property
    def used_features(self) -> tuple[str, ...]:
        """The features that the used steps provide; all features if the used steps name none."""
        provided = {name for step in self.used_steps for name in self.steps.get(step, ())}
        return tuple(name for name in self.feature_names if name in provided) or self.feature_names

    def overheads(self) -> Floats:
        """Return the time of measuring the used features, float64 ``[S]`` in seconds; unknown times count as 0."""
        if self.step_seconds is None:
            return np.zeros(len(self.instances))
        columns = [list(self.steps).index(step) for step in self.used_steps]
        overheads: Floats = np.nan_to_num(self.step_seconds[:, columns], nan=0.0).sum(axis=1)
        return overheads

    def check(self) -> Scenario:
        """Return the scenario itself if its parts fit together.

        Raises:
            StoreError: If a shape is wrong, a name is repeated, or the cutoff is not positive.
        """
        s, k, f, steps = len(self.instances), len(self.algorithms), len(self.feature_names), len(self.steps)
        shapes: dict[str, tuple[NDArray[Any] | None, tuple[int, ...]]] = {
            "seconds": (self.seconds, (s, k, self.seconds.shape[-1])),
            "status": (self.status, self.seconds.shape),
            "features": (self.features, (s, f)),
            "step_seconds": (self.step_seconds, (s, steps)),
            "step_status": (self.step_status, (s, steps)),
            "folds": (self.folds, (s,)),
        }
        for name, (array, shape) in shapes.items():
            if array is not None and array.shape != shape:
                raise StoreError(f"{name} of the scenario {self.name} has the shape {array.shape}; expected is {shape}")
        for noun, names in (
            ("instance", self.instances),
            ("algorithm", self.algorithms),
            ("feature", self.feature_names),
        ):
            if twice := first_repeated(names):
                raise StoreError(f"the scenario {self.name} has the {noun} {twice!r} twice")
        if not 0 < self.cutoff < math.inf:
            raise StoreError(f"the cutoff of the scenario {self.name} is {self.cutoff}; give seconds above 0")
        return self


def first_repeated(names: Sequence[str]) -> str | None:
    """Return the first name that occurs twice; None if there is none."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
