"""Train the paper's baselines at the paper's budget on a GPU, score all splits, keep the records.

``python -m benchmarks.gpu`` is the one command: 3 data sets, GIN and GT, 11,880 steps of 256 graphs, one seed. Records
go to ``baselines/results``, a summary to ``benchmarks/results/gpu.json``. Run it again after an interrupt: finished
steps are kept, and runs that have their record are not repeated. ``--datasets`` names others, e.g.
``--datasets sat/small:kissat@vg sat/small:select@vg --models gin --steps 100000``.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common import SCRATCH, Row, finished_record, measure_and_report, row_or_failure

if TYPE_CHECKING:
    from graphbench.records.record import RunRecord

DATASETS = ("algoreas/mst_easy", "algoreas/bridges_easy", "algoreas/topological_sort_easy")
MODELS = ("gin", "gt")
STEPS = 11_880
SETTINGS = {
    "budget": "11,880 optimizer steps of 256 graphs, as in the paper, unless stated",
    "scores": "best weights by the validation metric, on the test split; peer: the paper's number",
    "time": "wall seconds of training, validation and checkpoints included, data generation left out",
}


def main() -> None:
    """Parse the command line and train."""
    options = _parser().parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    title = f"Baselines on {_device_name(options.device)}"
    settings = {**SETTINGS, "command": {key: _plain(value) for key, value in vars(options).items()}}
    if not measure_and_report("gpu", title, train_all(options), settings, quick=options.quick):
        sys.exit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), help="ids or aliases")
    parser.add_argument("--models", nargs="+", default=list(MODELS), help="configurations in baselines/<domain>/")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="e.g. --seeds 0 1 2")
    parser.add_argument("--steps", type=int, default=STEPS, help="optimizer steps per run")
    parser.add_argument("--limit", type=int, help="samples per split (such runs are marked small)")
    parser.add_argument("--root", type=Path, help="folder of the data sets (default: the package's)")
    parser.add_argument("--runs", type=Path, default=SCRATCH / "runs", help="folder of checkpoints")
    parser.add_argument("--results", type=Path, help="folder of records (default: baselines/results)")
    parser.add_argument("--splits", nargs="+", default=["val", "test", "ood"], help="splits to score")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:<number>, or cpu to try the command out")
    parser.add_argument("--workers", type=int, help="processes that generate data (default: all cores)")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="e.g. training.precision=fp32")
    parser.add_argument("--repeat", action="store_true", help="train again where a record exists")
    parser.add_argument("--quick", action="store_true", help="write the summary under .benchmarks/quick/")
    return parser


def train_all(options: argparse.Namespace) -> Iterator[Row]:
    """Yield two rows per run: its test score and its time."""
    from graphbench import card

    for dataset in options.datasets:
        for model in options.models:
            for seed in options.seeds:
                name = f"{card(dataset).address}, {model}, seed {seed}"
                record: list[RunRecord] = []
                yield row_or_failure(
                    name, "score", lambda d=dataset, m=model, s=seed, r=record: _score_row(options, d, m, s, r)
                )
                if record:
                    yield _time_row(record[0])


def _score_row(options: argparse.Namespace, dataset: str, model: str, seed: int, out: list[RunRecord]) -> Row:
    """Train unless a record exists, append the record to ``out``, and return the row of the test score."""
    from graphbench import card
    from graphbench.records.published import published_score
    from graphbench.tasks.evaluator import Evaluator

    chosen = card(dataset)
    record = None if options.repeat else _finished(options, chosen.address, model, seed)
    if record is None:
        record = _train(options, chosen.address, model, seed)
    out.append(record)
    metric = chosen.metrics.primary
    paper = published_score(chosen.address, "test", model, metric, protocol=record.protocol)
    return Row(
        what=f"{chosen.address}, {model}, seed {seed}: {metric} on test",
        unit=metric,
        ours=record.scores.get("test", {}).get(metric),
        peer=None if paper is None else paper.value,
        lower_is_better=not Evaluator(chosen).higher_is_better,
        n={"steps": record.steps},
        note=f"peer: {paper.reference}, {paper.seeds} seeds" if paper is not None else "no published score",
        details={"scores": {split: scores.get(metric) for split, scores in record.scores.items()}},
    )


def _time_row(record: RunRecord) -> Row:
    details = {
        "peak_memory_bytes": record.peak_memory_bytes,
        "graphs_per_second": record.throughput_graphs_per_s,
        "latency_ms": record.latency_ms,
        "latency_ms_batched": record.latency_ms_batched,
        "parameters": record.parameters,
        "hardware": record.hardware,
    }
    what = f"{record.dataset}, {record.model}, seed {record.seed}: {record.steps:,} steps"
    return Row(what, "s", record.wall_seconds, n={"steps": record.steps}, details=details)


def _finished(options: argparse.Namespace, dataset: str, model: str, seed: int) -> RunRecord | None:
    """Return the record of this very run, if there is one."""
    from graphbench import card
    from graphbench.records.files import load_records, results_dir
    from graphbench.training.config import load_config

    folder = options.results or results_dir()
    config = load_config(
        dataset,
        model,
        family=card(dataset).family,
        steps=options.steps,
        seed=seed,
        limit=options.limit,
        overrides=options.set,
    )
    return finished_record(config, load_records(dataset, root=folder)) if folder.is_dir() else None


def _train(options: argparse.Namespace, dataset: str, model: str, seed: int) -> RunRecord:
    import graphbench
    from graphbench.records.files import save_record

    started = time.perf_counter()
    result = graphbench.train(
        dataset,
        model,
        steps=options.steps,
        seed=seed,
        limit=options.limit,
        root=options.root,
        output=options.runs / dataset / f"{model}-seed{seed}",
        overrides=options.set,
        device=options.device,
        resume=not options.repeat,
        workers=options.workers,
        evaluate=options.splits,
    )
    path = save_record(result.record, root=options.results)
    logging.info("%s %s seed %d: %.0f s in all, record %s", dataset, model, seed, time.perf_counter() - started, path)
    return result.record


def _device_name(device: str) -> str:
    import torch

    if not device.startswith("cuda"):
        return device
    if not torch.cuda.is_available():
        sys.exit("no CUDA device is visible; run this on a machine with a GPU, or try the command with --device cpu")
    return torch.cuda.get_device_name(device)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


if __name__ == "__main__":
    main()
