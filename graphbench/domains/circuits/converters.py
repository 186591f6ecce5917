"""The public functions: the steady state of converters from lists of devices, and waveforms over one period."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from graphbench.core.errors import ArgumentError
from graphbench.core.validation import StrictModel, explain
from graphbench.domains.circuits.devices import INDUCTOR, VIN, Circuit, read_devices
from graphbench.domains.circuits.equations import (
    CAPACITOR_CUT,
    CAPACITOR_LOOP,
    FLOATING,
    INDUCTOR_CUT,
    INDUCTOR_LOOP,
    circuit_equations,
)
from graphbench.domains.circuits.periodic import (
    EFFICIENCY,
    FAULTS,
    INPUT_POWER,
    NUM_RESULTS,
    RATIO,
    SETTLING,
    STATUS,
    STATUSES,
    propagator,
    steady_states,
)

Floats = NDArray[np.float64]
Resistance = Annotated[float, Field(ge=1e-9, le=1e12, allow_inf_nan=False)]
Load = Annotated[float, Field(ge=1e-3, le=1e12, allow_inf_nan=False)]
Reactance = Annotated[float, Field(ge=1e-15, le=1e12, allow_inf_nan=False)]
Frequency = Annotated[float, Field(ge=1e-3, le=1e12, allow_inf_nan=False)]
_SINGULAR = {
    CAPACITOR_LOOP: "capacitor_loop",
    INDUCTOR_LOOP: "inductor_loop",
    CAPACITOR_CUT: "capacitor_cut",
    INDUCTOR_CUT: "inductor_cut",
    FLOATING: "floating",
}


class Elements(StrictModel):
    """The values of a converter's elements and its frequency, in SI units.

    Attributes:
        inductance: Inductance of every inductor.
        capacitance: Capacitance of every capacitor.
        frequency: Periods per second.
        input_resistance: Resistance between the source and VIN.
        on_resistance: Resistance of a switch that conducts.
        off_resistance: Resistance of a switch that does not conduct.
        output_capacitance: Capacitance of a capacitor from VOUT to GND that belongs to the load, in addition to the
            capacitors among the devices; 0 for none.
    """

    inductance: Reactance = 1e-4
    capacitance: Reactance = 1e-5
    frequency: Frequency = 1e6
    input_resistance: Resistance = 0.1
    on_resistance: Resistance = 1.0
    off_resistance: Resistance = 1e5
    output_capacitance: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] = 1e-5


class Operation(Elements):
    """The operating conditions of a converter and the values of its elements, in SI units.

    Attributes:
        duty: Share of a period in which Sa conducts and Sb does not.
        vin: Voltage of the source.
        load: Resistance from VOUT to GND.
    """

    duty: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    vin: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = 100.0
    load: Load = 100.0

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Operation:
        """Return checked values.

        Raises:
            ArgumentError: If a value is out of range; the message names it.
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise ArgumentError(explain(error, cls)) from error

    @property
    def elements(self) -> Floats:
        """float64 ``[8]``, as :func:`~.equations.circuit_equations` takes them."""
        return np.array(
            [
                self.load,
                self.inductance,
                self.capacitance,
                self.frequency,
                self.input_resistance,
                self.on_resistance,
                self.off_resistance,
                self.output_capacitance,
            ]
        )


@dataclass(frozen=True)
class SteadyState:
    """The periodic steady state of a converter.

    Attributes:
        ratio: Mean voltage of VOUT divided by the voltage of the source; nan if undefined.
        efficiency: Mean power of the load divided by the mean power of the source; 0 without power, nan if undefined.
        settling: Seconds until the slowest mode has decayed to 1 %; infinite if it never does.
        status: ``regular``; ``no_power``, the source delivers none, so that the efficiency is 0 by convention;
            ``undamped``, a mode that nothing drives does not decay, so a disturbance would stay; ``unstable``, a mode
            grows, which no passive circuit does; ``ill_conditioned``, rounding errors could exceed 1e-6, so no number
            is given; ``floating``, no device joins some nets to GND, so no number is given.
        singular: Causes of singularity in nodal analysis, all solved exactly except for floating nets:
            ``capacitor_loop``, ``inductor_loop``, ``capacitor_cut`` (an island of nets that only capacitors join to the
            rest; its charge is 0), ``inductor_cut`` (an island that only inductors join to the rest), ``floating``.
        input_power: Mean power of the source, in W.
    """

    ratio: float
    efficiency: float
    settling: float
    status: str
    singular: tuple[str, ...]
    input_power: float


@dataclass(frozen=True)
class Waveforms:
    """Voltages and currents over one period of the steady state.

    Attributes:
        time: float64 ``[P]``, seconds from the start of the period; the instant at which the switches change is in it
            twice, before and after.
        voltages: Net -> float64 ``[P]``, V, of all nets but GND.
        currents: Position of an inductor among the devices -> float64 ``[P]``, A, from its first net to its second.
        source_current: float64 ``[P]``, A, out of the source.
    """

    time: Floats
    voltages: Mapping[str, Floats]
    currents: Mapping[int, Floats]
    source_current: Floats


def steady_state(
    devices: Iterable[Sequence[str]],
    *,
    duty: float,
    vin: float = 100.0,
    load: float = 100.0,
    inductance: float = 1e-4,
    capacitance: float = 1e-5,
    frequency: float = 1e6,
    input_resistance: float = 0.1,
    on_resistance: float = 1.0,
    off_resistance: float = 1e5,
    output_capacitance: float = 1e-5,
) -> SteadyState:
    """Return the periodic steady state of a converter, exactly, as opposed to the end of a transient.

    Sa conducts during the first ``duty`` of a period, Sb during the rest; they change at the same instant. The source
    stands behind ``input_resistance`` at VIN, the load from VOUT to GND parallel to ``output_capacitance``, as in
    the paper (section 3.2.2). Conserved quantities, such as currents that circulate in loops of inductors, have the
    values of a circuit that starts from rest.

    Args:
        devices: ``(type, net, net)`` each: type Sa, Sb, C or L; nets VIN, VOUT, GND or any other name.
        duty: From 0 to 1.
        vin: V; ratio, efficiency and settling do not depend on it.
        load: Ohm.
        inductance: H, of every inductor.
        capacitance: F, of every capacitor among the devices.
        frequency: Hz.
        input_resistance: Ohm.
        on_resistance: Ohm, of a switch that conducts.
        off_resistance: Ohm, of a switch that does not.
        output_capacitance: F; 0 leaves the output capacitor out.

    Raises:
        ArgumentError: If a device or a value is malformed or out of range.
    """
    settings = {key: value for key, value in locals().items() if key != "devices"}
    (state,) = steady_states_of([read_devices(devices)], [Operation.read(settings)])
    return state


def steady_states_of(circuits: Sequence[Circuit], operations: Sequence[Operation]) -> list[SteadyState]:
    """Return the steady states of many circuits, in one call of compiled code."""
    results = steady_table(circuits, operations)
    return [_as_state(row, operation.vin) for row, operation in zip(results, operations, strict=True)]


def steady_table(circuits: Sequence[Circuit], operations: Sequence[Operation]) -> Floats:
    """Return the steady states of many circuits for a source of 1 V.

    Returns:
        float64 ``[S, 6]``, see :func:`~.periodic.converter_state`.
    """
    if not circuits:
        return np.empty((0, NUM_RESULTS))
    ptr = np.concatenate([[0], np.cumsum([len(circuit.types) for circuit in circuits])])
    return steady_states(
        np.concatenate([circuit.types for circuit in circuits]),
        np.concatenate([circuit.nets for circuit in circuits]),
        np.array([circuit.num_nets for circuit in circuits], np.int64),
        ptr.astype(np.int64),
        np.array([operation.duty for operation in operations]),
        np.stack([operation.elements for operation in operations]),
    )


def singularities(faults: int) -> tuple[str, ...]:
    """Return the names of the singularities that are encoded in a sum."""
    return tuple(name for bit, name in _SINGULAR.items() if faults & bit)


def _as_state(row: Floats, vin: float) -> SteadyState:
    return SteadyState(
        ratio=float(row[RATIO]),
        efficiency=float(row[EFFICIENCY]),
        settling=float(row[SETTLING]),
        status=STATUSES[int(row[STATUS])],
        singular=singularities(int(row[FAULTS])),
        input_power=float(row[INPUT_POWER]) * vin**2,
    )


def waveforms(devices: Iterable[Sequence[str]], *, duty: float, points: int = 200, **values: float) -> Waveforms:
    """Return the waveforms of a converter over one period of its steady state.

    Args:
        devices: As of :func:`steady_state`.
        duty: From 0 to 1.
        points: Instants per phase, at least 2.
        **values: As of :func:`steady_state`.

    Raises:
        ArgumentError: If a value is malformed or out of range, or the circuit has no steady state.
    """
    if points < 2:
        raise ArgumentError(f"points is {points}; give at least 2 instants per phase")
    circuit, operation = read_devices(devices), Operation.read({"duty": duty, **values})
    (state,) = steady_states_of([circuit], [operation])
    if not np.isfinite(state.ratio):
        raise ArgumentError(f"the circuit has no steady state ({state.status}), so there are no waveforms")
    _, *phases, fluxes = circuit_equations(circuit.types, circuit.nets, circuit.num_nets, operation.elements)
    rates, nodes = phases[:2], phases[2:]
    lengths = np.array([duty, 1.0 - duty]) / operation.frequency
    changes = [propagator(rates[phase], lengths[phase]) for phase in range(2)]
    period = changes[0] + changes[1] + changes[1] @ changes[0]
    start = np.append(np.linalg.solve(period[:-1, :-1], -period[:-1, -1]), 1.0)
    times, paths = [], []
    for phase in range(2):
        step = propagator(rates[phase], lengths[phase] / (points - 1))
        states = [start]
        for _ in range(points - 1):
            states.append(states[-1] + step @ states[-1])
        times.append(phase * lengths[0] + np.linspace(0.0, lengths[phase], points))
        paths.append(np.stack(states))
        start = start + changes[phase] @ start
    nets = np.concatenate([path @ of_phase.T for path, of_phase in zip(paths, nodes, strict=True)])
    return _named(circuit, operation, np.concatenate(times), nets, np.concatenate(paths) @ fluxes.T)


def _named(circuit: Circuit, operation: Operation, time: Floats, nodes: Floats, flux: Floats) -> Waveforms:
    scaled = operation.vin * nodes
    flux = np.concatenate([np.zeros((len(flux), 1)), flux], axis=1)  # the flux of GND is 0
    across = {
        device: flux[:, circuit.nets[device, 0]] - flux[:, circuit.nets[device, 1]]
        for device in np.flatnonzero(circuit.types == INDUCTOR).tolist()
    }
    return Waveforms(
        time=time,
        voltages={name: scaled[:, net - 1] for net, name in enumerate(circuit.names) if net},
        currents={device: operation.vin * drop / operation.inductance for device, drop in across.items()},
        source_current=(operation.vin - scaled[:, VIN - 1]) / operation.input_resistance,
    )
