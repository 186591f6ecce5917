"""Train the small runs of ``benchmarks/records.yaml`` that have no record yet, and keep their records.

``python -m benchmarks.records`` trains what is missing, one run after the other; ``--list`` only says what that is. Run
it again after an interrupt: finished steps are kept. ``--part 0/2`` and ``--part 1/2`` divide the runs between two
processes, each with one thread (``OMP_NUM_THREADS=1``).
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common import FOLDER, SCRATCH, finished_record

if TYPE_CHECKING:
    from graphbench.records.record import RunRecord

PLAN = FOLDER / "records.yaml"
_MINUTE = 60.0
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """A run: a dataset's address, a configuration, a seed, and further options of ``graphbench.train``."""

    dataset: str
    model: str
    seed: int
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The run in words."""
        return f"{self.dataset}, {self.model}, seed {self.seed}"


def planned(path: Path = PLAN) -> Iterator[Run]:
    """Yield all runs of a plan, seed by seed.

    Raises:
        UnknownDataset: If the plan names a dataset that does not exist.
    """
    import yaml

    from graphbench.catalog.names import list_datasets

    for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
        for seed in entry["seeds"]:
            for name in entry["datasets"]:
                for dataset in list_datasets(name):
                    for model in entry["models"]:
                        yield Run(dataset, model, seed, entry.get("options", {}))


def missing(runs: Iterator[Run], folder: Path | None = None) -> list[Run]:
    """Return the runs without a record of the current version of their data.

    Args:
        runs: The runs.
        folder: Folder of records; None for those of the package.
    """
    from graphbench import card
    from graphbench.records.files import load_records
    from graphbench.training.config import load_config

    there: dict[tuple[str, int], list[RunRecord]] = {}
    for record in load_records(records=folder):
        there.setdefault((record.dataset, record.seed), []).append(record)
    found = []
    for run in runs:
        options = {name: run.options[name] for name in ("steps", "limit") if name in run.options}
        config = load_config(run.dataset, run.model, family=card(run.dataset).family, seed=run.seed, **options)
        if finished_record(config, there.get((run.dataset, run.seed), [])) is None:
            found.append(run)
    return found


def train(run: Run, folder: Path | None, root: Path | None) -> Path:
    """Train and score a run on the CPU, and return the file of its record."""
    import graphbench
    from graphbench.records.files import save_record

    options = dict(run.options)
    if "evaluate" in options:  # some datasets have no split of a name
        card = graphbench.card(run.dataset)
        options["evaluate"] = ",".join(name for name in options["evaluate"].split(",") if name in card.all_splits)
    output = SCRATCH / "runs" / run.dataset.replace(":", "-") / f"{run.model}-seed{run.seed}"
    result = graphbench.train(run.dataset, run.model, seed=run.seed, root=root, output=output, device="cpu", **options)
    return save_record(result.record, folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and train what is missing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("datasets", nargs="*", help="only datasets of these ids, groups or globs")
    parser.add_argument("--list", action="store_true", help="say what is missing, and train nothing")
    parser.add_argument(
        "--part", default="0/1", metavar="I/N", help="every N-th run of the plan, from the I-th on, from 0"
    )
    parser.add_argument("--minutes", type=float, help="begin no run after so many minutes")
    parser.add_argument("--records", type=Path, help="folder of records (default: baselines/results)")
    parser.add_argument("--root", type=Path, help="folder of the data sets (default: the package's)")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    first, _, step = options.part.partition("/")
    if not (first.isdigit() and step.isdigit() and int(first) < int(step)):
        parser.error(f"--part is {options.part!r}; give I/N with I below N, such as 0/2")
    chosen = islice(_chosen(planned(), options.datasets), int(first), None, int(step))  # the same runs at every start
    runs = missing(chosen, options.records)
    if options.list:
        print("\n".join(run.name for run in runs) or "nothing is missing")
        return
    started = time.perf_counter()
    for run in runs:
        if options.minutes is not None and time.perf_counter() - started > options.minutes * _MINUTE:
            logger.info("%g minutes are over; run the command again for the rest", options.minutes)
            return
        begun = time.perf_counter()
        path = train(run, options.records, options.root)
        logger.info("%s: %.1f minutes, %s", run.name, (time.perf_counter() - begun) / _MINUTE, path)


def _chosen(runs: Iterator[Run], names: Sequence[str]) -> Iterator[Run]:
    from graphbench.catalog.names import list_datasets

    wanted = {dataset for name in names for dataset in list_datasets(name)}
    return (run for run in runs if not names or run.dataset in wanted or run.dataset.partition(":")[0] in wanted)


if __name__ == "__main__":
    main()
