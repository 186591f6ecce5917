"""The worker's part of a trial: it calls the training method, and makes a record of its result or failure."""

from __future__ import annotations

import errno
import inspect
import math
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphbench.core.errors import ConfigError
from graphbench.core.files import await_files, make_work_folder
from graphbench.core.foreign import causes, class_name, described, text_of, traceback_of
from graphbench.core.plugins import load_targets
from graphbench.core.processes.worker import retire_worker
from graphbench.tuning.journal import utc_now
from graphbench.tuning.trial import Status
from graphbench.tuning.trials import TrialResult

TrainingMethod = Callable[..., Any]

_MEMORY_WORDS = ("out of memory", "can't allocate memory", "not enough memory", "cannot allocate memory")
_APPEAR_SECONDS = 60.0  # longer than network file systems cache that a file was missing
_LONGEST_REASON = 500  # characters
_REQUIRED = ("config", "seed", "budget")
_OPTIONAL = ("checkpoint", "folder")


@dataclass(frozen=True)
class Job:
    """One trial to run.

    Attributes:
        number: Number of the trial.
        config: Hyperparameters by name.
        seed: For the training method.
        budget: Budget in total for this configuration.
        checkpoint: Checkpoint that the last smaller budget of the configuration returned.
        folder: The folder of the configuration, ``<output>/trials/<config_id>``.
    """

    number: int
    config: Mapping[str, Any]
    seed: int
    budget: int
    checkpoint: Path | None
    folder: Path


@dataclass(frozen=True)
class Outcome:
    """The end of a trial, as reported by its worker or by the pool; fields as in :class:`~.trials.Trial`.

    Attributes:
        cost: NaN if the trial failed.
        checkpoint: As returned by the training method; None if it does not exist.
        steps: As returned by the training method, None for the whole budget. If the method raised, the attribute
            ``steps`` of the exception, or None.
        has_model: Whether the training method returned a model, which stays in the worker.
    """

    status: Status
    seconds: float
    started: str
    worker: str
    cost: float = math.nan
    reason: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    checkpoint: Path | None = None
    steps: int | None = None
    has_model: bool = False
    tries: int = 1
    note: str = ""


def require_training_method(method: Any) -> None:
    """Check that a training method can be called with a configuration, a seed and a budget.

    Raises:
        ConfigError: If the method cannot be called this way.
    """
    if not callable(method):
        raise ConfigError(
            f"the training method {method!r:.100} cannot be called; give a function train(config, seed, budget) that "
            "returns a cost, or an object with such a __call__"
        )
    if _parameters(method) is None:
        return
    positional, by_name = _arguments(method, dict.fromkeys(_REQUIRED), dict.fromkeys(optional_arguments(method)))
    signature = inspect.signature(method)
    try:
        signature.bind(*positional, **by_name)
    except TypeError as error:
        name = getattr(method, "__name__", type(method).__name__)
        raise ConfigError(
            f"the training method {name}{signature} cannot be called with (config, seed, budget): {error}; define it "
            f"as {name}(config, seed, budget), optionally with checkpoint and folder; give other arguments defaults"
        ) from None


def call(method: TrainingMethod, job: Job) -> Any:
    """Call a training method for a trial, with ``checkpoint`` and ``folder`` if it accepts them.

    Configuration, seed and budget are passed by name where the signature has these three names, else by position.
    """
    optional: dict[str, Any] = {}
    accepted = optional_arguments(method)
    if "checkpoint" in accepted:
        if job.checkpoint is not None:
            await_files([job.checkpoint], _APPEAR_SECONDS)
        optional["checkpoint"] = job.checkpoint
    if "folder" in accepted:
        make_work_folder(job.folder)
        optional["folder"] = job.folder
    required = {"config": dict(job.config), "seed": job.seed, "budget": job.budget}
    positional, by_name = _arguments(method, required, optional)
    return method(*positional, **by_name)


def _parameters(method: TrainingMethod) -> Mapping[str, inspect.Parameter] | None:
    """Return the parameters of a training method; None for compiled functions without a signature."""
    try:
        return inspect.signature(method).parameters
    except (TypeError, ValueError):
        return None


def _arguments(
    method: TrainingMethod, required: Mapping[str, Any], optional: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments that a training method takes by position, and the arguments it takes by name."""
    parameters = (_parameters(method) or {}).values()
    named = {
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    if named.issuperset(required):
        return [], {**required, **optional}
    return list(required.values()), dict(optional)


def optional_arguments(method: TrainingMethod) -> frozenset[str]:
    """Return which of ``checkpoint`` and ``folder`` a training method accepts."""
    parameters = _parameters(method) or {}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return frozenset(_OPTIONAL)
    return frozenset(_OPTIONAL) & parameters.keys()


def run_job(method: TrainingMethod, job: Job, plugins: Sequence[str] = ()) -> Outcome:
    """Run one trial and return its outcome; an exception of the training method makes it a failed trial.

    Args:
        method: The training method.
        job: The trial.
        plugins: Plug-ins that a worker must load to know the search's models and data
            (:mod:`graphbench.core.plugins`).
    """
    load_targets(plugins)
    started, clock = utc_now(), time.monotonic()
    try:
        outcome = _read_result(TrialResult.of(call(method, job)), job.budget)
    except BaseException as error:
        print(traceback_of(error), file=sys.stderr)  # noqa: T201
        outcome = {"status": status_of(error), "reason": reason_of(error), "steps": _steps_of(error)}
        if outcome["status"] is Status.OUT_OF_MEMORY:
            retire_worker()
    return Outcome(seconds=time.monotonic() - clock, started=started, worker=worker_name(), **outcome)


def _steps_of(error: BaseException) -> int | None:
    """Return the attribute ``steps`` of an exception of a training method: how far the trial got."""
    steps = getattr(error, "__dict__", {}).get("steps")
    return steps if isinstance(steps, int) and not isinstance(steps, bool) else None


def _read_result(result: TrialResult, budget: int) -> dict[str, Any]:
    """Return the fields of an outcome for the result of a training method."""
    checkpoint, steps, note = result.checkpoint, result.steps, ""
    if checkpoint is not None and not checkpoint.exists():
        note = f"the checkpoint {checkpoint} does not exist, so that larger budgets start from scratch"
        checkpoint = None
    ended: dict[str, Any] = {"status": Status.SUCCESS, "cost": result.cost}
    if not math.isfinite(result.cost):
        ended = {"status": Status.NOT_FINITE, "reason": f"the cost is {result.cost}"}
        steps = budget if steps is None else steps
    return ended | {
        "metrics": result.metrics,
        "checkpoint": None if checkpoint is None else checkpoint.absolute(),
        "steps": steps,
        "has_model": result.model is not None,
        "note": note,
    }


def status_of(error: BaseException) -> Status:
    """Return the kind of failure of an exception, or of the exception it was raised from."""
    for cause in causes(error):
        if _is_out_of_memory(cause):
            return Status.OUT_OF_MEMORY
        if isinstance(cause, FloatingPointError):
            return Status.NOT_FINITE
    return Status.RAISED


def _is_out_of_memory(error: BaseException) -> bool:
    """Decide by name and message, without importing torch; the CPU allocator of torch raises plain RuntimeErrors."""
    if isinstance(error, MemoryError) or class_name(error) == "OutOfMemoryError":
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(words in text_of(error).lower() for words in _MEMORY_WORDS)


def reason_of(error: BaseException) -> str:
    """Return type and message of an exception, and the line that raised it."""
    text = described(error)[:_LONGEST_REASON]
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    last = frames[-1]
    return f"{text} ({Path(last.filename).name}:{last.lineno} in {last.name}: {last.line})"


def worker_name() -> str:
    """Return host and process of this worker."""
    return f"{socket.gethostname()}:{os.getpid()}"
