"""Stopping between two updates: an interrupted run finishes its update, saves, and only then ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Remembers the first signal that asked the process to end."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Note a signal; the second one of a kind interrupts at once."""
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number

    @property
    def received(self) -> bool:
        """Whether a signal came."""
        return self.signal is not None

    def end(self) -> NoReturn:
        """End as the signal would have ended the process.

        Raises:
            KeyboardInterrupt: For Ctrl-C, and where another process received the signal.
            SystemExit: For a request to terminate, with the shell's exit code 143.
        """
        if self.signal == signal.SIGTERM:
            raise SystemExit(128 + signal.SIGTERM)
        raise KeyboardInterrupt


@contextmanager
def deferred_signals() -> Iterator[StopRequest]:
    """Catch SIGINT and SIGTERM while the block runs; the block polls the request.

    A request that the block did not handle takes effect at its end.

    Outside the main thread signals cannot be caught, and the request stays empty.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request.receive) for number in _SIGNALS}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if request.received:  # after the block polled for the last time
        request.end()
