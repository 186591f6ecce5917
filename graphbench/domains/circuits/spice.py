"""Netlists of converters for ngspice, which simulates the circuits that :mod:`~.periodic` solves."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from graphbench.core.errors import ArgumentError, MissingDependency, SolverError
from graphbench.domains.circuits.converters import Operation
from graphbench.domains.circuits.devices import CAPACITOR, GND, INDUCTOR, SA, VIN, VOUT, Circuit, read_devices
from graphbench.domains.circuits.transients import AVERAGED, EDGE, PAPER_SECONDS, Settings

_PLACES = {GND: "0", VIN: "vin", VOUT: "vout"}
_MEASURE = re.compile(r"^(mean_\w+)\s*=\s*(\S+)", re.MULTILINE)


def to_spice(
    devices: Iterable[Sequence[str]],
    *,
    duty: float,
    settings: Settings = "exact",
    seconds: float = PAPER_SECONDS,
    **values: float,
) -> str:
    """Return a netlist for ``ngspice -b file``, which prints means over the last 50 periods.

    The means are ``mean_vout`` and ``mean_in`` (V), ``mean_pout`` and ``mean_pin`` (W).

    Args:
        devices: ``(type, net, net)`` each, as of :func:`~.converters.steady_state`.
        duty: From 0 to 1.
        settings: ``exact``: both kinds of switches change at the same instant, and the circuit starts from rest.
            ``paper``: as the reference project simulates: gates of 0 V to ``vin`` with edges of 1 ns, whose difference
            switches at ``vin / 2``, so that no switch conducts for 0.5 ns around every edge; the transient starts from
            the operating point. ``overlap``: the gate of Sa falls first, and the difference switches at ``-vin / 2``,
            so that all switches conduct for 0.5 ns.
        seconds: Length of the transient; the paper takes 4 ms, in which not all converters settle.
        **values: As of :func:`~.converters.steady_state`.

    Raises:
        ArgumentError: If a device or a value is malformed or out of range.
    """
    if settings not in get_args(Settings):
        raise ArgumentError(f"settings {settings!r} is unknown; choose one of {', '.join(get_args(Settings))}")
    circuit, operation = read_devices(devices), Operation.read({"duty": duty, **values})
    period = 1.0 / operation.frequency
    if not seconds >= AVERAGED * period:
        raise ArgumentError(f"seconds is {seconds}; means are taken over {AVERAGED} periods, {AVERAGED * period:g} s")
    begin = seconds - AVERAGED * period
    lines = [
        f"* power converter, duty {duty:g}, {operation.frequency:g} Hz",
        *(f"* net {_node_name(net)}: {_plain(name)}" for net, name in enumerate(circuit.names)),
        f"Vsource source 0 {operation.vin!r}",
        f"Rinput source vin {operation.input_resistance!r}",
        f"Rload vout 0 {operation.load!r}",
        *([f"Cload vout 0 {operation.output_capacitance!r}"] if operation.output_capacitance else []),
        *_device_lines(circuit, operation),
        *_gate_lines(operation, settings),
        f"Bpout pout 0 V=V(vout)*V(vout)/{operation.load!r}",
        f"Bpin pin 0 V=-I(Vsource)*{operation.vin!r}",
        ".options method=trap reltol=1e-4" if settings == "exact" else ".options method=trap",
        ".save v(vout) v(vin) v(pout) v(pin)",
        f".tran {period / 100:.6g} {seconds:.9g} {begin:.9g} {period / 20:.6g}"
        + (" uic" if settings == "exact" else ""),
        *(
            f".measure tran mean_{name} AVG v({node}) FROM={begin:.9g} TO={seconds:.9g}"
            for name, node in (("vout", "vout"), ("in", "vin"), ("pout", "pout"), ("pin", "pin"))
        ),
        ".end",
    ]
    return "\n".join(lines) + "\n"


def _node_name(net: int) -> str:
    return _PLACES.get(net, f"n{net - 2}")


def _plain(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def _device_lines(circuit: Circuit, operation: Operation) -> list[str]:
    lines = []
    for number, (kind, (a, b)) in enumerate(zip(circuit.types.tolist(), circuit.nets.tolist(), strict=True)):
        ends = f"{_node_name(a)} {_node_name(b)}"
        if kind == CAPACITOR:
            lines.append(f"C{number} {ends} {operation.capacitance!r}")
        elif kind == INDUCTOR:
            lines.append(f"L{number} {ends} {operation.inductance!r}")
        else:
            gates = "gate_a gate_b" if kind == SA else "gate_b gate_a"
            lines.append(f"S{number} {ends} {gates} switch")
    return lines


def _gate_lines(operation: Operation, settings: Settings) -> list[str]:
    """Return the sources of the gates and the model of the switches."""
    period, duty = 1.0 / operation.frequency, operation.duty
    resistances = f"Ron={operation.on_resistance!r} Roff={operation.off_resistance!r}"
    if duty in (0.0, 1.0):
        return [f"Va gate_a 0 {duty}", f"Vb gate_b 0 {1.0 - duty}", f".model switch SW({resistances} Vt=0.5 Vh=0)"]
    if settings != "exact":
        high, edge, width, threshold = operation.vin, EDGE, duty * period, operation.vin / 2
    else:  # the difference of the gates crosses 0 in the middle of an edge
        edge = min(EDGE, 0.01 * min(duty, 1.0 - duty) * period)
        high, width, threshold = 1.0, duty * period - edge, 0.0
    rising, falling = f"0 {high!r}", f"{high!r} 0"
    if settings == "overlap":
        rising, falling, width, threshold = falling, rising, period - width, -threshold
    times = f"0 {edge:.9g} {edge:.9g} {width:.12g} {period:.12g}"
    return [
        f"Va gate_a 0 PULSE({rising} {times})",
        f"Vb gate_b 0 PULSE({falling} {times})",
        f".model switch SW({resistances} Vt={threshold!r} Vh=0)",
    ]


def run_spice(netlist: str, *, executable: str = "ngspice", timeout: float = 300.0) -> Mapping[str, float]:
    """Return the means that ngspice prints for a netlist of :func:`to_spice`.

    Raises:
        MissingDependency: If ngspice is not installed.
        SolverError: If the simulation fails or takes longer than ``timeout`` seconds.
    """
    path = shutil.which(executable)
    if path is None:
        raise MissingDependency(
            f"{executable} is not installed; install Debian's package ngspice, or name another executable"
        )
    try:
        done = subprocess.run(
            [path, "-b", "/dev/stdin"], input=netlist, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SolverError(f"ngspice has not finished after {timeout:g} s") from error
    means = {name: float(value) for name, value in _MEASURE.findall(done.stdout)}
    if len(means) != 4:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise SolverError(f"ngspice gave no means: {''.join(last) or f'exit status {done.returncode}'}")
    return means
