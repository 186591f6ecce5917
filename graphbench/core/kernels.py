"""The decorator of every compiled function: cached on disk, and compiled again when anything compiled into it changed.

Numba's cache checks only the file that defines a function. A kernel that calls a function of another file would keep
running the old code after that file has changed. Here the stamp of a cache entry covers the code and the constants of
every function that the kernel calls, in every package
(:mod:`graphbench.core.kernel_sources` describes the stamp, and the one case that it does not see). The stamp is
computed when the cache is consulted, which is at the first call for each type of arguments, and not at import: then
all functions are defined.

Several processes, on a shared folder of several machines, may compile into one cache at once. Numba would let two of
them use one file name for different code, and lists a file before it is written; here a lock serialises them, a file
is listed after it has been written, and a file says which code it holds, so that a process never runs the code of
another stamp. Compiled functions release the GIL, so a process that generates for minutes still responds.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from numba import njit, types
from numba.core.caching import IndexDataCacheFile

from graphbench.core.kernel_sources import sources_of

_F = TypeVar("_F", bound=Callable[..., Any])
_compiled_from: WeakKeyDictionary[FunctionType, str] = WeakKeyDictionary()  # function -> its stamp when compiled
_announcement: ContextVar[Callable[[], None] | None] = ContextVar("announcement", default=None)
_LOCK_SECONDS = 30.0  # a process that holds the lock longer hangs; ignoring the lock at worst duplicates work


def kernel(function: _F) -> _F:
    """Compile a function with Numba in no-python mode, cached on disk."""
    return _compiled(function)


def inner(function: _F) -> _F:
    """Compile a function that only compiled functions call: without its Python wrapper it compiles faster.

    A function of integers is compiled once, and not again for each integer that a call writes as a constant.
    Calling such a function from Python crashes the interpreter.
    """
    compiled = _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    if hasattr(compiled, "get_call_template"):
        _ignore_constant_integers(compiled)
    return compiled


def _ignore_constant_integers(dispatcher: Any) -> None:
    """Let calls with a constant integer share the code that calls with an integer variable have."""
    template_of = dispatcher.get_call_template

    def get_call_template(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        return template_of(tuple(map(_without_constant, args)), {n: _without_constant(a) for n, a in kws.items()})

    dispatcher.get_call_template = get_call_template


def _without_constant(kind: Any) -> Any:
    """Return the type int64 for the type of a constant integer, and every other type as it is."""
    return types.unliteral(kind) if isinstance(kind, types.IntegerLiteral) else kind


def is_cached(function: Any) -> bool:
    """Return whether the disk cache holds a kernel compiled from the current sources; False without a cache."""
    index = getattr(getattr(function, "_cache", None), "_cache_file", None)
    return index is not None and bool(index._load_index())


@contextmanager
def before_compiling(announce: Callable[[], None]) -> Iterator[None]:
    """Call a function once, before the first kernel that the disk cache does not hold is compiled in the block."""
    token = _announcement.set(announce)
    try:
        yield
    finally:
        _announcement.reset(token)


def announce_compiling() -> None:
    """Call the function given to :func:`before_compiling`, unless it was called already."""
    announce = _announcement.get()
    if announce is not None:
        _announcement.set(None)
        announce()


def _compiled(function: _F, **options: Any) -> _F:
    try:
        dispatcher = njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # defined interactively, or installed in a read-only folder: no folder can hold a cache
        return cast(_F, njit(nogil=True, **options)(function))
    if not hasattr(dispatcher, "_cache"):  # NUMBA_DISABLE_JIT=1: the function itself
        return function
    dispatcher._cache._cache_file = _Cache(dispatcher)
    return cast(_F, dispatcher)


class _Cache(IndexDataCacheFile):  # type: ignore[misc]
    """The cache files of a kernel, as Numba writes them, with the stamp of all sources and under a lock."""

    def __init__(self, dispatcher: Any) -> None:
        cache = dispatcher._cache
        self._dispatcher = dispatcher
        super().__init__(cache.cache_path, cache._impl.filename_base, cache._impl.locator.get_source_stamp())

    @property
    def _source_stamp(self) -> tuple[Any, str]:
        return (self._file_stamp, sources_of(self._dispatcher).stamp)

    @_source_stamp.setter
    def _source_stamp(self, stamp: Any) -> None:
        self._file_stamp = stamp

    def _load_index(self) -> Any:
        """Return the index of the cache: empty if it names a class of arguments that does not exist any more."""
        try:
            return super()._load_index()
        except (AttributeError, ImportError, EOFError, pickle.UnpicklingError):
            return {}

    def load(self, key: Any) -> Any:
        """Return the compiled code of a key; None if the cache has none, or a file with the code of other sources."""
        for function, text in sources_of(self._dispatcher).functions.items():
            _compiled_from.setdefault(function, text)
        held, data = super().load(key) or (None, None)
        if held == (self._source_stamp, key):
            return data
        announce_compiling()
        return None

    def save(self, key: Any, data: Any) -> None:
        """Write compiled code to the cache and then list it in the index, under the lock of the cache.

        Nothing is written if a constant of a function has changed since this process first compiled the function: the
        code may then hold both values.
        """
        functions = sources_of(self._dispatcher).functions
        if any(_compiled_from.get(function, text) != text for function, text in functions.items()):
            return
        with _locked(Path(self._cache_path)):
            names = self._load_index()
            taken = set(names.values())
            name = names.get(key) or next(n for n in map(self._data_name, count(1)) if n not in taken)
            self._save_data(name, ((self._source_stamp, key), data))
            if key not in names:
                self._save_index({**names, key: name})


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a cache folder; continue without it where the file system does not support locks."""
    from filelock import FileLock, Timeout

    with ExitStack() as held:
        with suppress(Timeout, OSError, NotImplementedError):
            held.enter_context(FileLock(folder / ".kernels.lock", timeout=_LOCK_SECONDS, poll_interval=0.005))
        yield
