"""The command line: ``graphbench list | info | generate | verify | train | evaluate | tune | report``.

Modules that take time to import are imported in :func:`main`, where an interrupt is answered.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

__all__ = ["main"]

INTERRUPTED = "interrupted; run the same command again to continue"
INTERRUPTED_CODE = 130
_PAUSE = 0.05  # seconds; after them the callback that lost an interrupt has returned


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Args:
        arguments: Words of the command; None for the words of the process, which ends with the command.
    """
    if arguments is None:
        sys.unraisablehook = _interrupt_again
    try:
        _run(arguments)
    except SystemExit as end:
        if arguments is None:  # all is done but the interpreter's end, whose code an interrupt would change
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if end.code == INTERRUPTED_CODE:
                _leave_interrupted()
        raise


def _run(arguments: list[str] | None) -> None:
    try:
        import graphbench.core  # noqa: F401 (it refuses an installation that is mixed with another package)
        from graphbench.cli.app import main as run

        run(arguments)
    except KeyboardInterrupt:
        sys.stderr.write(f"{INTERRUPTED}\n")
        sys.exit(INTERRUPTED_CODE)
    except ImportError as error:
        if type(error).__name__ != "InstallationError":  # of graphbench.core, which this error does not let be imported
            raise
        sys.exit(f"error: {error}")


def _leave_interrupted() -> NoReturn:
    """End the process with the code of an interrupt.

    An interrupt within ``exec`` of a text, as dataclasses and named tuples use it, lets the interpreter end by a
    signal even where the interrupt was answered (CPython's ``unhandled_keyboard_interrupt``), so it is left out.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED_CODE)


def _interrupt_again(lost: UnraisableHookArgs) -> None:
    """Repeat an interrupt that hit where none can be raised, such as a callback of a compiler."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    timer = threading.Timer(_PAUSE, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    timer.daemon = True
    timer.start()
