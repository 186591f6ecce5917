"""CLRS-30 and CLRS-Text: generating the canonical data set, large trajectories and prompts, ours and dm-clrs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.common import Row, Sizes, main, ours_at_most, ratio_at_least, scratch_folder
from benchmarks.isolated import in_fresh_process
from benchmarks.peer import CLRS_PEER, dm_clrs
from graphbench.records.machine import processor_seconds

CORE = ("train", "val", "test")
SETTINGS = {
    "peer package": f"{CLRS_PEER}, with JAX and TensorFlow as it requires",
    "canonical set": "30 algorithms: 1,000 train (16 nodes), 32 x multiplier val (16) and test (64) trajectories each",
    "ours": "drawn, traced, written, flushed and hashed with the loader, 2 workers; kernels compiled and loaded before",
    "imports": "of neither side counted",
    "peer": "clrs.build_sampler alone, nothing written; some trajectories of each algorithm and size, extrapolated",
    "peer's CPU time": "process CPU seconds, one process, one thread; ours: all processes, user and system",
    "prompts": "CLRS-Text with hints, 3 decimals, 30 algorithms, sizes 5 and 10; the peer: its Hugging Face generator",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``clrs.json``."""
    in_fresh_process("benchmarks.clrs:compile_all")
    small = dm_clrs().ask("sample", algorithms=_names(), length=16, count=sizes(20, 1), seed=1)
    large = dm_clrs().ask("sample", algorithms=_names(), length=64, count=sizes(4, 1), seed=1)
    yield from _canonical(sizes, small["seconds"], large["seconds"])
    yield _many_large(sizes, large)
    yield _prompts(sizes)


def _names() -> list[str]:
    from graphbench.domains.clrs.names import NAMES

    return list(NAMES)


def _canonical(sizes: Sizes, small: dict[str, float], large: dict[str, float]) -> Iterator[Row]:
    from graphbench import card

    with scratch_folder() as root:
        run = in_fresh_process("benchmarks.clrs:build", watch_memory=True, root=str(root), limit=sizes(0, 8) or None)
    cards = {name: card(f"clrs/{name}") for name in _names()}
    peer = sum(
        small[name] * (c.split("train").count + c.split("val").count) + large[name] * c.split("test").count
        for name, c in cards.items()
    )
    n = {"ours": run.value["samples"]}
    yield Row("canonical CLRS-30, all splits: wall time", "s", run.value["wall"], target=ours_at_most(30), n=n)
    yield Row(
        "canonical CLRS-30, all splits: CPU time",
        "s",
        run.value["cpu"],
        peer,
        target=ratio_at_least(40),
        n=n,
        note="peer extrapolated",
        details={"peer seconds per trajectory, 16 nodes": small, "peer seconds per trajectory, 64 nodes": large},
    )
    yield Row("canonical CLRS-30 on disk", "MB", run.value["bytes"] / 1e6, target=ours_at_most(300), n=n)
    yield Row("peak memory of all processes", "GB", run.peak_pss / 1e9, target=ours_at_most(1.5), n=n)


def _many_large(sizes: Sizes, peer: dict[str, Any]) -> Row:
    count = sizes(500, 4)
    run = in_fresh_process("benchmarks.clrs:trace_large", watch_memory=True, count=count)
    return Row(
        f"{count} trajectories of 64 nodes for all 30: wall time, 2 processes",
        "s",
        run.value["wall"],
        count * sum(peer["seconds"].values()),
        target=ours_at_most(60),
        n={"ours": 30 * count},
        note=f"in memory; the peer's CPU time, extrapolated; its hints alone would take "
        f"{count * sum(peer['hint_bytes'].values()) / 1e9:.1f} GB, ours take {run.value['bytes'] / 1e9:.3f} GB "
        f"(peak memory of all processes {run.peak_pss / 1e9:.2f} GB)",
        details=run.value,
    )


def _prompts(sizes: Sizes) -> Row:
    count = sizes(1000, 60)
    ours = in_fresh_process("benchmarks.clrs:render_prompts", count=count).value
    peer = dm_clrs().ask("prompts", algorithms=_names(), lengths=[5, 10], count=count, seed=0)
    return Row(
        "CLRS-Text, 1,000 prompts with hints: CPU time",
        "s",
        1000 * ours["seconds"],
        1000 * peer["seconds"],
        target=ratio_at_least(30),
        n={"ours": count, "peer": count},
        note=f"mean length {ours['characters']:.0f} characters, the peer's {peer['characters']:.0f}",
    )


# --------------------------------------------------------------------------------------------------------------------
# Run in fresh processes


def compile_all() -> None:
    """Compile the kernels of all algorithms, and the prompts'."""
    from graphbench.domains.clrs import sample, trace
    from graphbench.domains.clrs_text import render

    for name in _names():
        args = sample(name, 7, 1, 1)[0]
        trace(name, *args)
        render(name, args, decimals=3)


def build(root: str, limit: int | None) -> dict[str, Any]:
    """Generate the canonical splits of all algorithms, with the kernels loaded."""
    from graphbench import Loader
    from graphbench.data.batches.dataset import GraphDataset

    assert GraphDataset  # imported: PyTorch takes seconds, and the peer's imports are not counted either
    compile_all()
    wall, cpu = time.perf_counter(), processor_seconds()
    loaded = Loader("clrs30", root=root, limit=limit, workers=2, progress=False).load(CORE)
    wall = time.perf_counter() - wall
    samples = sum(len(splits[name]) for splits in loaded.values() for name in CORE)
    size = sum(path.stat().st_size for path in Path(root).rglob("*") if path.is_file())
    return {"wall": wall, "cpu": processor_seconds() - cpu, "samples": samples, "bytes": size}


def trace_large(count: int) -> dict[str, Any]:
    """Draw and trace ``count`` problems of 64 nodes of every algorithm on two processes."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_trace_one, ["minimum"] * 2, [1] * 2))  # both processes are up
        started = time.perf_counter()
        sizes = list(pool.map(_trace_one, _slowest_first(), [count] * 30))
        wall = time.perf_counter() - started
    return {"wall": wall, "bytes": sum(sizes)}


def _slowest_first() -> list[str]:
    slow = ("optimal_bst", "matrix_chain_order", "floyd_warshall", "lcs_length", "jarvis_march", "graham_scan")
    return [*slow, *(name for name in _names() if name not in slow)]


def _trace_one(name: str, count: int) -> int:
    from graphbench.domains.clrs import sample
    from graphbench.domains.clrs.generators import GENERATORS, samples_of_runs
    from graphbench.domains.clrs.tracing import find_algorithm, run_all

    assert name in GENERATORS
    samples = samples_of_runs(find_algorithm(name), *run_all(name, sample(name, 64, count, 1)))
    assert samples.hints is not None
    return sum(array.nbytes for array in samples.hints.arrays().values())


def render_prompts(count: int) -> dict[str, float]:
    """Draw, trace and render prompts of all algorithms and two sizes alike."""
    from graphbench.domains.clrs_text import prompts

    each = -(-count // (2 * len(_names())))
    for name in _names():
        list(prompts(name, 5, 1, seed=1, use_hints=True, decimals=3))
    drawn = characters = 0
    started = time.process_time()
    for size in (5, 10):
        for name in _names():
            for prompt in prompts(name, size, each, seed=0, use_hints=True, decimals=3):
                drawn += 1
                characters += len(prompt.prompt) + len(prompt.reference)
    return {"seconds": (time.process_time() - started) / drawn, "characters": characters / drawn}


if __name__ == "__main__":
    main("clrs", "CLRS-30 and CLRS-Text", measure, SETTINGS)
