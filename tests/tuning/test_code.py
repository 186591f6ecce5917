"""The fingerprint of a training method's code, and the warning where old and new costs are of different code."""

import functools
import importlib
import itertools
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphbench.tuning.code import code_fingerprint, is_other_code
from graphbench.tuning.journal import EventKind, read_journal
from graphbench.tuning.optimizer import Optimizer

from .runs import settings

Load = Callable[[str], Any]
NUMBERS = itertools.count()

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


@pytest.fixture
def method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Return a function that writes source to a file of its own and returns the training method in it."""
    monkeypatch.syspath_prepend(tmp_path)

    def load(source: str) -> Any:
        name = f"own{next(NUMBERS)}"  # one name of a module stands for one file, as long as the tests run
        (tmp_path / f"{name}.py").write_text(source)
        return importlib.import_module(name).train

    return load


def _hash(method: Any) -> str:
    found = code_fingerprint(method)
    assert found is not None
    return found["source"]


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
def test_what_the_code_does_changes_the_fingerprint(method: Load, source: str, old: str, new: str) -> None:
    assert old in source
    assert _hash(method(source.replace(old, new))) != _hash(method(source))


@pytest.mark.parametrize(("old", "new"), [("Train.", "Learn."), ("LIMIT = 3", "\n\n# of what?\nLIMIT = 4")])
def test_words_places_and_other_globals_do_not(method: Load, old: str, new: str) -> None:
    assert old in SOURCE and _hash(method(SOURCE.replace(old, new))) == _hash(method(SOURCE))


def test_the_fingerprint_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SOURCE)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from own import train; "
        "from graphbench.tuning.code import code_fingerprint; print(code_fingerprint(train)['source'])"
    )
    command = [sys.executable, "-c", code]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout and len(runs[0].stdout.strip()) == 16


def test_partials_bound_methods_and_what_has_no_code(method: Load) -> None:
    train = method(SOURCE)
    first, second = (code_fingerprint(functools.partial(train, scale=scale)) for scale in (1.0, 2.0))
    assert first is not None and second is not None and first["source"] != second["source"]
    own = method(OBJECT)
    bound = code_fingerprint(own.cost)
    assert bound is not None and bound["source"] == _hash(own)
    assert code_fingerprint(max) is None
    assert not is_other_code(None, first) and is_other_code(first, second)
    assert not is_other_code(first, {**second, "python": "another"})


def test_functions_inside_others_and_lambdas_have_a_fingerprint() -> None:
    def outer(factor: float) -> Any:
        def inner(config: Any, seed: int, budget: int) -> float:
            return factor * budget

        return inner

    assert _hash(outer(1.0)) == _hash(outer(2.0)), "values of closures are not compared"
    first, second = (lambda config, seed, budget: 1.0), (lambda config, seed, budget: 2.0)
    other = lambda config, seed, budget: 3.0  # noqa: E731
    assert _hash(first) == _hash(second), "in one line"
    assert _hash(first) != _hash(other)


def test_code_typed_at_a_prompt_has_none() -> None:
    names: dict[str, Any] = {}
    exec(SOURCE, names)
    assert code_fingerprint(names["train"]) is None


def test_fingerprints_of_earlier_versions_cannot_be_compared(method: Load) -> None:
    now = code_fingerprint(method(SOURCE))
    assert now is not None
    assert not is_other_code({"name": "train", "python": now["python"], "hash": "0123456789abcdef"}, now)


def test_a_rerun_with_other_code_warns_and_notes_it(
    method: Load, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "run"

    def optimize(source: str, trials: int) -> list[str]:
        caplog.clear()
        run = settings(output, method="random", trials=trials)
        Optimizer(run, method(source)).optimize(report=trials == 5)
        return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]

    changed = SOURCE.replace("budget / len", "budget * len")
    assert optimize(SOURCE, 2) == []
    assert optimize(SOURCE, 3) == []
    (warning,) = optimize(changed, 4)
    assert warning.startswith("the training method's code changed since the last start: train is not what the 3 trials")
    assert str(output) in warning
    assert optimize(changed, 5) == []
    (noted,) = [event for event in read_journal(output) if event["event"] == EventKind.OTHER_CODE]
    assert noted["after"] == 3 and noted["now"]["name"] == "train" and noted["now"]["source"] == _hash(method(changed))
    assert json.loads((output / "result.json").read_text())["other_code_after"] == [3]
    assert "its code changed after 3 trials" in (output / "report" / "report.md").read_text()
