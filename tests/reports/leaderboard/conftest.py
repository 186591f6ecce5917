"""The toy card and the record maker of the tests of evaluation."""

from ...evaluation.conftest import card, make_record

__all__ = ["card", "make_record"]
