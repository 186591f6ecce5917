"""The generator of power converters: random valid topologies, each with a duty cycle and a load."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from graphbench.core.errors import GenerationError
from graphbench.core.rng import below, seed
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.generators import CompileJob, Generator
from graphbench.domains.circuits.checks import check_graphs
from graphbench.domains.circuits.converters import Elements, Load, Operation
from graphbench.domains.circuits.drawing import MOST_DRAWS, draw_topologies
from graphbench.domains.circuits.graphs import circuit_of, circuits_as_samples
from graphbench.domains.circuits.topology import topology_number

_SHARD_SIZE = 2048
_OPERATION_STREAM = 1
_Share = Annotated[float, Field(ge=0, le=1)]


class ConverterParameters(Elements):
    """The distribution of the circuits of a split.

    Attributes:
        devices: Number of devices of every circuit.
        duties: Duty cycles, drawn with equal probability.
        loads: Resistances of the load in ohm, drawn with equal probability.
        topologies: Range of the numbers of topologies (:func:`~.topology.topology_number`), from 0 to 1, from which the
            split draws; splits of disjoint ranges have no topology in common.
    """

    devices: Annotated[int, Field(ge=2, le=12)]
    duties: Annotated[tuple[Annotated[float, Field(gt=0, lt=1)], ...], Field(min_length=1)]
    loads: Annotated[tuple[Load, ...], Field(min_length=1)] = (100.0,)
    topologies: tuple[_Share, _Share] = (0.0, 1.0)

    @model_validator(mode="after")
    def _check_range(self) -> ConverterParameters:
        low, high = self.topologies
        if not low < high:
            raise ValueError(f"topologies {[low, high]} is empty; give the lower end first")
        return self

    def operation(self, duty: float, load: float) -> Operation:
        """Return the operating conditions of a circuit of the split."""
        elements = {name: getattr(self, name) for name in Elements.model_fields}
        return Operation(duty=duty, load=load, **elements)


def _generate(
    parameters: ConverterParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    low, high = parameters.topologies
    types, nets, num_nets, draws = draw_topologies(key, indices, attempts, parameters.devices, low, high)
    if not draws.all():
        raise GenerationError(
            f"{MOST_DRAWS:,} random topologies of {parameters.devices} devices are no valid converters with a number "
            f"in {[low, high]}; widen the range, or take more devices"
        )
    operations = []
    for index, attempt in zip(indices.tolist(), attempts.tolist(), strict=True):
        state = seed(key, index, attempt, _OPERATION_STREAM)
        duty = parameters.duties[below(state, len(parameters.duties))]
        operations.append(parameters.operation(duty, parameters.loads[below(state, len(parameters.loads))]))
    return circuits_as_samples(types, nets, num_nets, operations)


def _statistics(parameters: ConverterParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    circuits = [circuit_of(samples, i) for i in range(len(samples))]
    counts = np.array([np.bincount(circuit.types, minlength=4) for circuit in circuits], np.float64).reshape(-1, 4)
    return {
        "nets": np.array([circuit.num_nets for circuit in circuits], np.float64),
        "switches": counts[:, 0] + counts[:, 1],
        "capacitors": counts[:, 2],
        "inductors": counts[:, 3],
    }


def _hold_outs(parameters: ConverterParameters, samples: Samples) -> dict[str, tuple[str, list[str]]]:
    """Return the circuits whose topologies belong to another split."""
    low, high = parameters.topologies
    problems = []
    for i in range(len(samples)):
        circuit = circuit_of(samples, i)
        number = topology_number(circuit.types, circuit.nets)
        if not low <= number < high:
            problems.append(f"graph {i} has topology number {number:.4f}")
    return {"topologies": (f"topologies have numbers from {low:g} to {high:g}, so that splits share none", problems)}


def _shard_size(parameters: ConverterParameters) -> int:
    return _SHARD_SIZE


def _compile(parameters: ConverterParameters) -> None:
    _generate(parameters, np.uint64(0), np.zeros(1, np.int64), np.zeros(1, np.int64))


CONVERTERS = Generator(
    name="circuits.converters",
    version=1,
    parameters=ConverterParameters,
    generate=_generate,
    check=check_graphs,
    statistics=_statistics,
    shard_size=_shard_size,
    unique_inputs=True,
    hold_outs=_hold_outs,
    compile_jobs=(CompileJob("graphbench.domains.circuits.drawing:draw_topologies", _compile),),
)
