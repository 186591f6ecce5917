"""The measurements in ``benchmarks/results``, as Markdown tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from markdown_text import table

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"


def results(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the full (not quick) benchmark results of a folder, sorted by name.

    Comparisons of revisions are left out, and results that stand on a page of their own.
    """
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    tables = [result for result in found if "rows" in result and "before" not in result and not result.get("quick")]
    return [result for result in tables if "page" not in result.get("settings", {})]


def shown(value: float | None) -> str:
    """Return a measured value with about four significant digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def result_table(result: dict[str, Any]) -> str:
    """Return the rows of one benchmark as a Markdown table, and its notes."""
    rows, notes = [], []
    for row in result["rows"]:
        mark = ""
        if row.get("note"):
            if row["note"] not in notes:
                notes.append(row["note"])
            mark = f" [{notes.index(row['note']) + 1}]"
        ratio = f"{shown(row['ratio'])}x" if row.get("ratio") else ""
        rows.append([row["what"] + mark, row["unit"], shown(row["ours"]), shown(row.get("peer")), ratio])
    text = table(["what", "unit", "graphbench", "other", "ratio"], rows, right=(2, 3, 4))
    return text + "".join(f"\n\n[{i}] {note}" for i, note in enumerate(notes, 1))


def machine_line(*measured: dict[str, Any]) -> str:
    """Return when and on what benchmarks ran, a sentence per machine."""
    dates: dict[str, list[str]] = {}
    for result in measured:
        dates.setdefault(_place(result["machine"]), []).append(result["date"][:10])
    return " ".join(
        f"Measured on {' to '.join(sorted({min(days), max(days)}))}: {place}." for place, days in dates.items()
    )


def _place(machine: dict[str, Any]) -> str:
    libraries = ("numpy", "numba", "torch", "torch_geometric", "networkx")
    versions = ", ".join(f"{name} {machine[name]}" for name in libraries if machine.get(name))
    return f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}; {versions}"
