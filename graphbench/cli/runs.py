"""Training, scoring of runs, and records for reports, as the command line asks for them."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.catalog.names import card as card_of
from graphbench.catalog.names import catalog, list_datasets
from graphbench.core.errors import ConfigError

if TYPE_CHECKING:
    from graphbench.records.record import RunRecord
    from graphbench.training.run import RunResult


def train_seeds(
    datasets: str | Sequence[str],
    model: str | None,
    *,
    seeds: Sequence[int] | None,
    data_seeds: Sequence[int] | None = None,
    output: Path | None,
    records: Path | None,
    source: str = "generated",
    folder: Path | None = None,
    **options: Any,
) -> list[RunResult]:
    """Train one run per seed on every draw of the data and return the results, one per dataset.

    Args:
        datasets: Id or alias of the dataset; or several, a group or a glob, whose datasets are trained together.
        model: Name or path of the configuration; None for the dataset's default.
        seeds: Seeds, each trained once on every draw; None for the seed in the configuration.
        data_seeds: Draws of the dataset; None for the canonical one.
        output: Folder of the run; with several seeds or draws, of their folders.
        records: Folder that keeps the records too; written by process 0 alone under ``torchrun``.
        source: ``generated``, or ``official`` for published files.
        folder: Folder of the files.
        options: Further arguments of :func:`graphbench.training.run.train`.
    """
    from graphbench.records.files import save_record
    from graphbench.training.run import train

    single = catalog().is_single(datasets)
    if source != "generated" and not single:
        what = f"the group {datasets}" if isinstance(datasets, str) else f"{len(datasets)} datasets"
        raise ConfigError(f"files of a source stand for one dataset, not for {what}; name one")
    chosen: list[int | None] = list(dict.fromkeys(seeds)) if seeds else [None]
    draws = list(dict.fromkeys(data_seeds or [0]))
    results: list[RunResult] = []
    for draw in draws:
        for seed in chosen:
            place = None if output is None else output / _subfolder(seed, draw, len(chosen), len(draws))
            arguments: dict[str, Any] = {**options, "seed": seed, "output": place, "data_seed": draw}
            if source != "generated" or folder is not None:
                arguments |= _with_files(str(datasets), model, source, folder, arguments)
            trained = train(datasets, model, **arguments)
            results += [trained] if single else trained.values()
            for result in results[-1:] if single else trained.values():
                if records is not None and int(os.environ.get("RANK", "0")) == 0:
                    save_record(result.record, records)
    return results


def _with_files(
    dataset: str, model: str | None, source: str, folder: Path | None, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the options of a run on published files: the loaded data instead of the folder of generated data."""
    from graphbench.data.components.source_choice import sourced_card
    from graphbench.loader import Loader
    from graphbench.tasks.registry import task_of
    from graphbench.training.config import load_config
    from graphbench.training.splits import require_eval_limit, split_limits

    draw = options["data_seed"]
    card = sourced_card(card_of(dataset).with_data_seed(draw), source, folder, root=options.get("root"))
    require_eval_limit(options.get("eval_limit"), card.all_splits)
    limits = (options.pop(name, None) for name in ("limit", "eval_limit", "val_limit"))
    config = load_config(card.address, model, family=card.family, overrides=options.get("overrides"))
    most = split_limits(config, task_of(card), *limits)
    files: dict[str, Any] = {"root": options.pop("root", None), "workers": options.pop("workers", None)}
    files |= {"source": source, "folder": folder, "data_seed": draw}
    return {"data": Loader(card.address, limit=most, **files).load(()), "data_seed": None}


def _subfolder(seed: int | None, draw: int, seeds: int, draws: int) -> str:
    """Return the folder of one of several runs: ``seed0``, ``draw3`` or ``seed0-draw3``; nothing for a single one."""
    named = [f"seed{seed}"] if seeds > 1 or (draws > 1 and seed is not None) else []
    return "-".join(named + ([f"draw{draw}"] if draws > 1 else []))


def record_places(folders: Sequence[Path] | None, *, baselines: bool) -> list[Path]:
    """Return the folders of records that options name; without any, and with ``baselines`` too, the package's."""
    from graphbench.records.files import results_dir

    named = list(folders or ())
    return list(dict.fromkeys([*named, *([results_dir()] if baselines or not named else [])]))


def chosen_records(
    selector: Sequence[str] | None, folders: Sequence[Path] | None, *, baselines: bool
) -> list[RunRecord]:
    """Return the records of the chosen datasets in some folders; without folders, the records of the package.

    A malformed file is left out with a warning.

    Args:
        selector: Datasets; None for all datasets, with or without a card. An id alone stands for all tasks and views.
        folders: Folders of records.
        baselines: Whether the package's records are added.

    Raises:
        ResultError: If there is none.
    """
    from graphbench.core.errors import ResultError
    from graphbench.records.files import load_records

    places = record_places(folders, baselines=baselines)
    records = fitting_records(load_records("*", places, skip_malformed=True), selector)
    if not records:
        where = " and ".join(map(str, places))
        what = f"of {', '.join(selector)} " if selector else ""
        raise ResultError(
            f"there are no records {what}in {where}; `graphbench train DATASET --records FOLDER` writes some"
        )
    return records


def fitting_records(records: Sequence[RunRecord], selector: Sequence[str] | None) -> list[RunRecord]:
    """Return the records of the chosen datasets; None chooses all."""
    chosen = set(list_datasets(selector)) if selector else None
    return [record for record in records if chosen is None or is_chosen(record.dataset, chosen)]


def is_chosen(dataset: str, chosen: Collection[str]) -> bool:
    """Return whether the address of a record is chosen; an id alone stands for all its tasks and views."""
    return any(name in chosen for name in (dataset, *_ids_of(dataset)))


def _ids_of(address: str) -> set[str]:
    """Return the id of an address, and the address of all its views."""
    stored = address.partition("@")[0]
    return {stored, stored.partition(":")[0]}
