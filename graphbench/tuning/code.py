"""A fingerprint of a training method's code, by which a rerun notices that old and new costs are of different code.

A hash of the pickled function would differ from process to process; what is compared here is what the code does, in
the bytecode of one Python version.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

_DIGITS = 16


def code_fingerprint(method: Any) -> dict[str, str] | None:
    """Return what identifies the code of a training method: its ``name``, the ``python`` it is for and a ``hash``.

    Compared are bytecode, constants, names and plain defaults: of the function (of an object the ``__call__`` of its
    class), of functions inside it, and of those of its module and class that it names; of a ``functools.partial`` its
    plain arguments too. Not compared are comments, the function's docstring, places of lines, the values of closures
    and of other globals, and what other modules do. It is equal in every process of one Python version; those of
    different versions say nothing about each other.

    Args:
        method: The training method.

    Returns:
        None where it has no Python code.
    """
    bound, owner, function = _unwrapped(method)
    if function is None:
        return None
    content = [bound, *(_function_text(own) for own in _with_helpers(function, owner))]
    name = getattr(method, "__qualname__", None) or function.__qualname__
    hashed = hashlib.sha256("\n".join(content).encode("utf-8", "backslashreplace")).hexdigest()
    return {"name": str(name), "python": str(sys.implementation.cache_tag), "hash": hashed[:_DIGITS]}


def is_other_code(before: Any, now: Any) -> bool:
    """Return whether two fingerprints are known to be of different code."""
    known = isinstance(before, dict) and isinstance(now, dict)
    return known and before["python"] == now["python"] and before["hash"] != now["hash"]


def _unwrapped(method: Any) -> tuple[str, type | None, FunctionType | None]:
    """Return what is bound to a method, in words, the class it belongs to, and the function that runs in the end."""
    bound, owner = "", None
    while isinstance(method, functools.partial):
        bound += f"{_plain_text(method.args)}{_plain_text(method.keywords)}"
        method = method.func
    if isinstance(method, MethodType):
        owner, method = type(method.__self__), method.__func__
    elif not isinstance(method, FunctionType):
        owner = type(method)
        method = inspect.getattr_static(owner, "__call__", None)
    function = inspect.unwrap(method) if callable(method) else None
    return bound, owner, function if isinstance(function, FunctionType) else None


def _with_helpers(function: FunctionType, owner: type | None) -> list[FunctionType]:
    """Return a function and those of its module and class that it names, directly or through others, in one order."""
    found = [function]
    for own in found:
        for name in sorted(set(_names(own.__code__))):
            for other in (own.__globals__.get(name), getattr(owner, name, None)):
                if isinstance(other, FunctionType) and other.__module__ == function.__module__ and other not in found:
                    found.append(other)
    return found


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _function_text(function: FunctionType) -> str:
    code = function.__code__
    if code.co_consts[:1] == (function.__doc__,):
        code = code.replace(co_consts=(None, *code.co_consts[1:]))
    return f"{_code_text(code)}{_plain_text(function.__defaults__)}{_plain_text(function.__kwdefaults__)}"


def _code_text(code: CodeType) -> str:
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return f"{code.co_code.hex()} {names} {_plain_text(code.co_consts)}"


def _plain_text(value: Any) -> str:
    """Return a value in words that are the same in every process; of what is not plain its type alone."""
    kind = type(value).__name__
    if isinstance(value, CodeType):
        return _code_text(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_plain_text(value[key])}" for key in sorted(value, key=str)) + "}"
    if isinstance(value, frozenset | set):
        return f"{kind}({','.join(sorted(map(_plain_text, value)))})"
    if isinstance(value, tuple | list):
        return f"{kind}({','.join(map(_plain_text, value))})"
    if value is None or value is Ellipsis or isinstance(value, bool | int | float | complex | str | bytes):
        return f"{kind} {value!r}"
    return kind
