"""Tensors of files that ``torch.save`` wrote, read without unpickling: no class is looked up and nothing is called.

Such a file is an uncompressed ZIP archive with ``data.pkl``, which says how tensors are cut from storages, and a file
for each storage. :func:`read_torch_file` follows the instructions of ``data.pkl`` as data: it knows tensors, numbers,
texts, lists, tuples, sets and dictionaries, and refuses everything else.
"""

from __future__ import annotations

import math
import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import StoreError

_MOST_INSTRUCTIONS = 1 << 30  # bytes of data.pkl
_LOCAL_HEADER = 30  # bytes of the header of a ZIP entry, before its name
_MOST_REPEATED = 1 << 24  # numbers of a tensor that is larger than its storage
_TYPES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": "<u2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "|i1",
    "ByteStorage": "|u1",
    "BoolStorage": "|b1",
}
_TENSOR = "torch._utils _rebuild_tensor_v2"
_SETS = ("builtins set", "__builtin__ set", "builtins frozenset", "__builtin__ frozenset")
_ORDERED = "collections OrderedDict"
_KNOWN = {_TENSOR, _ORDERED, *_SETS, *(f"torch {name}" for name in _TYPES)}


class _Refused(Exception):
    """Why the instructions of a file are not followed."""


_PROBLEMS = (
    *(_Refused, BadZipFile, NotImplementedError, ValueError, LookupError, EOFError, TypeError, AttributeError),
    *(ArithmeticError, MemoryError, RecursionError),
)


@dataclass(frozen=True)
class _Global:
    """The name of a function or class; only compared with known names."""

    name: str


class _Mark:
    """Where a group of values begins on the stack."""


def read_torch_file(path: Path, *, mapped: bool = False) -> Any:
    """Return what ``torch.save`` wrote: tensors as arrays, inside lists, tuples, sets and dictionaries.

    bfloat16 becomes float32, all other types stay what they are.

    Args:
        path: The file.
        mapped: Whether tensors are mapped from the file, and not read; checksums of the archive are not compared then.

    Raises:
        StoreError: If the file cannot be read, is damaged, was written before PyTorch 1.6, or holds other objects than
            tensors, numbers, texts and collections of these.
    """
    try:
        with ZipFile(path) as archive:
            return _content(archive, path if mapped else None)
    except _PROBLEMS as error:
        raise StoreError(
            f"{path} is not read: {error or type(error).__name__}; it must be a file that torch.save of PyTorch 1.6 or "
            "later wrote, with tensors, numbers, texts and collections of them"
        ) from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror or error}); give a file that exists") from error


def _content(archive: ZipFile, mapped: Path | None) -> Any:
    entries = [name for name in archive.namelist() if name.endswith("/data.pkl") or name == "data.pkl"]
    if len(entries) != 1:
        raise _Refused("it has no data.pkl")
    if archive.getinfo(entries[0]).file_size > _MOST_INSTRUCTIONS:
        raise _Refused("its data.pkl is larger than 1 GB")
    root = entries[0][: -len("data.pkl")]
    order = archive.read(f"{root}byteorder") if f"{root}byteorder" in archive.namelist() else b"little"
    if order.strip() != b"little":
        raise _Refused(f"its byte order is {order.decode(errors='replace')}")
    storages: dict[str, NDArray[Any]] = {}

    def storage(kind: str, key: str) -> NDArray[Any]:
        if key not in storages:
            name = f"{root}data/{key}"
            own = None if mapped is None else _mapped(archive, name, mapped, np.dtype(_TYPES[kind]))
            storages[key] = np.frombuffer(archive.read(name), _TYPES[kind]) if own is None else own
        return storages[key]

    return _Machine(storage).run(archive.read(entries[0]))


def _mapped(archive: ZipFile, name: str, path: Path, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Return the numbers of an entry as a map of the file; None where it is compressed or empty."""
    entry = archive.getinfo(name)
    if entry.compress_type != ZIP_STORED or not entry.file_size:
        return None
    with path.open("rb") as file:
        file.seek(entry.header_offset)
        header = file.read(_LOCAL_HEADER)
    if len(header) < _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
        raise _Refused(f"its entry {name} has no header")
    begin = entry.header_offset + _LOCAL_HEADER + sum(int.from_bytes(header[i : i + 2], "little") for i in (26, 28))
    if begin + entry.file_size > path.stat().st_size:
        raise _Refused(f"its entry {name} ends beyond the file")
    return np.memmap(path, dtype, "r", begin, (entry.file_size // dtype.itemsize,))


class _Machine:
    """Follows instructions of the pickle protocol that describe data; all others are refused.

    Args:
        storage: Returns the numbers of a storage by type and key.
    """

    def __init__(self, storage: Callable[[str, str], NDArray[Any]]) -> None:
        self._storage = storage
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self, instructions: bytes) -> Any:
        """Return the value that the instructions describe."""
        for opcode, argument, _ in pickletools.genops(instructions):
            if opcode.name == "STOP":
                return self._stack.pop()
            self._follow(opcode.name, argument)
        raise _Refused("its data.pkl has no end")

    def _follow(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _IGNORED:
            return
        if name in _CONSTANTS:
            stack.append(_CONSTANTS[name]())
        elif name in _LITERALS:
            stack.append(argument)
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            words = argument if name == "GLOBAL" else " ".join(reversed([str(stack.pop()), str(stack.pop())]))
            if words not in _KNOWN:
                raise _Refused(f"it holds an object of {words.replace(' ', '.')}")
            stack.append(_Global(words))
        elif name in ("BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"):
            self._memo[len(self._memo) if name == "MEMOIZE" else int(argument)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(self._memo[int(argument)])
        elif name == "BINPERSID":
            stack.append(self._stored(stack.pop()))
        elif name in ("REDUCE", "BUILD"):
            given = stack.pop()
            # BUILD would set attributes: torch does so for the metadata of ordered dictionaries, which is left out
            stack[-1] = self._made(stack[-1], given) if name == "REDUCE" else stack[-1]
        elif name in _GROUPS:
            self._group(name)
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        elif name == "APPEND":
            value = stack.pop()
            stack[-1].append(value)
        elif name == "SETITEM":
            value, key = stack.pop(), stack.pop()
            stack[-1][key] = value
        else:
            raise _Refused(f"its data.pkl has the instruction {name}")

    def _group(self, name: str) -> None:
        """Follow an instruction on all values above the last mark."""
        values = []
        while not isinstance(value := self._stack.pop(), _Mark):
            values.append(value)
        values.reverse()
        if name in ("TUPLE", "LIST", "FROZENSET"):
            self._stack.append({"TUPLE": tuple, "LIST": list, "FROZENSET": frozenset}[name](values))
        elif name in ("DICT", "SETITEMS"):
            pairs = dict(zip(values[::2], values[1::2], strict=True))
            if name == "DICT":
                self._stack.append(pairs)
            else:
                self._stack[-1].update(pairs)
        elif name == "APPENDS":
            self._stack[-1].extend(values)
        else:
            self._stack[-1].update(values)

    def _stored(self, words: Any) -> NDArray[Any]:
        """Return the storage that a persistent id names: ``("storage", type, key, location, numbers)``."""
        kind, of, key, _, count = words
        name = of.name.partition(" ")[2] if isinstance(of, _Global) else ""
        if kind != "storage" or name not in _TYPES:
            raise _Refused(f"it refers to {words!r}")
        values = self._storage(name, str(key))
        if len(values) < count:
            raise _Refused(f"storage {key} has {len(values):,} numbers, not {count:,}")
        return values.view(_BFloat) if name == "BFloat16Storage" else values

    def _made(self, what: Any, given: Any) -> Any:
        if not isinstance(what, _Global):
            raise _Refused("it calls what is no function")
        if what.name == _TENSOR:
            return _tensor(*given[:4])
        if what.name in _SETS:
            return set(given[0]) if given else set()
        if what.name == _ORDERED and not given:
            return {}
        raise _Refused(f"it calls {what.name.replace(' ', '.')} with {len(given)} values")


_BFloat = np.dtype([("upper", "<u2")])  # the upper half of a float32
_IGNORED = ("PROTO", "FRAME")
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_SET": set,
    "MARK": _Mark,
}
_LITERALS = (
    *("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT", "FLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"),
)
_GROUPS = ("TUPLE", "LIST", "DICT", "FROZENSET", "APPENDS", "SETITEMS", "ADDITEMS")


def _tensor(values: NDArray[Any], offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> NDArray[Any]:
    """Return a tensor of a storage; its last number must lie inside the storage."""
    if not isinstance(values, np.ndarray) or len(size) != len(stride):
        raise _Refused("a tensor has no storage")
    if offset < 0 or any(number < 0 for number in (*size, *stride)):
        raise _Refused(f"a tensor has the offset {offset}, sizes {size} and strides {stride}")
    if math.prod(size) > max(len(values), _MOST_REPEATED):
        raise _Refused(f"a tensor of the sizes {size} repeats a storage of {len(values):,} numbers")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if all(size) and last >= len(values):
        raise _Refused(f"a tensor ends at number {last:,} of a storage of {len(values):,}")
    bytes_ = values.itemsize
    found = np.lib.stride_tricks.as_strided(
        values[offset : offset + 1] if all(size) else values[:0], size, [step * bytes_ for step in stride]
    )
    if values.dtype == _BFloat:
        return (found["upper"].astype(np.uint32) << np.uint32(16)).view(np.float32)
    return np.ascontiguousarray(found).reshape(size)
