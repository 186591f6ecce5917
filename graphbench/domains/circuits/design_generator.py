"""The generator of goals of designs: what a random converter reaches is wanted, and the converter is the reference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator

from graphbench.core.errors import GenerationError
from graphbench.core.kernels import kernel
from graphbench.core.rng import below, seed, uniform
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts
from graphbench.data.components.generators import CompileJob, Generator
from graphbench.domains.circuits.checks import broken_rules, contradictions
from graphbench.domains.circuits.converters import Elements, Load, Operation, steady_table
from graphbench.domains.circuits.design_search import reference_scores
from graphbench.domains.circuits.designs import GOAL, Design, Goal
from graphbench.domains.circuits.devices import PORTS, Circuit, net_names
from graphbench.domains.circuits.drawing import MOST_DRAWS, draw_topology
from graphbench.domains.circuits.graphs import logarithms
from graphbench.domains.circuits.periodic import EFFICIENCY, RATIO, REGULAR, SETTLING, STATUS, steady_states
from graphbench.domains.circuits.topology import VALID, Ints, canonical_form, topology_number, verdict

REFERENCE = "reference"
_DUTY_STEPS = 10_000.0  # duty cycles have four digits after the point
_SHARD_SIZE = 256

Floats = NDArray[np.float64]


def _rising(bounds: tuple[float, float]) -> tuple[float, float]:
    if not bounds[0] < bounds[1]:
        raise ValueError(f"{list(bounds)} is empty; give the lower end first")
    return bounds


_Share = Annotated[float, Field(ge=0, le=1)]
_Duty = Annotated[float, Field(gt=0, lt=1)]
_Ratio = Annotated[float, Field(ge=-100, le=100)]


class DesignParameters(Elements):
    """The distribution of the goals of a split; random topologies are drawn as for ``circuits.converters``.

    Attributes:
        devices: Number of devices of the circuits behind the goals, and most devices of a design.
        duty: Range of their duty cycles, which are uniform and have four digits after the point.
        ratios: Ranges of wanted ratios; each goal draws one of them with equal probability, and then circuits until one
            has such a ratio. Ratios near 1 are easily reached: VOUT is joined to VIN.
        least_efficiency: Goals have at least this efficiency.
        loads: Resistances of the load in ohm, drawn with equal probability.
        topologies: Range of the numbers of topologies (:func:`~.topology.topology_number`), from 0 to 1.
    """

    devices: Annotated[int, Field(ge=2, le=12)]
    duty: Annotated[tuple[_Duty, _Duty], AfterValidator(_rising)]
    ratios: Annotated[tuple[Annotated[tuple[_Ratio, _Ratio], AfterValidator(_rising)], ...], Field(min_length=1)]
    least_efficiency: _Share = 0.5
    loads: Annotated[tuple[Load, ...], Field(min_length=1)] = (100.0,)
    topologies: Annotated[tuple[_Share, _Share], AfterValidator(_rising)] = (0.0, 1.0)

    @model_validator(mode="after")
    def _check_zero(self) -> DesignParameters:
        near = [list(bounds) for bounds in self.ratios if bounds[0] < 0 < bounds[1]]
        if near:
            raise ValueError(f"ratios {near[0]} has both signs; give a range for each")
        return self

    def operation(self, duty: float, load: float) -> Operation:
        """Return the operating conditions of a circuit of the split."""
        return Operation(duty=duty, load=load, **{name: getattr(self, name) for name in Elements.model_fields})


@kernel
def draw_goals(
    key: np.uint64,
    indices: Ints,
    attempts: Ints,
    devices: int,
    topologies: tuple[float, float],
    duty: tuple[float, float],
    ratios: Floats,
    least_efficiency: float,
    parameters: Floats,
) -> tuple[Ints, Ints, Ints, Floats, Ints, Floats, Ints]:
    """Draw circuits until each has a ratio in its range, all from ``seed(key, index, attempt, 0)``.

    Args:
        key: Key of the split, uint64.
        indices: int64 ``[S]``, positions in the split.
        attempts: int64 ``[S]``.
        devices: Number K of devices.
        topologies: Range of the numbers of topologies.
        duty: Range of duty cycles.
        ratios: float64 ``[R, 2]``, the ranges of ratios.
        least_efficiency: Least efficiency.
        parameters: float64 ``[P, 8]``, the conditions, which are drawn with equal probability, as of
            :func:`~.periodic.steady_states`.

    Returns:
        ``types`` int64 ``[S, K]``, ``nets`` int64 ``[S, K, 2]``, ``num_nets`` int64 ``[S]``, ``duty`` float64 ``[S]``,
        ``condition`` int64 ``[S]``, ``results`` float64 ``[S, 2]``, ratio and efficiency, and ``draws`` int64 ``[S]``,
        the topologies drawn; 0 if there was no such circuit among a million.
    """
    count, ports = indices.shape[0], 3
    types, nets = np.zeros((count, devices), np.int64), np.zeros((count, devices, 2), np.int64)
    num_nets, draws = np.full(count, ports), np.zeros(count, np.int64)
    duties, condition, results = np.zeros(count), np.zeros(count, np.int64), np.zeros((count, 2))
    whole = np.array([0, devices])
    for s in range(count):
        state = seed(key, indices[s], attempts[s], 0)
        wanted = below(state, ratios.shape[0])
        for draw in range(1, MOST_DRAWS + 1):
            drawn_types, drawn_nets, drawn_count = draw_topology(state, devices)
            if verdict(drawn_types, drawn_nets, drawn_count) != VALID:
                continue
            drawn_types, drawn_nets = canonical_form(drawn_types, drawn_nets, drawn_count)
            if not topologies[0] <= topology_number(drawn_types, drawn_nets) < topologies[1]:
                continue
            steps = math.floor((duty[0] + (duty[1] - duty[0]) * uniform(state)) * _DUTY_STEPS + 0.5)
            drawn_duty, drawn_condition = steps / _DUTY_STEPS, below(state, parameters.shape[0])
            drawn_parameters = parameters[drawn_condition : drawn_condition + 1]
            row = steady_states(
                drawn_types, drawn_nets, np.array([drawn_count]), whole, np.array([drawn_duty]), drawn_parameters
            )[0]
            if row[STATUS] != REGULAR or row[EFFICIENCY] < least_efficiency:
                continue
            if ratios[wanted, 0] <= row[RATIO] < ratios[wanted, 1]:
                types[s], nets[s], num_nets[s], draws[s] = drawn_types, drawn_nets, drawn_count, draw
                duties[s], condition[s] = drawn_duty, drawn_condition
                results[s, 0], results[s, 1] = row[RATIO], row[EFFICIENCY]
                break
    return types, nets, num_nets, duties, condition, results, draws


def _generate(
    parameters: DesignParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    conditions = np.stack([parameters.operation(0.5, load).elements for load in parameters.loads])
    ranges = np.array(parameters.ratios, np.float64)
    types, nets, num_nets, duties, condition, results, draws = draw_goals(
        key,
        indices,
        attempts,
        parameters.devices,
        parameters.topologies,
        parameters.duty,
        ranges,
        parameters.least_efficiency,
        conditions,
    )
    if not draws.all():
        raise GenerationError(
            f"among {MOST_DRAWS:,} random topologies of {parameters.devices} devices with a number in "
            f"{list(parameters.topologies)} there is none with a ratio in one of {ranges.tolist()} and an "
            f"efficiency of {parameters.least_efficiency} or more; change ratios, topologies or least_efficiency"
        )
    goals, designs = [], []
    for s in range(len(indices)):
        operation = parameters.operation(float(duties[s]), parameters.loads[condition[s]])
        goals.append(Goal(float(results[s, 0]), float(results[s, 1]), parameters.devices, operation))
        designs.append(Design(Circuit(types[s], nets[s], net_names(int(num_nets[s]))).devices, operation.duty))
    return goals_as_samples(goals, designs)


def goals_as_samples(goals: list[Goal], designs: list[Design]) -> Samples:
    """Return the samples of goals: the ports of a converter without devices, joined by source and load.

    Returns:
        Samples with the features ``port`` (nodes), ``wanted`` (graphs: ratio, efficiency and most devices),
        ``elements`` (graphs, as of :func:`~.graphs.circuits_as_samples`), ``goal`` and ``reference`` (texts).
    """
    count, ports = len(goals), len(PORTS)
    values: dict[str, object] = {
        "port": np.tile(np.arange(ports), count),
        "wanted": np.array([(goal.ratio, goal.efficiency, goal.devices) for goal in goals]).reshape(-1, 3),
        "elements": logarithms([goal.operation for goal in goals]),
        GOAL: Texts.of(str(goal) for goal in goals),
        REFERENCE: Texts.of(str(design) for design in designs),
    }
    edges = np.tile(np.array([[0, 1], [0, 2]], np.int32), (count, 1))
    return Samples(np.full(count, ports), np.full(count, 2), edges, values)


def _check(parameters: DesignParameters, samples: Samples) -> list[str]:
    """Return the goals that their references do not reach, by a simulation in implicit steps, and wrong references."""
    problems = []
    texts = zip(samples.values[GOAL].strings(), samples.values[REFERENCE].strings(), strict=True)
    for i, (goal_text, design_text) in enumerate(texts):
        goal, design = Goal.read(goal_text), Design.read(design_text)
        circuit, operation = design.checked(), goal.operation.model_copy(update={"duty": design.duty})
        broken = broken_rules(circuit)
        if len(circuit.types) != parameters.devices or goal.devices != parameters.devices:
            broken.append(f"it has {len(circuit.types)} devices for a goal of {goal.devices}")
        if not broken:
            settling = float(steady_table([circuit], [operation])[0, SETTLING])
            broken = contradictions(goal.ratio, goal.efficiency, circuit, operation, settling)
        problems += [f"goal {i}: {problem}" for problem in broken]
    return problems


def _statistics(parameters: DesignParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    wanted = np.asarray(samples.values["wanted"], np.float64)
    return {
        "mean_ratio": wanted[:, 0],
        "mean_efficiency": wanted[:, 1],
        "inverting": (wanted[:, 0] < 0).astype(np.float64),
    }


def _shard_size(parameters: DesignParameters) -> int:
    return _SHARD_SIZE


def _compile(parameters: DesignParameters) -> None:
    _generate(parameters, np.uint64(0), np.zeros(1, np.int64), np.zeros(1, np.int64))


def _solvers(parameters: DesignParameters, train: Samples, samples: Samples) -> Mapping[str, Mapping[str, float]]:
    known, goals = (part.values[GOAL].strings() for part in (train, samples))
    return reference_scores(parameters.devices, known, train.values[REFERENCE].strings(), goals)


DESIGNS = Generator(
    name="circuits.designs",
    version=1,
    parameters=DesignParameters,
    generate=_generate,
    check=_check,
    statistics=_statistics,
    shard_size=_shard_size,
    unique_inputs=True,
    solvers=_solvers,
    compile_jobs=(CompileJob("graphbench.domains.circuits.design_generator:draw_goals", _compile),),
)
