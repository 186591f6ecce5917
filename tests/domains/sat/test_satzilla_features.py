"""The features of the package satzilla, which is optional."""

import sys

import numpy as np
import pytest

from graphbench.core.errors import ArgumentError, MissingDependency
from graphbench.domains.sat import Cnf, satzilla_features
from graphbench.domains.sat.feature_satzilla import SATZILLA_PREFIX

CLAUSES = [[1, 2, 3], [-1, 2], [-2, -3, 4], [3, -4], [1, -3, 4], [-1, -2, -4], [2, 3, 4]]


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "satzilla_features", None)
    with pytest.raises(MissingDependency, match="--no-binary satzilla"):
        satzilla_features(Cnf.from_clauses(CLAUSES))


@pytest.mark.parametrize(
    ("clauses", "groups", "message"),
    [
        (CLAUSES, ["base", "bass"], "'bass'.*base, unit"),
        ([], ["base"], "no clause"),
        ([[1, 2], []], ["base"], "an empty clause"),
    ],
)
def test_bad_arguments_are_refused(clauses, groups, message):
    with pytest.raises(ArgumentError, match=message):
        satzilla_features(Cnf.from_clauses(clauses, 4), groups)


@pytest.mark.slow  # the package is not wholly free, and is compiled where it is installed
def test_features_are_those_of_the_formula_and_repeat():
    pytest.importorskip("satzilla_features")
    rng = np.random.default_rng(5)
    signs = rng.choice([-1, 1], (300, 3))
    cnf = Cnf.from_clauses([(1 + rng.choice(80, 3, replace=False)) * row for row in signs], 80)
    found = {name.removeprefix(SATZILLA_PREFIX): value for name, value in satzilla_features(cnf).items()}
    assert found["nvarsOrig"] == cnf.num_variables and found["nclausesOrig"] == cnf.num_clauses
    assert not any("featuretime" in name for name in found)
    assert {f"{SATZILLA_PREFIX}{name}": value for name, value in found.items()} == satzilla_features(cnf)
    assert set(satzilla_features(cnf, ["base"])) < {f"{SATZILLA_PREFIX}{name}" for name in found}
