"""The decorator of every compiled function: cached on disk, and never stale.

Numba's cache looks only at the file a function stands in. A kernel that calls a function of another file would go on
running the old code after that file changed. Here the stamp of a cache entry covers every Python file of the packages
the function may call: its own and those above it.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

_F = TypeVar("_F", bound=Callable[..., Any])
_TOP = Path(__file__).resolve().parent


def kernel(function: _F) -> _F:
    """Compile a function with Numba in no-python mode, cached on disk."""
    return _compiled(function)


def inner(function: _F) -> _F:
    """Compile a function that only compiled functions call: without its Python wrapper it compiles faster.

    Calling such a function from Python crashes the interpreter.
    """
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def is_cached(function: Any) -> bool:
    """Return whether a compiled version of a kernel, made from the sources as they are, lies on disk."""
    return bool(function._cache._cache_file._load_index())


def _compiled(function: _F, **options: Any) -> _F:
    try:
        dispatcher = njit(cache=True, **options)(function)
    except RuntimeError:  # typed at a prompt: there is no file beside which a cache could lie
        return cast(_F, njit(**options)(function))
    _stamp_with_sources(dispatcher, Path(inspect.getfile(function)).resolve().parent)
    return cast(_F, dispatcher)


def _stamp_with_sources(dispatcher: Any, folder: Path) -> None:
    """Add the hash of the sources to the stamp of a dispatcher's cache, so that a change of any recompiles it."""
    index = dispatcher._cache._cache_file
    index._source_stamp = (*index._source_stamp, sources_hash(folder))


@lru_cache
def sources_hash(folder: Path) -> str:
    """Return a hash of the Python files in ``folder`` and in the folders above it, up to the package's own."""
    digest = hashlib.sha256()
    while folder.is_relative_to(_TOP) and folder != _TOP:
        for path in sorted(folder.glob("*.py")):
            digest.update(f"{path.name}\0".encode() + path.read_bytes())
        folder = folder.parent
    return digest.hexdigest()[:16]
