"""The toy card and the record makers of the tests of records."""

from ..evaluation.conftest import card, make_record

__all__ = ["card", "make_record"]
