"""Sweeps: models on datasets with seeds, as cells that are trained apart and kept when they end.

A cell is one model on one dataset with one seed. Its run lies in a folder whose name follows from its settings, so a
sweep that is started again, or with further models, trains the missing cells alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError, field_validator

from graphbench.catalog.names import card as find_card
from graphbench.catalog.names import catalog
from graphbench.catalog.resources import read_yaml
from graphbench.core.errors import CardError, ConfigError, ResultError
from graphbench.core.files import default_root, write_text
from graphbench.core.plugins import load_targets, plugin_targets
from graphbench.core.processes.dask_pool import DaskPool
from graphbench.core.processes.local import LocalPool
from graphbench.core.processes.pickling import pickled
from graphbench.core.processes.pool import Handle, Pool
from graphbench.core.validation import StrictModel, explain
from graphbench.core.words import seed_text
from graphbench.data.build.workers import EVERYTHING, version_measure
from graphbench.loader import Loader
from graphbench.records.files import read_record, save_record
from graphbench.records.record import RunRecord
from graphbench.training.config import RunConfig, is_config_file, load_config
from graphbench.training.folders import record_path, run_name
from graphbench.training.run import RunResult, checked_tasks, train
from graphbench.training.splits import split_limits

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.tasks.base import Task

RUNS, RECORDS, LOGS = "runs", "records", "logs"
_DIGITS = 8


class SweepPlan(StrictModel):
    """A sweep: its cells are all combinations of datasets, models, seeds and draws.

    Attributes:
        datasets: Ids, aliases, groups or globs.
        models: Names of configurations in ``baselines/<domain>/``, or paths of YAML files.
        seeds: Seeds of every model.
        data_seeds: Draws of the data; 0 is the canonical one.
        evaluate: Splits that are scored.
        steps: Budget in optimizer updates; None for that of each configuration.
        limit: First samples of every split that are used; None for all.
        eval_limit: Most samples that are scored, or split -> most samples.
        val_limit: Most samples that models are validated on.
        set: Overrides of all configurations, such as ``{"training.lr": 3e-4}``.
    """

    datasets: tuple[str, ...] = Field(min_length=1)
    models: tuple[str, ...] = Field(min_length=1)
    seeds: tuple[int, ...] = Field(default=(0, 1, 2), min_length=1)
    data_seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    evaluate: str = "val,test,ood"
    steps: int | None = Field(default=None, ge=1)
    limit: int | None = Field(default=None, ge=1)
    eval_limit: int | dict[str, int] | None = None
    val_limit: int | None = Field(default=None, ge=1)
    set: dict[str, Any] = Field(default_factory=dict)

    @field_validator("datasets", "models", "seeds", "data_seeds", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        """Take a single name or number for a list of one, and drop repetitions."""
        listed = value if isinstance(value, (list, tuple)) else [value]
        return tuple(dict.fromkeys(listed)) if all(isinstance(item, (str, int)) for item in listed) else value

    @property
    def digits(self) -> str:
        """Eight hex digits of a hash of the plan."""
        content = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]

    def write(self, path: Path) -> None:
        """Write the plan as a YAML file, which :func:`read_plan` reads."""
        import yaml

        content = self.model_dump(mode="json", exclude_defaults=True)
        write_text(path, yaml.safe_dump({**content, "seeds": list(self.seeds)}, sort_keys=False))


@dataclass(frozen=True)
class Cell:
    """One model on one dataset with one seed.

    Attributes:
        number: Its place in the sweep.
        config: The configuration.
        model: Name of the model's configuration, or the path of its file, as the plan has it.
        folder: The folder of its run.
        scored: The splits that are scored.
    """

    number: int
    config: RunConfig
    model: str
    folder: Path
    scored: tuple[str, ...]

    @property
    def name(self) -> str:
        """The dataset, the model and the seed, in words."""
        config = self.config
        return f"{config.model_name} on {config.dataset}, seed {seed_text(config.training.seed, config.data_seed)}"

    def record(self) -> RunRecord | None:
        """Return the record of the finished run; None where there is none, or it lacks a split."""
        try:
            record = read_record(record_path(self.folder, None))
        except ResultError:
            return None
        same = record.dataset_version == find_card(self.config.dataset).version
        return record if same and record.scores.keys() >= {*self.scored} else None

    def absolute(self) -> Cell:
        """Return the cell with absolute paths, for processes with another working folder."""
        model = str(Path(self.model).absolute()) if is_config_file(self.model) else self.model
        return replace(self, model=model, folder=self.folder.absolute())


@dataclass(frozen=True)
class CellResult:
    """The end of a cell.

    Attributes:
        cell: The cell.
        record: Its record; None if the run failed.
        error: Why it failed.
        kept: Whether the run had ended before this sweep was started.
    """

    cell: Cell
    record: RunRecord | None = None
    error: str = ""
    kept: bool = False


def read_plan(path: Path) -> SweepPlan:
    """Return the plan in a YAML file.

    Raises:
        ConfigError: If the file cannot be read or a key or value is refused.
    """
    try:
        return SweepPlan.model_validate(read_yaml(path))
    except (CardError, OSError) as error:
        raise ConfigError(str(error)) from error
    except ValidationError as error:
        raise ConfigError(explain(error, SweepPlan, where=str(path))) from error


def cells_of(plan: SweepPlan, output: Path) -> list[Cell]:
    """Return the cells of a plan: all models and datasets with the first seed, then with the second one, and so on.

    Every configuration is checked, so that a wrong name or setting is an error before anything is trained.

    Args:
        plan: The plan.
        output: Folder of the sweep.

    Raises:
        UnknownDataset: If a dataset is not registered.
        UnknownModel: If a dataset's domain has no configuration of a name.
        ConfigError: If a setting is refused.
        CardError: If a dataset has no split that is to be scored.
    """
    ids = catalog().resolve(list(plan.datasets))
    cards = [catalog().card(id_) for id_ in ids]
    names = dict.fromkeys(name for card in cards for name in card.all_splits)
    cells: list[Cell] = []
    for data_seed in plan.data_seeds:
        for seed in plan.seeds:
            for card in cards:
                scored = tuple(card.select_splits(plan.evaluate, names))
                for model in plan.models:
                    config = _config(plan, card.with_data_seed(data_seed), model, seed)
                    folder = output / RUNS / Path(*card.address.replace(":", "-").split("/")) / run_name(config)
                    cells.append(Cell(len(cells), config, model, folder, scored))
    return cells


def _config(plan: SweepPlan, card: Card, model: str, seed: int) -> RunConfig:
    options: dict[str, Any] = {"steps": plan.steps, "limit": plan.limit, "data_seed": card.data_seed}
    config = load_config(card.address, model, family=card.family, seed=seed, overrides=plan.set, **options)
    checked_tasks(config, {card.address: card})
    return config


def prepare_data(
    plan: SweepPlan, cells: Sequence[Cell], root: Path | None, workers: int | None, progress: bool | None = None
) -> None:
    """Generate the splits that some cells train on, validate on and score, so that the cells find them.

    Args:
        plan: The plan.
        cells: The cells.
        root: Folder of the datasets.
        workers: Processes that generate.
        progress: Show a progress bar; None shows it in a terminal.
    """
    wanted: dict[tuple[str, int], dict[str, None]] = {}
    tasks: dict[tuple[str, int], tuple[Task, RunConfig]] = {}
    for cell in cells:
        config = cell.config
        key = config.dataset, config.data_seed
        if key not in tasks:
            card = find_card(config.dataset).with_data_seed(config.data_seed)
            tasks[key] = checked_tasks(config, {card.address: card})[card.address], config
        used = (config.training.train_split, config.training.val_split, *cell.scored)
        wanted.setdefault(key, {}).update(dict.fromkeys(used))
    for (dataset, data_seed), names in wanted.items():
        task, config = tasks[dataset, data_seed]
        most = split_limits(config, task, plan.limit, plan.eval_limit, plan.val_limit)
        how: dict[str, Any] = {"root": root, "workers": workers, "progress": progress, "data_seed": data_seed}
        splits: Any = Loader(dataset, limit=most, unlabelled=task.unlabelled, **how).load(())
        for name in (name for name in names if task.is_stored(name)):
            splits.labelled(name)


def run_cell(plan: SweepPlan, cell: Cell, root: Path | None, device: str = "auto") -> RunRecord:
    """Train and score a cell, or finish it where it was interrupted, and return its record.

    Raises:
        GraphBenchError: As :func:`graphbench.train` raises.
    """
    result: RunResult = train(
        cell.config.dataset,
        cell.model,
        steps=plan.steps,
        seed=cell.config.training.seed,
        limit=plan.limit,
        eval_limit=plan.eval_limit,
        val_limit=plan.val_limit,
        data_seed=cell.config.data_seed,
        root=root,
        output=cell.folder,
        overrides=plan.set,
        device=device,
        workers=1,
        evaluate=cell.scored,
        progress=False,
    )
    return result.record


def run_cells(
    plan: SweepPlan,
    cells: Sequence[Cell],
    output: Path,
    *,
    root: Path | None = None,
    device: str = "auto",
    workers: int = 1,
    cluster: Any = None,
) -> Iterator[CellResult]:
    """Train the cells that have not ended, several at once, and yield every cell when it ends; finished ones first.

    The record of every finished cell is written to ``<output>/records``. A cell that fails does not stop the others.

    Args:
        plan: The plan.
        cells: Its cells, or some of them.
        output: Folder of the sweep; workers on other machines must see it under the same path.
        root: Folder of the datasets, of which the same is true.
        device: Where the cells compute.
        workers: Processes of this machine that train, each with one thread.
        cluster: Address of a Dask scheduler, its scheduler file, or a client; None for this machine.

    Raises:
        ClusterError: If the cluster cannot be used.
    """
    missing = []
    for cell in cells:
        record = cell.record()
        if record is None:
            missing.append(cell)
        else:
            yield _saved(CellResult(cell, record, kept=True), output)
    if not missing:
        return
    if cluster is not None:  # whose workers have other working folders and environments
        missing, root = [cell.absolute() for cell in missing], (root or default_root()).absolute()
    function = pickled(partial(_run, plan, root, device, tuple(plugin_targets())))
    pool: Pool = LocalPool(function, min(workers, len(missing)), logs=output / LOGS)
    if cluster is not None:
        pool = DaskPool(function, cluster, output, version_measure(EVERYTHING))
        pool.open()
    try:
        waiting = {id(pool.submit(cell, name=cell.name)): cell for cell in missing}
        while waiting:
            for handle in pool.completed():
                yield _saved(_result(waiting.pop(id(handle)), handle), output)
    finally:
        pool.close()


def _run(plan: SweepPlan, root: Path | None, device: str, plugins: Sequence[Any], cell: Cell) -> RunRecord:
    """Train a cell in a worker process, which loads the plug-ins first."""
    load_targets(plugins)
    return run_cell(plan, cell, root, device)


def _result(cell: Cell, handle: Handle) -> CellResult:
    if handle.error is not None:
        return CellResult(cell, error=" ".join(str(handle.error).split()) or type(handle.error).__name__)
    return CellResult(cell, handle.value)


def _saved(result: CellResult, output: Path) -> CellResult:
    if result.record is not None:
        save_record(result.record, output / RECORDS)
    return result


def slurm_script(
    plan_file: Path, output: Path, cells: Sequence[Cell], options: Mapping[str, str], *, baselines: bool = False
) -> str:
    """Return a script for ``sbatch`` that runs some cells as a job array, a core per cell.

    Args:
        plan_file: The file of the plan.
        output: Folder of the sweep.
        cells: The cells that have not ended.
        options: Further options of ``graphbench sweep``, name -> value.
        baselines: Whether the tables and pages have the package's records, too.

    Raises:
        ConfigError: If no cell is left.
    """
    import shlex

    if not cells:
        raise ConfigError("nothing is left to train; the same command without --slurm makes the tables and pages")

    words = ["graphbench", "sweep", str(plan_file), "--output", str(output)]
    words += [word for name, value in options.items() for word in (name, value)]
    command = shlex.join(words)
    return "\n".join(
        [
            "#!/bin/bash",
            "#SBATCH --job-name=graphbench-sweep",
            f"#SBATCH --array={_ranges([cell.number for cell in cells])}",
            "#SBATCH --cpus-per-task=1",
            f'#SBATCH --output="{output / LOGS}/%a.txt"',
            "export OMP_NUM_THREADS=1",
            f"{command} --cell $SLURM_ARRAY_TASK_ID",
            f"# when all jobs have ended, this makes the tables and pages: {command}{' --baselines' * baselines}",
            "",
        ]
    )


def _ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as ranges, ``0-3,5``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
