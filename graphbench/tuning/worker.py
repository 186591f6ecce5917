"""What a worker does: calls the training method for one trial after the other, and turns every end into a record."""

from __future__ import annotations

import errno
import faulthandler
import gc
import inspect
import math
import os
import pickle
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from graphbench.tuning.journal import utc_now
from graphbench.tuning.trials import Status

TrainingMethod = Callable[..., Any]

_MEMORY_WORDS = ("out of memory", "can't allocate memory", "not enough memory", "cannot allocate memory")
_WATCH_SECONDS = 0.2
_APPEAR_SECONDS = 60.0  # longer than network file systems remember that a file was missing
_LONGEST_REASON = 500  # characters
_OPTIONAL = ("checkpoint", "folder")


@dataclass(frozen=True)
class Job:
    """One trial to run.

    Attributes:
        number: Of the trial.
        config: Hyperparameters by name.
        seed: For the training method.
        budget: Optimizer steps in total for this configuration.
        checkpoint: What the last smaller budget of the configuration returned.
        folder: The configuration's own folder, ``<output>/trials/<config_id>``.
    """

    number: int
    config: Mapping[str, Any]
    seed: int
    budget: int
    checkpoint: Path | None
    folder: Path


@dataclass(frozen=True)
class Outcome:
    """How a trial ended, as told by the worker or by who watched it; fields as in :class:`~.trials.Trial`.

    Attributes:
        cost: NaN where the trial failed.
        checkpoint: As returned by the training method.
        steps: As returned by the training method; None for the whole budget.
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


@dataclass(frozen=True)
class Unusable:
    """What a worker sends instead of an outcome when it cannot work at all."""

    reason: str


def call(method: TrainingMethod, job: Job) -> Any:
    """Call a training method for a trial; it is given ``checkpoint`` and ``folder`` where it accepts them."""
    accepted = optional_arguments(method)
    given: dict[str, Any] = {}
    if "checkpoint" in accepted:
        _await(job.checkpoint)
        given["checkpoint"] = job.checkpoint
    if "folder" in accepted:
        job.folder.mkdir(parents=True, exist_ok=True)
        given["folder"] = job.folder
    return method(dict(job.config), job.seed, job.budget, **given)


def is_there(path: Path) -> bool:
    """Return whether a file or folder exists; one that another machine wrote a moment ago does."""
    with suppress(OSError):
        list(path.parent.iterdir())  # asks a network file system again for what it may remember as missing
    return path.exists()


def _await(checkpoint: Path | None) -> None:
    """Wait until a checkpoint that another machine wrote is seen here."""
    deadline = time.monotonic() + _APPEAR_SECONDS
    while checkpoint is not None and not is_there(checkpoint) and time.monotonic() < deadline:
        time.sleep(_APPEAR_SECONDS / 100)


def optional_arguments(method: TrainingMethod) -> frozenset[str]:
    """Return which of ``checkpoint`` and ``folder`` a training method accepts."""
    try:
        parameters = inspect.signature(method).parameters
    except (TypeError, ValueError):  # of some compiled functions
        return frozenset()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return frozenset(_OPTIONAL)
    return frozenset(_OPTIONAL) & parameters.keys()


def run_job(method: TrainingMethod, job: Job) -> Outcome:
    """Run one trial and return how it ended; whatever the training method raises is a failed trial."""
    started, clock = utc_now(), time.monotonic()
    try:
        found = _read_result(call(method, job))
    except BaseException as error:
        traceback.print_exc()
        found = {"status": status_of(error), "reason": reason_of(error)}
    return Outcome(seconds=time.monotonic() - clock, started=started, worker=worker_name(), **found)


def _read_result(result: Any) -> dict[str, Any]:
    """Return the fields of an outcome for what a training method returned: a number, or an object with a cost."""
    if not hasattr(result, "cost"):
        return _cost_fields(result)
    checkpoint, steps = getattr(result, "checkpoint", None), getattr(result, "steps", None)
    metrics = getattr(result, "metrics", None) or {}
    return {
        **_cost_fields(result.cost),
        "metrics": {str(name): float(value) for name, value in metrics.items()},
        "checkpoint": None if checkpoint is None else Path(checkpoint).absolute(),
        "steps": None if steps is None else int(steps),
        "has_model": getattr(result, "model", None) is not None,
    }


def _cost_fields(value: Any) -> dict[str, Any]:
    try:
        cost = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"a training method returns a number or an object with a cost, got {value!r:.100}") from error
    if not math.isfinite(cost):
        return {"status": Status.NOT_FINITE, "reason": f"the cost is {cost}"}
    return {"status": Status.SUCCESS, "cost": cost}


def status_of(error: BaseException) -> Status:
    """Return which kind of failure an exception, or the one it was raised from, stands for."""
    cause: BaseException | None = error
    while cause is not None:
        if _is_out_of_memory(cause):
            return Status.OUT_OF_MEMORY
        if isinstance(cause, FloatingPointError):
            return Status.NOT_FINITE
        cause = cause.__cause__
    return Status.RAISED


def _is_out_of_memory(error: BaseException) -> bool:
    """Tell by name and words, without importing torch: its CPU allocator raises plain RuntimeErrors."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _MEMORY_WORDS)


def reason_of(error: BaseException) -> str:
    """Return type and message of an exception, and the line that raised it."""
    text = f"{type(error).__name__}: {error}".strip()[:_LONGEST_REASON]
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    last = frames[-1]
    return f"{text} ({Path(last.filename).name}:{last.lineno} in {last.name}: {last.line})"


def worker_name() -> str:
    """Return host and process of this worker."""
    return f"{socket.gethostname()}:{os.getpid()}"


def serve(descriptor: int, parent: int, idle_seconds: float | None) -> None:
    """Be a worker: read a pickled training method and then jobs from a pipe, and write their outcomes to it.

    Ends when the pipe closes, the parent dies, or no job comes for ``idle_seconds``.
    """
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)
    with Connection(descriptor) as pipe:
        try:
            method = pickle.loads(pipe.recv_bytes())
        except BaseException as error:
            traceback.print_exc()
            pipe.send(Unusable(reason_of(error)))
            return
        pipe.send(None)  # ready
        while pipe.poll(idle_seconds):
            try:
                job = pipe.recv()
            except EOFError:
                return
            pipe.send(run_job(method, job))
            gc.collect()


def end_with(parent: int) -> None:
    """Let this process and all it started end soon after its parent, instead of working on for nobody."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os.killpg(os.getpgid(0), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
