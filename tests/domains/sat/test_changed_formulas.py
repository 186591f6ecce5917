"""A formula whose arrays are wrong is refused when it is made, and by all that reads it if they became wrong later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphbench.core.errors import ArgumentError
from graphbench.domains.sat import Cnf, base_features, features, graph
from graphbench.domains.sat.formulas import formulas_as_samples
from graphbench.domains.sat.preprocessing import preprocess

WRONG: list[tuple[str, Any]] = [
    ("literals", np.array([1, -2, 2, 900_000, -1, -3], np.int32)),
    ("literals", np.array([0, -2, 2, 3, -1, -3], np.int32)),
    ("literals", np.array([-(2**31), -2, 2, 3, -1, -3], np.int32)),
    ("literals", np.array([2**40, -2, 2, 3, -1, -3])),
    ("literals", np.array([1.0, -2, 2, 3, -1, -3])),
    ("literals", np.array([1], np.int32)),
    ("literals", np.array([[1, -2, 2, 3, -1, -3]], np.int32)),
    ("literals", None),
    ("ptr", np.array([0, 2, 4, 10**6])),
    ("ptr", np.array([0, -2, 4, 6])),
    ("ptr", np.array([2, 2, 4, 6])),
    ("ptr", np.array([], np.int64)),
    ("ptr", np.array([0, np.nan, 4, 6])),
    ("num_variables", 1),
    ("num_variables", -5),
    ("num_variables", 2**40),
    ("num_variables", 3.0),
]
READERS = {
    "canonical": lambda cnf: cnf.canonical(),
    "satisfied": lambda cnf: cnf.is_satisfied_by(np.ones(3, bool)),
    "dimacs": lambda cnf: cnf.dimacs(),
    "hash": lambda cnf: cnf.gbdhash,
    "used": lambda cnf: cnf.without_unused_variables(),
    "vg": lambda cnf: graph(cnf, "vg"),
    "vcg": lambda cnf: graph(cnf, "vcg"),
    "lcg": lambda cnf: graph(cnf, "lcg"),
    "cg": lambda cnf: graph(cnf, "cg"),
    "features": lambda cnf: features(cnf, ["size", "degrees"]),
    "samples": lambda cnf: formulas_as_samples([cnf], np.zeros(1)),
}
OPTIONAL = {"base": ("gbdc", base_features), "preprocess": ("pysat", preprocess)}


def right() -> Cnf:
    return Cnf.from_clauses([[1, -2], [2, 3], [-1, -3]])


@pytest.mark.parametrize(("part", "value"), WRONG)
def test_wrong_arrays_are_refused(part: str, value: Any) -> None:
    parts = {name: getattr(right(), name) for name in ("num_variables", "literals", "ptr")}
    with pytest.raises(ArgumentError):
        Cnf(**parts | {part: value})


@pytest.mark.parametrize(("part", "value"), WRONG)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.thorough
def test_readers_refuse_arrays_that_were_changed(reader: str, part: str, value: Any) -> None:
    cnf = right()
    READERS[reader](cnf)
    cnf = right()
    object.__setattr__(cnf, part, value)
    with pytest.raises(ArgumentError):
        READERS[reader](cnf)


@pytest.mark.parametrize("reader", OPTIONAL)
def test_readers_of_other_packages_refuse_them(reader: str) -> None:
    package, read = OPTIONAL[reader]
    pytest.importorskip(package)
    cnf = right()
    cnf.literals[0] = 900_000
    with pytest.raises(ArgumentError, match="900000"):
        read(cnf)
