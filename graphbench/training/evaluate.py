"""Scores and predictions of models and of finished runs."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Stage
from graphbench.core.errors import CheckpointError, ConfigError, EvaluationError
from graphbench.data.batches.dataset import GraphDataset
from graphbench.evaluation.score import Score
from graphbench.loader import Splits
from graphbench.models.base import TaskModel
from graphbench.tasks.base import Task
from graphbench.tasks.registry import task_of
from graphbench.training.config import RunConfig
from graphbench.training.distributed import choose_device
from graphbench.training.folders import load_config_of_run, record_path
from graphbench.training.identity import require_finished_identity, require_finished_model
from graphbench.training.learners.base import learner_class
from graphbench.training.learners.torch_learner import TorchPredictor
from graphbench.training.run_data import card_of_run, data_of_run, other_classes, other_data, read_run_data
from graphbench.training.scoring import BatchSize, Precision, score_split
from graphbench.training.splits import choose_splits
from graphbench.training.trained import task_for

logger = logging.getLogger(__name__)

_NAMED_FEATURES = 3  # in messages

SplitScores = dict[str, Score]


def evaluate_model(
    model: Any,
    dataset: GraphDataset,
    batch_size: BatchSize = "auto",
    device: str | torch.device = "auto",
    precision: Precision = "fp32",
    progress: bool | None = False,
    task_options: Mapping[str, Any] | None = None,
    scores: str | None = None,
) -> Score:
    """Return the scores of a model on one split, by the metrics of the dataset's card, over all its outputs.

    A model of the suite (a ``TaskModel``) is scored as in training, one from :func:`graphbench.load_model` with the
    options of the task that it was trained with. Any other module, or function, is called with each
    batch of the split and returns predictions for ``Evaluator.update(batch, predictions)``: an array or tensor, of
    several outputs a mapping output -> array. Batches are PyG batches; of ``trace`` tasks a ``TrajectoryBatch``, of
    ``text`` tasks prompts (``TextBatch``), which are answered by a list of strings.

    Args:
        model: The model; a module is moved to ``device`` and put back into the mode (training or evaluation) it was in.
        dataset: The split.
        batch_size: Samples at once; ``auto`` fits it to the largest samples. A GPU that runs out of memory gets half as
            many, down to one.
        device: Where to compute; ``auto`` takes a GPU if there is one.
        precision: ``bf16`` runs the model under autocast.
        progress: Show a progress bar; None shows it in a terminal.
        task_options: Options of the kind of task, as ``training.task`` of a configuration has them: for problems to
            solve ``{"decoding": {...}}``. None takes those of the training of a model from ``load_model``.
        scores: Scale of floating-point predictions of a mask, from a model that is no ``TaskModel``: ``probability``,
            ``logit`` or ``label``; None for the default of the task, see :class:`graphbench.Evaluator`.

    Raises:
        EvaluationError: If the model cannot be called with a batch or was built for other features, the split is empty
            or no split, or the predictions have another shape than the targets or are not finite.
        TrainingError: If a single sample does not fit into the device's memory.
    """
    options: dict[str, Any] = {"task_options": task_options, "progress": progress, "scores": scores}
    name = dataset.split if isinstance(dataset, GraphDataset) else "dataset"
    return evaluate_splits(model, {name: dataset}, batch_size, device, precision, **options)[name]


def evaluate_splits(
    model: Any,
    splits: Mapping[str, GraphDataset],
    batch_size: BatchSize = "auto",
    device: str | torch.device = "auto",
    precision: Precision = "fp32",
    progress: bool | None = False,
    task_options: Mapping[str, Any] | None = None,
    scores: str | None = None,
) -> SplitScores:
    """Return the scores of a model on several splits, by name; see :func:`evaluate_model`.

    Where a task scores parts of a split apart, such as every problem size of texts, their scores follow the score of
    the split, as ``<split>_n<size>``.
    """
    _require_model(model, scores)
    for name, split in splits.items():
        if not isinstance(split, GraphDataset):
            raise _no_split(name, split)
    target = choose_device(device) if isinstance(device, str) else device
    model = model.to(target) if isinstance(model, nn.Module) else model
    split_scores: SplitScores = {}
    for name, split in splits.items():
        _require_fitting_data(model, split.card)
        task = task_for(model, split.card, task_options)
        options: dict[str, Any] = {"device": target, "precision": precision, "progress": progress, "scores": scores}
        split_scores |= score_split(model, task, split, name=name, batch_size=batch_size, **options)
    return split_scores


def predict_model(
    model: Any,
    dataset: GraphDataset,
    device: str | torch.device = "auto",
    precision: Precision = "fp32",
    progress: bool | None = False,
    task_options: Mapping[str, Any] | None = None,
) -> Iterator[Any]:
    """Return the predictions of a model for all samples of a split, batch by batch, in the order of the split.

    Args:
        model: A model of the suite (a ``TaskModel``), such as :func:`graphbench.load_model` returns. It is moved to
            ``device`` and put back into the mode (training or evaluation) it was in.
        dataset: The split; its labels are not read.
        device: As for :func:`evaluate_model`.
        precision: As for :func:`evaluate_model`.
        progress: As for :func:`evaluate_model`.
        task_options: As for :func:`evaluate_model`.

    Returns:
        An iterator over the predictions of batches, on the CPU, as ``Evaluator.update`` takes them: in most tasks a
        mapping output -> tensor with a row per node, edge or graph; in tasks that write texts a list; in problems whose
        decoder has options, solutions.

    Raises:
        EvaluationError: If the model is no ``TaskModel`` (other models return predictions themselves) or was built for
            other features, or the dataset is no split.
    """
    if not isinstance(model, TaskModel):
        raise EvaluationError(
            f"the model is a {type(model).__name__}, which returns predictions itself: call it with every batch of "
            "dataset.batches(size)"
        )
    if not isinstance(dataset, GraphDataset):
        raise _no_split("dataset", dataset)
    _require_fitting_data(model, dataset.card)
    target = choose_device(device) if isinstance(device, str) else device
    predictor = TorchPredictor(model.to(target), target, precision)
    task = task_for(model, dataset.card, task_options)
    return predictor.predictions(task, dataset.card.address, dataset, dataset.split, progress)


def _no_split(name: str, value: Any) -> EvaluationError:
    return EvaluationError(
        f"the split {name!r} is {value!r:.80}; give a split of a loaded dataset, such as "
        "graphbench.Loader(...).load().test"
    )


def _require_fitting_data(model: Any, card: Card) -> None:
    """Refuse samples without the features that a model of the suite was built for.

    Raises:
        EvaluationError: If a feature is missing or of another kind, or the graphs are directed and were not, or the
            other way round.
    """
    built_for = model.built_for if isinstance(model, TaskModel) else {}
    wanted = built_for.get(card.address) or (next(iter(built_for.values())) if len(built_for) == 1 else None)
    if wanted is None:
        return
    card_features = {feature.name: feature for feature in card.features}
    read = [feature for feature in wanted.features if feature.stage is not Stage.META]
    unlike = [feature for feature in read if card_features.get(feature.name) != feature]
    if not unlike and wanted.directed == card.directed:
        return
    words = [f"the {feature.stage} {feature.name!r} ({feature.location} {feature.kind})" for feature in unlike]
    more = len(words) - _NAMED_FEATURES
    words = words[:_NAMED_FEATURES] + ([f"{more} more"] if more > 0 else [])
    lacks = ", ".join(words) or f"{'directed' if wanted.directed else 'undirected'} graphs"
    raise EvaluationError(
        f"the model was built for {', '.join(built_for)}, and {card.address} lacks {lacks}; score it on a dataset with "
        "the same features, or train a model on this one"
    )


def _require_model(model: Any, scores: str | None) -> None:
    """Refuse a model that cannot be called with a batch.

    Raises:
        EvaluationError: If the model is no function of one argument, or ``scores`` is given for a ``TaskModel``.
    """
    if isinstance(model, TaskModel):
        if scores is not None:
            raise EvaluationError(f"scores={scores!r} is for predictions of other models; leave it out for a TaskModel")
        return
    if isinstance(model, type) or not callable(model):
        raise EvaluationError(f"the model is {model!r:.80}; give a module, or a function of a batch")
    try:
        inspect.signature(model.forward if isinstance(model, nn.Module) else model).bind(None)
    except TypeError as error:
        raise EvaluationError(
            f"{type(model).__name__} cannot be called with a batch alone ({error}); wrap it in a module whose forward "
            "takes a batch and returns predictions, e.g. of batch.x and batch.edge_index"
        ) from error
    except ValueError:  # a function without a signature
        return


@dataclass(frozen=True)
class FinishedRun:
    """A run's folder with the model that it selected.

    Attributes:
        folder: The folder.
        config: Its configuration.
        learner: The trained learner, with its best weights.
        cards: The cards of its datasets, by id.
    """

    folder: Path
    config: RunConfig
    learner: Any
    cards: Mapping[str, Card]

    @property
    def ids(self) -> tuple[str, ...]:
        """The datasets that it was trained on."""
        return self.config.datasets or (self.config.dataset,)

    def splits(self, data: Splits, names: str | Sequence[str]) -> dict[str, GraphDataset]:
        """Return splits of one of its datasets by name; a name that only others of them have stands for none.

        Raises:
            CardError: If none of its datasets has such a split.
        """
        return choose_splits(data, names, {name for card in self.cards.values() for name in card.all_splits})

    def task(self, card: Card, data: Splits) -> Task:
        """Return the task of one of its datasets, with the run's settings.

        Args:
            card: The card of the split that is predicted.
            data: The dataset.
        """
        task = task_of(card, self.config.training.task)
        task.configure(self.config.model)
        task.read_training(data)
        return task


def open_run(folder: str | Path, card: Card | None = None, device: str = "cpu") -> FinishedRun:
    """Return a finished run with its best model, in evaluation mode.

    Args:
        folder: The run's folder.
        card: The card of the data that will be scored; None looks it up, and reads files again that were trained on.
        device: Where to compute.

    Raises:
        CheckpointError: If the folder holds no readable model, its weights belong to another run, or they are missing.
        ConfigError: If the run was trained on another dataset, or on files that are gone, ``config.json`` was edited,
            or a card or the code of a plug-in changed since; where ``card`` is given, a warning names the change.
    """
    where = Path(folder)
    config = load_config_of_run(where)
    if card is not None and config.datasets and card.address not in config.datasets:
        raise ConfigError(f"the run {where} was trained on {', '.join(config.datasets)}, not on {card.address}")
    ids = config.datasets or (config.dataset,)
    cards_of_caller = {} if card is None else {card.address if config.datasets else ids[0]: card}
    cards = {id_: cards_of_caller.get(id_) or card_of_run(where, id_) for id_ in ids}
    if not config.datasets:
        cards = {loaded.address: loaded for loaded in cards.values()}
    require_finished_identity(where, config, cards, data_given=card is not None)
    facts = read_run_data(where)
    mark = facts.run_fingerprint if facts is not None else ""
    learner = learner_class(config).load(where, config, cards, mark, choose_device(device))
    require_finished_model(where, config, cards, learner.model, data_given=card is not None)
    return FinishedRun(where, config, learner, cards)


def load_run(folder: str | Path, card: Card | None = None) -> Any:
    """Return the best model of a run folder, in evaluation mode on the CPU; see :func:`open_run`."""
    return open_run(folder, card).learner.model


def evaluate_run(
    path: str | Path,
    splits: str | Sequence[str] = ("test", "ood"),
    *,
    data: Splits | None = None,
    root: str | Path | None = None,
    limit: int | None = None,
    batch_size: BatchSize = "auto",
    device: str = "auto",
    progress: bool | None = None,
) -> Any:
    """Return the scores of a finished run's best model: split -> score; of a run on several datasets id -> these.

    Args:
        path: The run's folder, with ``config.json`` and ``best.safetensors`` (or ``checkpoint.safetensors`` where the
            run never validated).
        splits: Names of splits; ``ood`` stands for all out-of-distribution splits. Of a run on several datasets, each
            is scored on the splits of these names that it has.
        data: The dataset, if it is loaded already; one with other parameters than the run's gets a warning. Of a run on
            several datasets, one of them.
        root: Folder of the datasets.
        limit: Samples per split; None for all.
        batch_size: Samples at once, see :func:`evaluate_model`.
        device: Where to compute.
        progress: Show progress bars; None shows them in a terminal.

    Raises:
        CheckpointError: If the folder holds no readable model, or one that reads other classes than ``data`` have.
        ConfigError: If a split does not exist, or the dataset's parameters, generator or files changed since the run.
    """
    options: dict[str, Any] = {"root": root, "limit": limit, "batch_size": batch_size, "device": device}
    by_dataset = scores_of_run(path, splits, data=data, progress=progress, **options)
    return by_dataset if data is None and load_config_of_run(path).datasets else next(iter(by_dataset.values()))


def scores_of_run(
    path: str | Path,
    splits: str | Sequence[str] = ("test", "ood"),
    *,
    data: Splits | None = None,
    root: str | Path | None = None,
    limit: int | None = None,
    batch_size: BatchSize = "auto",
    device: str = "auto",
    progress: bool | None = None,
    other_data: bool = False,
) -> dict[str, SplitScores]:
    """Return dataset -> split -> score of a finished run's best model, see :func:`evaluate_run`.

    With ``other_data`` the data are meant to be others than those of the training, so no warning says so.
    """
    by_dataset: dict[str, SplitScores] = {}
    for run, dataset in opened(path, data=data, root=root, limit=limit, device=device, progress=progress):
        scores = by_dataset.setdefault(dataset.card.address, {})
        chosen = run.splits(dataset, splits) if data is None else choose_splits(dataset, splits)
        if not other_data:
            _warn_of_other_data(run, dataset.card, {split.data_fingerprint for split in chosen.values()})
        for name, split in chosen.items():
            task = run.task(split.card, dataset)
            scores |= run.learner.score(task, dataset.card.address, split, name, batch_size, progress)
    return by_dataset


def _warn_of_other_data(run: FinishedRun, card: Card, fingerprints: set[str]) -> None:
    record = record_path(run.folder, card.address if run.config.datasets else None)
    for changed in {other_data(run.folder, record, card.address, fingerprint) for fingerprint in fingerprints} - {""}:
        logger.warning("%s", changed)


def opened(
    path: str | Path,
    *,
    data: Splits | None = None,
    root: str | Path | None = None,
    limit: int | None = None,
    device: str = "auto",
    progress: bool | None = None,
) -> Iterator[tuple[FinishedRun, Splits]]:
    """Yield a finished run with the splits of each of its datasets, from where it was trained on them.

    Args:
        path: The run's folder.
        data: The dataset, if it is loaded already: then the run is opened with it alone.
        root: Folder of the datasets.
        limit: Samples per split.
        device: Where to compute.
        progress: Show progress bars.
    """
    folder = Path(path)
    config = load_config_of_run(folder)
    if data is not None:
        yield _run_for(folder, data.card, device), data
        return
    run = open_run(folder, device=device)
    for id_ in run.ids:
        record = record_path(folder, id_ if config.datasets else None)
        options: dict[str, Any] = {"root": root, "limit": limit, "progress": progress}
        yield run, data_of_run(folder, id_, config.data_seed, record, **options)


def _run_for(folder: Path, card: Card, device: str) -> FinishedRun:
    """Return a run for given data, which may differ from the data that it was trained on."""
    try:
        return open_run(folder, card, device)
    except CheckpointError as error:
        differing = other_classes(folder, card)
        if differing:
            raise CheckpointError(differing) from error
        raise


def write_run_predictions(
    path: str | Path,
    output: str | Path,
    splits: str | Sequence[str] = ("test",),
    *,
    root: str | Path | None = None,
    limit: int | None = None,
    device: str = "auto",
    progress: bool | None = None,
) -> list[Path]:
    """Write the predictions of a finished run's best model, one file per split that ``evaluate`` reads.

    Args:
        path: The run's folder.
        output: Folder of the files, ``<split>.npz`` or ``<split>.jsonl``; of a run on several datasets a folder each.
        splits: Names of splits. Of a run on several datasets, each is predicted on the splits that it has.
        root: Folder of the datasets.
        limit: Samples per split.
        device: Where to compute.
        progress: Show progress bars.
    """
    written = []
    for run, dataset in opened(path, root=root, limit=limit, device=device, progress=progress):
        address = dataset.card.address
        folder = Path(output) / address.replace(":", "-") if len(run.ids) > 1 else Path(output)
        for name, split in run.splits(dataset, splits).items():
            task = run.task(split.card, dataset)
            batches = run.learner.predictions(task, address, split, name, progress)
            written.append(task.write_predictions(folder / name, batches))
    return written
