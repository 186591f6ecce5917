"""The transient of a converter from its start, exactly, and the labels that the paper's simulation of 4 ms gives.

The equations of a phase are from :mod:`~.equations`; a period is a product of matrix exponentials, and a transient
of thousands of periods a power of that product. The only difference to ngspice is the error of ngspice's time steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import ArgumentError
from graphbench.domains.circuits.converters import Operation
from graphbench.domains.circuits.devices import VIN, VOUT, read_devices
from graphbench.domains.circuits.equations import FLOATING, OFF_RESISTANCE, ON_RESISTANCE, circuit_equations

Settings = Literal["exact", "paper", "overlap"]
Floats = NDArray[np.float64]

PAPER_SECONDS = 4e-3
_MAX_PERIODS = 1e15
AVERAGED = 50  # periods at the end of a transient, over which means are taken
EDGE = 1e-9  # seconds that a gate takes to rise or fall
_BETWEEN = 0.5 * EDGE  # while gates change: with "paper" no switch conducts for so long, with "overlap" all do
_LONGER = {"paper": 0.5 * EDGE, "overlap": -1.5 * EDGE}  # added to D T: the time in which Sa alone conducts
_TERMS, _STEP = 14, 0.25
_MIN_POWER, _ADDED_POWER = 1e-3, 1e-2  # W, of the reference project's rules


@dataclass(frozen=True)
class Transient:
    """Means over the last 50 periods of a transient.

    Attributes:
        ratio: Mean voltage of VOUT divided by the voltage of the source.
        output_power: W, of the load.
        input_power: W, of the source; it may be negative while a circuit settles.
        drift: Difference of the ratio between the first and the last 25 of these periods.
        vin: V, of the source.
    """

    ratio: float
    output_power: float
    input_power: float
    drift: float
    vin: float

    @property
    def efficiency(self) -> float:
        """Mean output power over mean input power; nan without input power."""
        return self.output_power / self.input_power if self.input_power else math.nan

    @property
    def paper_label(self) -> tuple[float, float, bool]:
        """The reference project's labels of the circuit: ratio, efficiency, and whether the circuit is valid.

        10 mW are added to the input power. A circuit is valid if this efficiency is from 0 to 1, the input power at
        least 1 mW in magnitude, and the drift at most 1 % of the ratio or 0.005; the label of others is 0.
        """
        efficiency = self.output_power / (self.input_power + _ADDED_POWER)
        settled = abs(self.drift) <= max(0.01 * abs(self.ratio), 0.005)
        if settled and 0.0 <= efficiency <= 1.0 and abs(self.input_power) >= _MIN_POWER:
            return self.ratio, efficiency, True
        return 0.0, 0.0, False


def transient(
    devices: Iterable[Sequence[str]],
    *,
    duty: float,
    seconds: float = PAPER_SECONDS,
    settings: Settings = "exact",
    **values: float,
) -> Transient:
    """Return means over the last 50 periods of a transient, as :func:`~.spice.to_spice` lets ngspice simulate it.

    Args:
        devices: ``(type, net, net)`` each, as of :func:`~.converters.steady_state`.
        duty: From 0 to 1.
        seconds: Length of the transient; it is rounded to whole periods.
        settings: ``exact``: both kinds of switches change at the same instant, and the circuit starts from rest.
            ``paper``: no switch conducts for 0.5 ns at every change, and the transient starts from the operating point
            of the circuit in which Sb conducts. ``overlap``: all switches conduct for these 0.5 ns, and the transient
            starts where Sa conducts; this simulation yields the labels of the reference project's public file.
        **values: As of :func:`~.converters.steady_state`.

    Raises:
        ArgumentError: If a value is malformed or out of range, the transient is shorter than 50 periods, or a net is
            not joined to GND.
    """
    if settings not in get_args(Settings):
        raise ArgumentError(f"settings {settings!r} is unknown; choose one of {', '.join(get_args(Settings))}")
    circuit, operation = read_devices(devices), Operation.read({"duty": duty, **values})
    if not AVERAGED - 0.5 <= seconds * operation.frequency < _MAX_PERIODS:
        raise ArgumentError(
            f"seconds is {seconds}, or {seconds * operation.frequency:.3g} periods; give from {AVERAGED} periods, over "
            f"which means are taken, to {_MAX_PERIODS:.0e}"
        )
    periods = round(seconds * operation.frequency)
    elements = operation.elements
    equations = circuit_equations(circuit.types, circuit.nets, circuit.num_nets, elements)
    if equations[0] & FLOATING:
        raise ArgumentError("a net is not joined to GND, so the circuit has no transient")
    on_a, on_b = (equations[1], equations[3]), (equations[2], equations[4])
    start = np.append(np.zeros(len(equations[1]) - 1), 1.0)
    first, period = operation.duty / operation.frequency, 1.0 / operation.frequency
    phases = [(on_a, first), (on_b, period - first)]
    if settings != "exact":
        if settings == "paper":
            elements[ON_RESISTANCE] = elements[OFF_RESISTANCE]
        else:
            elements[OFF_RESISTANCE] = elements[ON_RESISTANCE]
        alike = circuit_equations(circuit.types, circuit.nets, circuit.num_nets, elements)
        change = ((alike[1], alike[3]), _BETWEEN)
        alone = first + _LONGER[settings]
        rest = period - alone - 2 * _BETWEEN
        if min(alone, rest) <= 0 or not 0 < operation.duty < 1:
            raise ArgumentError(f"the duty cycle {duty} leaves a switch no time beside edges of {EDGE:g} s")
        phases = [change, (on_a, alone), change, (on_b, rest)]
        start = _operating_point(equations[2] if settings == "paper" else equations[1])
    return _means([_phase(*equations, length) for equations, length in phases], start, periods, operation)


def _operating_point(rates: Floats) -> Floats:
    """Return the state that does not change; of several, the state of least energy."""
    state = np.linalg.lstsq(rates[:-1, :-1], -rates[:-1, -1], rcond=None)[0]
    return np.append(state, 1.0)


def _phase(rates: Floats, nodes: Floats, time: float) -> tuple[Floats, Floats, Floats]:
    """Return the propagator of a phase, and integrals of output and input voltage and of the square of the former."""
    doublings = max(0, math.ceil(math.log2(max(float(np.linalg.norm(rates)) * time / _STEP, 1e-300))))
    step = time / 2.0**doublings
    exponent, size = rates * step, len(rates)
    output = nodes[VOUT - 1]
    change, term = np.zeros((size, size)), np.eye(size)
    linear, integral = np.zeros((size, size)), step * np.eye(size)
    form = step * np.outer(output, output)
    square = form.copy()
    for k in range(1, _TERMS):
        linear += integral
        term, integral = term @ exponent / k, integral @ exponent / (k + 1)
        change += term
        form = (form @ exponent + exponent.T @ form) / (k + 1)
        square += form
    means = nodes[[VOUT - 1, VIN - 1]] @ linear
    for _ in range(doublings):
        means = 2.0 * means + means @ change
        half = square @ change
        square = 2.0 * square + half + change.T @ (square + half)
        change = 2.0 * change + change @ change
    return change + np.eye(size), means, square


def _means(
    phases: Sequence[tuple[Floats, Floats, Floats]], start: Floats, periods: int, operation: Operation
) -> Transient:
    period = np.eye(len(start))
    for change, _, _ in phases:
        period = change @ period
    state = np.linalg.matrix_power(period, periods - AVERAGED) @ start
    rows = np.zeros((AVERAGED, 3))  # means of VOUT, VIN and the square of VOUT in every period, for a source of 1 V
    for row in rows:
        for change, means, square in phases:
            row += [*(means @ state), state @ square @ state]
            state = change @ state
    rows *= operation.frequency
    mean_out, mean_in, mean_square = rows.mean(axis=0)
    half = AVERAGED // 2
    return Transient(
        ratio=float(mean_out),
        output_power=float(mean_square) * operation.vin**2 / operation.load,
        input_power=float(1.0 - mean_in) / operation.input_resistance * operation.vin**2,
        drift=float(rows[half:, 0].mean() - rows[:half, 0].mean()),
        vin=operation.vin,
    )
