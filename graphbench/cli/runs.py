"""Training, scoring of runs and reporting, as the command line asks for them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.catalog.names import card as card_of
from graphbench.catalog.names import catalog, list_datasets
from graphbench.core.errors import ConfigError

if TYPE_CHECKING:
    from graphbench.training.trainer import RunResult


def train_seeds(
    dataset: str,
    model: str | None,
    *,
    seeds: Sequence[int] | None,
    data_seeds: Sequence[int] | None = None,
    output: Path | None,
    limit: int | None,
    eval_limit: int | None,
    val_limit: int | None = None,
    records: Path | None,
    root: Path | None,
    workers: int | None,
    source: str = "generated",
    folder: Path | None = None,
    **options: Any,
) -> list[RunResult]:
    """Train one run per seed on every draw of the data and return the results.

    Args:
        dataset: Id or alias of the dataset; or a group whose datasets are trained together.
        model: Name or path of the configuration; None for the domain's default.
        seeds: Seeds, each trained once on every draw; None for the configuration's own.
        data_seeds: Draws of the dataset; None for the canonical one.
        output: Folder of the run; with several seeds or draws, of their folders.
        limit: Samples of each split.
        eval_limit: Samples of each split but those trained and validated on.
        val_limit: Samples validated on.
        records: Folder that keeps the records too; written by process 0 alone under ``torchrun``.
        root: Folder of all datasets.
        workers: Processes that generate.
        source: ``generated``, or ``official`` for published files.
        folder: Folder of the published files.
        options: Further arguments of :func:`graphbench.training.trainer.train`.
    """
    from graphbench.evaluation.results import save_record
    from graphbench.loader import Loader, sourced_card
    from graphbench.training.config import load_config
    from graphbench.training.splits import require_own_splits, split_limits
    from graphbench.training.trainer import train

    if folder is not None and not catalog().is_single(dataset):
        raise ConfigError(f"published files stand for one dataset, not for the group {dataset}; name one")
    if not catalog().is_single(dataset):
        limits = {"limit": limit, "eval_limit": eval_limit, "val_limit": val_limit}
        shared = {"output": output, "records": records, "root": root, "workers": workers, **limits}
        return _train_together(dataset, model, seeds, data_seeds, shared, options)
    card = sourced_card(card_of(dataset), source, folder)
    changes = {name: options[name] for name in ("steps", "overrides") if name in options}
    config = load_config(card.address, model, family=card.family, **changes)
    require_own_splits(config, card)
    most = split_limits(config, card, limit, eval_limit, val_limit)
    chosen: list[int | None] = list(dict.fromkeys(seeds)) if seeds else [None]
    draws = list(dict.fromkeys(data_seeds or [0]))
    results = []
    for draw in draws:
        files: dict[str, Any] = {
            "root": root,
            "source": source,
            "folder": folder,
            "unlabelled": ("train",) if card.task.type == "solve" else (),
        }
        data = Loader(card.address, limit=most, workers=workers, data_seed=draw, **files).load(())
        for seed in chosen:
            place = None if output is None else output / _subfolder(seed, draw, len(chosen), len(draws))
            results.append(train(card.address, model, seed=seed, limit=limit, output=place, data=data, **options))
            if records is not None and int(os.environ.get("RANK", "0")) == 0:
                save_record(results[-1].record, records)
    return results


def _subfolder(seed: int | None, draw: int, seeds: int, draws: int) -> str:
    """Return the folder of one of several runs: ``seed0``, ``draw3`` or ``seed0-draw3``; nothing for a single one."""
    named = [f"seed{seed}"] if seeds > 1 or (draws > 1 and seed is not None) else []
    return "-".join(named + ([f"draw{draw}"] if draws > 1 else []))


def _train_together(
    group: str,
    model: str | None,
    seeds: Sequence[int] | None,
    data_seeds: Sequence[int] | None,
    shared: Mapping[str, Any],
    options: Mapping[str, Any],
) -> list[RunResult]:
    """Train one model on all datasets of a group and return one result per dataset."""
    from graphbench.evaluation.results import save_record
    from graphbench.training.trajectory_trainer import train_together

    if seeds and len(seeds) > 1:
        raise ConfigError(f"{len(seeds)} seeds are given for the group {group}; train them one after the other")
    if data_seeds and len(data_seeds) > 1:
        raise ConfigError(f"{len(data_seeds)} data seeds are given for the group {group}; train them one by one")
    arguments = {name: value for name, value in shared.items() if name != "records"}
    arguments |= {"seed": seeds[0] if seeds else None, "data_seed": data_seeds[0] if data_seeds else 0}
    trained = train_together(group, model, **arguments, **options)
    if shared["records"] is not None and int(os.environ.get("RANK", "0")) == 0:
        for result in trained.values():
            save_record(result.record, shared["records"])
    return list(trained.values())


def score_run(
    folder: Path, splits: Sequence[str], *, root: Path | None, limit: int | None, device: str
) -> dict[str, Mapping[str, Mapping[str, float]]]:
    """Score the best weights of a run's folder: dataset -> split -> score; several for a run on a group."""
    from graphbench.training.evaluate import evaluate_together

    return dict(evaluate_together(folder, splits, root=root, limit=limit, device=device))


def refusal_of_files(folder: Path) -> str:
    """Return why a run is not scored on published files that are named."""
    from graphbench.training.evaluate import load_config_of_run
    from graphbench.training.run_data import read_run_data

    load_config_of_run(folder)
    facts = read_run_data(folder)
    if facts is not None and facts.source == "official":
        return "a run is scored on the files it was trained on; leave --source and --folder out"
    return (
        "the run was trained on generated data and is scored on these; the classes of published files are others "
        "(clutrr: 23 relations, the last for noise of unknown relation, not 22). Leave --source and --folder out, or "
        "train a model with them"
    )


def write_report(selector: Sequence[str] | None, records: Path | None, output: Path, title: str) -> list[Path]:
    """Build the report of the records of the chosen datasets; an id alone stands for all its tasks."""
    from graphbench.evaluation.results import load_records
    from graphbench.reports.report import build_report

    chosen = set(list_datasets(selector or None))
    found = [r for r in load_records("*", records) if {r.dataset, r.dataset.partition(":")[0]} & chosen]
    return build_report(found, output, title=title)
