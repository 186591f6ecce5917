"""Train a model on trajectories: on one algorithm, or one processor on several."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from graphbench._version import __version__
from graphbench.catalog.names import Selector, catalog
from graphbench.core.errors import ConfigError
from graphbench.core.files import write_json
from graphbench.core.progress import progress_bar
from graphbench.data.dataset import GraphDataset
from graphbench.data.stream import TrajectoryStream
from graphbench.evaluation.results import RunRecord, hardware, save_record
from graphbench.loader import Loader
from graphbench.models.build import count_parameters
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.model import TrajectoryModel, build_trajectory_model, input_rule
from graphbench.training.config import Overrides, RunConfig, fingerprint, load_config
from graphbench.training.distributed import World, join_world
from graphbench.training.evaluate import record_path
from graphbench.training.interrupts import deferred_signals
from graphbench.training.loop import BEST, CHECKPOINT
from graphbench.training.recording import (
    budget_of,
    commit_of_checkout,
    earlier_record,
    log_start,
    open_board,
    partial_splits,
)
from graphbench.training.splits import choose_splits, require_own_splits, split_limits, split_names
from graphbench.training.trainer import CONFIG, RECORD, RunResult, merged_results, own_randomness, run_name
from graphbench.training.trajectory_loop import Task, TrajectoryLoop
from graphbench.training.trajectory_scores import score_trajectories, trajectories_at_once

if TYPE_CHECKING:
    from graphbench.evaluation.evaluator import Score
    from graphbench.loader import Splits

logger = logging.getLogger(__name__)
_TIMED = 8


@dataclass(frozen=True)
class TrainedTask:
    """What training leaves of one algorithm: its record, and the scores of its splits."""

    record: RunRecord
    scores: dict[str, Score]


def train_together(
    datasets: Selector,
    model: str | Path | None = None,
    *,
    steps: int | None = None,
    seed: int | None = None,
    limit: int | None = None,
    eval_limit: int | None = None,
    val_limit: int | None = None,
    data_seed: int = 0,
    root: str | Path | None = None,
    output: str | Path | None = None,
    overrides: Overrides | None = None,
    device: str = "auto",
    resume: bool = True,
    workers: int | None = None,
    evaluate: str | Sequence[str] | None = ("val", "test", "ood"),
    tensorboard: bool = False,
    progress: bool | None = None,
) -> dict[str, RunResult]:
    """Train one processor on several algorithms at once (Ibarz et al., 2022): update t is on algorithm t, in turn.

    Every algorithm has encoders and decoders of its own. The weights scored are those with the best mean validation
    score. ``steps`` counts updates over all algorithms; where each has fewer than the configuration's file names, the
    run is marked small.

    Args:
        datasets: A group such as ``clrs30``, a glob, or a list of ids, all with hints.
        model: A configuration in ``baselines/clrs``, or a YAML file; None for the domain's default (``mpnn``).
        steps: Budget in updates; None for the configuration's.
        seed: Seed of weights and data; None for the configuration's.
        limit: Use the first ``limit`` samples of each stored split.
        eval_limit: Score at most so many samples of each split but those trained and validated on.
        val_limit: Validate on at most so many samples.
        data_seed: Which draw of the datasets; 0 for the canonical one.
        root: Folder of the datasets.
        output: Folder of the run; None for one below ``runs``.
        overrides: Changes of the configuration.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:<number>``.
        resume: Continue from the folder's checkpoint.
        workers: Processes that generate missing data.
        evaluate: Splits scored at the end, of every dataset.
        tensorboard: Write curves for TensorBoard.
        progress: Show progress bars; None for terminals only.

    Returns:
        Id -> record, model (the same for all), scores and folder.

    Raises:
        ConfigError: If a dataset has no hints, or the configuration is none for trajectories.
        CardError: If ``data_seed`` is not a whole number from 0 on.
    """
    ids = catalog().resolve(datasets)
    cards = {id_: catalog().card(id_).with_data_seed(data_seed) for id_ in ids}
    without = [id_ for id_, card in cards.items() if not card.hints]
    if without:
        raise ConfigError(f"{without[0]} has no hints; only trajectories are trained together, such as those of clrs30")
    options: dict[str, Any] = {"limit": limit, "data_seed": cards[ids[0]].data_seed, "overrides": overrides}
    config = load_config(ids[0], model, steps=steps, seed=seed, **options)
    if len(ids) > 1:
        config = config.model_copy(update={"datasets": tuple(ids)})
    name = datasets if isinstance(datasets, str) and datasets.isidentifier() else f"{ids[0].replace('/', '-')}-and-more"
    folder = Path("runs", name, run_name(config)) if output is None else Path(output)
    scored = {id_: split_names(card, evaluate) for id_, card in cards.items()}
    for card in cards.values():
        require_own_splits(config, card)
    with join_world(device) as world, own_randomness(config.training.seed, world):
        data = {}
        for id_, card in cards.items():
            most = split_limits(config, card, limit, eval_limit, val_limit)
            source: dict[str, Any] = {"root": root, "workers": workers, "progress": progress}
            data[id_] = cast("Splits", Loader(id_, limit=most, data_seed=card.data_seed, **source).load(()))
        best, trained = run_trajectories(
            config, data, folder, world, resume=resume, evaluate=scored, tensorboard=tensorboard, progress=progress
        )
        if world.leads:
            write_records(folder, trained)
    return {id_: RunResult(task.record, best, task.scores, folder) for id_, task in trained.items()}


def run_trajectories(
    config: RunConfig,
    data: Mapping[str, Splits],
    folder: Path,
    world: World,
    *,
    resume: bool,
    evaluate: Mapping[str, Sequence[str]],
    tensorboard: bool,
    progress: bool | None,
) -> tuple[TrajectoryModel, dict[str, TrainedTask]]:
    """Train one model on the trajectories of one or several datasets and score its best weights on each.

    Args:
        config: The configuration; its dataset is the first one.
        data: Id -> splits.
        folder: The run's folder.
        world: The processes that train together.
        resume: Continue from the folder's checkpoint.
        evaluate: Id -> splits to score at the end.
        tensorboard: Whether to write curves for TensorBoard.
        progress: Show progress bars; None for terminals only.

    Returns:
        The model with its best weights, and id -> record and scores.
    """
    streamed = [id_ for id_, splits in data.items() if is_streamed(splits, config.training.train_split)]
    if streamed and config.limit is not None and world.leads:
        logger.warning(
            "%s of %s is drawn without end: limit=%d holds for the other splits alone",
            config.training.train_split,
            ", ".join(streamed),
            config.limit,
        )
    for splits in data.values():  # process 0 generates what is missing while the others wait
        if world.leads:
            _open(config, splits)
        world.wait()
    loop = prepared_trajectory_loop(config, data, folder, world, resume)
    board = open_board(folder / "tensorboard", tensorboard and world.leads, loop.state.step)
    what = next(iter(data)) if len(data) == 1 else f"{len(data)} algorithms"
    shown = progress if world.leads else False
    if world.leads:
        log_start(loop, what)
    try:
        label = f"{config.model_name} on {what}"
        with progress_bar(config.training.steps, label, "step", shown) as bar, deferred_signals() as stop:
            loop.run(bar, board, stop)
    finally:
        board.close()
    world.wait()
    loop.restore_best()
    loop.model.eval()
    answer: dict[str, TrainedTask] | None = None
    if world.leads:
        answer = {id_: _score(loop, id_, splits, evaluate[id_], shown) for id_, splits in data.items()}
    return loop.model, world.from_leader(answer)


def _open(config: RunConfig, splits: Splits) -> None:
    for name in (config.training.train_split, config.training.val_split):
        if not is_streamed(splits, name):
            splits[name]


def is_streamed(splits: Splits, name: str) -> bool:
    """Return whether a split is drawn while training, never stored."""
    return name.startswith("train_") and bool(splits.card.split(name).parameters.get("lengths"))


def prepared_trajectory_loop(
    config: RunConfig, data: Mapping[str, Splits], folder: Path, world: World, resume: bool
) -> TrajectoryLoop:
    """Return the loop of a run, at its start or where its checkpoint left it."""
    settings, about = config.training, model_config(config)
    rule = input_rule(about)
    tasks = {}
    for id_, splits in data.items():
        train: GraphDataset | TrajectoryStream
        if is_streamed(splits, settings.train_split):
            train = TrajectoryStream(splits.card, settings.train_split, settings.seed)
        else:
            train = splits[settings.train_split]
        tasks[id_] = Task(splits.card, train, splits[settings.val_split], rule)
    model = build_trajectory_model(about, {id_: splits.card.features for id_, splits in data.items()})
    model = model.to(world.device)
    world.broadcast_model(model)
    mark = fingerprint(config, " ".join(f"{id_} {_data_mark(task)}" for id_, task in tasks.items()))
    loop = TrajectoryLoop(config, tasks, model, world, folder, mark)
    if resume and loop.resume():
        logger.info("continuing %s from step %d", folder, loop.state.step)
    elif world.leads:
        for path in (folder / CHECKPOINT, folder / BEST, folder / RECORD, *folder.glob("records/*.json")):
            path.unlink(missing_ok=True)
    if world.leads:
        write_json(folder / CONFIG, config.to_dict())
    world.wait()
    return loop


def model_config(config: RunConfig) -> TrajectoryModelConfig:
    """Return the model's configuration of a run on trajectories.

    Raises:
        ConfigError: If it is one for single graphs.
    """
    if not isinstance(config.model, TrajectoryModelConfig):
        raise ConfigError(
            f"{config.model_name} is no model for trajectories, which {config.dataset} has; "
            "choose one of baselines/clrs, or write kind: trajectory in the model section"
        )
    return config.model


def _data_mark(task: Task) -> str:
    """Return what tells the data of a task from others."""
    if isinstance(task.train, GraphDataset):
        return f"{task.train.content_hash} {task.val.content_hash}"
    return f"{task.train.split} {task.card.fingerprint(0)} {task.val.content_hash}"


def _score(loop: TrajectoryLoop, id_: str, data: Splits, evaluate: Sequence[str], progress: bool | None) -> TrainedTask:
    """Score the best weights on the splits of one dataset and return its record."""
    splits = choose_splits(data, evaluate)
    settings, model, device = loop.settings, loop.model, loop.world.device
    scores = {
        name: score_trajectories(
            model,
            id_,
            split,
            model.rule,
            device,
            loop.precision,
            randomise=name == settings.val_split,
            batch_size=None if settings.eval_batch_size == "auto" else settings.eval_batch_size,
            progress=progress,
        )
        for name, split in splits.items()
    }
    return TrainedTask(_record(loop, id_, data, splits, scores), scores)


def _record(
    loop: TrajectoryLoop, id_: str, data: Splits, splits: Mapping[str, GraphDataset], scores: Mapping[str, Score]
) -> RunRecord:
    config, state, task = loop.config, loop.state, loop.tasks[id_]
    alone, together = _latencies_ms(loop, id_)
    stored = {loop.settings.val_split: task.val}
    if isinstance(task.train, GraphDataset):
        stored[loop.settings.train_split] = task.train
    weights: dict[str, Any] = {
        "dataset": id_,
        "dataset_version": data.card.version,
        "data_fingerprint": task.val.data_fingerprint,
        "data_seed": data.card.data_seed,
        "seed": config.training.seed,
        "steps": state.step,
        "best_step": loop.best.step if loop.best is not None else None,
        "curves": {"train_loss": state.train_loss, "val_score": state.val_curve},
    }
    earlier = earlier_record(record_path(loop.folder, id_ if len(loop.tasks) > 1 else None), **weights)
    results = merged_results(data.card, splits, scores, earlier)
    counts = results["graphs_scored"]
    partly = partial_splits(data.card, counts)
    notes = [f"trained on {len(loop.tasks)} algorithms in turn, one update each"] if len(loop.tasks) > 1 else []
    notes += [f"trajectories scored: {', '.join(partly.values())}"] if partly else []
    return RunRecord(
        **weights,
        scores=results["scores"],
        graphs_scored=counts,
        data_hashes={**{name: split.content_hash for name, split in stored.items()}, **results["data_hashes"]},
        model=config.model_name,
        config=config.model_copy(update={"dataset": id_}).to_dict(),
        parameters=count_parameters(loop.model),
        batch_size=config.training.batch_size,
        budget=budget_of(config, data.card, state.step, _stored_sizes(task), counts),
        protocol=protocol_of(config),
        hardware={**hardware(), "device": str(loop.world.device), "processes": loop.world.size},
        graphbench_version=__version__,
        git_version=commit_of_checkout(),
        started=datetime.fromisoformat(state.started),
        wall_seconds=state.wall_seconds,
        peak_memory_bytes=state.peak_memory_bytes or None,
        throughput_graphs_per_s=state.timed_graphs / state.timed_seconds if state.timed_seconds else None,
        latency_ms=alone,
        latency_ms_batched=together,
        notes="; ".join(notes),
    )


def _stored_sizes(task: Task) -> dict[str, int]:
    """Return the samples of the stored splits that were trained and validated on."""
    return {split.split: len(split) for split in (task.train, task.val) if isinstance(split, GraphDataset)}


def protocol_of(config: RunConfig) -> str:
    """Return the protocol of a run: ``canonical``, or the one its training split is named after."""
    return config.training.train_split.removeprefix("train").lstrip("_") or "canonical"


def _latencies_ms(loop: TrajectoryLoop, id_: str) -> tuple[float, float]:
    """Return median milliseconds to predict one trajectory alone, and one within a batch."""
    task, device = loop.tasks[id_], loop.world.device
    size = min(trajectories_at_once(task.val), len(task.val))
    few = [batch for batch, _ in zip(task.val.batches(1), range(_TIMED), strict=False)]
    many = [next(iter(task.val.batches(size)))] * 3

    def seconds(batch: object) -> float:
        from graphbench.data.trajectory_batch import TrajectoryBatch

        seen = task.rule.batch(cast(TrajectoryBatch, batch), task.constant).to(device)
        started = time.perf_counter()
        with torch.inference_mode():
            next(iter(loop.model.predict(seen, id_).values())).cpu()
        return time.perf_counter() - started

    alone, together = [seconds(batch) for batch in few], [seconds(batch) for batch in many]
    return 1e3 * statistics.median(alone), 1e3 * statistics.median(together) / size


def write_records(folder: Path, trained: Mapping[str, TrainedTask]) -> None:
    """Write the records of a run into its folder: ``record.json``, or one file per dataset under ``records/``."""
    for id_, task in trained.items():
        save_record(task.record, path=record_path(folder, id_ if len(trained) > 1 else None))
