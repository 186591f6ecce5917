"""Two checkouts of graphbench, measured in turn on this machine: ``python -m benchmarks.compare OTHER [names...]``.

Each benchmark runs in OTHER and here, again and again; a row's value is the best of its rounds, so that what else the
machine does weighs little. The peers' environments are shared: link ``.benchmarks`` of one checkout to the other's.
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
    rows: list[dict[str, Any]] = []
    for name in options.names or NAMES:
        found: dict[str, list[list[dict[str, Any]]]] = {"before": [], "after": []}
        for _ in range(options.rounds):
            for side, checkout in (("before", options.other.resolve()), ("after", HERE)):
                found[side].append(_measured(checkout, name))
        rows += [{"benchmark": name, **row} for row in compared(found["before"], found["after"])]
        _write(options.output, options.other, options.rounds, rows)
    for row in rows:
        mark = "WORSE" if row["worse_by"] > ALLOWED else ""
        values = f"{row['before']:>10.5g} {row['after']:>10.5g} {row['unit']:9}"
        print(f"{row['benchmark']:13} {row['what'][:78]:78} {values} {mark}")


def compared(before: list[list[dict[str, Any]]], after: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return one row per quantity that both checkouts measured: the best value of each, and how many times worse."""
    rows = []
    for row in before[0]:
        better = min if row["lower_is_better"] else max
        values = [
            [r["ours"] for round_ in rounds for r in round_ if r["what"] == row["what"] and r["ours"]]
            for rounds in (before, after)
        ]
        if not all(values):
            continue
        old, new = (better(side) for side in values)
        rows.append(
            {
                "what": row["what"],
                "unit": row["unit"],
                "lower_is_better": row["lower_is_better"],
                "before": old,
                "after": new,
                "worse_by": round(new / old if row["lower_is_better"] else old / new, 4),
                "rounds": {"before": values[0], "after": values[1]},
            }
        )
    return rows


def _measured(checkout: Path, name: str) -> list[dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    if subprocess.run(command, cwd=checkout, env=environment).returncode:
        print(f"{name} failed in {checkout}; its other rows count", flush=True)
    rows: list[dict[str, Any]] = json.loads((checkout / "benchmarks" / "results" / f"{name}.json").read_text())["rows"]
    return rows


def _write(path: Path, other: Path, rounds: int, rows: list[dict[str, Any]]) -> None:
    result = {
        "title": "Two revisions, measured in turn",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "before": _revision(other),
        "after": _revision(HERE),
        "rounds": rounds,
        "machine": machine(),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "rows": rows,
    }
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _revision(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
