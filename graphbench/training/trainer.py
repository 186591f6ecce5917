"""Train a model on a dataset: one call from a name to scores, weights and a run record."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import nn

from graphbench.catalog.names import card as find_card
from graphbench.data.store import write_json
from graphbench.errors import ConfigError
from graphbench.evaluation.evaluator import Evaluator, Score
from graphbench.evaluation.results import Budget, RunRecord, hardware, save_record
from graphbench.loader import Loader, Splits
from graphbench.models.build import build_model, count_parameters
from graphbench.progress import progress_bar
from graphbench.training.config import Overrides, RunConfig, fingerprint, load_config
from graphbench.training.distributed import World, join_world
from graphbench.training.evaluate import choose_splits, evaluate_splits, split_names
from graphbench.training.interrupts import deferred_signals
from graphbench.training.loop import BEST, CHECKPOINT, TrainingLoop
from graphbench.training.recording import budget_label, commit_of_checkout, latencies_ms, open_board

logger = logging.getLogger(__name__)

RECORD = "record.json"
CONFIG = "config.json"
_NORMALISATION_GRAPHS = 4096


@dataclass(frozen=True)
class RunResult:
    """What a finished run returns.

    Attributes:
        record: The run's record, as written to ``record.json``.
        model: The model with its best weights, in evaluation mode.
        scores: Split -> score of that model.
        path: The run's folder.
    """

    record: RunRecord
    model: nn.Module
    scores: dict[str, Score]
    path: Path


def train(
    dataset: str | None = None,
    model: str | Path = "gin",
    *,
    steps: int | None = None,
    seed: int | None = None,
    limit: int | None = None,
    root: str | Path | None = None,
    output: str | Path | None = None,
    overrides: Overrides | None = None,
    device: str = "auto",
    resume: bool = True,
    workers: int | None = None,
    evaluate: str | Sequence[str] = ("val", "test", "ood"),
    tensorboard: bool = False,
    progress: bool | None = None,
    data: Splits | None = None,
) -> RunResult:
    """Train a model, score its best weights, and write a record.

    The weights with the best primary metric on the validation split are the ones scored. On a CPU a run that was
    interrupted and started again ends with the same bits as one that was not. Under ``torchrun`` the processes share
    every batch.

    The output folder holds ``config.json``, ``checkpoint.safetensors`` (to continue from), ``best.safetensors`` and
    ``record.json``.

    Args:
        dataset: Id or alias of a dataset; may be left out when ``data`` is given.
        model: Name of a configuration in ``baselines/<domain>/`` (``gin``, ``gt``, ...), or the path of a YAML file.
        steps: Budget in optimizer updates; None for the configuration's. A smaller budget keeps the warm-up's share.
        seed: Seed of weights, data order and dropout; None for the configuration's (0).
        limit: Use the first ``limit`` samples of each split.
        root: Folder of the datasets; None for the default root.
        output: Folder of the run; None for ``runs/<dataset>/<model>-seed<seed>`` below the current folder.
        overrides: Changes of the configuration: a mapping, or strings such as ``training.lr=3e-4``.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:<number>``.
        resume: Continue from the folder's checkpoint; False starts anew and overwrites it.
        workers: Processes that generate missing data.
        evaluate: Splits scored at the end; ``ood`` stands for all out-of-distribution splits.
        tensorboard: Write curves for TensorBoard to ``<output>/tensorboard``.
        progress: Show a progress bar; None shows it in a terminal.
        data: The dataset, if it is loaded already.

    Returns:
        Record, model, scores and folder.

    Raises:
        UnknownDataset: If no dataset has that name.
        UnknownModel: If no model configuration has that name.
        ConfigError: If the configuration, the device or a split is refused, or the training split is empty.
        CheckpointError: If the folder's checkpoint is damaged or belongs to another run.
        TrainingError: If the loss is no longer finite, or the device's memory is too small.
        KeyboardInterrupt: On Ctrl-C, after a checkpoint was written.
    """
    if data is None and dataset is None:
        raise ConfigError("neither dataset nor data is given; name a dataset, e.g. train('algoreas/mst_easy')")
    card = data.card if data is not None else find_card(cast(str, dataset))
    config = load_config(card.id, model, family=card.family, steps=steps, seed=seed, limit=limit, overrides=overrides)
    evaluate = split_names(card, evaluate)
    folder = Path(output) if output is not None else default_output(config)
    with join_world(device) as world, _own_randomness(config.training.seed, world):
        if data is None:
            data = _load(Loader(card.id, root=root, limit=limit, workers=workers, progress=progress), world)
        loop = _prepare(config, data, folder, world, resume)
        board = open_board(folder / "tensorboard", tensorboard and world.leads, loop.state.step)
        label = f"{config.model_name} on {card.id}"
        shown = progress if world.leads else False
        try:
            with progress_bar(config.training.steps, label, "step", shown) as bar, deferred_signals() as stop:
                loop.run(bar, board, stop)
        finally:
            board.close()
        return _finish(loop, data, folder, evaluate, shown)


def default_output(config: RunConfig) -> Path:
    """Return the folder of a run that names none: ``runs/<dataset>/<model>-seed<seed>`` below the current folder."""
    return Path("runs", *config.dataset.replace(":", "-").split("/"), f"{config.model_name}-seed{config.training.seed}")


def _load(loader: Loader, world: World) -> Splits:
    """Return the splits; process 0 generates what is missing while the others wait."""
    if world.leads:
        loader.load(("train", "val"))
    world.wait()
    return cast(Splits, loader.load(("train", "val")))


def _prepare(config: RunConfig, data: Splits, folder: Path, world: World, resume: bool) -> TrainingLoop:
    """Return the loop of a run, at its start or where its checkpoint left it."""
    train, card, settings = data.train, data.card, config.training
    parts = world.size * settings.accumulate
    if len(train) == 0:
        raise ConfigError(f"the training split of {card.id} is empty; raise limit or loosen the filter")
    if min(settings.batch_size, len(train)) < parts:
        raise ConfigError(
            f"a batch of {min(settings.batch_size, len(train))} graphs cannot be cut into {parts} parts "
            f"({world.size} processes, training.accumulate={settings.accumulate}); raise training.batch_size"
        )
    model = build_model(config.model, card.features, directed=card.directed)
    model.fit_normalisation(next(iter(train.batches(min(_NORMALISATION_GRAPHS, len(train))))))
    model = model.to(world.device)
    world.broadcast_model(model)
    mark = fingerprint(config, f"{train.content_hash} {data.val.content_hash}")
    upwards = Evaluator(card, output=card.outputs[0].name).higher_is_better
    loop = TrainingLoop(config, card, train, data.val, model, world, folder, mark, upwards)
    if resume and loop.resume():
        logger.info("continuing %s from step %d", folder, loop.state.step)
    elif world.leads:
        for name in (CHECKPOINT, BEST, RECORD):
            (folder / name).unlink(missing_ok=True)
    if world.leads:
        write_json(folder / CONFIG, config.model_dump(mode="json"))
    world.wait()
    return loop


def _finish(
    loop: TrainingLoop, data: Splits, folder: Path, evaluate: Sequence[str], progress: bool | None
) -> RunResult:
    """Score the best weights in process 0, write the record, and hand both to every process."""
    world = loop.world
    world.wait()
    loop.restore_best()
    loop.model.eval()
    answer: tuple[RunRecord, dict[str, Score]] | None = None
    if world.leads:
        size = loop.settings.eval_batch_size
        splits = choose_splits(data, evaluate)
        scores = evaluate_splits(loop.model, splits, size, world.device, loop.precision, progress)
        hashes = {name: split.content_hash for name, split in {"train": data.train, "val": data.val, **splits}.items()}
        counts = {name: len(split) for name, split in splits.items()}
        record = _record(loop, data, scores, hashes, counts)
        save_record(record, path=folder / RECORD)
        answer = record, scores
    record, scores = world.from_leader(answer)
    return RunResult(record, loop.model, scores, folder)


def _record(
    loop: TrainingLoop, data: Splits, scores: dict[str, Score], hashes: dict[str, str], counts: dict[str, int]
) -> RunRecord:
    from graphbench import __version__

    config, state, card = loop.config, loop.state, loop.card
    timed = loop.val if loop.val is not None else loop.train
    alone, together = latencies_ms(loop.model, card.features, timed, loop.world.device, loop.precision)
    return RunRecord(
        dataset=card.id,
        dataset_version=card.version,
        data_fingerprint=data.train.path.parent.name,
        data_hashes=hashes,
        model=config.model_name,
        config=config.model_dump(mode="json"),
        parameters=count_parameters(loop.model),
        seed=config.training.seed,
        steps=state.step,
        batch_size=config.training.batch_size,
        budget=Budget(small=config.is_small, label=budget_label(state.step, config.training.batch_size, config.limit)),
        hardware={**hardware(), "device": str(loop.world.device), "processes": loop.world.size},
        graphbench_version=__version__,
        git_version=commit_of_checkout(),
        started=datetime.fromisoformat(state.started),
        wall_seconds=state.wall_seconds,
        peak_memory_bytes=state.peak_memory_bytes or None,
        throughput_graphs_per_s=state.timed_graphs / state.timed_seconds if state.timed_seconds else None,
        latency_ms=alone,
        latency_ms_batched=together,
        curves={"train_loss": state.train_loss, f"val_{card.metrics.primary}": state.val_curve},
        scores={name: score.to_dict() for name, score in scores.items()},
        best_step=loop.best.step if loop.best is not None else None,
        notes=_notes(loop, counts),
    )


def _notes(loop: TrainingLoop, counts: dict[str, int]) -> str:
    """Return what a reader of the scores must know, in sentences."""
    notes = []
    if loop.state.step < loop.settings.steps:
        notes.append(f"stopped early after {loop.settings.patience} validations without improvement")
    full = {name: loop.card.split(name).count for name in counts}
    partly = [f"{name} {count:,} of {full[name]:,}" for name, count in counts.items() if count < full[name]]
    if partly:
        notes.append(f"graphs scored: {', '.join(partly)}")
    return "; ".join(notes)


@contextmanager
def _own_randomness(seed: int, world: World) -> Iterator[None]:
    """Seed Python, NumPy and torch for the block, and give the caller's generators back afterwards."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    devices = [world.device.index] if world.device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002
