"""Values as bytes for workers; functions of scripts and notebooks are pickled by value and keep their files' names."""

from __future__ import annotations

import io
from collections import ChainMap
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any


def pickled(value: Any) -> bytes:
    """Return a value as bytes that workers can load; functions of a script or notebook are pickled by value.

    Raises:
        Exception: Any error of pickling.
    """
    buffer = io.BytesIO()
    _pickler()(buffer).dump(value)
    return buffer.getvalue()


@lru_cache(maxsize=1)
def _pickler() -> Any:
    """Return cloudpickle's class with the names of files; since 3.1.3 it leaves them out, so errors show no line."""
    from cloudpickle import Pickler

    reduce_code = Pickler.dispatch_table[CodeType]

    def with_file(code: CodeType) -> tuple[Callable[..., CodeType], tuple[Any, ...]]:
        return _code, (*reduce_code(code), code.co_filename)

    table = ChainMap({CodeType: with_file}, Pickler.dispatch_table)
    return type("Pickler", (Pickler,), {"dispatch_table": table})  # an attribute of an object would be ignored


def _code(make: Callable[..., CodeType], arguments: tuple[Any, ...], file: str) -> CodeType:
    return make(*arguments).replace(co_filename=file)
