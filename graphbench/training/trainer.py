"""Train a model on a dataset: one call from a name to scores, weights and a run record."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import nn

from graphbench._version import __version__
from graphbench.catalog.cards import Card, draw_suffix
from graphbench.core.errors import ConfigError
from graphbench.core.files import existing_parent, write_json
from graphbench.core.progress import progress_bar
from graphbench.evaluation.evaluator import Evaluator, Score
from graphbench.evaluation.results import RunRecord, hardware, save_record
from graphbench.evaluation.texts import asks_for_text, split_and_size
from graphbench.loader import Loader, Splits
from graphbench.models.build import build_model, count_parameters
from graphbench.models.story.config import StoryModelConfig
from graphbench.models.story.model import with_vocabulary
from graphbench.training.config import Overrides, RunConfig, fingerprint, graph_model_config, load_config
from graphbench.training.distributed import World, join_world
from graphbench.training.evaluate import evaluate_splits
from graphbench.training.interrupts import deferred_signals
from graphbench.training.language import text_loop
from graphbench.training.loop import BEST, CHECKPOINT, TrainingLoop
from graphbench.training.recording import (
    budget_of,
    commit_of_checkout,
    earlier_record,
    latencies_ms,
    log_start,
    open_board,
    partial_splits,
)
from graphbench.training.run_data import write_run_data
from graphbench.training.scoring import require_fitting_settings
from graphbench.training.splits import card_of, choose_splits, require_own_splits, split_limits, split_names

if TYPE_CHECKING:
    from graphbench.data.dataset import GraphDataset

logger = logging.getLogger(__name__)

RECORD = "record.json"
CONFIG = "config.json"
_NORMALISATION_GRAPHS = 4096


@dataclass(frozen=True)
class RunResult:
    """What a finished run returns.

    Attributes:
        record: The run's record, as written to ``record.json``. Where a finished run is scored again, it keeps the
            scores of splits that are not scored anew.
        model: The model with its best weights, in evaluation mode.
        scores: Split -> score of that model, for the splits scored by this call.
        path: The run's folder.
    """

    record: RunRecord
    model: nn.Module
    scores: dict[str, Score]
    path: Path


def train(
    dataset: str | None = None,
    model: str | Path | None = None,
    *,
    steps: int | None = None,
    seed: int | None = None,
    limit: int | None = None,
    eval_limit: int | None = None,
    val_limit: int | None = None,
    data_seed: int | None = None,
    root: str | Path | None = None,
    output: str | Path | None = None,
    overrides: Overrides | None = None,
    device: str = "auto",
    resume: bool = True,
    workers: int | None = None,
    evaluate: str | Sequence[str] | None = ("val", "test", "ood"),
    tensorboard: bool = False,
    progress: bool | None = None,
    data: Splits | None = None,
) -> RunResult:
    """Train a model, score its best weights, and write a record.

    The weights with the best primary metric on the validation split are the ones scored; of models that write texts,
    those with the lowest loss on it. On a CPU a run that was interrupted and started again ends with the same bits as
    one that was not. Under ``torchrun`` the processes share every batch.

    The output folder holds ``config.json``, ``data.json`` (which data), ``checkpoint.safetensors`` (to continue from),
    ``best.safetensors`` and ``record.json``.

    Args:
        dataset: Id or alias of a dataset; may be left out when ``data`` is given. Several are trained together by
            :func:`graphbench.training.trajectory_trainer.train_together`.
        model: Name of a configuration in ``baselines/<domain>/`` (``gin``, ``gt``, ...), or the path of a YAML file;
            None for the domain's default, see :func:`graphbench.training.config.load_config`.
        steps: Budget in optimizer updates; None for the configuration's. A smaller budget keeps the warm-up's share.
        seed: Seed of weights, data order and dropout; None for the configuration's (0).
        limit: Use the first ``limit`` samples of each split.
        eval_limit: Score at most so many samples of each split but those trained and validated on.
        val_limit: Validate on at most so many samples.
        data_seed: Which draw of the dataset; None for that of ``data``, else 0, the canonical one.
        root: Folder of the datasets; None for the default root.
        output: Folder of the run; None for ``runs/<dataset>/<model>-seed<seed>`` below the current folder, of another
            draw than the canonical one with ``-draw<data seed>`` behind it.
        overrides: Changes of the configuration: a mapping, or strings such as ``training.lr=3e-4``.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:<number>``.
        resume: Continue from the folder's checkpoint; False starts anew and overwrites it.
        workers: Processes that generate missing data.
        evaluate: Splits scored at the end; ``ood`` stands for all out-of-distribution splits, None or ``none`` for no
            scores.
        tensorboard: Write curves for TensorBoard to ``<output>/tensorboard``.
        progress: Show a progress bar; None shows it in a terminal.
        data: The dataset, if it is loaded already. A run on fewer graphs than the card's is marked small.

    Returns:
        Record, model, scores and folder.

    Raises:
        UnknownDataset: If no dataset has that name.
        UnknownModel: If no model configuration has that name.
        ConfigError: If the configuration, the device, the output folder or a split is refused, ``data`` contradicts
            ``dataset``, a limit or ``data_seed``, or the training split is empty.
        CheckpointError: If the folder's checkpoint is damaged or belongs to another run.
        TrainingError: If the loss is no longer finite, or the device's memory is too small.
        KeyboardInterrupt: On Ctrl-C, after a checkpoint was written.
    """
    for name, given in (("eval_limit", eval_limit), ("val_limit", val_limit)):
        if data is not None and given is not None:
            raise ConfigError(f"{name}={given} and data are both given; load data with Loader(..., limit=)")
    card = card_of(dataset, data, data_seed)
    options: dict[str, Any] = {"steps": steps, "seed": seed, "limit": limit, "overrides": overrides}
    config = load_config(card.address, model, family=card.family, data_seed=card.data_seed, **options)
    _require_one_process(card)
    require_own_splits(config, card)
    require_fitting_settings(config.training, card)
    scored = split_names(card, evaluate)
    folder = Path(output) if output is not None else default_output(config)
    if not existing_parent(folder).is_dir():
        raise ConfigError(
            f"the output {folder} cannot be a folder: {existing_parent(folder)} is a file; choose another"
        )
    with join_world(device) as world, own_randomness(config.training.seed, world):
        if data is None:
            most = split_limits(config, card, limit, eval_limit, val_limit)
            how: dict[str, Any] = {"root": root, "workers": workers, "progress": progress}
            how |= {"data_seed": card.data_seed, "unlabelled": ("train",) if card.task.type == "solve" else ()}
            data = cast(Splits, Loader(card.address, limit=most, **how).load(()))
        if card.hints:
            return _train_trajectories(config, data, folder, world, resume, scored, tensorboard, progress)
        _open(data, limit, world)
        loop = prepared_loop(config, data, folder, world, resume)
        board = open_board(folder / "tensorboard", tensorboard and world.leads, loop.state.step)
        label = f"{config.model_name} on {card.address}"
        shown = progress if world.leads else False
        if world.leads:
            log_start(loop, card.address)
        try:
            with progress_bar(config.training.steps, label, "step", shown) as bar, deferred_signals() as stop:
                loop.run(bar, board, stop)
        finally:
            board.close()
        return _finish(loop, data, folder, scored, shown)


def _train_trajectories(
    config: RunConfig,
    data: Splits,
    folder: Path,
    world: World,
    resume: bool,
    scored: Sequence[str],
    tensorboard: bool,
    progress: bool | None,
) -> RunResult:
    """Train on the trajectories of one dataset."""
    from graphbench.training.trajectory_trainer import run_trajectories, write_records

    id_ = data.card.address
    options: dict[str, Any] = {"evaluate": {id_: scored}, "tensorboard": tensorboard, "progress": progress}
    model, trained = run_trajectories(config, {id_: data}, folder, world, resume=resume, **options)
    if world.leads:
        write_records(folder, trained)
    own = trained[id_]
    return RunResult(own.record, model, own.scores, folder)


def _require_one_process(card: Card) -> None:
    size = os.environ.get("WORLD_SIZE", "1")
    if asks_for_text(card) and size != "1":
        raise ConfigError(f"models that write texts are trained by one process, not {size}; run without torchrun")


def default_output(config: RunConfig) -> Path:
    """Return the folder of a run that names none: ``runs/<dataset>/<model>-seed<seed>`` below the current folder."""
    return Path("runs", *config.dataset.replace(":", "-").split("/"), run_name(config))


def run_name(config: RunConfig) -> str:
    """Return the name of a run's folder: ``gin-seed0``, or ``gin-seed0-draw3`` on another draw of the data."""
    return f"{config.model_name}-seed{config.training.seed}{draw_suffix(config.data_seed)}"


def _open(data: Splits, limit: int | None, world: World) -> None:
    """Open what every process trains with; process 0 generates what is missing while the others wait."""
    if world.leads:
        _open_within(data, limit)
    world.wait()
    _open_within(data, limit)


def _open_within(data: Splits, limit: int | None) -> None:
    for name in ("train", "val"):
        count = len(data[name])
        if limit is not None and count > limit:
            raise ConfigError(
                f"limit={limit} is given, but data holds {count:,} graphs of {name}; "
                f"load it with Loader(..., limit={limit}) or leave limit out"
            )


def prepared_loop(config: RunConfig, data: Splits, folder: Path, world: World, resume: bool) -> TrainingLoop:
    """Return the loop of a run, at its start or where its checkpoint left it."""
    train, card, settings = data.train, data.card, config.training
    parts = world.size * settings.accumulate
    if len(train) == 0:
        raise ConfigError(f"the training split of {card.address} is empty; raise limit or loosen the filter")
    for split in (train, data.val):
        split.require_labels()
    if min(settings.batch_size, len(train)) < parts:
        raise ConfigError(
            f"a batch of {min(settings.batch_size, len(train))} graphs cannot be cut into {parts} parts "
            f"({world.size} processes, training.accumulate={settings.accumulate}); raise training.batch_size"
        )
    loop = (text_loop if asks_for_text(card) else _graph_loop)(config, data, world, folder)
    if resume and loop.resume():
        logger.info("continuing %s from step %d", folder, loop.state.step)
    elif world.leads:
        for name in (CHECKPOINT, BEST, RECORD):
            (folder / name).unlink(missing_ok=True)
    if world.leads:
        write_json(folder / CONFIG, loop.config.to_dict())
        write_run_data(folder, data)
    world.wait()
    return loop


def _graph_loop(config: RunConfig, data: Splits, world: World, folder: Path) -> TrainingLoop:
    """Return the loop of a run on graphs, at its start."""
    card, train, val = data.card, data.train, data.val
    config = _with_vocabulary(config, train)
    model = build_model(graph_model_config(config), card.features, directed=card.directed)
    model.fit_normalisation(next(iter(train.batches(min(_NORMALISATION_GRAPHS, len(train))))))
    model = model.to(world.device)
    world.broadcast_model(model)
    mark = fingerprint(config, f"{train.content_hash} {val.content_hash}")
    upwards = Evaluator(card, output=card.outputs[0].name).higher_is_better
    return TrainingLoop(config, card, train, val, model, world, folder, mark, upwards)


def _with_vocabulary(config: RunConfig, train: GraphDataset) -> RunConfig:
    """Return the configuration of a run; a story model's with the words of the training split, where it has none."""
    if not isinstance(config.model, StoryModelConfig):
        return config
    own = with_vocabulary(config.model, train.card.features, train.batches(_NORMALISATION_GRAPHS))
    return config.model_copy(update={"model": own})


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
        decoding = loop.settings.decoding
        scores = evaluate_splits(loop.model, splits, size, world.device, loop.precision, progress, decoding)
        record = _record(loop, data, splits, scores, folder / RECORD)
        save_record(record, path=folder / RECORD)
        answer = record, scores
    record, scores = world.from_leader(answer)
    return RunResult(record, loop.model, scores, folder)


def _record(
    loop: TrainingLoop, data: Splits, splits: Mapping[str, GraphDataset], scores: Mapping[str, Score], path: Path
) -> RunRecord:
    """Return the record of a run; scores in an earlier record of the same weights at ``path`` are kept."""
    config, state, card = loop.config, loop.state, loop.card
    timed = loop.val if loop.val is not None else loop.train
    alone, together = latencies_ms(loop.model, card.features, timed, loop.world.device, loop.precision)
    weights: dict[str, Any] = {
        "dataset": card.address,
        "dataset_version": card.version,
        "data_fingerprint": data.val.data_fingerprint,
        "data_seed": card.data_seed,
        "seed": config.training.seed,
        "steps": state.step,
        "best_step": loop.best.step if loop.best is not None else None,
        "curves": {"train_loss": state.train_loss, f"val_{loop.val_metric}": state.val_curve},
    }
    earlier = earlier_record(path, **weights)
    results = merged_results(card, splits, scores, earlier)
    used = {"train": data.train, "val": data.val}
    sizes = {name: len(split) for name, split in used.items()}
    return RunRecord(
        **weights,
        scores=results["scores"],
        graphs_scored=results["graphs_scored"],
        data_hashes={**{name: split.content_hash for name, split in used.items()}, **results["data_hashes"]},
        model=config.model_name,
        config=config.to_dict(),
        parameters=count_parameters(loop.model),
        batch_size=config.training.batch_size,
        budget=budget_of(config, card, state.step, sizes, results["graphs_scored"]),
        hardware={**hardware(), "device": str(loop.world.device), "processes": loop.world.size},
        graphbench_version=__version__,
        git_version=commit_of_checkout(),
        started=datetime.fromisoformat(state.started),
        wall_seconds=state.wall_seconds,
        peak_memory_bytes=state.peak_memory_bytes or None,
        throughput_graphs_per_s=state.timed_graphs / state.timed_seconds if state.timed_seconds else None,
        latency_ms=alone,
        latency_ms_batched=together,
        protocol=card.protocol,
        notes=_notes(loop, data, results, earlier),
    )


def merged_results(
    card: Card, splits: Mapping[str, GraphDataset], scores: Mapping[str, Score], earlier: RunRecord | None
) -> dict[str, dict[str, Any]]:
    """Return scores, graphs and hashes of every split scored now or earlier, in the card's order."""
    sized = {name: score.graphs for name, score in scores.items() if name not in splits}
    found: dict[str, dict[str, Any]] = {
        "scores": {name: score.to_dict() for name, score in scores.items()},
        "graphs_scored": {**{name: len(split) for name, split in splits.items()}, **sized},
        "data_hashes": {name: split.content_hash for name, split in splits.items()},
    }
    if earlier is None:
        return found
    kept = {key: _of_splits(getattr(earlier, key), card.all_splits.keys() - splits.keys()) for key in found}
    merged = {key: kept[key] | own for key, own in found.items()}
    return {key: _of_splits(own, card.all_splits) for key, own in merged.items()}


def _of_splits(values: Mapping[str, Any], splits: Iterable[str]) -> dict[str, Any]:
    """Return the values of some splits, in their order, each followed by those of its problem sizes."""
    return {
        name: value for split in splits for name, value in values.items() if split in (name, split_and_size(name)[0])
    }


def _notes(
    loop: TrainingLoop, data: Splits, results: Mapping[str, Mapping[str, Any]], earlier: RunRecord | None
) -> str:
    """Return what a reader of the scores must know, in sentences."""
    card = loop.card
    notes = loop.notes(data, [name for name in results["graphs_scored"] if name in card.all_splits])
    if loop.state.step < loop.settings.steps:
        notes.append(f"stopped early after {loop.settings.patience} validations without improvement")
    partly = partial_splits(card, results["graphs_scored"])
    if partly:
        samples = "prompts" if asks_for_text(card) else "graphs"
        notes.append(f"{samples} scored: {', '.join(partly.values())}")
    undefined = [f"{m} of {name}" for name, own in results["scores"].items() for m in card.metrics.also if m not in own]
    if undefined:
        notes.append(f"undefined and left out: {', '.join(undefined)}")
    if earlier is not None and results["scores"].keys() > results["graphs_scored"].keys():
        notes.append(earlier.notes)  # of a version that did not count the graphs
    return "; ".join(dict.fromkeys(note for note in notes if note))


@contextmanager
def own_randomness(seed: int, world: World) -> Iterator[None]:
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
