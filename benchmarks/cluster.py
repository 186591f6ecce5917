"""Sharing the work: one worker, two of this machine, two of a Dask cluster on it; the same bytes each time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.common import Row, Sizes, main, ours_at_least, ours_at_most, scratch_folder
from benchmarks.isolated import in_fresh_process

DATASET, SPLIT = "algoreas/max_clique_easy", "n256"
WARM = 16  # graphs that every worker's kernels are loaded with
WAYS = {"one": "1 worker", "local": "2 workers of this machine", "dask": "2 workers of a Dask cluster"}
SETTINGS = {
    "dataset": f"{DATASET}, {SPLIT} split, its first graphs (256 nodes); shards of 4",
    "work": "drawn, labelled, checked for duplicates, joined, written, flushed, hashed",
    "wall": "from the call to the finished file; workers were started, and kernels compiled and loaded, before",
    "Dask cluster": "scheduler and two worker processes with one thread each on this machine, Dask's profiler off, as "
    "the page on clusters advises; connecting included",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``cluster.json``."""
    limit = sizes(600, 40)
    n = {"graphs": limit}
    with scratch_folder() as root:
        found = {
            way: in_fresh_process("benchmarks.cluster:build", root=str(root / way), way=way, limit=limit).value
            for way in WAYS
        }
    one = found["one"]["wall"]
    for way, words in WAYS.items():
        yield Row(f"{limit:,} graphs, {words}: wall time", "s", found[way]["wall"], n=n)
    for way in ("local", "dask"):
        faster = Row(
            f"{WAYS[way]}, times as fast as one",
            "x",
            one / found[way]["wall"],
            lower_is_better=False,
            target=ours_at_least(1.7),
            n=n,
        )
        yield faster
    hashes = {way: facts["sha256"] for way, facts in found.items()}
    yield Row(
        "files that differ between the three",
        "files",
        float(len(set(hashes.values())) - 1),
        target=ours_at_most(0),
        n={"files": 3},
        note="compared: SHA-256 of the files",
        details={"sha256": hashes},
    )


# --------------------------------------------------------------------------------------------------------------------
# Run in fresh processes


def build(root: str, way: str, limit: int) -> dict[str, Any]:
    """Generate the first graphs of the split in one of three ways; return the wall time and the file's checksum."""
    if way != "dask":
        return _timed(Path(root), limit, workers={"one": 1, "local": 2}[way])
    import dask
    from distributed import LocalCluster

    options = {"processes": True, "dashboard_address": ":0", "silence_logs": logging.ERROR}
    without_profiler = dask.config.set({"distributed.worker.profile.enabled": False})
    with without_profiler, LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster:
        return _timed(Path(root), limit, cluster=cluster.scheduler_address)


def _timed(root: Path, limit: int, **place: Any) -> dict[str, Any]:
    from graphbench import card
    from graphbench.data.build.generation import ensure_split
    from graphbench.data.store.layout import Manifest

    def generate(folder: str, count: int) -> Path:
        return ensure_split(card(DATASET), SPLIT, root / folder, count, progress=False, **place)

    generate("warm", WARM)
    wall, path = _clocked(lambda: generate("cold", limit))
    return {"wall": wall, "sha256": Manifest(path.parent).read()["files"][path.name]["sha256"]}


def _clocked(work: Callable[[], Path]) -> tuple[float, Path]:
    started = time.perf_counter()
    path = work()
    return time.perf_counter() - started, path


if __name__ == "__main__":
    main("cluster", "Sharing the work", measure, SETTINGS)
