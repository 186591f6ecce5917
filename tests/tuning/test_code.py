"""The fingerprint of a training method's code, and the warning where old and new costs are of different code."""

import functools
import json
import logging
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from graphbench.tuning.code import code_fingerprint, is_other_code
from graphbench.tuning.journal import read_journal
from graphbench.tuning.optimizer import Optimizer
from graphbench.tuning.records import OTHER_CODE

from .runs import settings

SOURCE = '''
LIMIT = 3
def helper(value):
    return value * 2

def train(config, seed, budget, scale=1.0):
    """Train."""
    kinds = {"b", "a", "c"}
    inner = lambda x: helper(x) + 1
    return inner(config["lr"]) * scale if config["kind"] in {"x", "y", "z"} else budget / len(kinds)
'''
OBJECT = """
class Method:
    def __call__(self, config, seed, budget):
        return self.cost(config)
    def cost(self, config):
        return config["lr"]
train = Method()
"""


def _method(source: str) -> Any:
    module = ModuleType("own")
    exec(compile(source, "own.py", "exec"), module.__dict__)
    return module.__dict__["train"]


def _hash(source: str) -> str:
    found = code_fingerprint(_method(source))
    assert found is not None
    return found["hash"]


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        (SOURCE, "budget / len", "budget * len"),
        (SOURCE, "+ 1", "+ 2"),
        (SOURCE, "value * 2", "value * 3"),
        (SOURCE, "scale=1.0", "scale=2.0"),
        (SOURCE, '"lr"', '"rate"'),
        (SOURCE, '"z"', '"w"'),
        (OBJECT, "self.cost(config)", "-self.cost(config)"),
        (OBJECT, 'return config["lr"]', 'return 2 * config["lr"]'),
    ],
)
def test_what_the_code_does_changes_the_fingerprint(source: str, old: str, new: str) -> None:
    assert old in source
    assert _hash(source.replace(old, new)) != _hash(source)


@pytest.mark.parametrize(("old", "new"), [("Train.", "Learn."), ("LIMIT = 3", "\n\n# of what?\nLIMIT = 4")])
def test_words_places_and_other_globals_do_not(old: str, new: str) -> None:
    assert old in SOURCE and _hash(SOURCE.replace(old, new)) == _hash(SOURCE)


def test_the_fingerprint_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SOURCE)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from own import train; "
        "from graphbench.tuning.code import code_fingerprint; print(code_fingerprint(train)['hash'])"
    )
    command = [sys.executable, "-c", code]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout and len(runs[0].stdout.strip()) == 16


def test_partials_bound_methods_and_what_has_no_code() -> None:
    train = _method(SOURCE)
    first, second = (code_fingerprint(functools.partial(train, scale=scale)) for scale in (1.0, 2.0))
    assert first is not None and second is not None and first["hash"] != second["hash"]
    method = _method(OBJECT)
    bound = code_fingerprint(method.__call__)
    assert bound is not None and bound == code_fingerprint(method)
    assert code_fingerprint(max) is None
    assert not is_other_code(None, first) and is_other_code(first, second)
    assert not is_other_code(first, {**second, "python": "another"})


def test_a_rerun_with_other_code_warns_and_notes_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def optimize(source: str, trials: int) -> list[str]:
        caplog.clear()
        run = settings(tmp_path, method="random", trials=trials)
        Optimizer(run, _method(source)).optimize(report=trials == 5)
        return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]

    changed = SOURCE.replace("budget / len", "budget * len")
    assert optimize(SOURCE, 2) == []
    assert optimize(SOURCE, 3) == []
    (warning,) = optimize(changed, 4)
    assert warning.startswith(f"the code of the training method train is not that of the 3 trials in {tmp_path}")
    assert optimize(changed, 5) == []
    (noted,) = [event for event in read_journal(tmp_path) if event["event"] == OTHER_CODE]
    assert noted["after"] == 3 and noted["now"]["name"] == "train" and noted["now"]["hash"] == _hash(changed)
    assert json.loads((tmp_path / "result.json").read_text())["other_code_after"] == [3]
    assert "its code changed after 3 trials" in (tmp_path / "report" / "report.md").read_text()
