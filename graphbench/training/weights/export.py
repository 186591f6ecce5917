"""Writing the weights of a finished run to a file of ``baselines/weights/``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from graphbench.catalog.cards import Card
from graphbench.core.arguments import checked_path
from graphbench.core.errors import ArgumentError, CheckpointError, ConfigError, ResultError
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build.limits import limited_parameter
from graphbench.loader import Splits
from graphbench.models.build import count_parameters
from graphbench.records.files import results_dir
from graphbench.records.record import RunRecord
from graphbench.tasks.base import Task
from graphbench.training import checkpoint
from graphbench.training.config import RunConfig
from graphbench.training.evaluate import FinishedRun, open_run
from graphbench.training.folders import load_config_of_run, record_path
from graphbench.training.run_data import data_of_run
from graphbench.training.weights.check import FEW, MANY, agree, first_samples, primary_score
from graphbench.training.weights.files import (
    JOINT,
    MOST_BYTES,
    MOST_FILE_BYTES,
    SUFFIX,
    WEIGHTS,
    DatasetFacts,
    SampleScore,
    StoredType,
    ValidationScore,
    WeightsFacts,
    WeightsFile,
    read_weights,
    weights_dir,
    weights_path,
)
from graphbench.training.weights.source import finished_record, identity_of_run, require_kept, require_tensors

_TEST = "test"
_TYPES = ("auto", "float16", "float32")


_Key = tuple[str, int]
"""A split and a number of its first samples."""


@dataclass(frozen=True)
class _Dataset:
    """One dataset of a run whose weights are written.

    Attributes:
        id_: Its address.
        record: The record of the run.
        data: Its splits; the one that selected the weights has the samples that the record has a score of.
        task: Its task, with the settings of the run.
        val: The split that selected the weights.
        samples: (split, number of samples) -> the first samples of the split.
    """

    id_: str
    record: RunRecord
    data: Splits
    task: Task
    val: GraphDataset
    samples: Mapping[_Key, GraphDataset]

    @property
    def metric(self) -> str:
        """The primary metric."""
        return self.data.card.metrics.primary

    @property
    def expected(self) -> float:
        """The primary metric on the validation split, in the record."""
        return self.record.scores[self.val.split][self.metric]


@dataclass(frozen=True)
class _Measured:
    """The primary metric of a model on one dataset.

    Attributes:
        validation: On the whole validation split.
        samples: On the first samples of splits.
    """

    validation: float
    samples: Mapping[_Key, float]


def export_weights(
    run: str | Path,
    *,
    dtype: Literal["auto", "float16", "float32"] = "auto",
    results: str | Path | None = None,
    output: str | Path | None = None,
    root: str | Path | None = None,
    progress: bool | None = None,
) -> WeightsFile:
    """Write the weights of a finished run to a file that :func:`graphbench.load_model` reads, and return the file.

    The file holds all parameters and buffers, and in its header everything that the model is rebuilt and checked from:
    configuration, features, the path of the record, fingerprints of data and code, the score on the validation split,
    and scores on the first 4 and 64 samples of the validation and the test split. A row (dataset and model) has one
    file; weights of another seed replace it.

    Args:
        run: The run's folder.
        dtype: How parameters are stored: ``float16`` halves the file and is refused where the score on the validation
            split, or on the first 64 samples of it or of the test split, changes by more than a thousandth. ``auto``
            takes ``float16`` unless it is refused.
        results: Folder of records, where the run's record must stand; ``baselines/results`` when None.
        output: Folder of weights; ``baselines/weights`` when None.
        root: Folder of the datasets.
        progress: Show how far the weights are scored, which a decoder of many rounds may need minutes for; None for
            terminals only.

    Raises:
        CheckpointError: If the folder holds no run, the run is not finished or was trained on files, or its weights are
            damaged.
        ConfigError: If the model has no tensors, a card or code changed since the training, or the file would be too
            large.
        ResultError: If a record of the run is not in ``results``, or has other scores than the run or its weights.
    """
    if dtype not in _TYPES:
        raise ArgumentError(f"dtype is {dtype!r}; choose from {', '.join(_TYPES)}")
    folder = checked_path("run", run)
    records = results_dir() if results is None else checked_path("results", results)
    place = weights_dir() if output is None else checked_path("output", output)
    config = load_config_of_run(folder)
    require_tensors(config)
    run_records = {id_: finished_record(folder, config, id_) for id_ in config.datasets or (config.dataset,)}
    for record in run_records.values():
        require_kept(record, records)
    identity = identity_of_run(folder)
    path = place / weights_path(tuple(run_records), config.model_name)
    _require_single(path, place, tuple(run_records), config.model_name)
    finished = open_run(folder)
    model = finished.learner.model
    _require_room(path, place, _in_half(model, model.state_dict()))  # before anything is scored
    datasets = [_opened(finished, id_, record, root) for id_, record in run_records.items()]
    stored, tensors, described = _stored(model, datasets, dtype, progress)
    first = datasets[0].record
    facts = WeightsFacts(
        dtype=stored,
        parameters=count_parameters(model),
        best_step=first.best_step,
        started=first.started.isoformat(),
        identity=identity,
        datasets=described,
    )
    _require_room(path, place, tensors)
    named = {f"model.{name}": tensor for name, tensor in tensors.items()}
    checkpoint.save_tensors(path, named, {WEIGHTS: facts.model_dump(mode="json", by_alias=True)})
    return read_weights(path)


def _opened(run: FinishedRun, id_: str, record: RunRecord, root: str | Path | None) -> _Dataset:
    """Return a dataset of a run, with the samples that selected the weights.

    Raises:
        ConfigError: If the data changed since the run.
        ResultError: If the samples of the split are others than those in the record.
    """
    config, val = run.config, run.config.training.val_split
    of_samples = limited_parameter(run.cards[id_]) is None
    limit: Any = {val: record.graphs_scored[val]} if of_samples else config.limit
    where = record_path(run.folder, id_ if config.datasets else None)
    data = data_of_run(run.folder, id_, config.data_seed, where, root=root, limit=limit, progress=False)
    split = data.labelled(val)
    if split.content_hash != record.data_hashes.get(val):
        raise ResultError(
            f"{val} of {id_} has the hash {split.content_hash}, and {record.data_hashes.get(val)} in the record: the "
            "run selected its weights on other samples, such as filtered or changed ones"
        )
    samples = _first_samples(id_, data.card, config, root)
    return _Dataset(id_, record, data, run.task(data.card, data), split, samples)


def _require_single(path: Path, place: Path, datasets: Sequence[str], model: str) -> None:
    """Refuse a second file of a row: a model of one dataset beside a model of several, or of other several ones.

    Raises:
        CheckpointError: With the other file.
    """
    alone = [place / weights_path([id_], model) for id_ in datasets]
    for other in (*(p for p in alone if p.is_file()), *sorted(place.glob(f"{JOINT}/*/{model}{SUFFIX}"))):
        shared = [id_ for id_ in datasets if other != path and id_ in read_weights(other).facts.datasets]
        if shared:
            raise CheckpointError(
                f"{other} holds weights of {model} on {shared[0]} already, and a row has one file; remove it, or train "
                "under another name of the configuration"
            )


def _stored(
    model: Any, datasets: Sequence[_Dataset], dtype: str, progress: bool | None
) -> tuple[StoredType, dict[str, Tensor], dict[str, DatasetFacts]]:
    """Return how the weights are stored, the stored tensors, and dataset -> its facts.

    Raises:
        ResultError: If the weights have another score than the record.
        ConfigError: If float16 is asked for and does not keep a score.
    """
    trained = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    before = [_measured(model, dataset, progress) for dataset in datasets]
    for dataset, measured in zip(datasets, before, strict=True):
        if not agree(measured.validation, dataset.expected):
            where = f"{dataset.val.split} of {dataset.id_}"
            raise ResultError(
                f"the weights have {dataset.metric} {measured.validation:g} on {where}, and the record has "
                f"{dataset.expected:g}; train the model again with this version, and keep its record"
            )
    if dtype != "float32":
        half = _in_half(model, trained)
        rounded = _measured_in_half(model, half, datasets, before, progress)
        if isinstance(rounded, list):
            pairs = zip(datasets, before, rounded, strict=True)
            return "float16", half, {dataset.id_: _facts(dataset, then, now) for dataset, then, now in pairs}
        if dtype == "float16":
            raise ConfigError(f"float16 does not keep the scores of the model: {rounded}; choose float32")
    pairs = zip(datasets, before, before, strict=True)
    return "float32", trained, {dataset.id_: _facts(dataset, then, now) for dataset, then, now in pairs}


def _measured_in_half(
    model: Any,
    half: Mapping[str, Tensor],
    datasets: Sequence[_Dataset],
    before: Sequence[_Measured],
    progress: bool | None,
) -> list[_Measured] | str:
    """Return the scores with parameters in float16, or in words how they differ from the scores before."""
    halved = {name: tensor for name, tensor in half.items() if tensor.dtype == torch.float16}
    large = [name for name, tensor in halved.items() if not bool(tensor.isfinite().all())]
    if large:
        return f"{large[0]} has a value above the largest number of float16"
    model.load_state_dict(half)
    after = [_measured(model, dataset, progress) for dataset in datasets]
    for dataset, then, now in zip(datasets, before, after, strict=True):
        compared = [(dataset.val.split, dataset.expected, now.validation)]
        compared += [
            (f"the first {limit} samples of {split}", then.samples[split, limit], value)
            for (split, limit), value in now.samples.items()
            if limit == MANY
        ]
        for where, old, new in compared:
            if not agree(old, new):
                return f"{dataset.metric} on {where} of {dataset.id_} would change from {old:g} to {new:g}"
    return after


def _measured(model: Any, dataset: _Dataset, progress: bool | None) -> _Measured:
    samples = {
        key: primary_score(model, dataset.task, split, progress=progress) for key, split in dataset.samples.items()
    }
    return _Measured(primary_score(model, dataset.task, dataset.val, selecting=True, progress=progress), samples)


def _in_half(model: Any, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors with the parameters among them in float16; buffers, such as means and counts, are as they were."""
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return {
        name: tensor.half() if name in parameters and tensor.dtype == torch.float32 else tensor
        for name, tensor in tensors.items()
    }


def _facts(dataset: _Dataset, trained: _Measured, stored: _Measured) -> DatasetFacts:
    """Return the facts of a dataset, with the scores of the run's weights and of the stored ones."""
    card = dataset.data.card
    samples = (
        SampleScore(
            split=name,
            limit=limit,
            content_hash=split.content_hash,
            trained=trained.samples[name, limit],
            stored=stored.samples[name, limit],
        )
        for (name, limit), split in dataset.samples.items()
    )
    return DatasetFacts(
        features=tuple((f.name, f.stage.value, f.location.value, f.type_name) for f in card.features),
        directed=card.directed,
        complete=card.complete,
        options=dict(card.task.options),
        record=dataset.record.relative_path.as_posix(),
        validation=ValidationScore(
            split=dataset.val.split,
            metric=dataset.metric,
            graphs=len(dataset.val),
            record=dataset.expected,
            stored=stored.validation,
        ),
        samples=tuple(samples),
    )


def _first_samples(id_: str, card: Card, config: RunConfig, root: str | Path | None) -> dict[_Key, GraphDataset]:
    """Return the first samples of the validation and the test split, by split and number of samples."""
    names = [name for name in dict.fromkeys([config.training.val_split, _TEST]) if name in card.all_splits]
    limits = [(name, limit) for name in names for limit in (FEW, MANY)]
    return {key: first_samples(id_, *key, config, root).labelled(key[0]) for key in limits}


def _require_room(path: Path, place: Path, tensors: Mapping[str, Tensor]) -> None:
    """Refuse a file that is too large, or that would make the folder too large.

    Raises:
        ConfigError: With both numbers.
    """
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    if size > MOST_FILE_BYTES:
        raise ConfigError(
            f"the weights take {size:,} bytes, and a file may have {MOST_FILE_BYTES:,}; train a smaller model, or send "
            "the run's best.safetensors by another way"
        )
    others = sum(file.stat().st_size for file in place.rglob(f"*{SUFFIX}") if file != path)
    if others + size > MOST_BYTES:
        raise ConfigError(
            f"the files in {place} have {others:,} bytes, so {size:,} more exceed {MOST_BYTES:,}; remove some of them"
        )
