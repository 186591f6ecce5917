"""Checks of stored weights: against the record of their run, and against scores that are computed again."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import torch

from graphbench.catalog.names import card as find_card
from graphbench.core.errors import ResultError
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build.limits import limited_parameter
from graphbench.loader import Loader, Splits
from graphbench.records.files import read_record
from graphbench.records.record import RunRecord
from graphbench.tasks.base import Task
from graphbench.training.config import RunConfig, run_config_from_json
from graphbench.training.identity import in_words
from graphbench.training.overrides import flat
from graphbench.training.scoring import score_split
from graphbench.training.trained import task_for
from graphbench.training.weights.files import DatasetFacts, WeightsFile
from graphbench.training.weights.load import rebuilt

FEW, MANY = 4, 64
"""Samples of a split whose scores a file of weights states: for a check within a second, and for a sharper one."""

KEPT = 1e-3
"""Relative difference of scores up to which stored weights keep the value of the weights that were trained."""

_REPEATED = 2e-2  # relative difference on a few samples, where one decision weighs more, between machines
_REPEATED_WHOLE = 5e-3  # relative difference on a whole split
_LEAST = 1e-6  # absolute difference that never counts
_CPU = torch.device("cpu")


def agree(one: float, other: float, difference: float = KEPT) -> bool:
    """Return whether two scores are equal up to a relative difference."""
    return math.isclose(one, other, rel_tol=difference, abs_tol=_LEAST)


def check_weights(
    file: WeightsFile, results: Path, *, whole: bool = False, most: int = MANY, root: str | Path | None = None
) -> list[str]:
    """Return in words how stored weights differ from their record and from the scores that the file states.

    Args:
        file: The file.
        results: Folder of the records, such as ``baselines/results``.
        whole: Score whole splits and compare them with the record, instead of the first samples with the file.
        most: Most samples per split that are scored where ``whole`` is False.
        root: Folder of the datasets; missing samples are generated.

    Returns:
        Nothing if all agree.

    Raises:
        CheckpointError: If the file is damaged or does not fit the present code.
        ConfigError: If the weights are of other data or code than the present ones.
    """
    model = rebuilt(file)
    problems = []
    for id_, facts in file.facts.datasets.items():
        try:
            record = read_record(results / facts.record)
        except ResultError as error:
            problems.append(f"{id_}: {error}")
            continue
        differences = [*differences_from_record(file, id_, record)]
        compared = (
            _whole_scores(model, id_, facts, record, root) if whole else _sample_scores(model, id_, facts, most, root)
        )
        problems += [f"{id_}: {words}" for words in (*differences, *compared)]
    return problems


def differences_from_record(file: WeightsFile, id_: str, record: RunRecord) -> Iterator[str]:
    """Yield in words how the header of a file differs from the record of its run on one dataset."""
    facts, validation = file.facts, file.facts.datasets[id_].validation
    config = {**facts.identity.config, "dataset": id_}
    pairs: dict[str, tuple[Any, Any]] = {
        "dataset": (id_, record.dataset),
        "model": (facts.model, record.model),
        "seed": (facts.seed, record.seed),
        "data seed": (facts.data_seed, record.data_seed),
        "best step": (facts.best_step, record.best_step),
        "parameters": (facts.parameters, record.parameters),
        "data": (facts.identity.data.get(id_, {}).get("fingerprint"), record.data_fingerprint),
        "record": (facts.datasets[id_].record, record.relative_path.as_posix()),
        f"{validation.metric} of {validation.split}": (
            validation.record,
            record.scores.get(validation.split, {}).get(validation.metric),
        ),
    }
    yield from (
        f"{name} is {file_value}, and {record_value} in the record"
        for name, (file_value, record_value) in pairs.items()
        if file_value != record_value
    )
    if changed := differing_configs(config, record.config):
        yield f"the record has another configuration: {in_words(changed)}"
    if not agree(validation.record, validation.stored):
        yield (
            f"{validation.metric} of {validation.split} is {validation.record} in the record and {validation.stored} "
            "with the stored weights"
        )


def differing_configs(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return the settings in which two stored configurations differ, e.g. ``training.steps 6 -> 8``.

    The source of starting weights is left out: a run states a folder, its record a name, and both the hash of the
    weights.
    """
    before, after = (
        flat(run_config_from_json(json.dumps(config), "configuration").to_dict()) for config in (one, other)
    )
    keys = sorted((before.keys() | after.keys()) - {"training.start.source"})
    return [f"{key} {before.get(key)} -> {after.get(key)}" for key in keys if before.get(key) != after.get(key)]


def first_samples(id_: str, split: str, limit: int, config: RunConfig, root: str | Path | None) -> Splits:
    """Return a dataset whose named split has its first samples alone, in the draw that a run was trained on.

    Where a limit is no number of samples, the splits are those of the run.
    """
    of_samples = limited_parameter(find_card(id_)) is None
    most: Any = {split: limit} if of_samples else config.limit
    loader = Loader(id_, limit=most, data_seed=config.data_seed, root=root, progress=False)
    return cast(Splits, loader.load(()))


def primary_score(
    model: Any, task: Task, split: GraphDataset, *, selecting: bool = False, progress: bool | None = False
) -> float:
    """Return the primary metric of a model on a split, on the CPU in float32; options as for ``score_split``."""
    scores = score_split(
        model, task, split, task_id=split.card.address, device=_CPU, selecting=selecting, progress=progress
    )
    return scores[split.split].primary


def _task(model: Any, data: Splits) -> Task:
    task = task_for(model, data.card)
    task.read_training(data)
    return task


def _sample_scores(model: Any, id_: str, facts: DatasetFacts, most: int, root: str | Path | None) -> Iterator[str]:
    """Yield in words how the first samples, or their scores, differ from those in the header of a file."""
    for sample in (sample for sample in facts.samples if sample.limit <= most):
        where = f"the first {sample.limit} samples of {sample.split}"
        data = first_samples(id_, sample.split, sample.limit, model.trained.config, root)
        split = data.labelled(sample.split)
        if split.content_hash != sample.content_hash:
            yield f"{where} have the hash {split.content_hash}, and {sample.content_hash} in the file"
            continue
        value = primary_score(model, _task(model, data), split)
        if not agree(value, sample.stored, _REPEATED):
            yield f"{facts.validation.metric} of {where} is {value}, and {sample.stored} in the file"


def _whole_scores(
    model: Any, id_: str, facts: DatasetFacts, record: RunRecord, root: str | Path | None
) -> Iterator[str]:
    """Yield in words how the scores of whole splits differ from those in the record."""
    validation = facts.validation
    for name in dict.fromkeys([validation.split, *(sample.split for sample in facts.samples)]):
        expected = record.scores.get(name, {}).get(validation.metric)
        if expected is None:
            continue
        data = first_samples(id_, name, record.graphs_scored[name], model.trained.config, root)
        value = primary_score(model, _task(model, data), data.labelled(name), selecting=name == validation.split)
        if not agree(value, expected, _REPEATED_WHOLE):
            yield f"{validation.metric} of {name} is {value}, and {expected} in the record"
