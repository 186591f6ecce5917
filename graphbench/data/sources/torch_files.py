"""Tensors of files that ``torch.save`` wrote, read without unpickling: no class is looked up and nothing is called.

A file of ``torch.save`` is an uncompressed ZIP archive with ``data.pkl``, which says how tensors are cut from storages,
and an entry for each storage. :func:`read_torch_file` follows the instructions of ``data.pkl`` as data: it builds
tensors, numbers, texts, lists, tuples, sets and dictionaries, and refuses everything else. Keys of dictionaries and
members of sets are numbers and texts: nested tuples can be written so that hashing one takes for ever. The content is
not compressed and is read in place, so memory is bounded by the size of the file.

``torch.load(path, weights_only=True, mmap=True)`` runs no code either, but (PyTorch 2.13) it cannot map a file that is
larger than memory and swap, because its mapping is private and writable; it hashes nested tuples and numbers of equal
hashes for ever; it allocates the size that a ``bytearray`` in the file asks for; and it reads compressed storages as
numbers. ``tests/test_hostile_files.py`` and ``tests/data/test_torch_files.py`` have a case for each.
"""

from __future__ import annotations

import math
import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from graphbench.core.damage import FileFault, damage_named
from graphbench.core.errors import StoreError
from graphbench.core.untrusted import open_regular, require_regular, shown
from graphbench.core.zip_files import require_stored_entries

_MAX_INSTRUCTION_BYTES = 1 << 27  # of data.pkl; a list of five million texts takes half of them
_MAX_INSTRUCTIONS = 1 << 25
_MAX_KEPT_OBJECTS = 1 << 23  # collections and remembered values: each is written in one byte and takes 100 or more
_MAX_AXES = 32  # of a tensor
_INTEGER_LIMIT = 1 << 64  # whole numbers beyond 64 bits can be chosen so that all have the same hash
_LOCAL_HEADER = 30  # bytes of the header of a ZIP entry, before its name
_MAX_REPEATED = 1 << 24  # numbers of a tensor with more numbers than its storage
_MAX_COPIED = 1 << 27  # bytes of tensors copied from a file, in addition to two copies of the whole file
_MAX_BYTE_ORDER = 16  # bytes of the entry that names the byte order
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
_ALLOWED = {_TENSOR, _ORDERED, *_SETS, *(f"torch {name}" for name in _TYPES)}


_C = TypeVar("_C", list[Any], dict[Any, Any], set[Any])


class _Refused(FileFault):
    """Why the instructions of a file are not followed."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"is not read: {reason}")


@dataclass(frozen=True)
class _Global:
    """The name of a function or class, which is compared with the allowed names and never looked up."""

    name: str


_MARK = object()
"""Stands on the stack before the first value of a group."""


def read_torch_file(path: Path, *, mapped: bool = False) -> Any:
    """Return the objects that ``torch.save`` wrote: tensors as arrays, inside lists, tuples, sets and dictionaries.

    bfloat16 becomes float32; all other types stay the same.

    Args:
        path: The file.
        mapped: Whether tensors are mapped from the file, and not read; checksums of the archive are not compared then.

    Raises:
        StoreError: If the file cannot be read, is damaged, was written before PyTorch 1.6, or holds other objects than
            tensors, numbers, texts and collections of these.
    """
    remedy = (
        "it must be a file that torch.save of PyTorch 1.6 or later wrote, with tensors, numbers, texts and collections "
        "of them"
    )
    with damage_named(path, StoreError, remedy):
        require_regular(path)
        with ZipFile(path) as archive:
            return _content(archive, path, mapped)


def _content(archive: ZipFile, path: Path, mapped: bool) -> Any:
    sizes = {entry.filename: entry.file_size for entry in require_stored_entries(archive, path)}
    entries = [name for name in sizes if name.endswith("/data.pkl") or name == "data.pkl"]
    if len(entries) != 1:
        raise _Refused("it has no data.pkl")
    if sizes[entries[0]] > _MAX_INSTRUCTION_BYTES:
        raise _Refused(f"it has a data.pkl of more than {_MAX_INSTRUCTION_BYTES:,} bytes")
    root = entries[0][: -len("data.pkl")]
    order = b"little"
    if (written := sizes.get(f"{root}byteorder")) is not None:
        order = archive.read(f"{root}byteorder") if written <= _MAX_BYTE_ORDER else b"unknown"
    if order.strip() != b"little":
        raise _Refused(f"it has the byte order {shown(order.decode(errors='replace'))}")
    storages: dict[str, tuple[str, NDArray[Any]]] = {}

    def storage(kind: str, key: str) -> NDArray[Any]:
        if key not in storages:
            name = f"{root}data/{key}"
            values = _mapped(archive, name, path, np.dtype(_TYPES[kind])) if mapped else None
            storages[key] = kind, np.frombuffer(archive.read(name), _TYPES[kind]) if values is None else values
        first, values = storages[key]
        if first != kind:
            raise _Refused(f"it has the storage {shown(key, 60)} as {first} and as {kind}")
        return values

    return _Machine(storage, _MAX_COPIED + 2 * sum(sizes.values())).run(archive.read(entries[0]))


def _mapped(archive: ZipFile, name: str, path: Path, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Return the numbers of an entry as a map of the file; None where it is empty."""
    entry = archive.getinfo(name)
    if not entry.file_size:
        return None
    with open_regular(path) as file:
        file.seek(entry.header_offset)
        header = file.read(_LOCAL_HEADER)
    if len(header) < _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
        raise _Refused(f"it is damaged: its entry {shown(name, 80)} has no header")
    begin = entry.header_offset + _LOCAL_HEADER + sum(int.from_bytes(header[i : i + 2], "little") for i in (26, 28))
    if begin + entry.file_size > path.stat().st_size:
        raise _Refused(f"it is damaged: its entry {shown(name, 80)} ends beyond the file")
    return np.memmap(path, dtype, "r", begin, (entry.file_size // dtype.itemsize,))


class _Machine:
    """Follows instructions of the pickle protocol that describe data; all others are refused.

    Args:
        storage: Returns the numbers of a storage by type and key.
        max_copied: Maximal number of bytes of tensors that are copied from storages.
    """

    def __init__(self, storage: Callable[[str, str], NDArray[Any]], max_copied: int) -> None:
        self._storage = storage
        self._bytes_left = max_copied
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self, instructions: bytes) -> Any:
        """Return the value that the instructions describe."""
        kept = 0
        for number, (opcode, argument, _) in enumerate(pickletools.genops(instructions)):
            kept += _KEEPING.get(opcode.name, 0)
            if number > _MAX_INSTRUCTIONS or kept > _MAX_KEPT_OBJECTS:
                raise _Refused(f"its data.pkl has more than {_MAX_KEPT_OBJECTS:,} collections and texts")
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
            words = argument if name == "GLOBAL" else " ".join(reversed([_text(stack.pop()), _text(stack.pop())]))
            if words not in _ALLOWED:
                raise _Refused(f"it holds an object of {shown(words.replace(' ', '.'), 80)}")
            stack.append(_Global(words))
        elif name in ("BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"):
            self._memo[len(self._memo) if name == "MEMOIZE" else int(argument)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(self._memo[int(argument)])
        elif name == "BINPERSID":
            stack.append(self._stored(stack.pop()))
        elif name in ("REDUCE", "BUILD"):
            arguments = stack.pop()
            # BUILD would set attributes: torch does so for the metadata of ordered dictionaries, which is left out
            stack[-1] = self._made(stack[-1], arguments) if name == "REDUCE" else stack[-1]
        elif name in _GROUPS:
            self._group(name)
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        elif name == "APPEND":
            value = stack.pop()
            self._last(list).append(value)
        elif name == "SETITEM":
            value, key = stack.pop(), stack.pop()
            self._last(dict)[_key(key)] = value
        else:
            raise _Refused(f"its data.pkl has the instruction {name}")

    def _last(self, kind: type[_C]) -> _C:
        """Return the value on top of the stack, which is a collection of a kind."""
        if not isinstance(value := self._stack[-1], kind):
            raise _Refused(f"it adds to a value that is no {kind.__name__}")
        return value

    def _group(self, name: str) -> None:
        """Follow an instruction on all values above the last mark."""
        values = []
        while (value := self._stack.pop()) is not _MARK:
            values.append(value)
        values.reverse()
        if name in ("TUPLE", "LIST"):
            self._stack.append(tuple(values) if name == "TUPLE" else values)
        elif name == "FROZENSET":
            self._stack.append(frozenset(map(_key, values)))
        elif name in ("DICT", "SETITEMS"):
            pairs = dict(zip(map(_key, values[::2]), values[1::2], strict=True))
            if name == "DICT":
                self._stack.append(pairs)
            else:
                self._last(dict).update(pairs)
        elif name == "APPENDS":
            self._last(list).extend(values)
        else:
            self._last(set).update(map(_key, values))

    def _stored(self, words: Any) -> NDArray[Any]:
        """Return the storage that a persistent id names: ``("storage", type, key, location, numbers)``."""
        if not isinstance(words, tuple) or len(words) != 5:
            raise _Refused("it refers to a value that is no storage")
        kind, of, key, _, count = words
        name = of.name.partition(" ")[2] if isinstance(of, _Global) else ""
        if not isinstance(kind, str) or kind != "storage" or name not in _TYPES:
            raise _Refused(
                f"it refers to {shown(kind, 40) if isinstance(kind, str) else 'a value'}, which is no storage"
            )
        values = self._storage(name, _text(key))
        if not isinstance(count, int) or not 0 <= count <= len(values):
            raise _Refused(f"storage {shown(key, 40)} has {len(values):,} numbers, not as many as it says")
        return values.view(_BFloat) if name == "BFloat16Storage" else values

    def _made(self, function: Any, arguments: Any) -> Any:
        if not isinstance(function, _Global):
            raise _Refused("it calls a value that is no function")
        if not isinstance(arguments, tuple):
            raise _Refused(f"it calls {function.name.replace(' ', '.')} without a tuple of values")
        if function.name == _TENSOR and len(arguments) >= 4:
            return self._tensor(*arguments[:4])
        if function.name in _SETS and all(isinstance(part, (list, tuple)) for part in arguments[:1]):
            return set(map(_key, arguments[0])) if arguments else set()
        if function.name == _ORDERED and not arguments:
            return {}
        raise _Refused(f"it calls {function.name.replace(' ', '.')} with {len(arguments)} values")

    def _tensor(self, values: Any, offset: Any, size: Any, stride: Any) -> NDArray[Any]:
        """Return a tensor of a storage; the bytes of all tensors that are copied are counted."""
        tensor = _strided(values, offset, size, stride)
        is_bfloat = values.dtype == _BFloat
        if is_bfloat or not tensor.flags.c_contiguous:
            self._bytes_left -= tensor.size * (8 if is_bfloat else tensor.itemsize)  # bfloat16 makes two 4-byte arrays
            if self._bytes_left < 0:
                raise _Refused("its tensors repeat their storages again and again")
        if is_bfloat:
            return (tensor["upper"].astype(np.uint32) << np.uint32(16)).view(np.float32)
        return np.ascontiguousarray(tensor).reshape(size)


def _text(value: Any) -> str:
    """Return a text of the file. Other values are refused: to print one may take for ever."""
    if not isinstance(value, str):
        raise _Refused(f"it names something by a value of type {type(value).__name__}, not by a text")
    return value


def _key(value: Any) -> Any:
    """Return a key of a dictionary or a member of a set. The author of a file cannot choose keys that hash slowly."""
    if isinstance(value, str | float | bool | None) or (isinstance(value, int) and abs(value) < _INTEGER_LIMIT):
        return value
    kind = "number of more than 64 bits" if isinstance(value, int) else f"value of type {type(value).__name__}"
    raise _Refused(f"it has a {kind} as a key or in a set; keys are numbers and texts")


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
    "MARK": lambda: _MARK,
}
_LITERALS = (
    *("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT", "FLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"),
)
_GROUPS = ("TUPLE", "LIST", "DICT", "FROZENSET", "APPENDS", "SETITEMS", "ADDITEMS")
# instruction -> how often it counts against _MAX_KEPT_OBJECTS; a tensor takes some hundred bytes
_KEEPING: dict[str, int] = {
    **dict.fromkeys(("EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"), 1),
    **dict.fromkeys(("LIST", "DICT", "FROZENSET", "GLOBAL", "STACK_GLOBAL"), 1),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"), 1),
    "REDUCE": 8,
}


def _strided(values: Any, offset: Any, size: Any, stride: Any) -> NDArray[Any]:
    """Return a tensor of a storage as a view; its last number must lie inside the storage."""
    if not isinstance(values, np.ndarray) or not isinstance(size, tuple) or not isinstance(stride, tuple):
        raise _Refused("a tensor has no storage, or no size")
    numbers = (offset, *size, *stride)
    if len(size) != len(stride) or not all(type(n) is int and 0 <= n < _INTEGER_LIMIT for n in numbers):
        raise _Refused("a tensor has an offset, sizes and strides that do not fit together")
    if len(size) > _MAX_AXES or math.prod(size) > max(len(values), _MAX_REPEATED):
        raise _Refused(f"a tensor of the sizes {size[:_MAX_AXES]} repeats a storage of {len(values):,} numbers")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if all(size) and last >= len(values):
        raise _Refused(f"a tensor ends at number {last:,} of a storage of {len(values):,}")
    bytes_ = values.itemsize
    return np.lib.stride_tricks.as_strided(
        values[offset : offset + 1] if all(size) else values[:0], size, [step * bytes_ for step in stride]
    )
