"""Building a whole dataset: time, memory, bytes, and that neither workers nor shards change a byte."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import Row, Sizes, main, ours_at_most, scratch_folder
from benchmarks.generation import PEER_TASKS
from benchmarks.isolated import Finished, in_fresh_process
from benchmarks.peer import PEER, ask_peer

DATASET = "algoreas/mst_easy"
CORE = ["train", "val", "test"]
OTHER_SHARD_SIZE = 5_003
SETTINGS = {
    "peer package": f"{PEER}, with the torch, PyG and networkx named above",
    "dataset": f"{DATASET}: 1,000,000 train, 10,000 val, 10,000 test (128 nodes)",
    "work": "drawn, checked for duplicates, written, flushed, hashed; kernels compiled before",
    "wall": "inside the process, from the call of the loader to open datasets; the process's own start comes on top",
    "memory": "parent and workers together, polled every 50 ms: proportional (shared pages count once) and resident",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``build.json``."""
    limit = sizes(0, 20_000) or None
    with scratch_folder() as root:
        in_fresh_process("benchmarks.build:build", dataset=DATASET, splits=CORE, root=str(root), workers=2, limit=64)
    two = _build(2, limit)
    one = _build(1, limit)
    other = _build(2, limit, OTHER_SHARD_SIZE)
    count = two.value["graphs"]
    graphs = {"graphs": count}
    size = f"{count:,} graphs"
    yield Row(
        what=f"{size}, 2 workers: wall time",
        unit="s",
        ours=two.value["wall_seconds"],
        peer=_peer_seconds(sizes, limit),
        target=ours_at_most(30),
        n=graphs,
        note="peer: its generators alone, one process, extrapolated from a sample (no workers, nothing written)",
        details=two.value,
    )
    yield Row(f"{size}, 2 workers: wall time with the process's start", "s", two.wall_seconds, n=graphs)
    yield Row(
        what="peak memory of all processes, proportional",
        unit="GB",
        ours=two.peak_pss / 1e9,
        target=ours_at_most(1.5),
        n=graphs,
        details={"processes": two.processes},
    )
    yield Row("peak memory of all processes, sum of resident", "GB", two.peak_rss / 1e9, n=graphs)
    yield Row("bytes written", "MB", two.value["bytes"] / 1e6, n=graphs)
    yield Row(
        what=f"{size}, 1 worker: wall time",
        unit="s",
        ours=one.value["wall_seconds"],
        n=graphs,
        note=f"2 workers are {one.value['wall_seconds'] / two.value['wall_seconds']:.2f} times as fast",
        details=one.value,
    )
    yield Row("1 worker: peak memory, proportional", "GB", one.peak_pss / 1e9, n=graphs)
    hashes = [run.value["hashes"] for run in (two, one, other)]
    yield Row(
        what=f"files that differ between 2 workers, 1 worker, and shards of {OTHER_SHARD_SIZE:,}",
        unit="files",
        ours=float(sum(len({str(run[split]) for run in hashes}) != 1 for split in CORE)),
        target=ours_at_most(0),
        n={"files": len(CORE)},
        note="compared: SHA-256 of the arrays and SHA-256 of the files",
        details={"sha256 of arrays and file": hashes[0]},
    )


def _build(workers: int, limit: int | None, shard_size: int | None = None) -> Finished:
    with scratch_folder() as root:
        return in_fresh_process(
            "benchmarks.build:build",
            watch_memory=True,
            dataset=DATASET,
            splits=CORE,
            root=str(root),
            workers=workers,
            limit=limit,
            shard_size=shard_size,
        )


def build(
    dataset: str,
    splits: Sequence[str],
    root: str,
    workers: int,
    limit: int | None = None,
    shard_size: int | None = None,
) -> dict[str, Any]:
    """Build splits of a dataset in ``root`` and return time, bytes and hashes.

    With the default shards the loader is called, as a user would; other shard sizes need the function below it.
    """
    started = time.perf_counter()
    from graphbench import Loader, card
    from graphbench.data.build.generation import dataset_folder, ensure_split
    from graphbench.data.store.layout import Manifest

    chosen = card(dataset)
    if shard_size is None:
        Loader(dataset, root=root, limit=limit, workers=workers, progress=False).load(splits)
    else:
        for split in splits:
            ensure_split(chosen, split, Path(root), limit, workers=workers, shard_size=shard_size, progress=False)
    wall = time.perf_counter() - started
    files = Manifest(dataset_folder(chosen, Path(root))).read()["files"].values()
    return {
        "wall_seconds": wall,
        "graphs": sum(file["count"] for file in files),
        "redrawn": sum(file["redrawn"] for file in files),
        "bytes": sum(file["bytes"] for file in files),
        "hashes": {file["split"]: [file["content"], file["sha256"]] for file in files},
    }


def _peer_seconds(sizes: Sizes, limit: int | None) -> float:
    """Return the peer's CPU time for as many graphs, extrapolated split by split."""
    from graphbench import card

    total = 0.0
    for split in CORE:
        spec = card(DATASET).split(split)
        answer = ask_peer(
            "generate",
            task=PEER_TASKS["mst"],
            nodes=spec.parameters["nodes"],
            models=spec.parameters["models"],
            mixture=spec.parameters["mixture"],
            graphs=sizes(12, 1),
            min_seconds=sizes(2, 0),
            max_seconds=30.0,
        )
        total += answer["seconds_per_graph"] * min(spec.count, limit or spec.count)
    return total


if __name__ == "__main__":
    main("build", "Building algoreas/mst_easy", measure, SETTINGS)
