"""Train the paper's baselines at the paper's budget on a GPU, several at once, until a deadline; keep the records.

``python -m benchmarks.gpu --minutes 28 --jobs 4 --out FOLDER`` is the one command. Runs start in the order of
:data:`PLAN`, GIN first, or of ``--plan``, and runs that have their record are left out. Each run has a separate
process, and its record says that others shared the GPU. Before the deadline the unfinished runs write a checkpoint
and end; the same command continues them. ``FOLDER`` gets ``records.tar.gz`` (``python -m benchmarks.gpu --import
FOLDER`` puts the records into ``baselines/results``) and ``gpu.log``; a summary goes to
``benchmarks/results/gpu.json``.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import logging
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common import FOLDER, SCRATCH, Row, finished_record, measure_and_report
from graphbench.core.errors import GraphBenchError

if TYPE_CHECKING:
    from graphbench.records.record import RunRecord
    from graphbench.training.config import RunConfig

ALGOREAS = ("topological_sort", "mst", "bridges", "steiner_tree", "max_clique", "flow", "max_matching")
CIRCUITS = ("circuits/converters_5:both",)
NEEDED = (  # packages that training imports beside the standard library
    "torch", "torch_geometric", "numpy", "scipy", "h5py", "numba", "networkx", "pydantic", "pydantic_core",
    "annotated_types", "typing_inspection", "typing_extensions", "yaml", "rich", "filelock", "platformdirs",
    "safetensors", "typer",
)  # fmt: skip
SETTINGS = {
    "budget": "the configuration's steps, as in the paper, unless stated",
    "scores": "best weights by the validation metric, on the test split; peer: the paper's number",
    "time": "wall seconds of training, validation and checkpoints included, data generation left out; runs that "
    "shared the GPU took longer than they would alone",
}
INTERRUPTED = 130  # exit code of a run that was asked to end
_GRACE = 60.0  # seconds before the deadline at which unfinished runs are asked to end
_LATEST = 45.0  # seconds they have for a checkpoint


@dataclass(frozen=True)
class Run:
    """One run of the plan."""

    dataset: str
    model: str
    seed: int = 0

    def __str__(self) -> str:
        """Return e.g. ``algoreas/mst_easy, gt, seed 0``."""
        return f"{self.dataset}, {self.model}, seed {self.seed}"


def _plan() -> Iterator[Run]:
    for seed in range(3):
        for model in ("gin", "gt"):  # the shorter runs first, so that a short loan ends with records
            yield from (Run(f"algoreas/{name}_easy", model, seed) for name in ALGOREAS)
        for model in ("gt", "gin", "gat", "gcn", "deepsets"):
            yield from (Run(name, model, seed) for name in CIRCUITS)


PLAN = tuple(_plan())


def main() -> None:
    """Parse the command line and train."""
    options = _parser().parse_args()
    if options.imported:
        sys.exit(_import_records(options.imported, options.results))
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(f"packages are missing: pip install {' '.join(missing)}")
    if options.minutes is not None and 60 * options.minutes <= _GRACE:
        sys.exit(
            f"--minutes {options.minutes:g} leaves no time to train: runs end {_GRACE:g} seconds before; give more"
        )
    try:
        _require_known(options)
    except GraphBenchError as error:
        sys.exit(str(error))
    if options.one:
        dataset, model, seed = options.one
        try:
            _train(options, Run(dataset, model, int(seed)))
        except KeyboardInterrupt:  # at the deadline; the checkpoint is written
            sys.exit(INTERRUPTED)
        return
    title = f"Baselines on {_device_name(options.device)}"
    settings = {**SETTINGS, "command": {key: _plain(value) for key, value in vars(options).items()}}
    quick = options.quick or options.results is not None
    if not measure_and_report("gpu", title, train_all(options), settings, quick=quick):
        sys.exit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, help="stop before so many minutes, above 1 (default: no deadline)")
    parser.add_argument("--jobs", type=int, default=4, help="runs that share the GPU (default: 4)")
    parser.add_argument("--out", type=Path, default=SCRATCH / "gpu", help="folder of the archive and the log")
    parser.add_argument("--datasets", nargs="+", help="ids or aliases (default: the datasets of the plan)")
    parser.add_argument("--models", nargs="+", help="configurations in baselines/<domain>/ (default: the plan's)")
    parser.add_argument("--seeds", nargs="+", type=int, help="e.g. --seeds 0 1 2 (default: the plan's)")
    parser.add_argument(
        "--plan",
        nargs="+",
        metavar="DATASET,MODEL[,SEED]",
        help="these runs in this order, in place of the three options above",
    )
    parser.add_argument("--steps", type=int, help="optimizer steps per run (default: the configuration's)")
    parser.add_argument("--limit", type=int, help="samples per split (such runs are marked small)")
    parser.add_argument("--root", type=Path, help="folder of the data sets (default: the package's)")
    parser.add_argument("--runs", type=Path, default=SCRATCH / "runs", help="folder of checkpoints")
    parser.add_argument("--results", type=Path, help="folder of records (default: baselines/results); implies --quick")
    parser.add_argument(
        "--splits", nargs="+", default=["val", "test", "ood"], help="splits to score, where a dataset has them"
    )
    parser.add_argument("--device", default="cuda", help="cuda, cuda:<number>, or cpu to try the command out")
    parser.add_argument("--workers", type=int, help="processes that generate data (default: all cores)")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="e.g. training.precision=fp32")
    parser.add_argument("--repeat", action="store_true", help="train again where a record exists")
    parser.add_argument("--quick", action="store_true", help="write the summary under .benchmarks/quick/")
    parser.add_argument("--import", dest="imported", type=Path, help="copy the records of an archive's folder, and end")
    parser.add_argument("--one", nargs=3, metavar=("DATASET", "MODEL", "SEED"), help="train one run in this process")
    return parser


def _require_known(options: argparse.Namespace) -> None:
    """Raise an error for a dataset or a model that does not exist, before anything starts."""
    from graphbench import card
    from graphbench.training.config import load_config

    for run in chosen_runs(options):
        load_config(run.dataset, run.model, family=card(run.dataset).family)


def chosen_runs(options: argparse.Namespace) -> list[Run]:
    """Return the runs of the plan that the command line names; other datasets and models are added to it."""
    from graphbench import card

    if options.plan is not None:
        return [_planned(text) for text in options.plan]
    if options.datasets is None:
        runs: Iterable[Run] = PLAN
        if options.models is not None:
            runs = (run for run in PLAN if run.model in options.models)
        if options.seeds is not None:
            runs = (run for run in runs if run.seed in options.seeds)
        return list(runs)
    addresses = [card(name).address for name in options.datasets]
    seeds, models = options.seeds or [0], options.models or ["gt", "gin"]
    return [Run(address, model, seed) for seed in seeds for address in addresses for model in models]


def _planned(text: str) -> Run:
    """Return the run of ``dataset,model`` or ``dataset,model,seed``."""
    from graphbench import card

    match text.split(","):
        case [name, model]:
            return Run(card(name).address, model)
        case [name, model, seed] if seed.isdecimal():
            return Run(card(name).address, model, int(seed))
    raise GraphBenchError(f"a run of the plan is DATASET,MODEL or DATASET,MODEL,SEED, not {text!r}")


def scored_splits(dataset: str, wanted: Sequence[str]) -> list[str]:
    """Return the wanted splits that a dataset has; ``ood`` stands for all out-of-distribution splits."""
    from graphbench import card

    known = {*card(dataset).all_splits, "ood"}
    return [name for name in wanted if name in known]


def train_all(options: argparse.Namespace) -> Iterator[Row]:
    """Yield two rows per finished run (test score, time), and one failed row per run that ends with an error."""
    deadline = None if options.minutes is None else time.monotonic() + 60 * options.minutes - _GRACE
    options.out.mkdir(parents=True, exist_ok=True)
    waiting = [run for run in chosen_runs(options) if options.repeat or _finished(options, run) is None]
    crew = Crew(options, waiting, deadline)
    for run, code in crew.work():
        record = _finished(options, run)
        if record is not None:
            write_archive(options.out / "records.tar.gz", [record])
            yield from _rows(record)
        elif code not in (0, -signal.SIGINT, INTERRUPTED):
            yield Row(str(run), "score", None, note=f"failed with exit code {code}; see gpu.log", failed=True)


@dataclass
class Crew:
    """The processes that train, at most ``options.jobs`` at once.

    Attributes:
        options: The command line.
        waiting: The runs that have not started.
        deadline: Value of ``time.monotonic()`` at which runs are asked to end; None for no deadline.
        active: The processes that train, and their runs.
    """

    options: argparse.Namespace
    waiting: list[Run]
    deadline: float | None
    active: dict[subprocess.Popen[str], Run] = field(default_factory=dict)

    def work(self) -> Iterator[tuple[Run, int]]:
        """Yield each run when its process has ended, with the exit code."""
        with (self.options.out / "gpu.log").open("a", encoding="utf-8") as log:
            while self.waiting or self.active:
                if self.deadline is not None and time.monotonic() > self.deadline:
                    self.waiting.clear()
                    self._end()
                while self.waiting and len(self.active) < self.options.jobs:
                    self._start(self.waiting.pop(0), log)
                for process in [process for process in self.active if process.poll() is not None]:
                    run = self.active.pop(process)
                    print(f"{run}: ended with exit code {process.returncode}", flush=True)
                    yield run, process.returncode
                time.sleep(0.2)

    def _start(self, run: Run, log: io.TextIOBase) -> None:
        command = [sys.executable, "-u", "-m", "benchmarks.gpu", "--one", run.dataset, run.model, str(run.seed)]
        command += passed_on(self.options)
        environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "2")}
        process = subprocess.Popen(
            command, cwd=FOLDER.parent, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.active[process] = run
        threading.Thread(target=_copy_lines, args=(process, run, log), daemon=True).start()
        print(f"{run}: started", flush=True)

    def _end(self) -> None:
        """Ask all processes to write a checkpoint and end, and kill the processes that do not."""
        latest = time.monotonic() + _LATEST
        for process in self.active:
            process.send_signal(signal.SIGINT)
        for process in self.active:
            try:
                process.wait(max(0.0, latest - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _copy_lines(process: subprocess.Popen[str], run: Run, log: io.TextIOBase) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        log.write(f"{time.strftime('%H:%M:%S')} {run}: {line}")
        log.flush()


def passed_on(options: argparse.Namespace) -> list[str]:
    """Return the arguments of the command line that the process of a run needs."""
    arguments = ["--device", options.device, "--runs", str(options.runs), "--splits", *options.splits]
    for name in ("steps", "limit", "root", "results", "workers"):
        if getattr(options, name) is not None:
            arguments += [f"--{name}", str(getattr(options, name))]
    if options.set:
        arguments += ["--set", *options.set]
    return arguments + (["--repeat"] if options.repeat else [])


def _train(options: argparse.Namespace, run: Run) -> None:
    import graphbench
    from graphbench.records.files import save_record

    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")  # lines of progress in gpu.log
    result = graphbench.train(
        run.dataset,
        run.model,
        steps=options.steps,
        seed=run.seed,
        limit=options.limit,
        root=options.root,
        output=options.runs / run.dataset / f"{run.model}-seed{run.seed}",
        overrides=options.set,
        device=options.device,
        resume=not options.repeat,
        workers=options.workers,
        evaluate=scored_splits(run.dataset, options.splits),
        progress=True,
    )
    print(f"record {save_record(result.record, root=options.results)}")


def _finished(options: argparse.Namespace, run: Run) -> RunRecord | None:
    """Return the record of this very run, if there is one."""
    from graphbench.records.files import load_records, results_dir

    folder = options.results or results_dir()
    return finished_record(_config(options, run), load_records(run.dataset, folder)) if folder.is_dir() else None


def _config(options: argparse.Namespace, run: Run) -> RunConfig:
    from graphbench import card
    from graphbench.training.config import load_config

    family = card(run.dataset).family
    settings = {"steps": options.steps, "seed": run.seed, "limit": options.limit, "overrides": options.set}
    return load_config(run.dataset, run.model, family=family, **settings)


def _rows(record: RunRecord) -> Iterator[Row]:
    """Yield the rows of a record: its test score beside the published one, and its time."""
    from graphbench import card
    from graphbench.records.published import published_score
    from graphbench.tasks.evaluator import Evaluator

    chosen, name = card(record.dataset), f"{record.dataset}, {record.model}, seed {record.seed}"
    metric = chosen.metrics.primary
    paper = published_score(record.dataset, "test", record.model, metric, protocol=record.protocol)
    yield Row(
        what=f"{name}: {metric} on test",
        unit=metric,
        ours=record.scores.get("test", {}).get(metric),
        peer=None if paper is None else paper.value,
        lower_is_better=not Evaluator(chosen).higher_is_better,
        n={"steps": record.steps},
        note=f"peer: {paper.reference}, {paper.seeds} seeds" if paper is not None else "no published score",
        details={"scores": {split: scores.get(metric) for split, scores in record.scores.items()}},
    )
    details = {
        "peak_memory_bytes": record.peak_memory_bytes,
        "graphs_per_second": record.throughput_graphs_per_s,
        "latency_ms": record.latency_ms,
        "latency_ms_batched": record.latency_ms_batched,
        "parameters": record.parameters,
        "hardware": record.hardware,
        "notes": record.notes,
    }
    yield Row(f"{name}: {record.steps:,} steps", "s", record.wall_seconds, n={"steps": record.steps}, details=details)


def write_archive(path: Path, records: Sequence[RunRecord]) -> None:
    """Add records to an archive, which is written anew as a whole; a record of the same run is replaced."""
    members = {}
    if path.is_file():
        with tarfile.open(path) as archive:
            members = {one.name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr]
    for record in records:
        members[record.relative_path.as_posix()] = record.to_json().encode()
    partial = path.with_name(f".{path.name}.partial")
    with tarfile.open(partial, "w:gz") as archive:
        for name, content in sorted(members.items()):
            facts = tarfile.TarInfo(name)
            facts.size = len(content)
            archive.addfile(facts, io.BytesIO(content))
    partial.replace(path)


def _import_records(folder: Path, results: Path | None) -> int:
    """Write the records of an archive to a folder of results; each is read and checked first. Return the exit code."""
    from graphbench.records.files import parse_record, save_record

    path = folder / "records.tar.gz" if folder.is_dir() else folder
    if not path.is_file():
        print(f"there is no archive {path}; name the folder that --out named", file=sys.stderr)
        return 1
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                print(save_record(parse_record(json.loads(content.read()), path / member.name), root=results))
    return 0


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
