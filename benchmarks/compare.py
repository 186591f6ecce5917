"""Two checkouts of graphbench, measured in turn on this machine: ``python -m benchmarks.compare OTHER [names...]``.

Each benchmark runs in OTHER and here, again and again; a row's value is the best of its rounds, so that other work of
the machine weighs little. A result file of the same two revisions is continued: its rounds count too. Rows that only
one checkout measured are listed with it. The peers' environments are shared: link ``.benchmarks`` of one checkout to
the other's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.common import FOLDER, NAMES, RESULTS, machine

HERE = FOLDER.parent
_TINY = 1e-9
ALLOWED = 1.05  # a value this many times worse than the other checkout's is marked


def main() -> None:
    """Measure both checkouts, print the table and write the result file after each benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="a checkout of another revision")
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(NAMES)}; default: all of them")
    parser.add_argument("--rounds", type=int, default=2, help="how often each checkout is measured (default: 2)")
    parser.add_argument("--output", type=Path, default=RESULTS / "comparison.json", help="the result file")
    options = parser.parse_intermixed_args()
    if not (options.other / "benchmarks" / "common.py").is_file():
        parser.error(f"{options.other} is no checkout of graphbench")
    result = _started(options.output, options.other)
    for name in options.names or NAMES:
        measured: dict[str, list[list[dict[str, Any]]]] = {"before": [], "after": []}
        first = max((len(row["rounds"]["after"]) for row in result["rows"] if row["benchmark"] == name), default=0)
        for number in range(first, first + options.rounds):
            checkouts = [("before", options.other.resolve()), ("after", HERE)]
            for side, checkout in reversed(checkouts) if number % 2 else checkouts:  # the machine may slow down
                measured[side].append(_measured(checkout, name))
        rows, unmatched = compared(measured["before"], measured["after"])
        earlier = {row["what"]: row for row in result["rows"] if row["benchmark"] == name}
        result["rows"] = [row for row in result["rows"] if row["benchmark"] != name]
        result["rows"] += [{"benchmark": name, **continued(earlier.pop(row["what"], None), row)} for row in rows]
        result["rows"] += earlier.values()
        result["unmatched"] = {**result["unmatched"], **({name: unmatched} if unmatched else {})}
        _write(options.output, result)
    for row in result["rows"]:
        mark = "WORSE" if row["worse_by"] > ALLOWED else ""
        values = f"{row['before']:>10.5g} {row['after']:>10.5g} {row['unit']:9}"
        print(f"{row['benchmark']:13} {row['what'][:78]:78} {values} {mark}")
    for name, quantities in result["unmatched"].items():
        print(f"{name}: only one checkout measured {', '.join(quantities)}")


Rows = list[dict[str, Any]]


def compared(before: list[Rows], after: list[Rows]) -> tuple[Rows, list[str]]:
    """Return one row per quantity that both checkouts measured, and the quantities that only one of them measured."""
    described = {row["what"]: row for round_ in [*before, *after] for row in round_}
    values = {
        what: [
            [r["ours"] for round_ in side for r in round_ if r["what"] == what and r["ours"] is not None]
            for side in (before, after)
        ]
        for what in described
    }
    rows = [_row(described[what], *sides) for what, sides in values.items() if all(sides)]
    return rows, [what for what, sides in values.items() if not all(sides)]


def continued(earlier: dict[str, Any] | None, row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with the rounds of an earlier row of the same quantity before the rounds of the row."""
    if earlier is None:
        return row
    return _row(row, *(earlier["rounds"][side] + row["rounds"][side] for side in ("before", "after")))


def _row(quantity: dict[str, Any], before: list[float], after: list[float]) -> dict[str, Any]:
    """Return the best value of each checkout, and how many times worse the second is."""
    lower = quantity["lower_is_better"]
    old, new = (min(side) if lower else max(side) for side in (before, after))
    worse, better = (new, old) if lower else (old, new)
    return {
        "what": quantity["what"],
        "unit": quantity["unit"],
        "lower_is_better": lower,
        "before": old,
        "after": new,
        "worse_by": 1.0 if old == new else round(worse / max(better, _TINY), 4),
        "rounds": {"before": before, "after": after},
    }


def _started(path: Path, other: Path) -> dict[str, Any]:
    """Return the result of an earlier call for the same two revisions, or an empty one."""
    revisions = {"before": _revision(other), "after": _revision(HERE)}
    if path.is_file():
        earlier: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if all(earlier[side] == revision for side, revision in revisions.items()):
            return {"unmatched": {}, **earlier}
    return {**revisions, "rows": [], "unmatched": {}}


def _measured(checkout: Path, name: str) -> list[dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    if subprocess.run(command, cwd=checkout, env=environment).returncode:
        print(f"{name} failed in {checkout}; its other rows count", flush=True)
    rows: list[dict[str, Any]] = json.loads((checkout / "benchmarks" / "results" / f"{name}.json").read_text())["rows"]
    return rows


def _write(path: Path, result: dict[str, Any]) -> None:
    described = {
        "title": "Two revisions, measured in turn",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "before": result["before"],
        "after": result["after"],
        "machine": machine(),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "rows": result["rows"],
        "unmatched": result["unmatched"],
    }
    path.write_text(json.dumps(described, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _revision(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
