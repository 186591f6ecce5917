"""The driver of all runs: open the data, train, restore the selected weights, score, write the record."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from graphbench.catalog.names import Selector
from graphbench.core.errors import ConfigError, DecodingError
from graphbench.core.files import write_json
from graphbench.core.progress import note, progress_bar
from graphbench.core.words import duration
from graphbench.evaluation.score import Score
from graphbench.loader import Loader, Splits
from graphbench.models.base import TaskFeatures
from graphbench.models.registry import architecture
from graphbench.records.files import RECORD, save_record
from graphbench.records.record import RunRecord
from graphbench.tasks.base import Task
from graphbench.tasks.registry import task_of
from graphbench.training.augmentation import augmentations_of
from graphbench.training.config import Overrides, RunConfig, fingerprint, load_config
from graphbench.training.context import RunContext, TaskRun, Watch
from graphbench.training.distributed import World, join_world, seeded_generators, world_size
from graphbench.training.folders import CONFIG, default_output, locked, record_path, require_folder
from graphbench.training.identity import continued_identity, identity_of, write_identity
from graphbench.training.interrupts import deferred_signals
from graphbench.training.learners.base import FitSummary, Learner, learner_class, require_no_loss, require_no_steps
from graphbench.training.learners.torch_learner import require_model
from graphbench.training.neighbours import require_all_arcs
from graphbench.training.recording import Board, open_board
from graphbench.training.records import record_of
from graphbench.training.run_data import write_run_data
from graphbench.training.settings import mixture_weights
from graphbench.training.splits import (
    cards_of,
    choose_splits,
    require_eval_limit,
    split_limits,
    validate_train_val_splits,
)
from graphbench.training.start import start_settings, started

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunResult:
    """The result of a finished run.

    Attributes:
        record: The run's record, as written to ``record.json``. Where a finished run is scored again, it keeps the
            scores of splits that are not scored again.
        model: The trained model, with its best weights, in evaluation mode.
        scores: Split -> score of that model, for the splits scored by this call.
        path: The run's folder.
    """

    record: RunRecord
    model: Any
    scores: dict[str, Score]
    path: Path


def train(
    dataset: Selector | None = None,
    model: str | Path | None = None,
    *,
    steps: int | None = None,
    seed: int | None = None,
    limit: int | None = None,
    eval_limit: int | Mapping[str, int] | None = None,
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
    data: Splits | Mapping[str, Splits] | None = None,
    init_from: str | Path | None = None,
    freeze: str | Sequence[str] = (),
) -> Any:
    """Train a model on a dataset, or one model on several, score its best weights, and write a record for each.

    The weights that the task selects on the validation split are scored: the weights with the best primary metric, or
    with the lowest loss for tasks that write texts. On a CPU a run that was interrupted and started again ends with the
    same bits as one that was not. Under ``torchrun`` the processes share every batch.

    With several datasets the processor is shared, every dataset has separate encoders and decoders, and every update
    is on one dataset, as ``training.mixture`` says: ``turns`` (one after the other), ``proportional`` to the number of
    training samples, or a mapping dataset -> weight. Weights are selected by the mean of the selection metrics over
    the datasets; errors count as ``1 - error / first validation's error``. ``steps`` counts updates over all datasets.

    The output folder holds ``config.json``, ``data.json`` (which data), ``fingerprint.json`` (the facts that the scores
    depend on), ``checkpoint.safetensors`` (to continue from), ``best.safetensors`` and ``record.json`` (of several
    datasets ``records/<dataset>.json``). It is locked while the run works in it. The files of the folder are not used
    where a card, the configuration, the code of a plug-in or the data changed since; the error names the change.

    Args:
        dataset: Id or alias of a dataset; a list, group or glob for one model on several; may be left out when ``data``
            is given.
        model: Name of a configuration in ``baselines/<domain>/`` (``gin``, ``gt``, ...), or the path of a YAML file;
            None for a default, see :func:`graphbench.training.config.load_config`.
        steps: Budget in optimizer updates; None for the configuration's. A smaller budget keeps the warm-up's share.
        seed: Seed of weights, data order and dropout; None for the configuration's (0).
        limit: Use the first ``limit`` samples of each split.
        eval_limit: Score at most so many samples of each split, except train, val and the split validated on; or a
            mapping split -> most samples, for the splits that it names.
        val_limit: Validate on at most so many samples.
        data_seed: Which draw of the dataset; None for the draw of ``data``, else 0, the canonical one.
        root: Folder of the datasets; None for the default root.
        output: Folder of the run; None for ``runs/<dataset>/<model>-<digits>-seed<seed>`` below the current folder,
            where the digits change with every setting.
        overrides: Changes of the configuration: a mapping, or strings such as ``training.lr=3e-4``.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:<number>``.
        resume: Continue from the folder's checkpoint; False starts again and overwrites it.
        workers: Processes that generate missing data.
        evaluate: Splits scored at the end; ``ood`` stands for all out-of-distribution splits, ``additional`` for all
            additional splits, None or ``none`` for no scores.
        tensorboard: Write curves for TensorBoard to ``<output>/tensorboard``.
        progress: Show a progress bar; None shows it in a terminal.
        data: The dataset, if it is loaded already, or a mapping id -> dataset. A run on fewer samples than the card's
            is marked small.
        init_from: Start from the weights of another model: the folder of a run, ``<dataset>/<model>`` of stored
            weights, or the path of a file of weights. The processor is taken, and the encoders and decoders of features
            that agree. Records of such runs have the protocol ``fine_tuned``, and are never ranked with others.
        freeze: Kind, or kinds, of parts that are taken and not trained: ``processor``, ``encoders``, ``decoders``.

    Returns:
        A :class:`RunResult`; for several datasets a mapping id -> result.

    Raises:
        UnknownDataset: If no dataset has that name.
        UnknownModel: If no model configuration has that name.
        ConfigError: If the configuration, the device, the output folder or a split is refused, ``data`` contradicts
            ``dataset``, a limit or ``data_seed``, the folder is in use, or the training split is empty.
        CheckpointError: If the folder's checkpoint is damaged or belongs to another run.
        TrainingError: If the loss is no longer finite, or the device's memory is too small.
        KeyboardInterrupt: On Ctrl-C, after a checkpoint was written.
    """
    for name, value in (("eval_limit", eval_limit), ("val_limit", val_limit)):
        if data is not None and value is not None:
            raise ConfigError(f"{name}={value} and data are both given; load data with Loader(..., limit=)")
    cards, several, group = cards_of(dataset, data, data_seed)
    first = next(iter(cards.values()))
    options: dict[str, Any] = {"steps": steps, "seed": seed, "limit": limit, "overrides": overrides}
    family = first.family if len(cards) == 1 else None
    config = load_config(first.address, model, family=family, data_seed=first.data_seed, **options)
    if len(cards) > 1:
        config = config.model_copy(update={"datasets": tuple(cards)})
    if init_from is not None:
        if not architecture(config.kind).has_steps:
            raise ConfigError(f"{config.model_name} is fitted without steps and cannot start from other weights")
        training = config.training.model_copy(update={"start": start_settings(init_from, freeze)})
        config = config.model_copy(update={"training": training})
    elif freeze:
        raise ConfigError(f"freeze={freeze!r} needs init_from: only parts that are taken can be left untrained")
    tasks = checked_tasks(config, cards)
    split_names = dict.fromkeys(name for card in cards.values() for name in card.all_splits)
    require_eval_limit(eval_limit, split_names)
    scored = {id_: card.select_splits(evaluate, split_names) for id_, card in cards.items()}
    limits = {id_: split_limits(config, task, limit, eval_limit, val_limit) for id_, task in tasks.items()}
    folder = Path(output) if output is not None else default_output(config, group if len(cards) > 1 else None)
    loaded = {data.card.address: data} if isinstance(data, Splits) else data
    plan = RunPlan(config, cards, tasks, scored, limits, folder)
    storage: dict[str, Any] = {"root": root, "workers": workers}
    results = execute(plan, loaded, device=device, resume=resume, tensorboard=tensorboard, progress=progress, **storage)
    return results if several else next(iter(results.values()))


@dataclass(frozen=True)
class RunPlan:
    """A run before it begins: its configuration, its data, the splits that are scored, and its folder.

    Attributes:
        config: The configuration.
        cards: Dataset -> card, of the draw that the configuration names.
        tasks: Dataset -> task, see :func:`checked_tasks`.
        scored: Dataset -> splits that are scored at the end.
        limits: Dataset -> the limits that its data is loaded with; None for none.
        folder: The run's folder.
    """

    config: RunConfig
    cards: Mapping[str, Card]
    tasks: Mapping[str, Task]
    scored: Mapping[str, Sequence[str]]
    limits: Mapping[str, int | Mapping[str, int] | None]
    folder: Path


def execute(
    plan: RunPlan,
    data: Mapping[str, Splits] | None = None,
    *,
    device: str = "auto",
    resume: bool = True,
    root: str | Path | None = None,
    workers: int | None = None,
    tensorboard: bool = False,
    progress: bool | None = None,
) -> dict[str, RunResult]:
    """Carry out a plan as :func:`train` does, and return dataset -> result.

    Args:
        plan: The plan.
        data: Dataset -> loaded data; None loads the data.
        device: As for :func:`train`, like the other arguments and the errors.
        resume: As for :func:`train`.
        root: As for :func:`train`.
        workers: As for :func:`train`.
        tensorboard: As for :func:`train`.
        progress: As for :func:`train`.
    """
    config, tasks, folder = plan.config, plan.tasks, plan.folder
    require_folder(folder)
    with join_world(device) as world, seeded_generators(config.training.seed, world), locked(folder, world.leads):
        opened = {}
        for id_, card in plan.cards.items():
            if data is not None:
                opened[id_] = data[id_]
                continue
            how: dict[str, Any] = {"root": root, "workers": workers, "progress": progress}
            how |= {"data_seed": card.data_seed, "unlabelled": tasks[id_].unlabelled}
            opened[id_] = cast(Splits, Loader(card.address, limit=plan.limits[id_], **how).load(()))
        context = make_context(config, tasks, opened, folder, world, config.limit)
        if world.leads:
            _require_labels(tasks, opened, plan.scored)
        world.wait()
        learner = prepared(context, resume)
        board = open_board(folder / "tensorboard", tensorboard and world.leads, learner.summary().steps or 0)
        shown = progress if world.leads else False
        try:
            learn(context, learner, board, shown)
        finally:
            board.close()
        return _finish(context, learner, plan.scored, shown)


def checked_tasks(config: RunConfig, cards: Mapping[str, Card]) -> dict[str, Task]:
    """Return dataset -> task, after checking that the configuration fits each.

    Raises:
        ConfigError: If an option of the task, the mixture, an augmentation, a split, the number of processes or a
            setting that has no meaning without steps is refused, or the model cannot serve the tasks.
    """
    mixture_weights(config.training.mixture, dict.fromkeys(cards, 1))
    if not architecture(config.kind).has_steps:
        require_no_steps(config)
    augmentations_of(config.training.augment, cards)
    tasks = {}
    for id_, card in cards.items():
        try:
            task = task_of(card, config.training.task)
        except DecodingError as error:
            raise ConfigError(f"training.task.decoding: {error}") from error
        if not architecture(config.kind).has_steps:
            require_no_loss(config, task)
        task.configure(config.model)
        validate_train_val_splits(config, task)
        if not task.several_processes and world_size() > 1:
            raise ConfigError(
                f"models on {task.type} tasks are trained by one process, not {world_size()}; run without torchrun"
            )
        tasks[id_] = task
    require_all_arcs(config, cards.values())
    require_model(config, cards)
    return tasks


def make_context(
    config: RunConfig,
    tasks: Mapping[str, Task],
    data: Mapping[str, Splits],
    folder: Path,
    world: World,
    limit: int | None = None,
) -> RunContext:
    """Return a run with its splits for training and validation opened; process 0 generates missing data.

    Raises:
        ConfigError: If a split is larger than ``limit``, empty, or too small for the processes.
    """
    _warn_of_streams(config, tasks)
    if world.leads:  # generates missing data while the others wait
        _open(config, tasks, data)
    world.wait()
    runs = _open(config, tasks, data)
    for id_, run in runs.items():
        _require_size(id_, run, config, limit, world)
    marks = " ".join(run.task.data_mark(run.train, run.val) for run in runs.values())
    config = _completed(config, runs)
    return RunContext(config, runs, folder, world, fingerprint(config, marks))


def _open(config: RunConfig, tasks: Mapping[str, Task], data: Mapping[str, Splits]) -> dict[str, TaskRun]:
    settings, runs = config.training, {}
    for id_, task in tasks.items():
        train = task.open(data[id_], settings.train_split, settings.seed)
        task.read_training(data[id_])
        if settings.train_limit is not None and len(train) > settings.train_limit:
            train = train[: settings.train_limit]
        runs[id_] = TaskRun(task, data[id_], train, data[id_][settings.val_split])
    return runs


def _completed(config: RunConfig, runs: Mapping[str, TaskRun]) -> RunConfig:
    """Return the configuration with the facts that the model takes from training data, such as a vocabulary."""
    features = {id_: TaskFeatures.of(run.card) for id_, run in runs.items()}
    batches = {id_: run.task.normalisation_batches(run.train) for id_, run in runs.items()}
    model = architecture(config.kind).complete(config.model, features, batches)
    return config if model is config.model else config.model_copy(update={"model": model})


def _warn_of_streams(config: RunConfig, tasks: Mapping[str, Task]) -> None:
    streamed = [id_ for id_, task in tasks.items() if not task.is_stored(config.training.train_split)]
    if streamed and config.limit is not None:
        logger.warning(
            "%s of %s is drawn without end: limit=%d holds for the other splits alone",
            config.training.train_split,
            ", ".join(streamed),
            config.limit,
        )


def _require_size(id_: str, run: TaskRun, config: RunConfig, limit: int | None, world: World) -> None:
    """Refuse splits that are larger than the limit, empty, without labels, or smaller than the parts of a batch."""
    settings = config.training
    for name, split in run.stored.items():
        if limit is not None and len(split) > limit:
            raise ConfigError(
                f"limit={limit} is given, but data holds {len(split):,} samples of {name}; "
                f"load it with Loader(..., limit={limit}) or leave limit out"
            )
        run.task.require_labels(split)
    if run.train_size == 0:
        raise ConfigError(f"the training split of {id_} is empty; raise limit or loosen the filter")
    parts = world.size * settings.accumulate
    if min(settings.batch_size, run.train_size) < parts:
        raise ConfigError(
            f"a batch of {min(settings.batch_size, run.train_size)} samples cannot be cut into {parts} parts "
            f"({world.size} processes, training.accumulate={settings.accumulate}); raise training.batch_size"
        )


def _require_labels(tasks: Mapping[str, Task], data: Mapping[str, Splits], scored: Mapping[str, Sequence[str]]) -> None:
    """Refuse splits with graphs without labels that would be scored in the end, before anything is learned."""
    for id_, names in scored.items():
        if tasks[id_].card.labellers:
            for name in names:
                tasks[id_].require_labels(data[id_][name])


def prepared(context: RunContext, resume: bool) -> Learner:
    """Return the learner of a run, at its start or where its checkpoint left it.

    Raises:
        CheckpointError: If the learner in the folder was trained with another meaning of its scores.
    """
    kind = learner_class(context.config)
    learner = kind(context)
    if (start := context.config.training.start) is not None:
        learner.started = started(learner.model, start).words()
    folder, world = context.folder, context.world
    cards = {id_: run.card for id_, run in context.runs.items()}
    identity = identity_of(context.config, cards, learner.model, context.runs)
    if resume and any((folder / name).is_file() for name in kind.files):
        identity = continued_identity(context, identity)
    if resume and learner.resume():
        logger.info("continuing %s from step %s", folder, learner.summary().steps)
    elif world.leads:
        for path in (*(folder / name for name in (*kind.files, RECORD)), *folder.glob("records/*.json")):
            path.unlink(missing_ok=True)
    if world.leads:
        write_json(folder / CONFIG, context.config.to_dict())
        write_identity(folder, identity)
        write_run_data(context)
    world.wait()
    return learner


def learn(context: RunContext, learner: Learner, board: Board, progress: bool | None, *, recorded: bool = True) -> None:
    """Let a learner learn, shown while it goes on; an interrupt stops it between two steps."""
    if context.world.leads:
        logger.info("%s", learner.describe())
        start = context.config.training.start
        if start is not None and recorded and progress is not False:
            note(f"{context.config.model_name} starts from {start.source}: {learner.started}")
    label = f"{context.config.model_name} on {context.name}"
    total, unit = learner.length()
    if recorded and context.world.leads and progress is not False:
        seconds = learner.seconds_ahead()
        if seconds is not None:
            note(f"{label}: about {duration(seconds)} of training ahead, validations not counted")
    with progress_bar(total, label, unit, progress) as bar, deferred_signals() as stop:
        learner.fit(Watch(bar, board, stop, recorded))


def _finish(
    context: RunContext, learner: Learner, scored: Mapping[str, Sequence[str]], progress: bool | None
) -> dict[str, RunResult]:
    """Score the best weights in process 0, write the records, and hand both to every process."""
    world, settings = context.world, context.config.training
    answer: dict[str, tuple[RunRecord, dict[str, Score]]] | None = None
    if world.leads:
        answer, summary = {}, learner.summary()
        for id_, run in context.runs.items():
            splits = choose_splits(run.data, scored[id_])
            if splits and progress is not False:
                note(f"scoring {', '.join(f'{name} ({len(split):,})' for name, split in splits.items())} of {id_}")
            scores: dict[str, Score] = {}
            for name, split in splits.items():
                size, selecting = settings.eval_batch_size, name == settings.val_split
                scores |= learner.score(run.task, id_, split, name, size, progress, selecting=selecting)
            answer[id_] = record_of(context, id_, learner, summary, splits, scores), scores
        for id_, (record, _) in answer.items():
            save_record(record, path=record_path(context.folder, id_ if len(answer) > 1 else None))
    finished = world.from_leader(answer)
    return {id_: RunResult(record, learner.model, scores, context.folder) for id_, (record, scores) in finished.items()}


@dataclass(frozen=True)
class Fit:
    """A run that was trained and not scored.

    Attributes:
        model: The trained model, with the weights of its best validation, in evaluation mode.
        summary: Summary of the training.
        prefer_later: Whether of equal validations the last one counts.
    """

    model: Any
    summary: FitSummary
    prefer_later: bool

    def best(self, steps: int | None = None) -> tuple[int, float]:
        """Return step and score of the best validation of the first ``steps`` updates (None: of all).

        Of equal ones it is the first, or the last with ``prefer_later``.

        Raises:
            ValueError: If there was no validation.
        """
        sign, order = 1 if self.summary.higher_is_better else -1, 1 if self.prefer_later else -1
        return max(
            (point for point in self.summary.curve if steps is None or point[0] <= steps),
            key=lambda point: (sign * point[1], order * point[0]),
        )


def fit(
    config: RunConfig,
    data: Splits,
    folder: Path,
    *,
    device: str = "auto",
    resume: bool = True,
    progress: bool | None = False,
) -> Fit:
    """Train a model as :func:`train` does, score nothing and write no record; no other split is opened.

    The folder gets ``config.json``, ``data.json``, ``checkpoint.safetensors`` and ``best.safetensors``.

    Args:
        config: The configuration.
        data: The dataset; only its splits for training and validation are opened.
        folder: The run's folder.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:<number>``.
        resume: Continue from the folder's checkpoint; False starts again and overwrites it.
        progress: Show a progress bar; None shows it in a terminal.

    Raises:
        ConfigError: If the configuration does not fit the dataset.
        CheckpointError: If the folder's checkpoint is damaged or belongs to another run.
        TrainingError: If the loss is no longer finite, or the device's memory is too small.
        KeyboardInterrupt: On Ctrl-C, after a checkpoint was written.
    """
    cards = {data.card.address: data.card}
    tasks = checked_tasks(config, cards)
    with join_world(device) as world, seeded_generators(config.training.seed, world), locked(folder, world.leads):
        context = make_context(config, tasks, {data.card.address: data}, folder, world)
        learner = prepared(context, resume)
        learn(context, learner, Board(), progress, recorded=False)
        return Fit(learner.model, learner.summary(), config.training.prefer_later)
