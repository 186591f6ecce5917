"""The main loop of a local worker process: it loads one function, and calls it for one job after the other."""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, NoReturn

from graphbench.core.foreign import class_name, described, text_of, traceback_of
from graphbench.core.processes.pickling import pickled

_WATCH_SECONDS = 0.2
_UNWIND_SECONDS = 2.0
_PARENT_LOST = signal.SIGUSR1


@dataclass(frozen=True)
class Ready:
    """Sent once, after the function is loaded."""


@dataclass(frozen=True)
class Unusable:
    """Sent instead, if the function cannot be loaded."""

    reason: str


@dataclass(frozen=True)
class Reply:
    """The result of a job.

    Attributes:
        value: The value that the function returned.
        error: The error that the function raised, or None.
        trace: The traceback in the worker, as text.
        retires: Whether the process exits after this job.
    """

    value: Any = None
    error: BaseException | None = None
    trace: str = ""
    retires: bool = False


class RemoteTraceback(Exception):
    """The cause of an error that a worker raised; its text is the traceback there."""


_retirement = threading.Event()


def retire_worker() -> None:
    """Let this worker process exit after its job, so that the next job starts in a new process with free memory.

    In other processes this has no effect.
    """
    _retirement.set()


class ParentLost(SystemExit):
    """Raised in the main thread of a worker whose parent has died, so that temporary files of its job are removed."""


def serve(descriptor: int, parent: int, idle_seconds: float | None) -> None:
    """Run a worker: read a pickled function and then the arguments of jobs from a pipe, and write replies to it.

    The process exits when the pipe is closed, the parent dies, or no job arrives for ``idle_seconds``. The prints of
    jobs go to standard error, as standard output belongs to the answer of the parent's command.
    """
    if sys.stderr is not None:  # else the parent has closed it
        os.dup2(sys.stderr.fileno(), 1)
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked by the parent while it started this process
    try:
        _end_with_parent(parent)
        with Connection(descriptor) as pipe:
            _serve_jobs(pipe, idle_seconds)
    except (EOFError, OSError, ParentLost):  # the parent was killed, which is no error of this process
        _end_group()


def _serve_jobs(pipe: Connection, idle_seconds: float | None) -> None:
    """Read the function and jobs, and write replies.

    Raises:
        EOFError: If the pipe is closed; OSError if that happens within a message.
    """
    content = pipe.recv_bytes()
    try:
        function = pickle.loads(content)
    except ParentLost:
        raise
    except BaseException as error:
        print(traceback_of(error), file=sys.stderr)  # noqa: T201
        pipe.send(Unusable(described(error)))
        return
    pipe.send(Ready())
    is_first = True
    while not _retirement.is_set() and pipe.poll(idle_seconds):
        pipe.send_bytes(_portable(_run(function, pipe.recv_bytes())))
        gc.collect()
        if is_first:  # imported modules stay, and later collections need not visit them
            gc.freeze()
            is_first = False


def _run(function: Callable[..., Any], arguments: bytes) -> Reply:
    try:
        value = function(*pickle.loads(arguments))
    except BaseException as error:
        if isinstance(error, MemoryError):
            retire_worker()
        return Reply(error=error, trace=traceback_of(error), retires=_retirement.is_set())
    return Reply(value, retires=_retirement.is_set())


def _portable(reply: Reply) -> bytes:
    """Return a reply as bytes; a value or error that cannot be pickled is replaced by an error that says so."""
    try:
        content = pickled(reply)
        if reply.error is not None:
            described(pickle.loads(content))  # errors with custom constructors often cannot be loaded
    except ParentLost:
        raise
    except BaseException as fault:
        what = f"a value of the class {class_name(reply.value)}" if reply.error is None else class_name(reply.error)
        text = f"{what} cannot be sent by a worker ({described(fault)})"
        text += "" if reply.error is None else f": {text_of(reply.error)}"
        content = pickle.dumps(Reply(error=RuntimeError(text), trace=reply.trace, retires=reply.retires))
    return content


def _end_with_parent(parent: int) -> None:
    """End this process and its descendants soon after the parent has died.

    The job is first interrupted by a signal: its temporary files, which nobody else would remove, are then removed. A
    job that is not over after :data:`_UNWIND_SECONDS`, such as a compiled kernel, is killed.
    """

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise ParentLost

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, _PARENT_LOST)
        time.sleep(_UNWIND_SECONDS)
        _end_group()

    signal.signal(_PARENT_LOST, interrupt)
    threading.Thread(target=watch, daemon=True).start()


def _end_group() -> NoReturn:
    """Kill this process and all that it started."""
    os.killpg(os.getpgid(0), signal.SIGKILL)
    raise AssertionError("a killed process goes on")
