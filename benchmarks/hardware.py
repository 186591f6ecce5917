"""Hardware: truth tables, circuits, labels of ABC and scores beside plain Python; converters beside ngspice."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks import circuit_rows
from benchmarks.common import Row, Sizes, main, ours_at_least, ours_at_most, ratio_at_least, row_or_failure
from benchmarks.isolated import in_fresh_process

SCORED = 120_000
SETTINGS: dict[str, Any] = {
    "time": "CPU time of one thread, children included, kernels compiled before",
    "tables": "random functions of the six shapes of chip_design/aig in equal shares",
    "labels": "ours: one process of ABC for up to 256 tables; peer: the same function with one table per process",
    "equivalence": "peer: the circuit is evaluated at one assignment after the other in plain Python",
    "scoring": "checks, simulation, counts of dead and duplicate ANDs included; every circuit is right",
    **circuit_rows.SETTINGS,
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``hardware.json``."""
    yield row_or_failure("truth tables and hashed circuits", "tables/s", partial(_tables, sizes))
    yield row_or_failure("reference circuits of ABC", "labels/CPU hour", partial(_labels, sizes))
    yield row_or_failure("equivalence of circuit and table", "checks/s", partial(_equivalence, sizes))
    yield from _scoring(sizes)
    yield from circuit_rows.rows(sizes)


def _tables(sizes: Sizes) -> Row:
    count = sizes(1_000_000, 20_000)
    found = in_fresh_process("benchmarks.chip_runs:tables", count=count).value
    seconds = found["draw"] + found["circuits"]
    return Row(
        "truth tables and hashed circuits",
        "tables/s",
        count / seconds,
        lower_is_better=False,
        target=ours_at_least(1_000_000 / 120),  # a million in a minute on two cores
        n={"ours": count},
        note=f"{found['ands']:.1f} ANDs per circuit; {1e6 * found['draw'] / count:.2g} us of "
        f"{1e6 * seconds / count:.3g} us are the drawing of the table",
    )


def _labels(sizes: Sizes) -> Row:
    counts = {"ours": sizes(1_200, 48), "peer": sizes(120, 6)}
    found = in_fresh_process("benchmarks.chip_runs:synthesis", count=counts["ours"], alone=counts["peer"]).value
    return Row(
        "reference circuits of ABC",
        "labels/CPU hour",
        3600 / found["together"],
        3600 / found["alone"],
        lower_is_better=False,
        n=counts,
        note=f"{1e3 * found['together']:.3g} ms and {1e3 * found['alone']:.3g} ms of CPU time per circuit",
    )


def _equivalence(sizes: Sizes) -> Row:
    counts = {"ours": sizes(120_000, 6_000), "peer": sizes(60, 6)}
    arguments = {"count": counts["ours"], "peer_count": counts["peer"]}
    found = in_fresh_process("benchmarks.chip_runs:equivalence", **arguments).value
    return Row(
        "equivalence of circuit and table",
        "checks/s",
        1 / found["ours"],
        1 / found["peer"],
        lower_is_better=False,
        target=ratio_at_least(1000),
        n=counts,
    )


def _scoring(sizes: Sizes) -> Iterator[Row]:
    count = sizes(SCORED, 6_000)
    try:
        found = in_fresh_process("benchmarks.chip_runs:scoring", count=count).value
    except RuntimeError as error:
        message = str(error)

        def failed() -> Row:
            raise RuntimeError(message)

        yield row_or_failure("scoring circuits", "s", failed)
        return
    for form, seconds in found.items():
        what = f"scoring {SCORED:,} circuits, {form}"
        scaled = seconds * SCORED / count
        note = "" if count == SCORED else f"from {count:,} circuits"
        yield Row(what, "s", scaled, target=ours_at_most(10), n={"ours": count}, note=note)


if __name__ == "__main__":
    main("hardware", "Hardware", measure, SETTINGS)
