"""Social networks: simulation, the pipeline beside pandas, batches beside PyG, memory of a build, training."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks import social_training
from benchmarks.common import Row, Sizes, main, ours_at_most, ratio_at_least, row_or_failure, scratch_folder
from benchmarks.isolated import in_fresh_process

TARGET = 20.0
TARGET_OF_BATCHES = 5.0
SETTINGS: dict[str, Any] = {
    "time": "CPU time of all threads, kernels compiled before; batches: wall time, median",
    "network": "simulated, interactions: replies, the training split's times; the same snapshot on both sides",
    "archive": "from user_posts.tar.gz and graphs.tar.gz to the snapshot, without contents; peer: read_json of every "
    "member, read_csv, then as the tables",
    "tables": "without contents; peer: boolean masks, isin, drop_duplicates, groupby with quantile",
    "batches": "the whole graph as one batch, kept after its second request and copied when somebody writes into it; "
    "peer: a Data with contents, targets and edges; opened with torch.load, batched (copied) by DataLoader",
    "memory": "largest proportional memory of the process that builds three splits",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``social.json``."""
    yield row_or_failure("simulated posts", "posts/s", partial(_simulation, sizes))
    for what, function, users in (
        ("snapshot of tables in memory", "tables", sizes(100_000, 1_000)),
        ("snapshot of the archive's files", "archive", sizes(10_000, 600)),
    ):
        yield row_or_failure(what, "rows/s", partial(_pipeline, what, function, users))
    with scratch_folder() as root:
        users = sizes(100_000, 1_000)
        yield row_or_failure("memory of a build", "MB", partial(_memory, users, str(root)))
        yield from _batches(users, str(root), sizes)
        yield from social_training.rows(sizes, str(root))


def _simulation(sizes: Sizes) -> Row:
    users = sizes(100_000, 1_000)
    found = in_fresh_process("benchmarks.social_runs:simulation", users=users).value
    return Row(
        "simulated posts",
        "posts/s",
        found["posts"] / found["seconds"],
        lower_is_better=False,
        n={"users": users},
        note=f"with {found['interactions'] / found['posts']:.1f} interactions per post and contents by period",
    )


def _pipeline(what: str, function: str, users: int) -> Row:
    found = in_fresh_process(f"benchmarks.social_runs:{function}", users=users).value
    rows = int(found["rows"])
    size = f" in {found['bytes'] / 1e6:,.1f} MB" if "bytes" in found else ""
    return Row(
        what,
        "rows/s",
        rows / found["ours"],
        rows / found["peer"],
        lower_is_better=False,
        target=ratio_at_least(TARGET),
        n={"users": users},
        note=f"{rows:,} posts and replies{size}; peer: pandas",
    )


def _memory(users: int, root: str) -> Row:
    finished = in_fresh_process("benchmarks.social_runs:build", watch_memory=True, users=users, root=root)
    return Row(
        "memory of a build",
        "MB",
        finished.peak_pss / 1e6,
        target=ours_at_most(8000),
        n={"users": users},
        note=f"three splits with {finished.value['edges']:,.0f} arcs in {finished.value['seconds']:.3g} s of CPU time",
    )


def _batches(users: int, root: str, sizes: Sizes) -> Iterator[Row]:
    what = {"open": "opening a snapshot, first batch included", "batch": "batches of a whole snapshot"}
    try:
        found = in_fresh_process("benchmarks.social_runs:batches", users=users, root=root, repeats=sizes(15, 2)).value
    except RuntimeError as error:
        for label in what.values():
            yield Row(label, "1/s", None, note=f"failed: {error}", failed=True)
        return
    for key, label in what.items():
        yield Row(
            label,
            "1/s",
            1 / found[key],
            1 / found[f"peer_{key}"],
            lower_is_better=False,
            target=ratio_at_least(TARGET_OF_BATCHES) if key == "batch" else None,
            n={"users": users},
            note=f"{found['edges']:,.0f} arcs",
        )


if __name__ == "__main__":
    main("social", "Social networks", measure, SETTINGS)
