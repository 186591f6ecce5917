"""What the parent of a closed child keeps of the child's output, and how long it waits."""

from __future__ import annotations

import resource
import sys
import tracemalloc

import pytest

from graphbench.core.errors import ResultError
from graphbench.core.processes.isolated import IsolationLimits, _exit
from graphbench.core.processes.limits import allowed_limits

FLOOD = """
import sys
for stream in (sys.stdout, sys.stderr):
    for _ in range(64):
        stream.write("x" * 2**20)
sys.stderr.write("the last words")
sys.exit(3)
"""


INHERITED = """
import resource
from graphbench.core.processes.limits import allowed_limits
resource.setrlimit(resource.RLIMIT_CPU, (20, 30))
limits = [allowed_limits(resource.RLIMIT_CPU, *pair) for pair in ((10, 15), (25, 40), (50, 60))]
assert limits == [(10, 15), (25, 30), (30, 30)], limits
resource.setrlimit(resource.RLIMIT_CPU, limits[-1])
"""


def test_limits_are_not_above_the_inherited_ones():
    assert _exit([sys.executable, "-c", INHERITED], IsolationLimits())[0] == 0
    assert allowed_limits(resource.RLIMIT_NPROC, 0, 0) == (0, 0)


def test_a_flood_of_output_is_not_kept_and_the_last_words_are():
    tracemalloc.start()
    try:
        code, last_words = _exit([sys.executable, "-c", FLOOD], IsolationLimits())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert code == 3 and last_words.endswith("the last words") and len(last_words) == len("... ") + 400
    assert peak < 2**21


def test_the_last_words_are_whole_lines():
    failing = "print('no')\nimport sys\nsys.stderr.write('y' * 500 + '\\n')\nraise ValueError('what went wrong')"
    _, last_words = _exit([sys.executable, "-c", failing], IsolationLimits())
    assert last_words.startswith("... Traceback (most recent call last): | File") and "\n" not in last_words
    assert last_words.endswith("| ValueError: what went wrong") and "yyy" not in last_words


def test_a_child_that_does_not_end_is_stopped():
    with pytest.raises(ResultError, match=r"did not end within 0\.5 seconds and was stopped"):
        _exit([sys.executable, "-c", "import time; time.sleep(60)"], IsolationLimits(seconds=0.5))
