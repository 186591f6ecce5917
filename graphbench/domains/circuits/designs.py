"""Designs of power converters: what is wanted, and a proposal of devices and a duty cycle, both as short texts.

A goal is ``ratio=0.4312 efficiency=0.8213 devices=5 load=100``: the conversion ratio and the efficiency that the
circuit should have in its periodic steady state, the most devices that it may have, and the load in ohm. Other
conditions follow where they differ from the usual ones, under the names of :class:`~.converters.Operation`. A design is
``duty 0.35; Sa VIN n1; L n1 VOUT; Sb GND n1``: the duty cycle, and each device with its two nets; parts are separated
by semicolons or lines, and may come in any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import ArgumentError, DecodingError
from graphbench.domains.circuits.converters import Operation, steady_table
from graphbench.domains.circuits.devices import Circuit, Device, read_devices
from graphbench.domains.circuits.graphs import OPERATION
from graphbench.domains.circuits.periodic import EFFICIENCY, RATIO, REGULAR, STATUS
from graphbench.domains.circuits.topology import VALID, VERDICTS, verdict

GOAL = "goal"
"""The feature of samples that holds the text of a goal."""
TOLERANCE = 0.02
"""By how much the efficiency may fall short, and the ratio differ; in parts of a wanted ratio above 1 or below -1."""
_PRECISION = 4  # digits after the point of wanted values
_USUAL = Operation(duty=0.5)
_CONDITIONS = tuple(name for name in OPERATION if name != "duty")
LONGEST = 10_000
"""Most characters of a design."""
_WANTED = ("ratio", "efficiency", "devices")


@dataclass(frozen=True)
class Goal:
    """What a design should reach.

    Attributes:
        ratio: Wanted mean voltage at VOUT over the voltage of the source.
        efficiency: Wanted share of the power of the source that the load takes, at least.
        devices: Most devices.
        operation: The conditions; its duty cycle has no meaning, because a design chooses its own.
    """

    ratio: float
    efficiency: float
    devices: int
    operation: Operation

    def __str__(self) -> str:
        """Return the goal as text."""
        parts = [f"ratio={self.ratio:.{_PRECISION}f}", f"efficiency={self.efficiency:.{_PRECISION}f}"]
        parts += [f"devices={self.devices}", f"load={self.operation.load:.7g}"]
        for name in _CONDITIONS:
            value = getattr(self.operation, name)
            if name != "load" and value != getattr(_USUAL, name):
                parts.append(f"{name}={value:.7g}")
        return " ".join(parts)

    @classmethod
    def read(cls, text: str) -> Goal:
        """Return the goal of a text.

        Raises:
            DecodingError: If a part is missing, unknown, no number or outside its range.
        """
        try:
            numbers = _numbers(str(text))
            ratio, efficiency, devices = (numbers.pop(name) for name in _WANTED)
            if not 0 <= efficiency <= 1:
                raise ValueError(f"the efficiency is {efficiency:g}, and a share of the power is 0 to 1")
            if devices != int(devices) or devices < 1:
                raise ValueError(f"devices is {devices:g}, and a circuit has a whole number of them")
            return cls(ratio, efficiency, int(devices), Operation.read({"duty": 0.5, **numbers}))
        except (ValueError, ArgumentError) as error:
            raise DecodingError(
                f"the goal {str(text)!r:.200} cannot be read: {error}; it has the form "
                f"{str(Goal(0.5, 0.9, 5, _USUAL))!r}"
            ) from error


def _numbers(text: str) -> dict[str, float]:
    """Return the numbers of a goal by their names.

    Raises:
        ValueError: If a part is no finite number, is there twice or is missing.
    """
    numbers: dict[str, float] = {}
    for part in text.split():
        name, _, value = part.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not name or not math.isfinite(number):
            raise ValueError(f"{part!r:.60} is no finite number with a name")
        if name in numbers:
            raise ValueError(f"{name} is there twice")
        numbers[name] = number
    missing = [name for name in _WANTED if name not in numbers]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    return numbers


@dataclass(frozen=True)
class Design:
    """A proposed converter.

    Attributes:
        devices: ``(type, net, net)`` each, as of :func:`graphbench.domains.circuits.steady_state`.
        duty: Share of a period in which the switches Sa conduct and Sb do not, between 0 and 1.
    """

    devices: Sequence[Device]
    duty: float

    def __str__(self) -> str:
        """Return the design as text."""
        return "; ".join([f"duty {self.duty:.7g}", *(" ".join(device) for device in self.devices)])

    @classmethod
    def read(cls, text: str) -> Design:
        """Return the design of a text.

        Raises:
            ArgumentError: If a part has another form, or the duty cycle is missing or given twice.
        """
        if len(text) > LONGEST:
            raise ArgumentError(f"a design of {len(text):,} characters; at most {LONGEST:,} are read")
        duties, devices = [], []
        for part in text.replace("\n", ";").split(";"):
            words = part.split()
            if words and words[0].lower() == "duty":
                duties.append(words[1:])
            elif words:
                devices.append(words)
        if len(duties) != 1 or len(duties[0]) != 1:
            raise ArgumentError(f"a design has one part such as 'duty 0.35', this one has {len(duties)}")
        try:
            duty = float(duties[0][0])
        except ValueError as error:
            raise ArgumentError(f"the duty cycle is {duties[0][0]!r}; give a number between 0 and 1") from error
        return cls([(words[0], *words[1:]) for words in devices], duty)  # type: ignore[misc] # checked by `checked`

    def checked(self) -> Circuit:
        """Return the circuit.

        Raises:
            ArgumentError: If the duty cycle or a device is malformed.
        """
        if isinstance(self.duty, bool) or not isinstance(self.duty, (int, float, np.integer, np.floating)):
            raise ArgumentError(f"the duty cycle is {self.duty!r}; give a number between 0 and 1")
        if not 0.0 < self.duty < 1.0:
            raise ArgumentError(f"the duty cycle is {self.duty}; give a number between 0 and 1, both excluded")
        return read_devices(self.devices)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What designs reach.

    Attributes:
        ratio: float64 ``[S]``; nan where a design has no steady state.
        efficiency: float64 ``[S]``; nan where a design has no steady state.
        faults: For each design why it is no working converter, in words; None if it is one.
    """

    ratio: NDArray[np.float64]
    efficiency: NDArray[np.float64]
    faults: list[str | None]

    def met(self, goals: Sequence[Goal]) -> NDArray[np.bool_]:
        """Return whether each design meets its goal, bool ``[S]``, within :data:`TOLERANCE`."""
        wanted = np.array([(goal.ratio, goal.efficiency) for goal in goals]).reshape(-1, 2)
        with np.errstate(invalid="ignore"):
            near = np.abs(self.ratio - wanted[:, 0]) <= TOLERANCE * np.maximum(1.0, np.abs(wanted[:, 0]))
            return near & (self.efficiency >= wanted[:, 1] - TOLERANCE)


def miss(ratio: NDArray[np.float64], efficiency: NDArray[np.float64], goal: Goal) -> NDArray[np.float64]:
    """Return by how many tolerances results miss a goal: the larger of the two misses; inf without results."""
    scale = max(1.0, abs(goal.ratio))
    misses = np.maximum(np.abs(ratio - goal.ratio) / scale, goal.efficiency - efficiency) / TOLERANCE
    return np.where(np.isnan(misses), math.inf, misses)


def evaluated(circuits: Sequence[Circuit], duties: Sequence[float], goals: Sequence[Goal]) -> Outcomes:
    """Return the exact steady states of proposed circuits under the conditions of their goals."""
    operations = [
        goal.operation.model_copy(update={"duty": float(duty)}) for duty, goal in zip(duties, goals, strict=True)
    ]
    faults: list[str | None] = []
    for circuit, goal in zip(circuits, goals, strict=True):
        rule = verdict(circuit.types, circuit.nets, circuit.num_nets)
        if len(circuit.types) > goal.devices:
            faults.append(TOO_MANY)
        else:
            faults.append(None if rule == VALID else _RULES[VERDICTS[rule]])
    sound = [i for i, fault in enumerate(faults) if fault is None]
    rows = steady_table([circuits[i] for i in sound], [operations[i] for i in sound])
    ratio, efficiency = np.full(len(circuits), math.nan), np.full(len(circuits), math.nan)
    for i, row in zip(sound, rows, strict=True):
        if row[STATUS] == REGULAR:
            ratio[i], efficiency[i] = row[RATIO], row[EFFICIENCY]
        else:
            faults[i] = NO_STATE
    return Outcomes(ratio, efficiency, faults)


TOO_MANY = "the circuit has more devices than allowed"
NO_STATE = "the circuit transfers no power, or has no stable periodic steady state"
_RULES = {
    "shorted": "a device has both terminals on one net",
    "unconnected": "two of the ports are not joined",
    "redundant": "a device is on no path between two ports",
    "forbidden": "a path joins two ports by an inductor or by switches alone",
}
FAULTS = (TOO_MANY, NO_STATE, *_RULES.values())
"""Why a design is no working converter."""
