"""The GPU code paths of every shipped configuration, on a pretended CUDA device or on a GPU.

``python -m benchmarks.gpu_paths`` checks all configurations and writes ``benchmarks/results/gpu_paths.json``; names of
domains or configurations choose some, and the file keeps its rows of the others. Of each configuration are checked:
that loss and gradients in float32 equal the CPU's; an update under bfloat16 autocast, with the points where the host
waits for the device; and with ``--runs`` a whole run, which is interrupted and continued, validated, scored and
recorded. :mod:`benchmarks.pretended_cuda` says which facts a pretended device shows and which it does not.
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from benchmarks.common import RESULTS, machine
from benchmarks.pretended_cuda import CUDA, REAL, allow_cuda_tensors, pretend_cuda, waits_of_a_gpu

if TYPE_CHECKING:
    from graphbench.training.config import RunConfig

DATASETS = {
    "algoreas": ("algoreas/mst_easy", "algoreas/topological_sort_easy", "algoreas/bridges_easy", "algoreas/flow_easy",
                 "algoreas/max_clique_easy", "algoreas/max_matching_easy", "algoreas/steiner_tree_easy"),
    "chip_design": ("chip_design/aig:generate",),
    "circuits": ("circuits/converters_5:both",),
    "clrs": ("clrs/bfs", "clrs/floyd_warshall", "clrs/quicksort", "clrs/strongly_connected_components"),
    "clrs_text": ("clrs_text/bfs",),
    "clutrr": ("clutrr/gen_23",),
    "co": ("co/er_small:mis_size", "co/er_small:mis"),
    "sat": ("sat/small:kissat@vg",),
    "social": ("social/sim_quotes_small",),
    "weather": ("weather/sim_t21",),
}  # fmt: skip
OF_MODEL = {  # configurations for some tasks of their domain alone, or whose other tasks take the same code paths
    "algoreas/arcs": ("algoreas/bridges_easy", "algoreas/max_matching_easy"),
    "algoreas/cuts": ("algoreas/flow_easy",),
    "algoreas/pairs": ("algoreas/mst_easy", "algoreas/topological_sort_easy", "algoreas/flow_easy"),
    "algoreas/pairs_shared": ("algoreas/flow_easy",),
    "algoreas/replicator": ("algoreas/max_clique_easy",),
    "circuits/proposer": ("circuits/design_5",),
    "chip_design/gin_small": ("chip_design/aig:ands@reference",),
    "chip_design/deepsets_small": ("chip_design/aig:ands@reference",),
    "co/stepwise": ("co/ba_small:mis", "co/ba_small:max_cut", "co/ba_small:coloring"),
    "sat/neurosat": ("sat/small:kissat",),
    "sat/neurosat_small": ("sat/small:kissat",),
    "social/graphconv_scores_small": ("social/sim_links_quotes_small",),
}
_LAYERS = 2  # fewer layers take the same code paths
_NODES = 16  # of a part of a large graph
_BATCH = 4
_LIMIT = 12
# untrained models write every text to the largest length, token by token; a snapshot is one graph
_LIMITS: dict[str, int | None] = {"chip_design/speller_small": 2, "clrs_text": 2, "social": None}


@dataclass
class Paths:
    """The results of one configuration on one dataset.

    Attributes:
        name: The configuration, ``domain/model``.
        dataset: The dataset.
        loss: Relative difference of the losses on CPU and device, float32, evaluation mode; None if not computed.
        gradient: Largest difference of a parameter's gradients, relative to its norm; None if not computed.
        precision: The precision of the update; empty without one.
        waits: Line of the package and operation -> how often an update waits there.
        blocking_copies: Copies from pageable memory in an update.
        copies: Copies to the device in an update.
        copied_bytes: Their bytes.
        operations: Operations of an update.
        run: ``ok`` if a whole run was made.
        error: The error that ended the checks; empty without one.
        seconds: Time of the checks.
        date: When they ended.
    """

    name: str
    dataset: str
    loss: float | None = None
    gradient: float | None = None
    precision: str = ""
    waits: dict[str, int] = field(default_factory=dict)
    blocking_copies: int = 0
    copies: int = 0
    copied_bytes: int = 0
    operations: int = 0
    run: str = ""
    error: str = ""
    seconds: float = 0.0
    date: str = ""

    @property
    def waited(self) -> int:
        """How often an update waits for the device."""
        return sum(self.waits.values())


def check(name: str, dataset: str, folder: Path, *, runs: bool) -> Paths | None:
    """Return the results of a configuration on a dataset; None for a model without torch.

    Args:
        name: The configuration, ``domain/model``.
        dataset: The dataset; its samples are generated if they are missing.
        folder: An empty folder.
        runs: Whether to make a whole run.
    """
    from graphbench import card
    from graphbench.models.registry import architecture
    from graphbench.training.config import load_config

    allow_cuda_tensors()
    paths, started = Paths(name, dataset), time.perf_counter()
    chosen, (domain, model) = card(dataset), name.split("/")
    limit = _LIMITS.get(name, _LIMITS.get(domain, _LIMIT))
    plain = load_config(chosen.address, model, family=chosen.family, limit=limit)
    if not architecture(plain.kind).has_steps:
        return None
    changes = list(_short(plain, folder))
    config = load_config(chosen.address, model, family=chosen.family, limit=limit, steps=3, overrides=changes)
    try:
        _compare(config, dataset, folder, limit, paths)
        _update(config, dataset, folder, limit, paths)
        if runs:
            _run(dataset, model, changes, folder / "run", limit)
            paths.run = "ok"
    except Exception as error:  # reported in the table, and by the exit code
        paths.error = _described(error)
    paths.seconds = round(time.perf_counter() - started, 1)
    paths.date = datetime.now(UTC).isoformat(timespec="seconds")
    return paths


def _short(config: RunConfig, folder: Path) -> Iterator[str]:
    """Yield overrides that make a run small and leave its code paths as they are."""
    yield f"training.batch_size={_BATCH}"
    staged = "stages" in (getattr(config.model, "options", None) or {})
    for name, most in (("layers", _LAYERS), ("teacher_rounds", 1), ("samples", 1)):
        value = getattr(config.model, name, None)
        if isinstance(value, int) and value > most and not staged:
            yield f"model.{name}={most}"
    if config.training.neighbours is not None:
        yield f"training.neighbours.nodes={_NODES}"
    if getattr(config.model, "encoder", "") == "frozen":
        yield f"model.frozen.path={_tiny_encoder(folder)}"


def _context(config: RunConfig, dataset: str, folder: Path, limit: int | None, device: torch.device) -> Any:
    """Return the context of a run on the first samples of a dataset."""
    from graphbench import Loader, card
    from graphbench.training.distributed import World
    from graphbench.training.run import checked_tasks, make_context

    chosen = card(dataset)
    tasks = checked_tasks(config, {chosen.address: chosen})
    (task,) = tasks.values()
    data = Loader(chosen.address, limit=limit, workers=1, progress=False, unlabelled=task.unlabelled).load(())
    return make_context(config, tasks, {chosen.address: data}, folder, World(0, 1, device))


def _compare(config: RunConfig, dataset: str, folder: Path, limit: int | None, paths: Paths) -> None:
    """Compare the loss and gradients of the CPU with the loss and gradients of the device, in float32."""
    from graphbench.data.batches.batching import on_device
    from graphbench.training.learners.torch_learner import build_model
    from graphbench.training.loop import weighted_sum

    context = _context(config, dataset, folder / "compared", limit, torch.device("cpu"))
    ((id_, run),) = context.runs.items()
    torch.manual_seed(0)
    model = build_model(context.config, {id_: run.card})
    sample = run.task.normalisation_batch(run.train)
    if sample is not None:
        model.fit_normalisation(sample, id_)
    with torch.no_grad():
        for parameter in model.parameters():  # those that start at 0 leave directions of an edge equal
            parameter.add_(0.01 * torch.randn_like(parameter))
    model.eval()

    def loss_of(network: Any, device: str) -> Tensor:
        batch = _without_ties(next(iter(run.task.batches(run.train, _BATCH, seed=0))))
        seen = on_device(network.prepare(batch, id_, torch.Generator().manual_seed(0), training=True), device)
        with torch.backends.cudnn.flags(enabled=False):  # its recurrent layers have no gradients in evaluation mode
            return weighted_sum(run.task.losses(network(seen, id_), seen), run.card.task.weights)

    there = copy.deepcopy(model)
    loss = loss_of(model, "cpu")
    loss.backward()  # type: ignore[no-untyped-call]
    with pretend_cuda():
        there = there.to("cuda")
        other = loss_of(there, "cuda")
        other.backward()  # type: ignore[no-untyped-call]
        paths.loss = abs(float(other.detach()) - float(loss.detach())) / max(abs(float(loss.detach())), 1e-12)
        pairs = list(zip(model.named_parameters(), there.parameters(), strict=True))
        lacking = [name for (name, a), b in pairs if (a.grad is None) != (b.grad is None)]
        if lacking:
            raise RuntimeError(f"gradients of {lacking} on one device alone")
        gradients = [(a.grad, b.grad.cpu()) for (_, a), b in pairs if a.grad is not None and b.grad is not None]
        least = 1e-4 * max(float(a.norm()) for a, _ in gradients)  # some gradients are 0 but for rounding
        paths.gradient = max(float((a - b).norm()) / max(float(a.norm()), least) for a, b in gradients)


def _without_ties(batch: Any) -> Any:
    """Return a batch whose equal numbers differ by 0.1%: devices pass gradients to different ones of equal walks."""
    if not isinstance(batch, Data):
        return batch
    generator = torch.Generator().manual_seed(0)

    def changed(values: Tensor) -> Tensor:
        if not values.is_floating_point():
            return values
        return values * (1 - 1e-3 * torch.rand(values.shape, generator=generator))

    return copy.copy(batch).apply(changed)


def _update(config: RunConfig, dataset: str, folder: Path, limit: int | None, paths: Paths) -> None:
    """Count the events of the second update of a run on the device."""
    from graphbench.training.run import prepared

    with pretend_cuda() as report:
        learner = prepared(_context(config, dataset, folder / "updated", limit, CUDA), resume=False)
        loop: Any = learner.loop  # type: ignore[attr-defined]
        loop.model.train()
        batches = loop._batches()
        loop._update(*next(batches))
        report.clear()
        with waits_of_a_gpu(report):
            loop._update(*next(batches))
        paths.precision = loop.precision
        paths.waits = {f"{line} {operation}": count for (line, operation), count in sorted(report.waits.items())}
        paths.copies, paths.blocking_copies = sum(report.copies.values()), report.blocking
        paths.copied_bytes, paths.operations = report.copied_bytes, sum(report.operations.values())


def _run(dataset: str, model: str, changes: list[str], folder: Path, limit: int | None) -> None:
    """Train on the device, interrupted after one step, with scores and a record."""
    import graphbench

    splits = [name for name in ("val", "test") if name in graphbench.card(dataset).all_splits]
    overrides = [*changes, "training.schedule_steps=3"]
    with pretend_cuda():
        for steps, evaluate, resume in ((1, None, False), (3, splits, True)):
            graphbench.train(
                dataset, model, steps=steps, evaluate=evaluate, resume=resume, limit=limit, output=folder,
                overrides=overrides, device="cuda", workers=1, progress=False,
            )  # fmt: skip


def _described(error: BaseException) -> str:
    """Return an error with the innermost line of the package that it came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/graphbench/" in frame.filename]
    line = f" at graphbench/{frames[-1].filename.rsplit('/graphbench/', 1)[1]}:{frames[-1].lineno}" if frames else ""
    first = str(error).splitlines()[0][:300] if str(error) else ""
    return f"{type(error).__name__}{line}: {first}"


def _tiny_encoder(folder: Path) -> Path:
    """Return the folder of a small BERT with random weights."""
    import transformers

    path = folder / "tiny_bert"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(200)), *"abcdefghijklmnopqrstuvwxyz.,'!"]
    words += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]
    path.mkdir(parents=True)
    (path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    transformers.BertTokenizerFast(str(path / "vocab.txt")).save_pretrained(path)
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    transformers.BertModel(transformers.BertConfig(vocab_size=len(words), **shape)).save_pretrained(path)
    return path


# ---------------------------------------------------------------------------------------- the command


def cases(names: Iterable[str], *, first: bool) -> list[tuple[str, str]]:
    """Return (configuration, dataset) of domains or configurations; of all without names.

    The configurations of ``default``, which datasets of one's own take, have no dataset of the package: the models are
    those of other domains.

    Args:
        names: ``domain``, ``domain/model`` or ``domain/model=dataset``.
        first: Whether only the first dataset of every configuration is taken.
    """
    from graphbench.training.config import list_configs

    chosen = []
    for name in list_configs():
        domain = name.split("/")[0]
        for wanted, _, dataset in (given.partition("=") for given in list(names) or [domain]):
            if wanted in (name, domain):
                datasets = [dataset] if dataset else list(OF_MODEL.get(name, DATASETS.get(domain, ())))
                chosen += [(name, one) for one in (datasets[:1] if first else datasets)]
    return chosen


def checked(wanted: Iterable[tuple[str, str]], *, runs: bool) -> Iterator[Paths]:
    """Yield the results of configurations; models without torch are left out."""
    for name, dataset in wanted:
        with tempfile.TemporaryDirectory() as folder:
            paths = check(name, dataset, Path(folder), runs=runs)
        if paths is not None:
            yield paths


def main() -> None:
    """Check configurations, print a line for each and write the result file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_paths", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", help="domain, domain/model or domain/model=dataset; default: all")
    parser.add_argument("--first", action="store_true", help="the first dataset of every configuration alone")
    parser.add_argument("--runs", action="store_true", help="make whole runs too")
    parser.add_argument("--output", type=Path, default=RESULTS / "gpu_paths.json", help="the result file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    rows: list[Paths] = []
    unknown = [name for name in options.names if not cases([name], first=True)]
    if unknown:
        parser.error(f"no configuration is named {unknown[0]!r}; name a domain, domain/model or domain/model=dataset")
    for paths in checked(cases(options.names, first=options.first), runs=options.runs):
        rows.append(paths)
        print(_line(paths), flush=True)
        _write(options.output, paths)
    sys.exit(any(paths.error for paths in rows))


def _line(paths: Paths) -> str:
    loss, gradient = ("-" if x is None else f"{x:.0e}" for x in (paths.loss, paths.gradient))
    return (
        f"{paths.name:32} {paths.dataset:36} loss {loss:6} gradient {gradient:6} {paths.precision:5} "
        f"waits {paths.waited:3} blocking {paths.blocking_copies:3} operations {paths.operations:6} run {paths.run:3} "
        f"{paths.seconds:6.1f} s {paths.error}"
    )


def _write(path: Path, paths: Paths) -> None:
    """Add a row to the result file, or replace the row of the same configuration and dataset."""
    kept = json.loads(path.read_text(encoding="utf-8"))["paths"] if path.is_file() else []
    rows = {(row["name"], row["dataset"]): row for row in [*kept, asdict(paths)]}
    lines = sorted(line for row in rows.values() for line in row["waits"])
    result = {
        "title": "Shipped configurations on a " + ("GPU" if REAL else "pretended CUDA device"),
        "date": paths.date,
        "machine": {**machine(), "device": torch.cuda.get_device_name(0) if REAL else "pretended"},
        "settings": {"samples per batch": _BATCH, "layers": _LAYERS, "update": "the second one, in training mode"},
        "paths": [rows[key] for key in sorted(rows)],
        "lines where updates wait": {
            line: sum(line in row["waits"] for row in rows.values()) for line in sorted(lines)
        },
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
