"""The labeller of power converters: their exact periodic steady state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import SolverError
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.generators import CompileJob, Labeller
from graphbench.domains.circuits.checks import contradictions
from graphbench.domains.circuits.converters import Operation, steady_table
from graphbench.domains.circuits.devices import read_devices
from graphbench.domains.circuits.graphs import circuit_of, operation_of
from graphbench.domains.circuits.periodic import (
    EFFICIENCY,
    FAULTS,
    NO_POWER,
    RATIO,
    REGULAR,
    SETTLING,
    STATUS,
    STATUSES,
    UNDAMPED,
)

NEVER = 1e9  # seconds that stand for "never" in the feature ``settling``
LABELLED = (REGULAR, NO_POWER, UNDAMPED)  # circuits of another status have no label
TRANSIENT = 4e-3  # seconds that the reference project simulates
_LOWEST_RATIO = 0.05
_SHARD_SIZE = 1024


class SteadyEffort(StrictModel):
    """A steady state is exact, so there is nothing to choose."""


def _label(effort: SteadyEffort, number: int, graph: Samples) -> Mapping[str, Any]:
    """Return ratio, efficiency, settling, status and singularities.

    Raises:
        SolverError: If the status leaves ratio or efficiency undefined.
    """
    (row,) = steady_table([circuit_of(graph)], [operation_of(graph)])
    status = int(row[STATUS])
    if status not in LABELLED:
        raise SolverError(f"the circuit has no label: {STATUSES[status]}")
    return {
        "ratio": row[RATIO],
        "efficiency": row[EFFICIENCY],
        "settling": min(row[SETTLING], NEVER),
        "status": status,
        "singular": int(row[FAULTS]),
    }


def _check(graph: Samples, values: Mapping[str, Any]) -> list[str]:
    """Compare with a simulation from rest in implicit steps, which shares no code with the labeller."""
    status = int(values["status"])
    if status not in LABELLED:
        return [f"the status of a labelled circuit is {status}"]
    ratio, efficiency, settling = (float(values[name]) for name in ("ratio", "efficiency", "settling"))
    has_power = status != NO_POWER
    return contradictions(ratio, efficiency, circuit_of(graph), operation_of(graph), settling, has_power=has_power)


def _statistics(samples: Samples) -> dict[str, NDArray[np.float64]]:
    labelled = samples.values["steady_failed"] == 0
    nothing = np.full(len(samples), math.nan)
    ratio, status = samples.values["ratio"], samples.values["status"]
    columns = {
        "mean_ratio": ratio,
        "mean_efficiency": samples.values["efficiency"],
        "converting": np.abs(ratio) > _LOWEST_RATIO,
        "settled_in_4_ms": samples.values["settling"] <= TRANSIENT,
        "regular": status == REGULAR,
    }
    return {name: np.where(labelled, value, nothing) for name, value in columns.items()}


def _baselines(samples: Samples) -> Mapping[str, NDArray[np.float64]]:
    return {}


def _shard_size(effort: SteadyEffort) -> int:
    return _SHARD_SIZE


def _compile(effort: SteadyEffort) -> None:
    steady_table([read_devices([("Sa", "VIN", "VOUT")])], [Operation(duty=0.5)])


LABELLERS: Mapping[str, Labeller] = {
    "steady_state": Labeller(
        name="circuits.steady_state",
        version=1,
        effort=SteadyEffort,
        label=_label,
        check=_check,
        failed="steady_failed",
        statistics=_statistics,
        baselines=_baselines,
        shard_size=_shard_size,
        compile_jobs=(CompileJob("graphbench.domains.circuits.periodic:steady_states", _compile),),
    ),
}
