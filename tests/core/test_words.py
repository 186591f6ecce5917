"""Numbers in words."""

from __future__ import annotations

import pytest

from graphbench.core.words import fact_text, human_number


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0, 3, "0"),
        (3.14159, 3, "3.14"),
        (364, 2, "364"),  # rounded from 1,000 on
        (1090, 2, "1.1k"),
        (12_345, 3, "12.3k"),
        (-12_345, 3, "-12.3k"),
        (120_000, 2, "120k"),
        (999_600, 3, "1M"),  # not 1e+03k
        (2.5e9, 3, "2.5G"),
    ],
)
def test_numbers_are_rounded_with_a_suffix(value, digits, text):
    assert human_number(value, digits) == text


def test_a_deviation_that_is_rounding_is_zero():
    assert fact_text(0.5, 1.11e-16) == "0.5 ± 0"
    assert fact_text(0.0, 0.0) == "0 ± 0"
    assert fact_text(0.5, 1e-4) == "0.5 ± 0.0001"
