"""CLUTRR: puzzles drawn on one core, and a whole dataset with stories and checks; the public generator runs no more."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from benchmarks.common import Row, Sizes, main, ours_at_least, ours_at_most, scratch_folder
from benchmarks.isolated import in_fresh_process

LENGTHS = (2, 3, 4, 10)
NOISES = ("supporting", "irrelevant", "disconnected")
SETTINGS = {
    "puzzles": "family, question, path, check for a second answer, shuffling; one core, CPU time, kernels compiled",
    "dataset": "clutrr/gen_234, all splits, drawn, told, written, flushed and hashed with 2 workers; then every sample "
    "checked in plain Python (path, answer, clause, story read back) on 2 processes; kernels compiled before",
    "peer": "none: the public generator downloads its templates from an address that is gone",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``clutrr.json``."""
    for k in LENGTHS:
        yield _puzzles(k, "none", sizes, 10_000 if k == 10 else 50_000)
    for noise in NOISES:
        yield _puzzles(3, noise, sizes, None)
    yield from _dataset(sizes)


def _puzzles(k: int, noise: str, sizes: Sizes, target: int | None) -> Row:
    count = sizes(50_000, 500)
    found = in_fresh_process("benchmarks.clutrr:draw", k=k, noise=noise, count=count).value
    what = f"puzzles of {k} facts" + ("" if noise == "none" else f", {noise} noise")
    return Row(
        what, "puzzles/s", found, lower_is_better=False, target=target and ours_at_least(target), n={"ours": count}
    )


def _dataset(sizes: Sizes) -> Iterator[Row]:
    limit = sizes(0, 50) or None
    with scratch_folder() as root:
        in_fresh_process("benchmarks.clutrr:build", root=str(root / "warm"), limit=8)
        found = in_fresh_process("benchmarks.clutrr:build", root=str(root / "cold"), limit=limit).value
    n = {"ours": found["samples"]}
    yield Row("clutrr/gen_234, complete: wall time", "s", found["build"], target=ours_at_most(15), n=n)
    total = found["build"] + found["check"]
    yield Row("clutrr/gen_234, complete, every sample checked: wall time", "s", total, target=ours_at_most(15), n=n)


# --------------------------------------------------------------------------------------------------------------------
# Run in fresh processes


def draw(k: int, noise: str, count: int) -> float:
    """Return the puzzles drawn per second of CPU time."""
    import numpy as np

    from graphbench.domains.clutrr.puzzles import PuzzleParameters, draw_puzzles

    parameters = PuzzleParameters(k, noise=noise)
    draw_puzzles(parameters, 0, np.arange(10))
    started = time.process_time()
    draw_puzzles(parameters, 1, np.arange(count))
    return count / (time.process_time() - started)


def build(root: str, limit: int | None) -> dict[str, Any]:
    """Generate ``clutrr/gen_234`` and check every sample; return wall times and the number of samples."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from graphbench import Loader
    from graphbench.data.batches.dataset import GraphDataset

    assert GraphDataset  # imports do not count
    started = time.perf_counter()
    splits = Loader("clutrr/gen_234", root=root, limit=limit, workers=2, progress=False).load("all")
    built = time.perf_counter() - started
    sizes = {name: len(splits[name]) for name in splits}
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_check, [(str(splits[name].path), name, 0, 2) for name in ("train", "val")]))  # both are up
        parts = [
            (str(splits[name].path), name, first, min(first + 1000, size))
            for name, size in sizes.items()
            for first in range(0, size, 1000)
        ]
        started = time.perf_counter()
        wrong = sum(pool.map(_check, parts, chunksize=1))
        checked = time.perf_counter() - started
    if wrong:
        raise RuntimeError(f"{wrong} samples of clutrr/gen_234 are wrong")
    return {"build": built, "check": checked, "samples": sum(sizes.values())}


def _check(part: tuple[str, str, int, int]) -> int:
    from pathlib import Path

    from graphbench import card
    from graphbench.data.components.domain import find
    from graphbench.data.store.shards import stored_samples

    path, split, first, last = part
    about = card("clutrr/gen_234")
    generator = find("generator", about.generator)
    samples = stored_samples(about, Path(path)).part(about, first, last)
    return len(generator.check(generator.parse(about, split), samples))


if __name__ == "__main__":
    main("clutrr", "CLUTRR", measure, SETTINGS)
