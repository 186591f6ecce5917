"""Run the checks of rows, and keep what they found."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import graphbench
from benchmarks.claims.model import Row
from benchmarks.claims.registry import CheckSkipped, Outcome, checks
from benchmarks.common import RESULTS, machine
from graphbench.catalog.sections import Measured

RESULT_FILE = RESULTS / "claims.json"
Status = Literal["holds", "fails", "skipped"]


def run_row(row: Row) -> dict[str, Any]:
    """Run the check of a row and return its entry in the result file.

    An exception of a check is a failure, so that one broken check does not hide the others.
    """
    began = time.perf_counter()
    status: Status
    values: Mapping[str, Any] = {}
    note = ""
    try:
        for package in row.needs:
            _require(package)
        found = checks()[row.check](**row.arguments)
        status, values = ("holds" if found.holds else "fails"), found.values
        note = "" if found.holds else found.problem
        missing = row.names - set(values)
        if missing:
            status, note = "fails", f"the texts ask for {sorted(missing)}, which the check does not return"
    except CheckSkipped as reason:
        status, note = "skipped", str(reason)
    except Exception as error:
        status, note = "fails", f"{type(error).__name__}: {error}"
    entry: dict[str, Any] = {"status": status, "values": {key: rounded(value) for key, value in values.items()}}
    if note:
        entry["note"] = note
    entry["seconds"] = round(time.perf_counter() - began, 1)
    entry["date"] = datetime.now(UTC).date().isoformat()
    return entry


def _require(package: str) -> None:
    try:
        importlib.import_module(package)
    except ImportError as error:
        raise CheckSkipped(f"the package {package!r} is not installed") from error


def rounded(value: Any) -> Any:
    """Return a measured value as the result file holds it: floats with eight significant digits, arrays as lists."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {str(key): rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(part) for part in value]
    number = float(value)
    return int(number) if number.is_integer() else float(f"{number:.8g}")


def read_results(path: Path = RESULT_FILE) -> dict[str, Any]:
    """Return the entries of the result file by the names of the rows; empty if there is none."""
    if not path.is_file():
        return {}
    entries: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["results"]
    return entries


def write_results(entries: Mapping[str, Any], names: Iterable[str], path: Path = RESULT_FILE) -> None:
    """Merge entries into the result file; entries of rows that are no more are left out.

    An entry of a check that was skipped replaces none that was run.
    """
    kept = read_results(path)
    for name, entry in entries.items():
        if entry["status"] != "skipped" or name not in kept:
            kept[name] = entry
    content = {"machine": machine(), "results": {name: kept[name] for name in names if name in kept}}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def failed(entries: Mapping[str, Any]) -> list[str]:
    """Return the names of the rows whose check failed."""
    return [name for name, entry in entries.items() if entry["status"] == "fails"]


def outcome_of(problems: Iterable[str], **values: Any) -> Outcome:
    """Return an outcome that holds if there are no problems."""
    listed = list(problems)
    return Outcome(not listed, values, "; ".join(listed[:5]))


def measured(dataset: str) -> Measured:
    """Return what is measured of a dataset and stands beside its card."""
    found = graphbench.card(dataset).measured
    assert found is not None, f"nothing is measured of {dataset}"
    return found
