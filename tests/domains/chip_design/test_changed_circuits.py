"""Circuits that are changed behind their checks score 0 or raise an error; none reads memory that is not its own."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest

from graphbench.core.errors import CircuitError, EvaluationError
from graphbench.domains.chip_design.aig import Aig, Circuits
from graphbench.domains.chip_design.scoring import score_circuits
from graphbench.domains.chip_design.submissions import REASONS, UNREADABLE, Submission

from ...warm import run_python

HOSTILE = """
import json
import numpy as np
from graphbench.core.errors import CircuitError
from graphbench.domains.chip_design.aig import Aig, Circuits, equivalent
from graphbench.domains.chip_design.submissions import Submission
from graphbench.domains.chip_design.scoring import score_circuits

far = 2**30
PARTS = {
    "fanins": [
        np.full((1, 2), far, np.int32), np.full((1, 2), -far, np.int32), np.full((1, 2), 6, np.int32),
        np.full((1, 2), 2.0e9), np.full((1, 2), np.nan), np.full((1, 2), 2**62), np.full((1, 2), 2**63, np.uint64),
        np.full(2, 2, np.int32), np.full((1, 1), 2, np.int32), np.full((1, 2), None), "fanins", None, [[2, 4, 6]],
        np.full((50_000, 2), far, np.int32)[::7],
    ],
    "outputs": [
        np.array([far], np.int32), np.array([-1], np.int32), np.array([2**40]), np.array([1.5]), np.array([[6]]),
        np.array(6), None,
    ],
    "num_inputs": [far, -far, 2**70, 1.5, "2", None, np.nan],
}
METHODS = {
    "simulate": lambda aig: aig.simulate(),
    "words": lambda aig: aig.simulate_words(),
    "depth": lambda aig: aig.depth,
    "hashed": lambda aig: aig.hashed(),
    "dead": lambda aig: aig.num_dead,
    "duplicates": lambda aig: aig.num_duplicates,
    "file": lambda aig: aig.to_aiger(),
    "data": lambda aig: aig.to_data(),
    "equivalent": lambda aig: equivalent(aig, np.array([0, 0, 0, 1])),
}


def right():
    return Aig(2, np.array([[2, 4]]), np.array([6]))


def changed(part, value):
    aig = right()
    object.__setattr__(aig, part, value)
    yield "set", aig
    aig = right()
    aig.__dict__[part] = value
    yield "dict", aig
    yield "subclass", type("Odd", (Aig,), {part: property(lambda self: value, lambda self, new: None)}).__new__(
        type("Odd", (Aig,), {part: property(lambda self: value)})
    )
    odd = type("Odd", (Aig,), {"__post_init__": lambda self: None})
    yield "unchecked", odd(**{"num_inputs": 2, "fanins": np.array([[2, 4]]), "outputs": np.array([6]), part: value})


tables = (np.array([2]), np.array([1]), np.array([8], np.uint64), np.array([1]))
assert score_circuits(Submission.of([right()]), *tables).score == 100
answers = []
for part, values in PARTS.items():
    for value in values:
        for way, aig in changed(part, value):
            score = score_circuits(Submission.of([aig]), *tables)
            answers.append([part, way, score.score])
            for name, method in METHODS.items():
                try:
                    method(aig)
                except (CircuitError, AttributeError, TypeError):
                    pass
                else:
                    answers.append([part, way, name])
print(json.dumps(answers))
"""


def right() -> Aig:
    return Aig(2, np.array([[2, 4]]), np.array([6]))


def test_changed_circuits_score_nothing_and_crash_nothing() -> None:
    done = run_python(["-c", HOSTILE])
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    scores = [score for _, _, score in answers if not isinstance(score, str)]
    assert len(scores) == 4 * 28 and set(scores) == {0.0}
    passed = {(part, name) for part, _, name in answers if isinstance(name, str)}
    assert passed == {("num_inputs", "equivalent")}  # which is False where the numbers of inputs differ


def test_nothing_makes_the_arrays_of_a_circuit_writable() -> None:
    given = np.array([[2, 4]], np.int32)
    for aig in (Aig(2, given, [6]), copy.deepcopy(right()), copy.copy(right()), pickle.loads(pickle.dumps(right()))):
        for array in (aig.fanins, aig.outputs):
            assert not array.flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1000
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
    aig = Aig(2, given, [6])
    given[0, 0] = 1000
    assert aig.fanins.tolist() == [[2, 4]] and aig.num_inputs == 2


def test_an_unpickled_circuit_is_checked() -> None:
    aig = right()
    object.__setattr__(aig, "fanins", np.array([[1000, 4]]))
    stored = pickle.dumps(aig)
    with pytest.raises(CircuitError, match="0 to 7"):
        pickle.loads(stored)
    with pytest.raises(CircuitError, match="0 to 7"):
        copy.copy(aig)


def test_a_circuit_that_raises_anything_is_worth_nothing() -> None:
    class Raises(Aig):
        @property
        def num_inputs(self) -> Any:
            raise RuntimeError("surprise")

    read = Submission.of([right(), Raises.__new__(Raises)])
    assert read.faults.tolist() == [0, UNREADABLE] and "surprise" in read.details[1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_inputs", [-1]),
        ("num_inputs", [2**40]),
        ("num_inputs", [2.0]),
        ("num_inputs", 2),
        ("and_ptr", [0, 5]),
        ("and_ptr", [1, 1]),
        ("and_ptr", [0]),
        ("and_ptr", [-3, 1]),
        ("fanins", [[2, 1000]]),
        ("fanins", [[2, 2**40]]),
        ("fanins", [[2, -1]]),
        ("fanins", [2, 4]),
        ("output_ptr", [0, 2**40]),
        ("outputs", [8]),
        ("outputs", [[6]]),
    ],
)
def test_flat_arrays_that_do_not_fit_are_refused(name: str, value: Any) -> None:
    circuits = Circuits.of([right()])
    arrays = {field: getattr(circuits, field) for field in ("num_inputs", "and_ptr", "fanins", "output_ptr", "outputs")}
    with pytest.raises(CircuitError):
        Circuits(**arrays | {name: np.array(value)})
    object.__setattr__(circuits, name, np.array(value))
    for use in (lambda: circuits.simulate(), lambda: circuits.depths, lambda: Submission.of(circuits)):
        with pytest.raises(CircuitError):
            use()


def test_offsets_that_fall_are_refused() -> None:
    circuits = Circuits.of([right(), right()])
    with pytest.raises(CircuitError, match="offsets"):
        Circuits(circuits.num_inputs, np.array([0, 3, 2]), circuits.fanins, circuits.output_ptr, circuits.outputs)


@pytest.mark.parametrize("faults", [[], [0, 0], [[0]], [len(REASONS)], [-1], [0.0]])
def test_faults_that_do_not_fit_are_refused(faults: Any) -> None:
    with pytest.raises(CircuitError, match="faults"):
        Submission(Circuits.of([right()]), np.array(faults), {})


@pytest.mark.parametrize(
    "changes",
    [{0: [21]}, {0: [-1]}, {0: [12]}, {0: [2.0]}, {1: [2]}, {1: [2**62]}, {1: [-1]}, {1: [1, 1]}, {2: [8, 8]}, {2: []}],
)
def test_truth_tables_that_do_not_fit_are_refused(changes: dict[int, Any]) -> None:
    tables = [np.array([2]), np.array([1]), np.array([8], np.uint64)]
    for place, value in changes.items():
        tables[place] = np.array(value, np.uint64 if place == 2 else None)
    with pytest.raises(EvaluationError):
        score_circuits(Submission.of([right()]), *tables, np.array([1]))
