"""Rows of power converters: steady states beside ngspice, labels per second, and what the paper's transient differs by.

They are part of :mod:`benchmarks.hardware`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.circuit_runs import SIZES
from benchmarks.common import Row, Sizes, ours_at_least, ratio_at_least, row_or_failure
from benchmarks.isolated import in_fresh_process

FASTER = 2_000.0
_BUILT, _MINUTES, _CORES = 73_000, 3.0, 2  # the target of a build
SETTINGS = {
    "converters": "random valid topologies of 5, 7 and 10 devices with the paper's elements; duty cycles 0.1 to 0.9",
    "ngspice": "CPU seconds of a process per circuit: 4 ms, means over the last 50 periods by `.measure`; given up "
    "after 15 CPU seconds",
    "agreement": "1 ms from rest, both kinds of switches change at once; a circuit is settled if its slowest mode has "
    "decayed to 1 % by then; all circuits are also compared with the exact transient of 1 ms",
    "paper": "4 ms from the operating point, no switch conducts for 0.5 ns at every edge, validity by the reference "
    "project's rules, labels of invalid circuits 0; computed exactly, so without errors of ngspice",
}


def rows(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows."""
    for devices in SIZES:
        what = f"steady state, {devices} devices"
        yield row_or_failure(what, "us/circuit", partial(_steady, what, devices, sizes))
    yield row_or_failure("converters_5: drawn, labelled and checked", "circuits/s", partial(_labels, sizes))
    for devices in SIZES:
        what = f"circuits of {devices} devices that agree with ngspice"
        yield row_or_failure(what, "%", partial(_agreement, what, devices, sizes))
    for devices in SIZES:
        what = f"circuits of {devices} devices whose ratio the paper's transient gives"
        yield row_or_failure(what, "%", partial(_paper, what, devices, sizes))


def _steady(what: str, devices: int, sizes: Sizes) -> Row:
    count, runs = sizes(5_000, 50), sizes(20, 1)
    found = in_fresh_process("benchmarks.circuit_runs:steady", devices=devices, count=count).value
    peer = in_fresh_process(
        "benchmarks.circuit_runs:against_spice", devices=devices, count=runs, settings="exact", seconds=4e-3
    ).value
    return Row(
        what,
        "us/circuit",
        1e6 * found["at once"],
        1e6 * peer["seconds"],
        target=ratio_at_least(FASTER),
        n={"ours": count, "peer": runs},
        note="peer: ngspice, a transient of 4 ms",
        details={"us one by one": round(1e6 * found["one by one"], 1), "failed runs of ngspice": peer["failed"]},
    )


def _labels(sizes: Sizes) -> Row:
    count = sizes(4_000, 40)
    found = in_fresh_process("benchmarks.circuit_runs:labels", count=count).value
    return Row(
        "converters_5: drawn, labelled and checked",
        "circuits/s",
        1.0 / found["with labels"],
        lower_is_better=False,
        target=ours_at_least(_BUILT / (_MINUTES * 60 * _CORES)),
        n={"ours": count},
        note=f"one core; the target builds {_BUILT:,} circuits in {_MINUTES:g} minutes on {_CORES}. Every label is "
        "checked by a simulation in Python, which takes most of the time",
        details={"us per graph": round(1e6 * found["graphs"], 1)},
    )


def _agreement(what: str, devices: int, sizes: Sizes) -> Row:
    count = sizes(200, 3)
    found = in_fresh_process(
        "benchmarks.circuit_runs:against_spice", devices=devices, count=count, settings="exact", seconds=1e-3
    ).value
    return Row(
        what,
        "%",
        100 * found["settled_share"],
        lower_is_better=False,
        target=ours_at_least(100.0),
        n={"ours": found["settled"]},
        note=f"within 1 % of VIN, of the {found['settled']} of {count} circuits that settle within 1 ms; of all that "
        f"ngspice simulates, {100 * found['transient_share']:.1f} % agree with the exact transient of that length",
        details=found,
    )


def _paper(what: str, devices: int, sizes: Sizes) -> Row:
    count = sizes(1_000, 10)
    found = in_fresh_process("benchmarks.circuit_runs:paper_labels", devices=devices, count=count).value
    return Row(
        what,
        "%",
        100 * found["ratio"],
        lower_is_better=False,
        n={"ours": count},
        note=f"within 0.01; {100 * found['valid']:.0f} % are valid there, and {100 * found['settled']:.0f} % settle in "
        f"4 ms; without dead time {100 * found['exact_ratio']:.0f} % agree",
        details={name: round(value, 4) for name, value in found.items()},
    )
