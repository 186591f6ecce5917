"""A fingerprint of a training method's code, by which a later start notices that earlier costs are of other code."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

_DIGITS = 16
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def code_fingerprint(method: Any) -> dict[str, str] | None:
    """Return what identifies the code of a training method: its ``name``, the ``python`` it is for and a ``source``.

    ``source`` is a hash of syntax trees: that of the function (of an object that of its class), and of the functions
    and classes at the top of its file that it names, directly or through others; of a ``functools.partial`` also of
    its plain arguments. Comments, layout and docstrings are left out, and so are other statements of the file, values
    of variables outside these functions, and other files. Equal code has an equal hash in every process of one Python
    version; those of different versions cannot be compared, as their syntax trees differ.

    Args:
        method: The training method.

    Returns:
        None where it has no source in Python, as functions of compiled modules or typed at a prompt.
    """
    arguments = []
    while isinstance(method, functools.partial):
        arguments.append(json.dumps([method.args, method.keywords], sort_keys=True, default=_type_name))
        method = method.func
    target = _target(method)
    try:
        own = _parsed(textwrap.dedent(inspect.getsource(target)))
    except (OSError, TypeError):
        return None
    content = [*arguments, *map(_text, [own, *_named_by(own, target)])]
    name = getattr(method, "__qualname__", None) or target.__qualname__
    hashed = hashlib.sha256("\n".join(content).encode("utf-8", "backslashreplace")).hexdigest()
    return {"name": str(name), "python": str(sys.implementation.cache_tag), "source": hashed[:_DIGITS]}


def is_other_code(before: Any, now: Any) -> bool:
    """Return whether two fingerprints are known to be of different code; those of earlier versions tell nothing."""
    known = all(isinstance(found, dict) and "source" in found for found in (before, now))
    return known and before["python"] == now["python"] and before["source"] != now["source"]


def _target(method: Any) -> Any:
    """Return the function or class that holds the code of a training method."""
    method = inspect.unwrap(method)
    if isinstance(method, MethodType):
        return type(method.__self__)
    return method if isinstance(method, FunctionType) else type(method)


def _named_by(own: ast.AST, target: Any) -> Iterator[_Definition]:
    """Yield the definitions at the top of a file that some code of it names, directly or through others, in order."""
    try:
        module = _parsed(inspect.getsource(inspect.getmodule(target) or target))
    except (OSError, TypeError):  # typed into a notebook: there each cell is a file of its own
        return
    known = {node.name: node for node in getattr(module, "body", ()) if isinstance(node, _Definition)}
    found, waiting = {target.__name__}, [own]
    while waiting:
        for name in _names_in(waiting.pop()) & known.keys() - found:
            found.add(name)
            waiting.append(known[name])
    yield from (node for name, node in known.items() if name in found and name != target.__name__)


def _names_in(code: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(code) if isinstance(node, ast.Name)}


def _parsed(source: str) -> ast.AST:
    """Return the syntax tree of some source; of a lambda, whose lines may be part of a statement, the text itself."""
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Constant(value=source)


def _text(code: ast.AST) -> str:
    """Return code as text without layout, comments and docstrings."""
    for node in ast.walk(code):
        if isinstance(node, _Definition) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(code)


def _type_name(value: Any) -> str:
    return type(value).__name__
