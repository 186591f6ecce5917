"""The README's tables, written from the result files."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.common import FOLDER, NAMES, RESULTS, Target, shown

BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


def write_tables() -> None:
    """Replace what stands between the README's two marks."""
    path = FOLDER / "README.md"
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    found = [_section(json.loads(file.read_text(encoding="utf-8"))) for file in _files()]
    body = "\n\n".join(found) if found else "No results yet."
    path.write_text(f"{before}{BEGIN}\n\n{body}\n\n{END}{after}", encoding="utf-8")


def _files() -> list[Any]:
    return [path for name in (*NAMES, "gpu") if (path := RESULTS / f"{name}.json").is_file()]


def _section(result: dict[str, Any]) -> str:
    machine = result["machine"]
    where = (
        f"{result['date'][:10]}, {machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, "
        f"torch {machine['torch']}, Numba {machine['numba']}, load average {result['load_average_at_start'][0]}"
    )
    lines = [f"### {result['title']}", "", where + ("." if result["complete"] else "; incomplete."), ""]
    lines += ["| what | ours | peer | ratio | target | unit |", "|---|---:|---:|---:|---|---|"]
    notes: list[str] = []
    lines += [_line(row, notes) for row in result["rows"]]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _line(row: dict[str, Any], notes: list[str]) -> str:
    what = row["what"]
    if row["note"]:
        notes.append(f"{len(notes) + 1}. {row['note']}")
        what += f" ({len(notes)})"
    target = ""
    if row["target"] is not None:
        bounds = dict(row["target"])
        met = {True: "met", False: "**missed**", None: "not measured"}[bounds.pop("met")]
        target = f"{Target(**bounds)} {met}"
    ratio = f"{shown(row['ratio'])}x" if row["ratio"] is not None else ""
    return f"| {what} | {shown(row['ours'])} | {shown(row['peer'])} | {ratio} | {target} | {row['unit']} |"
