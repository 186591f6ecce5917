"""Precision on CPUs: scores and CPU seconds of runs in bfloat16 autocast beside the same runs in float32.

The configurations are the small GIN and GT, at two widths; three seeds each. What ``training.precision: auto`` stands
for on CPUs follows from these rows, see :func:`graphbench.training.scoring.chosen_precision`.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean, stdev
from typing import Any

from benchmarks.common import Row, Sizes, main, row_or_failure, scratch_folder
from benchmarks.isolated import in_fresh_process

DATASETS = ("algoreas/mst_easy", "algoreas/flow_easy")
WIDTHS = {"gin_small": (96, 384), "gt_small": (64, 256)}
SPLITS = ("val", "test")
SETTINGS = {
    "runs": "the configuration with other widths of layers and encodings, 64 graphs per step, three seeds, one thread",
    "scores": "primary metric of the weights that the validation split selects, on 500 graphs (val 16, test 128 nodes)",
    "time": "CPU seconds of training, validation included",
    "peer": "the same runs in fp32",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``precision.json``."""
    with scratch_folder() as root:
        for model, widths in WIDTHS.items():
            for width in widths:
                for dataset in DATASETS:
                    yield from _rows(model, width, dataset, str(root), sizes(200, 3), sizes(3, 1))


def _rows(model: str, width: int, dataset: str, root: str, steps: int, seeds: int) -> Iterator[Row]:
    """Yield the rows of one configuration on one dataset: its time, and its score on every split."""
    what = f"{model}, width {width}, {dataset.partition('/')[2]}"
    settings: dict[str, Any] = {"model": model, "width": width, "dataset": dataset, "root": root, "steps": steps}
    sides: dict[str, list[dict[str, Any]]] = {}

    def time() -> Row:
        for precision in ("bf16", "fp32"):
            sides[precision] = [
                in_fresh_process("benchmarks.precision:run", **settings, precision=precision, seed=seed).value
                for seed in range(seeds)
            ]
        ours, peer = (mean(one["seconds"] for one in side) for side in sides.values())
        return Row(f"{what}: time of a run", "CPU s", ours, peer, n={"seeds": seeds}, details=sides)

    def score(split: str) -> Row:
        ours, peer = ([one["scores"][split] for one in side] for side in sides.values())
        one = sides["bf16"][0]
        spread = f"standard deviation over seeds {_spread(ours):.2g}, fp32 {_spread(peer):.2g}"
        name = f"{what}: {one['metric']} on {split}"
        lower = not one["higher_is_better"]
        return Row(name, one["metric"], mean(ours), mean(peer), lower, n={"seeds": seeds}, note=spread)

    yield row_or_failure(f"{what}: time of a run", "CPU s", time)
    for split in SPLITS:
        yield row_or_failure(f"{what}: score on {split}", "", lambda: score(split))  # noqa: B023 - called at once


def _spread(values: list[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def run(model: str, width: int, dataset: str, root: str, steps: int, precision: str, seed: int) -> dict[str, Any]:
    """Train and score once; return the scores by split, their metric and the CPU seconds."""
    import tempfile

    import torch

    import graphbench
    from graphbench.evaluation.metrics.registry import metric
    from graphbench.training.config import load_config

    torch.set_num_threads(1)
    chosen = graphbench.card(dataset)
    settings: Any = load_config(chosen.id, model, family=chosen.family).model
    overrides = [f"training.precision={precision}", "training.batch_size=64", f"model.hidden={width}"]
    if settings.positional is not None:
        overrides.append(f"model.positional.hidden={width}")
    with tempfile.TemporaryDirectory() as folder:
        result = graphbench.train(
            dataset, model, steps=steps, seed=seed, limit=20_000, val_limit=500, eval_limit=500, root=root,
            output=folder, overrides=overrides, device="cpu", evaluate=SPLITS, progress=False,
        )  # fmt: skip
    primary = metric(chosen.metrics.primary)
    return {
        "scores": {split: result.record.scores[split][primary.name] for split in SPLITS},
        "metric": primary.name,
        "higher_is_better": primary.higher_is_better,
        "seconds": result.record.cpu_seconds,
    }


if __name__ == "__main__":
    main("precision", "Precision on CPUs", measure, SETTINGS)
