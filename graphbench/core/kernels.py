"""The decorator of every compiled function: cached on disk, and never stale.

Numba's cache checks only the file that defines a function. A kernel that calls a function of another file would keep
running the old code after that file has changed. Here the stamp of a cache entry covers every Python file of the
packages that the function may call: its own and those above it.

Several processes, on a shared folder of several machines, may compile into one cache at once. Numba would let two of
them use one file name for different code, and lists a file before it is written; here a lock serialises them, and a
file is listed after it has been written. Compiled functions release the GIL, so a process that generates for minutes
still responds.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

_F = TypeVar("_F", bound=Callable[..., Any])
_TOP = Path(__file__).resolve().parents[1]
_LOCK_SECONDS = 30.0  # a process that holds the lock longer hangs; ignoring the lock at worst duplicates work


def kernel(function: _F) -> _F:
    """Compile a function with Numba in no-python mode, cached on disk."""
    return _compiled(function)


def inner(function: _F) -> _F:
    """Compile a function that only compiled functions call: without its Python wrapper it compiles faster.

    Calling such a function from Python crashes the interpreter.
    """
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def is_cached(function: Any) -> bool:
    """Return whether the disk cache holds a kernel compiled from the current sources; False without a cache."""
    index = getattr(getattr(function, "_cache", None), "_cache_file", None)
    return index is not None and bool(index._load_index())


def _compiled(function: _F, **options: Any) -> _F:
    try:
        dispatcher = njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # defined interactively, or installed in a read-only folder: there is no place for a cache
        return cast(_F, njit(nogil=True, **options)(function))
    if not hasattr(dispatcher, "_cache"):  # NUMBA_DISABLE_JIT=1: the function itself
        return function
    _stamp_with_sources(dispatcher, Path(inspect.getfile(function)).resolve().parent)
    index = dispatcher._cache._cache_file
    index.save = partial(_save, index)
    return cast(_F, dispatcher)


def _save(index: Any, key: Any, data: Any) -> None:
    """Write compiled code to the cache and then list it in the index, under the lock of the cache."""
    with _locked(Path(index._cache_path)):
        names = index._load_index()
        taken = set(names.values())
        name = names.get(key) or next(n for n in map(index._data_name, count(1)) if n not in taken)
        index._save_data(name, data)
        if key not in names:
            index._save_index({**names, key: name})


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a cache folder; continue without it where the file system does not support locks."""
    from filelock import FileLock, Timeout

    with ExitStack() as held:
        with suppress(Timeout, OSError, NotImplementedError):
            held.enter_context(FileLock(folder / ".kernels.lock", timeout=_LOCK_SECONDS, poll_interval=0.005))
        yield


def _stamp_with_sources(dispatcher: Any, folder: Path) -> None:
    """Add the hash of the sources to the stamp of a dispatcher's cache, so that a change of any recompiles it."""
    index = dispatcher._cache._cache_file
    index._source_stamp = (*index._source_stamp, sources_hash(folder))


@lru_cache
def sources_hash(folder: Path) -> str:
    """Return a hash of the Python files in ``folder`` and in the folders above it, and of how they are compiled."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    while folder.is_relative_to(_TOP) and folder != _TOP:
        for path in sorted(folder.glob("*.py")):
            digest.update(f"{path.name}\0".encode() + path.read_bytes())
        folder = folder.parent
    return digest.hexdigest()[:16]
