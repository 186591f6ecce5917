"""What fails after the work is done is logged in one line, whatever its error is, and an interrupt goes through."""

import logging

import pytest

from graphbench.core.afterwards import never_fatal


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("error", "told"),
    [(OSError("the disk\nis full"), "OSError: the disk is full"), (Unspeakable(), "Unspeakable: (no text")],
)
def test_any_error_is_logged_in_one_line_with_the_remedy(error, told, caplog):
    with caplog.at_level(logging.WARNING), never_fatal("the report", "write it with: graphbench report"):
        raise error
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"the report failed ({told}") and line.endswith("; write it with: graphbench report")
    assert "\n" not in line


def test_an_interrupt_goes_through():
    with pytest.raises(KeyboardInterrupt), never_fatal("the report", "write it again"):
        raise KeyboardInterrupt
