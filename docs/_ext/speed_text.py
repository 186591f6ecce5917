"""A summary of the measured speeds, as Markdown.

Every number is taken from ``benchmarks/results/*.json``. A benchmark is one line: how many times as fast as the other
package over all its quantities that are times or rates, and how many of its targets are met.
"""

from __future__ import annotations

from statistics import median
from typing import Any

from markdown_text import table
from measurements import machine_line, shown

TIMES = ("us", "ms", "s")


def is_speed(row: dict[str, Any]) -> bool:
    """Whether a row is a time or a rate that was measured for the other package, too."""
    unit = row["unit"]
    return bool(row.get("ratio")) and (unit.split("/")[0] in TIMES or unit.endswith("/s"))


def speed_table(found: list[dict[str, Any]]) -> str:
    """Return one line per benchmark with comparisons or targets, and the machines they were measured on.

    Args:
        found: Results as stored.
    """
    rows = []
    for result in found:
        ratios = sorted(row["ratio"] for row in result["rows"] if is_speed(row))
        targets = [row["target"]["met"] for row in result["rows"] if row.get("target")]
        if ratios or targets:
            spread = "" if len(ratios) < 2 else f"{shown(ratios[0])} to {shown(ratios[-1])}"
            rows.append(
                [
                    result["title"],
                    f"{shown(median(ratios))}x" if ratios else "",
                    spread,
                    f"{sum(targets)} of {len(targets)}" if targets else "",
                ]
            )
    note = (
        "Compared with graphbench-lib 0.2.0 or, where it has no such thing, the package or solver in use, both in one"
        " run: median and range over the quantities measured for both. "
    )
    header = ["benchmark", "times as fast", "range", "targets met"]
    return table(header, rows, right=(1, 2, 3)) + f"\n\n{note}{machine_line(*found)}"
