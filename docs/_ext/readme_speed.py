"""Write measured speeds into the README: ``python docs/_ext/readme_speed.py``.

Every number is taken from ``benchmarks/results/*.json``; a row is shown where it has a target, as those are the
quantities the project holds itself to.
"""

from __future__ import annotations

import sys
from typing import Any

from markdown_text import table
from measurements import machine_line, results, shown
from readme_block import README, replaced


def speed_table(found: list[dict[str, Any]]) -> str:
    """Return the rows with a target of all benchmark results, and the machine they were measured on.

    Args:
        found: Results as stored, of one machine.
    """
    rows = []
    for result in found:
        for row in result["rows"]:
            if row.get("target") and row.get("ours") is not None:
                ratio = f"{shown(row['ratio'])}x" if row.get("ratio") else ""
                rows.append([row["what"], row["unit"], shown(row["ours"]), shown(row.get("peer")), ratio])
    lines = list(dict.fromkeys(machine_line(result) for result in found))
    note = "Other: graphbench-lib 0.2.0, or PyTorch Geometric for batches and encodings; notes and all rows are in "
    return (
        table(["what", "unit", "graphbench", "other", "ratio"], rows, right=(2, 3, 4))
        + f"\n\n{note}`benchmarks/results/`. "
        + " ".join(lines)
    )


def main() -> None:
    """Rewrite the README's block, if there are results."""
    found = results()
    if not found:
        sys.exit("benchmarks/results holds no results; run `make bench` first")
    README.write_text(replaced("speed", speed_table(found), README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
