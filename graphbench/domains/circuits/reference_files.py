"""Reader of the JSON files of the reference project: circuits that Fan et al. (2024) simulated with ngspice."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphbench.core.damage import fault_of, limited_bytes
from graphbench.core.errors import StoreError
from graphbench.domains.circuits.devices import Device

_NETS = {"0": "GND", "IN": "VIN", "OUT": "VOUT"}
_NAME = re.compile(r"(Sa|Sb|C|L)([0-9]+)")
MOST_BYTES = 1 << 28  # of a file of circuits; its lists take ten times as much memory
_MICRO, _MEGA, _VIN = 1e-6, 1e6, 100.0


@dataclass(frozen=True)
class SimulatedCircuit:
    """A circuit of the reference project with the results of its simulation.

    Attributes:
        devices: ``(type, net, net)`` each.
        duty: Duty cycle.
        load: Resistance of the load, in ohm.
        output_capacitance: F.
        frequency: Hz.
        vout: Mean output voltage, in V, at a source of 100 V; 0 where the simulation failed or was not valid.
        efficiency: As stored; 0 where the simulation failed or was not valid.
    """

    devices: list[Device]
    duty: float
    load: float
    output_capacitance: float
    frequency: float
    vout: float
    efficiency: float

    @property
    def ratio(self) -> float:
        """Conversion ratio, at the project's source of 100 V."""
        return self.vout / _VIN


def read_simulated_circuits(path: str | Path) -> list[SimulatedCircuit]:
    """Return the circuits of a file such as ``dataset_5_05_cleaned_label_small.json``.

    The file is a mapping of circuits with the keys ``netlist`` (``[name, net, net]`` each, where the ports' nets are
    ``0``, ``IN`` and ``OUT``), ``duty_cycle``, ``rout`` (ohm), ``cout`` (uF), ``freq`` (MHz), ``vout`` (V) and ``eff``.

    Raises:
        StoreError: If the file cannot be read, or a circuit has another form; the message names it.
    """
    file = Path(path)
    try:
        content = json.loads(limited_bytes(file, MOST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{file} cannot be read as JSON: {fault_of(error)}") from error
    if not isinstance(content, Mapping) or not content:
        raise StoreError(f"{file} holds no mapping of circuits")
    circuits = []
    for number, circuit in enumerate(content.values()):
        try:
            circuits.append(_circuit(circuit))
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{file}: circuit {number} is malformed: {type(error).__name__} {error}") from error
    return circuits


def _circuit(raw: Mapping[str, Any]) -> SimulatedCircuit:
    return SimulatedCircuit(
        devices=[_device(entry) for entry in raw["netlist"]],
        duty=float(raw["duty_cycle"]),
        load=float(raw["rout"]),
        output_capacitance=float(raw["cout"]) * _MICRO,
        frequency=float(raw["freq"]) * _MEGA,
        vout=float(raw["vout"]),
        efficiency=float(raw["eff"]),
    )


def _device(entry: Sequence[str]) -> Device:
    name, first, second = entry
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"device {name!r} is none of Sa, Sb, C, L with a number")
    return match[1], _NETS.get(first, first), _NETS.get(second, second)
