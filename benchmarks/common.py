"""What every benchmark shares: rows, targets, the machine's description, the result file and the printed table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.core.processes.pool import available_cores
from graphbench.records.machine import cpu_kind, memory_bytes

if TYPE_CHECKING:
    from graphbench.records.record import RunRecord
    from graphbench.training.config import RunConfig

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results"
SCRATCH = FOLDER.parent / ".benchmarks"
NAMES = (  # what `benchmarks.run` runs, in the order of the tables
    "startup",
    "generation",
    "build",
    "loading",
    "encodings",
    "kernels",
    "training",
    "precision",
    "clrs",
    "trajectories",
    "clutrr",
    "co",
    "labelling",
    "sat",
    "hardware",
    "weather",
    "social",
    "decoding",
    "tuning",
    "cluster",
)
QUICK_RESULTS = SCRATCH / "quick"
LIBRARIES = ("numpy", "numba", "torch", "torch_geometric", "networkx", "scipy", "h5py")


@dataclass(frozen=True)
class Target:
    """What a row has to reach: a bound on our value, or on the ratio to the peer."""

    of: str  # "ours" or "ratio"
    at_least: float | None = None
    at_most: float | None = None

    def met_by(self, row: Row) -> bool | None:
        """Return whether the row reaches the target; None where the value is missing."""
        value = row.ours if self.of == "ours" else row.ratio
        if value is None:
            return None
        above = self.at_least is None or value >= self.at_least
        return above and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        """Return e.g. ``>= 200x`` or ``<= 30``."""
        sign, bound = (">=", self.at_least) if self.at_least is not None else ("<=", self.at_most)
        return f"{sign} {bound:,.6g}" + ("x" if self.of == "ratio" else "")


def ratio_at_least(bound: float) -> Target:
    """Return the target "at least ``bound`` times better than the peer"."""
    return Target("ratio", at_least=bound)


def ours_at_least(bound: float) -> Target:
    """Return the target "our value is at least ``bound``"."""
    return Target("ours", at_least=bound)


def ours_at_most(bound: float) -> Target:
    """Return the target "our value is at most ``bound``"."""
    return Target("ours", at_most=bound)


@dataclass(frozen=True)
class Row:
    """One measured quantity.

    Attributes:
        what: The quantity, in words.
        unit: Its unit.
        ours: Our value; None where it could not be measured.
        peer: The peer's value; None where there is nothing to compare with.
        lower_is_better: Whether a smaller value is the better one.
        target: What the row has to reach; None for a value given for information.
        n: How many graphs (or repeats) each value is the mean of.
        note: Anything a reader must know to judge the comparison.
        details: Further numbers, for the result file only.
        failed: Whether measuring went wrong; ``note`` then holds the error.
    """

    what: str
    unit: str
    ours: float | None
    peer: float | None = None
    lower_is_better: bool = True
    target: Target | None = None
    n: dict[str, int] = field(default_factory=dict)
    note: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    failed: bool = False

    @property
    def ratio(self) -> float | None:
        """How many times better ours is; None without a peer."""
        if not self.ours or not self.peer:
            return None
        return self.peer / self.ours if self.lower_is_better else self.ours / self.peer

    def to_json(self) -> dict[str, Any]:
        """Return the row as it stands in a result file."""
        target = None
        if self.target is not None:
            bounds = {key: value for key, value in asdict(self.target).items() if value is not None}
            target = {**bounds, "met": self.target.met_by(self)}
        return {
            "what": self.what,
            "ours": _rounded(self.ours),
            "peer": _rounded(self.peer),
            "ratio": _rounded(self.ratio),
            "unit": self.unit,
            "lower_is_better": self.lower_is_better,
            "target": target,
            "n": self.n,
            "note": self.note,
            "details": self.details,
            **({"failed": True} if self.failed else {}),
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


@dataclass(frozen=True)
class Sizes:
    """How much to measure: all of it, or just enough to see that the benchmark runs; on the CPU, on a GPU, or both."""

    quick: bool
    cuda: bool = False
    cpu: bool = True

    def __call__(self, full: int, quick: int) -> int:
        """Return the size to use."""
        return quick if self.quick else full


def row_or_failure(what: str, unit: str, measure: Callable[[], Row]) -> Row:
    """Return the measured row, or one that says what went wrong, so that one failure does not lose the other rows."""
    try:
        return measure()
    except Exception as error:  # reported in the row, and by the exit code of the command
        traceback.print_exc()
        return Row(what, unit, None, note=f"failed: {error}", failed=True)


Measure = Callable[[Sizes], Iterable[Row]]


def finished_record(config: RunConfig, records: Iterable[RunRecord]) -> RunRecord | None:
    """Return the record of a run of this configuration, which holds seed, limit and draw, on the present data."""
    from graphbench import card
    from graphbench.records.earlier_names import config_for_digests

    current, wanted = card(config.dataset).version, config_for_digests(config.to_dict())
    matching = (r for r in records if config_for_digests(r.config) == wanted and r.dataset_version == current)
    return next(matching, None)


def main(name: str, title: str, measure: Measure, settings: Mapping[str, Any]) -> None:
    """Run one benchmark as a command: measure, write the result file, print the table."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=title)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, results under .benchmarks/quick/")
    parser.add_argument("--cuda", action="store_true", help="measure on the GPU too (training only)")
    parser.add_argument(
        "--only-cuda", action="store_true", help="measure on the GPU alone, into NAME_cuda.json (training only)"
    )
    chosen = parser.parse_args()
    sizes = Sizes(chosen.quick, chosen.cuda or chosen.only_cuda, not chosen.only_cuda)
    file = f"{name}_cuda" if chosen.only_cuda else name  # rows of another machine stand in a file of their own
    if not measure_and_report(file, title, measure(sizes), settings, quick=sizes.quick):
        sys.exit(1)


def measure_and_report(name: str, title: str, rows: Iterable[Row], settings: Mapping[str, Any], *, quick: bool) -> bool:
    """Take the rows as they are measured, write the result file, print the table, and return whether none failed.

    What was measured before an error or an interrupt is written as well; the file then says ``"complete": false``.
    """
    load, started = os.getloadavg(), datetime.now(UTC)
    began, complete = time.perf_counter(), False
    found: list[Row] = []
    try:
        for row in rows:
            found.append(row)
            print(f"  {row.what}: {shown(row.ours)} {row.unit}, peer {shown(row.peer)}", flush=True)
        complete = True
    finally:
        result = {
            "name": name,
            "title": title,
            "quick": quick,
            "complete": complete,
            "date": started.isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - began, 1),
            "load_average_at_start": [round(value, 2) for value in load],
            "machine": machine(),
            "settings": dict(settings),
            "rows": [row.to_json() for row in found],
        }
        path = (QUICK_RESULTS if quick else RESULTS) / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print_table(title, found)
        print(f"written to {path.relative_to(FOLDER.parent)} (load average at start {load[0]:.2f})")
    return not any(row.failed for row in found)


def print_table(title: str, rows: Iterable[Row]) -> None:
    """Print the rows as a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for heading in ("what", "ours", "peer", "ratio", "target", "met", "unit", "n"):
        table.add_column(heading, justify="left" if heading in ("what", "unit") else "right")
    notes = []
    for row in rows:
        met = row.target.met_by(row) if row.target is not None else None
        mark = "" if row.target is None else {True: "yes", False: "NO", None: "?"}[met]
        number = ""
        if row.note:
            notes.append(row.note)
            number = f" [{len(notes)}]"
        counts = " / ".join(f"{count:,}" for count in row.n.values())
        ratio = f"{shown(row.ratio)}x" if row.ratio is not None else ""
        target = str(row.target) if row.target is not None else ""
        cells = (row.what + number, shown(row.ours), shown(row.peer), ratio, target, mark, row.unit, counts)
        table.add_row(*(cell.replace("[", r"\[") for cell in cells))
    console = Console(width=None if os.isatty(1) else 150)
    console.print(table)
    for number, note in enumerate(notes, 1):
        console.print(f"[{number}] {note}", markup=False, style="dim")


def shown(value: float | None) -> str:
    """Return a number with about four significant digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def machine() -> dict[str, Any]:
    """Return a description of this machine and of the libraries that count."""
    memory = memory_bytes()
    return {
        "cpu": cpu_kind(),
        "cores": available_cores(),
        "memory_gb": None if memory is None else round(memory / 1e9, 1),
        "os": platform.platform(),
        "python": platform.python_version(),
        **{name: _version(name) for name in LIBRARIES},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a temporary folder for data sets, removed afterwards; ``TMPDIR`` says on which disk."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="graphbench-benchmark-") as folder:
        yield Path(folder)


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median wall seconds of a call, after one that does not count."""
    work()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return sorted(seconds)[len(seconds) // 2]
