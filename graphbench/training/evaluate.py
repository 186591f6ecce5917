"""Scores of a model on splits, streamed batch by batch within a memory budget."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch
from torch import nn

from graphbench.catalog.cards import Card
from graphbench.catalog.names import card as find_card
from graphbench.core.errors import CheckpointError, ConfigError, EvaluationError
from graphbench.evaluation.evaluator import Score
from graphbench.evaluation.texts import asks_for_text
from graphbench.loader import Splits
from graphbench.models.build import build_model
from graphbench.training import checkpoint
from graphbench.training.config import RunConfig, graph_model_config, run_config_from_json
from graphbench.training.distributed import choose_device
from graphbench.training.failures import out_of_memory
from graphbench.training.run_data import card_of_run, data_of_run, other_classes, other_data
from graphbench.training.scoring import evaluation_batch_size, score_predictions, score_solutions
from graphbench.training.splits import choose_splits

if TYPE_CHECKING:
    from graphbench.data.dataset import GraphDataset

logger = logging.getLogger(__name__)

BatchSize = int | Literal["auto"]
_T = TypeVar("_T")


def evaluate_model(
    model: nn.Module,
    dataset: GraphDataset,
    batch_size: BatchSize = "auto",
    device: str | torch.device = "auto",
    precision: Literal["fp32", "bf16"] = "fp32",
    progress: bool | None = False,
    decoding: Mapping[str, Any] | None = None,
) -> Score:
    """Return the scores of a model's first output on one split, by the metrics of the dataset's card.

    Predictions are scored batch by batch and dropped; scores are those of the whole split, never averages over batches.

    Args:
        model: A model of :func:`graphbench.models.build.build_model`; it is moved to ``device`` and put back into the
            mode (training or evaluation) it was in.
        dataset: The split.
        batch_size: Graphs at once; ``auto`` fits it to the largest graphs seen at the start of the split. A GPU that
            runs out of memory gets half as many, down to one.
        device: Where to compute; ``auto`` takes a GPU if there is one.
        precision: ``bf16`` runs the model under autocast.
        progress: Show a progress bar; None shows it in a terminal.
        decoding: Problems to be solved: how scores become solutions, see
            :func:`graphbench.evaluation.solutions.decode`.

    Raises:
        EvaluationError: If the split is empty or a prediction is not finite.
        TrainingError: If a single graph does not fit into the device's memory.
    """
    name = dataset.split
    return _split_scores(name, model, dataset, batch_size, device, precision, progress, decoding)[name]


def _split_scores(
    name: str,
    model: nn.Module,
    dataset: GraphDataset,
    batch_size: BatchSize,
    device: str | torch.device,
    precision: Literal["fp32", "bf16"],
    progress: bool | None,
    decoding: Mapping[str, Any] | None = None,
) -> dict[str, Score]:
    """Return the score of a split, of texts also those of every problem size in it."""
    if len(dataset) == 0:
        raise EvaluationError(f"the split {dataset.split!r} of {dataset.card.address} is empty; raise limit")
    dataset.require_labels()
    target = choose_device(device) if isinstance(device, str) else device
    model = model.to(target)
    if dataset.card.hints:
        return {name: _score_trajectories(model, dataset, batch_size, target, precision, progress)}
    if asks_for_text(dataset.card):
        return _score_texts(name, model, dataset, batch_size, target, precision, progress)
    size = evaluation_batch_size(model, dataset) if batch_size == "auto" else batch_size
    score_batches = (
        score_predictions if dataset.card.task.type != "solve" else partial(score_solutions, decoding=decoding or {})
    )
    was_training = model.training
    model.eval()
    try:
        score = _while_it_fits(lambda n: score_batches(model, dataset, n, target, precision, progress), size, target)
    finally:
        model.train(was_training)
    return {name: score}


def _while_it_fits(score: Callable[[int], _T], size: int, device: torch.device) -> _T:
    """Return what ``score`` returns for a batch size, halved as often as the device runs out of memory."""
    while True:
        try:
            return score(size)
        except torch.OutOfMemoryError as error:
            if size == 1:
                raise out_of_memory("evaluating", 1, "use a smaller model or device='cpu'") from error
        torch.cuda.empty_cache()
        size = max(1, size // 2)
        logger.warning("out of memory on %s; evaluating %d graphs at once", device, size)


def _score_texts(
    name: str,
    model: nn.Module,
    dataset: GraphDataset,
    batch_size: BatchSize,
    device: torch.device,
    precision: Literal["fp32", "bf16"],
    progress: bool | None,
) -> dict[str, Score]:
    from graphbench.models.language import TextModel
    from graphbench.training.language_scores import MOST_PROMPTS, score_texts

    assert isinstance(model, TextModel)
    size = MOST_PROMPTS if batch_size == "auto" else batch_size

    def score(most: int) -> dict[str, Score]:
        return score_texts(name, model, dataset, most, device, precision, progress)

    return _while_it_fits(score, size, device)


def _score_trajectories(
    model: nn.Module,
    dataset: GraphDataset,
    batch_size: BatchSize,
    device: torch.device,
    precision: Literal["fp32", "bf16"],
    progress: bool | None,
) -> Score:
    from graphbench.models.trajectory.model import TrajectoryModel
    from graphbench.training.trajectory_scores import score_trajectories

    assert isinstance(model, TrajectoryModel)
    size = None if batch_size == "auto" else batch_size
    id_ = dataset.card.address
    return score_trajectories(model, id_, dataset, model.rule, device, precision, batch_size=size, progress=progress)


def evaluate_splits(
    model: nn.Module,
    splits: Mapping[str, GraphDataset],
    batch_size: BatchSize = "auto",
    device: str | torch.device = "auto",
    precision: Literal["fp32", "bf16"] = "fp32",
    progress: bool | None = False,
    decoding: Mapping[str, Any] | None = None,
) -> dict[str, Score]:
    """Return the scores of a model on several splits, by name. See :func:`evaluate_model`.

    Of texts, the scores of every problem size stand behind those of a split, as ``<split>_n<size>``.
    """
    scores: dict[str, Score] = {}
    for name, split in splits.items():
        scores |= _split_scores(name, model, split, batch_size, device, precision, progress, decoding)
    return scores


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
) -> dict[str, Score]:
    """Return the scores of a finished run's best model.

    Args:
        path: The run's folder, with ``config.json`` and ``best.safetensors`` (or ``checkpoint.safetensors``).
        splits: Names of splits; ``ood`` stands for all out-of-distribution splits.
        data: The dataset, if it is loaded already; one with other parameters than the run's gets a warning.
        root: Folder of the datasets.
        limit: Samples per split; None for all.
        batch_size: Graphs at once, see :func:`evaluate_model`.
        device: Where to compute.
        progress: Show progress bars; None shows them in a terminal.

    Raises:
        CheckpointError: If the folder holds no readable model, or one that reads other classes than ``data`` have.
        ConfigError: If a split does not exist, or the dataset's parameters, generator or files changed since the run.
    """
    folder = Path(path)
    config = load_config_of_run(folder)
    if data is None:
        if config.datasets:
            raise ConfigError(
                f"the run {folder} was trained on {len(config.datasets)} datasets together; score it with "
                "evaluate_together, or pass data= to score it on one of them"
            )
        data = _same_data(folder, config.dataset, root, limit, progress)
    model = _model_for(folder, data.card)
    return _scores_of_run(model, folder, data, splits, batch_size, device, progress)


def evaluate_together(
    path: str | Path,
    splits: str | Sequence[str] = ("test", "ood"),
    *,
    root: str | Path | None = None,
    limit: int | None = None,
    batch_size: BatchSize = "auto",
    device: str = "auto",
    progress: bool | None = None,
) -> dict[str, dict[str, Score]]:
    """Return dataset -> split -> score of the best model of a run on several datasets, or on one.

    Args:
        path: The folder of a run of :func:`graphbench.training.trajectory_trainer.train_together`.
        splits: Names of splits of every dataset; ``ood`` stands for all out-of-distribution splits.
        root: Folder of the datasets.
        limit: Samples per split; None for all.
        batch_size: Graphs at once, see :func:`evaluate_model`.
        device: Where to compute.
        progress: Show progress bars; None shows them in a terminal.

    Raises:
        CheckpointError: If the folder holds no readable model.
        ConfigError: If a split does not exist, or a dataset's parameters, generator or files changed since the run.
    """
    folder = Path(path)
    config = load_config_of_run(folder)
    model = load_run(folder)
    found = {}
    for id_ in config.datasets or (config.dataset,):
        data = _same_data(folder, id_, root, limit, progress)
        found[id_] = _scores_of_run(model, folder, data, splits, batch_size, device, progress)
    return found


def _same_data(folder: Path, dataset: str, root: str | Path | None, limit: int | None, progress: bool | None) -> Splits:
    config = load_config_of_run(folder)
    record = record_path(folder, dataset if config.datasets else None)
    return data_of_run(folder, dataset, config.data_seed, record, root=root, limit=limit, progress=progress)


def _model_for(folder: Path, card: Card) -> nn.Module:
    """Return the model of a run for data that are given, which may be others than those it was trained on."""
    try:
        return load_run(folder, card)
    except CheckpointError as error:
        differing = other_classes(folder, card)
        if differing:
            raise CheckpointError(differing) from error
        raise


def _scores_of_run(
    model: nn.Module,
    folder: Path,
    data: Splits,
    splits: str | Sequence[str],
    batch_size: BatchSize,
    device: str,
    progress: bool | None,
) -> dict[str, Score]:
    chosen = choose_splits(data, splits)
    record = record_path(folder, data.card.address if load_config_of_run(folder).datasets else None)
    fingerprints = {split.data_fingerprint for split in chosen.values()}
    for changed in {other_data(folder, record, data.card.address, found) for found in fingerprints} - {""}:
        logger.warning("%s", changed)
    decoding = load_config_of_run(folder).training.decoding
    return evaluate_splits(model, chosen, batch_size, device, progress=progress, decoding=decoding)


def load_run(folder: str | Path, card: Card | None = None) -> nn.Module:
    """Return the best model of a run folder, in evaluation mode on the CPU.

    Args:
        folder: The run's folder.
        card: The card of the run's dataset; None looks it up, and reads published files again.

    Raises:
        CheckpointError: If the folder holds no readable model.
        ConfigError: If the run was trained on another dataset, or on published files that are gone.
    """
    where = Path(folder)
    best = where / "best.safetensors"
    tensors, _ = checkpoint.load_tensors(best if best.is_file() else where / "checkpoint.safetensors")
    config = load_config_of_run(where)
    about = card or card_of_run(where, config.dataset)
    if config.datasets and about.address not in config.datasets:
        raise ConfigError(f"the run {where} was trained on {', '.join(config.datasets)}, not on {about.address}")
    model = _fresh_model(config, about)
    checkpoint.load_model(model, tensors)
    return model.eval()


def _fresh_model(config: RunConfig, card: Card) -> nn.Module:
    if asks_for_text(card):
        from graphbench.models.language import TextModel
        from graphbench.training.language import text_model_config

        return TextModel(text_model_config(config))
    if not card.hints:
        return build_model(graph_model_config(config), card.features, directed=card.directed)
    from graphbench.models.trajectory.model import build_trajectory_model
    from graphbench.training.trajectory_trainer import model_config

    others = {id_: find_card(id_) for id_ in config.datasets if id_ != card.address}
    features = {id_: others.get(id_, card).features for id_ in config.datasets or (card.address,)}
    return build_trajectory_model(model_config(config), features)


def record_path(folder: Path, dataset: str | None = None) -> Path:
    """Return where a run's record lies: the one, or that of a dataset that is trained together with others."""
    return folder / (f"records/{dataset.replace('/', '-')}.json" if dataset is not None else "record.json")


def load_config_of_run(folder: str | Path) -> RunConfig:
    """Return the configuration a run folder's ``config.json`` holds.

    Raises:
        CheckpointError: If there is no such file.
        ConfigError: If the file is not a valid configuration.
    """
    path = Path(folder) / "config.json"
    if not path.is_file():
        raise CheckpointError(f"{path.parent} is no run folder: it has no config.json; train the model first")
    return run_config_from_json(path.read_text(encoding="utf-8"), str(path))
