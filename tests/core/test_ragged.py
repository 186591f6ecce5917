"""Arrays of runs and of distinct values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphbench.core.ragged import distinct_values


@given(st.lists(st.integers(-(2**40), 2**40)))
def test_distinct_values_are_those_of_numpy(values):
    array = np.array(values, np.int64)
    found = distinct_values(array)
    assert found.dtype == np.int64 and np.array_equal(found, np.unique(array))
