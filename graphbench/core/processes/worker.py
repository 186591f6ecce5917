"""The main loop of a local worker process: it loads one function, and calls it for one job after the other."""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from graphbench.core.processes.pickling import pickled

_WATCH_SECONDS = 0.2


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
        value: What the function returned.
        error: What it raised, or None.
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


def serve(descriptor: int, parent: int, idle_seconds: float | None) -> None:
    """Run a worker: read a pickled function and then the arguments of jobs from a pipe, and write replies to it.

    The process exits when the pipe is closed, the parent dies, or no job arrives for ``idle_seconds``.
    """
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked by the parent while it started this process
    _end_with_parent(parent)
    with Connection(descriptor) as pipe:
        try:
            function = pickle.loads(pipe.recv_bytes())
        except BaseException as error:
            traceback.print_exc()
            pipe.send(Unusable(f"{type(error).__name__}: {error}"))
            return
        pipe.send(Ready())
        is_first = True
        while not _retirement.is_set() and pipe.poll(idle_seconds):
            try:
                arguments = pipe.recv_bytes()
            except EOFError:
                return
            pipe.send_bytes(_portable(_run(function, arguments)))
            gc.collect()
            if is_first:  # what the function imports stays, and later collections need not visit it
                gc.freeze()
                is_first = False


def _run(function: Callable[..., Any], arguments: bytes) -> Reply:
    try:
        value = function(*pickle.loads(arguments))
    except BaseException as error:
        if isinstance(error, MemoryError):
            retire_worker()
        return Reply(error=error, trace=traceback.format_exc(), retires=_retirement.is_set())
    return Reply(value, retires=_retirement.is_set())


def _portable(reply: Reply) -> bytes:
    """Return a reply as bytes; a value or error that cannot be pickled is replaced by an error that says so."""
    try:
        content = pickled(reply)
        if reply.error is not None:
            pickle.loads(content)  # errors with custom constructors often cannot be loaded
    except Exception as fault:
        what = f"the value {reply.value!r:.100}" if reply.error is None else f"{type(reply.error).__name__}"
        text = f"{what} cannot be sent by a worker ({fault}): {reply.error or ''}"
        content = pickle.dumps(Reply(error=RuntimeError(text), trace=reply.trace, retires=reply.retires))
    return content


def _end_with_parent(parent: int) -> None:
    """Kill this process and its descendants soon after the parent has died."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os.killpg(os.getpgid(0), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
