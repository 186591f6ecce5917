"""Small runs whose bits are frozen: the same call must give the same curves, scores and records in every version.

``python tests/parity/freeze.py`` writes ``frozen/*.json`` and ``runs/*``; it is run again only where a defect that is
mended changes a number, and the commit says why.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
FROZEN, RUNS = HERE / "frozen", HERE / "runs"

VOLATILE = (  # fields of a record that tell of the machine and the moment
    "digest",
    "hardware", "graphbench_version", "git_version", "started", "wall_seconds", "peak_memory_bytes",
    "throughput_graphs_per_s", "latency_ms", "latency_ms_batched", "cpu_seconds", "threads",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One run of 30 steps.

    Attributes:
        dataset: Id, with its task where it has several.
        model: Configuration of ``baselines``.
        overrides: Changes of it, to keep the run small.
        limit: Samples per split.
        evaluate: Splits that are scored.
        kept: Whether the run's folder is kept under ``runs``, so that later versions prove that they can read it.
    """

    dataset: str
    model: str
    overrides: dict[str, Any] = field(default_factory=dict)
    limit: int = 24
    evaluate: str = "val,test"
    kept: bool = False


_TINY = {"training.batch_size": 8, "training.eval_every": 10, "training.seed": 3}
CASES = {
    "mst_gin": Case(
        "algoreas/mst_easy",
        "gin",
        {**_TINY, "model.hidden": 24, "model.layers": 2, "model.positional.hidden": 16},
        evaluate="val,test,n192",
        kept=True,
    ),
    "mst_gt": Case(
        "algoreas/mst_easy",
        "gt",
        {**_TINY, "model.hidden": 16, "model.heads": 4, "model.layers": 2, "model.positional.hidden": 16},
        limit=16,
    ),
    "clrs_bfs_mpnn": Case("clrs/bfs", "mpnn", {**_TINY, "model.hidden": 16}, evaluate="val,test,n32", kept=True),
    "clutrr_gat": Case(
        "clutrr/gen_23", "gat_small", {**_TINY, "model.hidden": 12, "model.heads": 2}, evaluate="val,test,k5", kept=True
    ),
    "clutrr_story": Case(
        "clutrr/gen_23",
        "bilstm_small",
        {**_TINY, "model.hidden": 8, "model.embedding": 8, "model.decoder_hidden": 8},
        evaluate="val,test,k5",
        kept=True,
    ),
    "co_mis": Case(
        "co/rb_small:mis",
        "gin_small",
        {**_TINY, "model.hidden": 12, "model.layers": 2, "model.positional.hidden": 12},
        limit=8,
        kept=True,
    ),
    "co_mis_size": Case(
        "co/rb_small:mis_size",
        "gin_small",
        {**_TINY, "model.hidden": 12, "model.layers": 2, "model.positional.hidden": 12},
        limit=8,
    ),
    "clrs_text_bfs": Case(
        "clrs_text/bfs",
        "transformer_small",
        {**_TINY, "model.hidden": 16, "model.heads": 2, "model.layers": 1, "training.batch_size": 4},
        limit=12,
        kept=True,
    ),
}

SEARCH: dict[str, Any] = {
    "trials": 8,
    "min_budget": 2,
    "max_budget": 8,
    "eta": 2,
    "seed": 5,
    "limit": 24,
    "overrides": {
        "training.batch_size": 8,
        "model.hidden": 12,
        "model.layers": 2,
        "model.positional.hidden": 12,
    },
    "space": {
        "training.lr": {"type": "float", "range": [1.0e-5, 0.1], "log": True},
        "model.dropout": {"type": "float", "range": [0.0, 0.5]},
        "model.positional.k": {"type": "int", "range": [4, 16]},
    },
}


def machine() -> dict[str, str]:
    """Return what decides whether the bits of two machines can be compared.

    Two processors of one name may round products differently, so the bits of some products count, too.
    """
    from graphbench.records.machine import cpu_name

    facts = {"torch": torch.__version__, "capability": torch.backends.cpu.get_cpu_capability(), "cpu": str(cpu_name())}
    return {**facts, "products": _products()}


def _products() -> str:
    """Return a hash of products of matrices of several sizes, of one thread."""
    threads, digest = torch.get_num_threads(), hashlib.sha256()
    torch.set_num_threads(1)
    try:
        random = torch.Generator().manual_seed(0)
        for rows, inner, columns in (
            (7, 5, 3),
            (32, 64, 64),
            (512, 128, 64),
            (33, 257, 129),
            (2048, 32, 32),
            (16, 1024, 8),
        ):
            first, second = (torch.randn(shape, generator=random) for shape in ((rows, inner), (inner, columns)))
            digest.update((first @ second).numpy().tobytes())
    finally:
        torch.set_num_threads(threads)
    return digest.hexdigest()[:16]


def run(case: Case, root: Path, output: Path, **options: Any) -> Any:
    """Train and score as the case says and return the result."""
    import graphbench

    torch.set_num_threads(1)
    return graphbench.train(
        case.dataset,
        case.model,
        steps=30,
        limit=case.limit,
        root=root,
        output=output,
        overrides=case.overrides,
        device="cpu",
        workers=1,
        evaluate=case.evaluate.split(","),
        progress=False,
        **options,
    )


def facts_of(result: Any) -> dict[str, Any]:
    """Return all of a run that must not change: the record without machine and moment, and a hash of the weights."""
    record = json.loads(result.record.to_json())
    for name in VOLATILE:
        record.pop(name, None)
    for scores in record["scores"].values():
        scores.pop("seconds_per_graph", None)
    digest = hashlib.sha256()
    for name, tensor in sorted(result.model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return {"record": record, "weights": digest.hexdigest(), "folder": sorted(p.name for p in result.path.iterdir())}


def search(root: Path, output: Path) -> list[dict[str, Any]]:
    """Run a search of eight trials and return what each trial was, and what it cost."""
    from graphbench.tuning.optimizer import Optimizer

    torch.set_num_threads(1)
    settings = {**SEARCH, "root": root, "output": output, "device": "cpu"}
    optimizer = Optimizer.for_dataset("algoreas/mst_easy", model="gin_small", **settings)
    best = optimizer.optimize(report=False, refit=False)
    return [
        {"config": dict(trial.config), "budget": trial.budget, "seed": trial.seed, "cost": trial.cost}
        for trial in best.trials
    ]
