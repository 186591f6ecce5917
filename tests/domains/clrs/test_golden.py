"""Every algorithm against the reference's own trajectories, bit for bit."""

import numpy as np
import pytest

from graphbench.domains.clrs import trace
from graphbench.domains.clrs.names import NAMES

LOOSE = {}  # algorithm -> absolute tolerance of its floats, where the order of a summation is free


def assert_same(found, expected, where, tolerance):
    assert list(found) == list(expected) or set(found) == set(expected), where
    for name, array in expected.items():
        own = found[name]
        assert own.shape == array.shape, f"{where} {name}: shape {own.shape}, expected {array.shape}"
        if array.dtype.kind == "f":
            np.testing.assert_allclose(own, array, rtol=0, atol=tolerance, err_msg=f"{where} {name}")
        else:
            assert own.dtype == array.dtype, f"{where} {name}: {own.dtype}, expected {array.dtype}"
            np.testing.assert_array_equal(own, array, err_msg=f"{where} {name}")


@pytest.mark.parametrize("folder", ["default", "edge"])
@pytest.mark.parametrize("algorithm", NAMES)
def test_traces_are_the_reference_s(golden, algorithm, folder):
    count = 0
    for number, args, inputs, hints, outputs, meta in golden(folder, algorithm):
        found = trace(algorithm, *args)
        where = f"{algorithm} {folder} {number} {meta.get('case', '')}"
        for part, expected in ((found.inputs, inputs), (found.hints, hints), (found.outputs, outputs)):
            assert_same(part, expected, where, LOOSE.get(algorithm, 0))
        count += 1
    assert count >= 3
