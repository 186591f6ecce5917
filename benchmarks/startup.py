"""Start-up: importing the package, the command line's help, and compiling kernels at first use."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.common import Row, Sizes, Target, main, ours_at_most, scratch_folder
from benchmarks.generation import PEER_TASKS
from benchmarks.isolated import in_fresh_process
from benchmarks.peer import PEER, peer_python

SETTINGS = {
    "peer package": PEER,
    "commands": "wall time of a fresh process from start to end, the interpreter's own start included",
    "kernels": "wall time of the first draw of 8 training graphs in a fresh process, imports of the generator included",
    "cached dataset": "64 training graphs of algoreas/mst_easy, generated and compiled before the measurement",
    "first build": "wall time of building 64 validation graphs on 2 workers, which compile the parts side by side",
}

_LOADING = "splits = graphbench.Loader('algoreas/mst_easy', limit=64, root={root!r}, workers=1, progress=False).load()"


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``startup.json``."""
    repeats = sizes(10, 2)
    bare = _wall_times([sys.executable, "-c", "pass"], repeats)
    ours = _wall_times([sys.executable, "-c", "import graphbench"], repeats)
    theirs = _wall_times([str(peer_python()), "-c", "import graphbench"], sizes(5, 1))
    yield from _pair("python -c pass", bare)
    yield from _pair("import graphbench", ours, theirs, ours_at_most(0.3))
    yield from _pair("graphbench --help", _wall_times([*_command(), "--help"], repeats), None, ours_at_most(0.5))
    yield from _commands_and_loading(sizes(5, 1))
    for family in PEER_TASKS:
        yield from _kernels(f"algoreas/{family}_easy")


def _pair(
    what: str,
    ours: list[float],
    theirs: list[float] | None = None,
    target: Target | None = None,
    note: str = "",
) -> Iterator[Row]:
    if not ours:
        yield Row(what, "s", None, target=target, note="the command failed; its message is above", failed=True)
        return
    n = {"ours": len(ours), **({"peer": len(theirs)} if theirs else {})}
    for name, pick in (("median", statistics.median), ("best", min)):
        yield Row(f"{what}, {name}", "s", pick(ours), pick(theirs) if theirs else None, target=target, n=n, note=note)


def _commands_and_loading(repeats: int) -> Iterator[Row]:
    """Yield the times of commands, and of loading and batching a cached dataset, with the import behind both."""
    python = [sys.executable, "-c"]
    with scratch_folder() as root:
        load = f"import graphbench\n{_LOADING.format(root=str(root))}"
        for what, command in (
            ("graphbench list", [*_command(), "list", "--root", str(root)]),
            ("graphbench info mst_easy", [*_command(), "info", "mst_easy", "--root", str(root)]),
            ("import torch", [*python, "import torch"]),
            ("import torch_geometric.data", [*python, "import torch_geometric.data"]),
            ("load a cached dataset", [*python, load]),
            ("load a cached dataset, first batch", [*python, f"{load}\nnext(iter(splits.train.batches(32)))"]),
        ):
            walls, cpus = _process_times(command, repeats)
            note = f"{statistics.median(cpus):.2f} s of CPU time (median)" if cpus else ""
            yield from _pair(what, walls, note=note)


def _wall_times(command: Sequence[str], repeats: int) -> list[float]:
    """Return the wall seconds of ``repeats`` fresh processes, after one that fills the caches; none if it fails."""
    return _process_times(command, repeats)[0]


def _process_times(command: Sequence[str], repeats: int) -> tuple[list[float], list[float]]:
    """Return the wall and the CPU seconds of fresh processes, as :func:`_wall_times`."""
    times, cpu_times = [], []
    folder = Path(__file__).resolve().parent.parent if command[0] == sys.executable else Path("/")
    for _ in range(repeats + 1):
        started, cpu = time.perf_counter(), _cpu_of_children()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder)
        times.append(time.perf_counter() - started)
        cpu_times.append(_cpu_of_children() - cpu)
        if done.returncode != 0:
            print(done.stderr, file=sys.stderr)
            return [], []
    return times[1:], cpu_times[1:]


def _cpu_of_children() -> float:
    """Return the CPU seconds of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _command() -> list[str]:
    script = Path(sys.executable).with_name("graphbench")
    return [str(script)] if script.is_file() else [sys.executable, "-c", "from graphbench.cli import main; main()"]


def _kernels(dataset: str) -> Iterator[Row]:
    """Yield the times of a first draw and a first build: with no kernels compiled yet, and with all of them."""
    for what, function in (("first draw", "first_draw"), ("first build", "first_build")):
        with scratch_folder() as cache, _kernels_in(cache):
            try:
                values = [in_fresh_process(f"benchmarks.startup:{function}", dataset=dataset).value for _ in range(2)]
            except RuntimeError as error:
                yield Row(f"{what}, {dataset}", "s", None, note=f"failed: {error}", failed=True)
                continue
        for cache_state, value in zip(("no compiled kernels", "compiled kernels cached"), values, strict=True):
            yield Row(
                what=f"{what}, {dataset}, {cache_state}",
                unit="s",
                ours=value["wall"],
                target=ours_at_most(10) if value is values[0] else None,
                n={"ours": 1},
                note=f"{value['cpu']:.1f} s of CPU time in the main process",
            )


@contextmanager
def _kernels_in(cache: Path) -> Iterator[None]:
    """Let fresh processes keep compiled kernels in a folder."""
    before = os.environ.get("NUMBA_CACHE_DIR")
    os.environ["NUMBA_CACHE_DIR"] = str(cache)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("NUMBA_CACHE_DIR")
        else:
            os.environ["NUMBA_CACHE_DIR"] = before


def first_draw(dataset: str) -> dict[str, Any]:
    """Return wall and CPU time of the first draw in this process, with everything a build compiles."""
    from graphbench import card

    chosen = card(dataset)
    started, cpu = time.perf_counter(), time.process_time()
    from graphbench.data.arrays.hashing import structure_hashes
    from graphbench.data.build.generation import draw_samples

    structure_hashes(draw_samples(chosen, "train", range(8)))
    return {"wall": time.perf_counter() - started, "cpu": time.process_time() - cpu}


def first_build(dataset: str) -> dict[str, Any]:
    """Return wall and CPU time of a small build on two workers, as a user's first one."""
    from graphbench import card

    chosen = card(dataset)
    started, cpu = time.perf_counter(), time.process_time()
    from graphbench.data.build.generation import ensure_split

    with scratch_folder() as root:
        ensure_split(chosen, "val", root, 64, workers=2, progress=False)
        return {"wall": time.perf_counter() - started, "cpu": time.process_time() - cpu}


if __name__ == "__main__":
    main("startup", "Start-up", measure, SETTINGS)
