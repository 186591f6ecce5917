"""The decorator of every compiled function: cached on disk, and never stale.

Numba's cache looks only at the file a function stands in. A kernel that calls a function of another file would go on
running the old code after that file changed. Here the stamp of a cache entry covers every Python file of the packages
the function may call: its own and those above it.

Processes that compile at once write into one cache, on a shared folder from several machines. Numba would let two of
them give one name to different code, and lists a file before it is written; here they take turns, and a file is listed
once it is there. Compiled functions release the interpreter's lock, so a process that draws for minutes still answers.
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
_LOCK_SECONDS = 30.0  # a lock held longer belongs to a process that hangs: without it, at worst, work is done twice


def kernel(function: _F) -> _F:
    """Compile a function with Numba in no-python mode, cached on disk."""
    return _compiled(function)


def inner(function: _F) -> _F:
    """Compile a function that only compiled functions call: without its Python wrapper it compiles faster.

    Calling such a function from Python crashes the interpreter.
    """
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def is_cached(function: Any) -> bool:
    """Return whether a compiled version of a kernel, made from the sources as they are, lies on disk.

    Where no folder for the cache can be written to, there is none.
    """
    index = getattr(function._cache, "_cache_file", None)
    return index is not None and bool(index._load_index())


def _compiled(function: _F, **options: Any) -> _F:
    try:
        dispatcher = njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # typed at a prompt, or installed where nothing can be written: there is no place for a cache
        return cast(_F, njit(nogil=True, **options)(function))
    _stamp_with_sources(dispatcher, Path(inspect.getfile(function)).resolve().parent)
    index = dispatcher._cache._cache_file
    index.save = partial(_save, index)
    return cast(_F, dispatcher)


def _save(index: Any, key: Any, data: Any) -> None:
    """Write compiled code to the cache, then list it in the index, while no other process does either."""
    with _turn(Path(index._cache_path)):
        names = index._load_index()
        taken = set(names.values())
        name = names.get(key) or next(n for n in map(index._data_name, count(1)) if n not in taken)
        index._save_data(name, data)
        if key not in names:
            index._save_index({**names, key: name})


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Hold the lock of a cache folder; go on without it where the file system has no locks."""
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
