"""Signals while a model trains, and an interrupt at any moment of a command."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from graphbench.training.interrupts import deferred_signals

COMMON = """
import atexit, ctypes, os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
interrupt = lambda *_: os.kill(os.getpid(), signal.SIGINT)
sys.argv = ["graphbench", "list"]
"""

AT_IMPORT = """
class Interrupting:
    def find_spec(self, name, *_):
        if name == "typer":
            interrupt()
sys.meta_path.insert(0, Interrupting())
from graphbench.cli import main
main()
"""

IN_PARSER = """
from graphbench.cli import main
from graphbench.cli.app import app, _Commands
_Commands.parse_args = interrupt
main()
"""

IN_CALLBACK = """
from graphbench.cli import main, show

def compile(*_):
    ctypes.CFUNCTYPE(None)(lambda: interrupt())()
    time.sleep(30)

show.datasets = compile
main()
"""

IN_EXEC = """
from graphbench.cli import main, show
show.datasets = lambda *_: exec("interrupt()")
main()
"""

AT_EXIT = """
atexit.register(interrupt)
from graphbench.cli import main
main()
"""


@pytest.fixture
def outcome(tmp_path):
    """``outcome(script)``: how a process ends that runs the script as a module, as ``python -m graphbench`` does."""

    def run(script: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "probe.py").write_text(COMMON + script)
        command = [sys.executable, "-m", "probe"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)

    return run


@pytest.mark.parametrize("script", [AT_IMPORT, IN_PARSER, IN_CALLBACK, IN_EXEC])
def test_an_interrupt_ends_a_command_with_its_line_and_code(outcome, script):
    done = outcome(script)
    assert (done.returncode, done.stderr) == (130, "interrupted; run the same command again to continue\n")


def test_an_interrupt_after_a_command_leaves_its_outcome(outcome):
    done = outcome(AT_EXIT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "clrs/bfs" in done.stdout


@pytest.mark.parametrize(("number", "end"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_signal_that_comes_too_late_for_the_block_ends_it(number, end):
    before = signal.getsignal(number)
    with pytest.raises(end), deferred_signals():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_an_error_in_the_block_stays_the_error():
    with pytest.raises(ValueError, match="mine"), deferred_signals():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("mine")
