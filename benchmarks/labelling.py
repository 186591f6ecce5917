"""Labels: a complete dataset of graphs with the labels of all its tasks, on two workers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from benchmarks.common import Row, Sizes, main, ours_at_most, scratch_folder
from benchmarks.isolated import in_fresh_process

DATASET = "co/ba_small"
SETTINGS = {
    "dataset": f"{DATASET}: train, val and test, with the labels of its three labellers",
    "work": "drawn, labelled with the effort of the card, every label checked, written, hashed; 2 workers of this "
    "machine; kernels were compiled before",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``labelling.json``."""
    found = in_fresh_process("benchmarks.labelling:build", limit=40 if sizes.quick else None).value
    n = {"graphs": found["graphs"]}
    for part, seconds in found["seconds"].items():
        yield Row(f"{found['graphs']:,} graphs of {DATASET}, {part}: wall time", "s", seconds, n=n)
    yield Row(
        f"{found['graphs']:,} graphs of {DATASET} with all labels: wall time",
        "s",
        sum(found["seconds"].values()),
        target=ours_at_most(7200.0),
        n=n,
    )


# --------------------------------------------------------------------------------------------------------------------
# Run in a fresh process


def build(limit: int | None) -> dict[str, Any]:
    """Build the splits of the dataset, then the labels of its tasks, on two workers; return the seconds of each."""
    from graphbench import card
    from graphbench.catalog.cards import CORE_SPLITS
    from graphbench.data.build.generation import draw_samples, ensure_split

    graphs = card(DATASET).graphs
    tasks = {f"labels {spec.labels}": card(f"{DATASET}:{name}") for name, spec in card(DATASET).tasks.items()}
    spent = {}
    with scratch_folder() as root:
        for part, own in {"graphs": graphs, **tasks}.items():
            draw_samples(own, "train", range(2))  # kernels compiled
            began = time.perf_counter()
            for split in CORE_SPLITS:
                ensure_split(own, split, root, limit, workers=2, progress=False)
            spent[part] = time.perf_counter() - began
    count = sum(min(graphs.split(split).count, limit or graphs.split(split).count) for split in CORE_SPLITS)
    return {"graphs": count, "seconds": spent}


if __name__ == "__main__":
    main("labelling", "Labels", measure, SETTINGS)
