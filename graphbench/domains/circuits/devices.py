"""Circuits of power converters: lists of devices between named nets, and the arrays that compiled code reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import ArgumentError
from graphbench.core.suggestions import closest

TYPES = ("Sa", "Sb", "C", "L")
SA, SB, CAPACITOR, INDUCTOR = range(4)
PORTS = ("GND", "VIN", "VOUT")
GND, VIN, VOUT = range(3)
MOST_DEVICES = 64

Device = tuple[str, str, str]
"""A device: its type, and the nets of its two terminals."""


@dataclass(frozen=True)
class Circuit:
    """A circuit as arrays.

    Attributes:
        types: int64 ``[K]``, the type of every device: a position in :data:`TYPES`.
        nets: int64 ``[K, 2]``, the nets of every device's terminals: positions in ``names``.
        names: Names of the nets, the ports GND, VIN, VOUT first.
    """

    types: NDArray[np.int64]
    nets: NDArray[np.int64]
    names: tuple[str, ...]

    @property
    def num_nets(self) -> int:
        """Number of nets, ports included."""
        return len(self.names)

    @property
    def devices(self) -> list[Device]:
        """The devices by the names of their types and nets."""
        pairs = zip(self.types.tolist(), self.nets.tolist(), strict=True)
        return [(TYPES[kind], self.names[a], self.names[b]) for kind, (a, b) in pairs]


def read_devices(devices: Iterable[Sequence[str]]) -> Circuit:
    """Return devices as arrays; internal nets are numbered from 3 in the order of their first use.

    Args:
        devices: ``(type, net, net)`` each; the type is Sa, Sb, C or L, a net is VIN, VOUT, GND or any other name.

    Raises:
        ArgumentError: If there are no or too many devices, an entry has another form, a type is unknown, a net has no
            name, or both terminals of a device are on one net.
    """
    if not isinstance(devices, Iterable) or isinstance(devices, str):
        raise ArgumentError(f"the devices are {devices!r:.60}; give a list of (type, net, net)")
    listed = list(devices)
    if not 1 <= len(listed) <= MOST_DEVICES:
        raise ArgumentError(f"a circuit has 1 to {MOST_DEVICES} devices, got {len(listed)}")
    numbers = {port: number for number, port in enumerate(PORTS)}
    types, nets = [], []
    for index, device in enumerate(listed):
        _check_device(index, device)
        kind, *ends = device
        types.append(TYPES.index(kind))
        nets.append([numbers.setdefault(net, len(numbers)) for net in ends])
    return Circuit(np.array(types, np.int64), np.array(nets, np.int64), tuple(numbers))


def _check_device(number: int, device: Sequence[str]) -> None:
    if isinstance(device, str) or len(device) != 3 or not all(isinstance(part, str) and part for part in device):
        raise ArgumentError(f"device {number} is {device!r}; give (type, net, net), such as ('L', 'VIN', 'x')")
    kind, first, second = device
    if kind not in TYPES:
        raise ArgumentError(
            f"device {number} has the type {kind!r}{closest(kind, TYPES)}; the types are {', '.join(TYPES)}"
        )
    for net in (first, second):
        port = "GND" if net == "0" else net.upper()
        if net not in PORTS and port in PORTS:
            raise ArgumentError(f"device {number} ({kind}) is on the net {net!r}; did you mean the port {port!r}?")
    if first == second:
        raise ArgumentError(
            f"both terminals of device {number} ({kind}) are on the net {first!r}; it has no effect there"
        )


def net_names(count: int) -> tuple[str, ...]:
    """Return the names of the ports and of internal nets ``n1``, ``n2``, ..., ``count`` in all."""
    return (*PORTS, *(f"n{i}" for i in range(1, count - len(PORTS) + 1)))
