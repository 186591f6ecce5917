"""AIGER files, ASCII (``aag``) and binary (``aig``), as Biere's report on the format defines them (FMV 07/1, 2007).

Only combinational circuits are read: files with latches or with properties (version 1.9) raise errors. An ASCII file
may list its ANDs in any order and skip numbers of variables; a circuit has them in order of dependence, and without
gaps. Names in the symbol table and comments are checked for form and ignored. Memory is bounded by the size of the
file, because a header that announces more than the file can hold raises an error first.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.arguments import checked_path
from graphbench.core.damage import FileFault, limited_bytes
from graphbench.core.errors import CircuitError
from graphbench.core.kernels import kernel
from graphbench.core.untrusted import open_regular

MOST_ANDS = 100_000_000
"""Most inputs and ANDs of a circuit together."""
MOST_BYTES = 1 << 30
Parts = tuple[int, NDArray[np.int32], NDArray[np.int32]]
"""Number of inputs, fan-ins ``[ands, 2]`` and outputs ``[m]`` of a circuit, as literals."""
_HEADER = re.compile(rb"(aag|aig)((?: (?:0|[1-9][0-9]{0,17})){5,9})")
_SYMBOL = re.compile(rb"([ilo])(0|[1-9][0-9]{0,17}) ([^\x00-\x1f\x7f]+)")
_NUMBER = re.compile(rb"0|[1-9][0-9]{0,17}")
_LONGEST_LINE = 1 << 20
_STARTS, _LONGEST_START = (b"aag", b"aig"), 40  # a file that begins with another word is not read whole
_CUT_SHORT, _TOO_LONG, _NOT_BEFORE = -1, -2, -3


class _Header(NamedTuple):
    ascii: bool
    variables: int
    inputs: int
    outputs: int
    ands: int


def read_parts(path_or_bytes: str | Path | bytes) -> Parts:
    """Return the circuit of an AIGER file.

    Args:
        path_or_bytes: The file, or its content.

    Raises:
        CircuitError: If the file cannot be read, is no AIGER file, is cut short, has latches, a loop, or literals out
            of range; the message gives the position.
    """
    if isinstance(path_or_bytes, bytes | bytearray):
        return _parse("the AIGER data", bytes(path_or_bytes))
    path = checked_path("path_or_bytes", path_or_bytes)
    try:
        with open_regular(path) as file:
            start = file.read(_LONGEST_START)
        data = limited_bytes(path, MOST_BYTES) if start.startswith(_STARTS) else start
    except FileFault as error:
        raise CircuitError(f"{path} {error}: {MOST_BYTES >> 20:,} MiB") from error
    except OSError as error:
        raise CircuitError(f"{path} cannot be read: {error.strerror or error}") from error
    return _parse(str(path), data)


def aiger_bytes(n: int, fanins: NDArray[np.int32], outputs: NDArray[np.int32], *, ascii: bool = False) -> bytes:
    """Return a circuit as an AIGER file; the larger fan-in of every AND comes first, as the binary format needs.

    Args:
        n: Number of inputs.
        fanins: int32 ``[ands, 2]``.
        outputs: int32 ``[m]``.
        ascii: Whether to write the ASCII format.
    """
    ands = len(fanins)
    sizes = f"{n + ands} {n} 0 {len(outputs)} {ands}\n"
    roots = "".join(f"{literal}\n" for literal in outputs.tolist())
    defined = 2 * (1 + n + np.arange(ands, dtype=np.int64))
    high, low = fanins.max(axis=1, initial=0).astype(np.int64), fanins.min(axis=1, initial=MOST_ANDS * 2 + 2)
    if ascii:
        inputs = "".join(f"{2 * (1 + i)}\n" for i in range(n))
        rows = zip(defined.tolist(), high.tolist(), low.tolist(), strict=True)
        return f"aag {sizes}{inputs}{roots}".encode() + "".join(f"{a} {b} {c}\n" for a, b, c in rows).encode()
    return f"aig {sizes}{roots}".encode() + _encode(np.stack((defined - high, high - low), axis=1).ravel()).tobytes()


def _parse(path: str, data: bytes) -> Parts:
    if data[:3] == b"aag":
        data = data.replace(b"\r\n", b"\n")  # texts may have Windows line ends
    header, at = _read_header(path, data)
    lines = _Lines(path, data, at)
    if header.ascii:
        inputs = [lines.literals(1, "an input")[0] for _ in range(header.inputs)]
        outputs = [lines.literals(1, "an output")[0] for _ in range(header.outputs)]
        ands = [lines.literals(3, "an AND") for _ in range(header.ands)]
        parts = _from_ascii(path, header, inputs, outputs, np.array(ands, np.int64).reshape(-1, 3))
    else:
        outputs = [lines.literals(1, "an output")[0] for _ in range(header.outputs)]
        parts = _from_binary(path, header, outputs, lines)
    _check_symbols(lines, header)
    return parts


class _Lines:
    """The lines of a file from some byte on."""

    def __init__(self, path: str, data: bytes, at: int) -> None:
        self.place, self.data, self.at, self.number = path, data, at, 2

    def next(self, expected: str) -> bytes:
        """Return the next line without its end.

        Raises:
            CircuitError: If the file ends before the line does.
        """
        end = self.data.find(b"\n", self.at, self.at + _LONGEST_LINE)
        if end < 0:
            rest = self.data[self.at : self.at + 40]
            begun = f", and {_shown(rest)} has no line end" if rest else ""
            raise CircuitError(f"{self.place} is cut short: line {self.number} should hold {expected}{begun}")
        line = self.data[self.at : end]
        self.at, self.number = end + 1, self.number + 1
        return line

    def literals(self, count: int, expected: str) -> list[int]:
        """Return the numbers of the next line.

        Raises:
            CircuitError: If the line does not hold ``count`` numbers, separated by single spaces.
        """
        line = self.next(expected)
        words = line.split(b" ")
        if len(words) != count or not all(map(_NUMBER.fullmatch, words)):
            raise CircuitError(
                f"{self.place}, line {self.number - 1}: {_shown(line)} should be {expected}, as {count} "
                f"number{'s' if count > 1 else ''}"
            )
        return [int(word) for word in words]


def _read_header(path: str, data: bytes) -> tuple[_Header, int]:
    """Return the header and the end of its line.

    Raises:
        CircuitError: If it is no header, announces more than the file can hold, or announces latches or properties.
    """
    end = data.find(b"\n", 0, 256)
    if end < 0 and _HEADER.fullmatch(data):
        raise CircuitError(f"{path} is cut short: it ends within its first line, {_shown(data)}")
    if data[:3] == b"aig" and data[end - 1 : end] == b"\r":
        raise CircuitError(f"{path} was changed to Windows line ends, which damages binary files; copy it unchanged")
    match = _HEADER.fullmatch(data[:end]) if end >= 0 else None
    if match is None:
        raise CircuitError(
            f"{path} begins with {_shown(data[:40])}; an AIGER file begins with 'aag M I L O A' or 'aig M I L O A'"
        )
    variables, inputs, latches, outputs, ands, *properties = map(int, match[2].split())
    header = _Header(match[1] == b"aag", variables, inputs, outputs, ands)
    if latches or any(properties):
        raise CircuitError(
            f"{path} has {latches:,} latches and {sum(properties):,} properties; only combinational circuits, without "
            "either, are read"
        )
    total = inputs + ands
    if variables < total or (not header.ascii and variables != total):
        raise CircuitError(
            f"{path}: the header says that the largest variable is {variables:,}, but there are {inputs:,} inputs and "
            f"{ands:,} ANDs"
        )
    if variables > MOST_ANDS:
        raise CircuitError(f"{path}: the header says {variables:,} variables; at most {MOST_ANDS:,} are read")
    least = (2 * inputs + 6 * ands if header.ascii else 2 * ands) + 2 * outputs
    if least > len(data) - end:
        raise CircuitError(
            f"{path} is cut short: the header says {inputs:,} inputs, {outputs:,} outputs and {ands:,} ANDs, which "
            f"take at least {least:,} bytes, but {len(data) - end - 1:,} follow"
        )
    return header, end + 1


def _from_ascii(path: str, header: _Header, inputs: list[int], outputs: list[int], ands: NDArray[np.int64]) -> Parts:
    """Return the circuit of the numbers of an ASCII file: variables are renumbered, and ANDs put in order.

    Raises:
        CircuitError: If a literal is out of range, a variable is defined twice or not at all, or there is a loop.
    """
    defined = np.concatenate([np.array(inputs, np.int64), ands[:, 0]])
    used = np.concatenate([ands[:, 1:].ravel(), np.array(outputs, np.int64)])
    limit = 2 * header.variables + 1
    for literals, verb in ((defined, "defines"), (used, "uses")):
        if literals.max(initial=0) > limit:
            raise CircuitError(f"{path} {verb} the literal {literals.max()}; the largest by its header is {limit}")
    wrong = defined[(defined & 1 == 1) | (defined == 0)]
    if wrong.size:
        raise CircuitError(f"{path} defines the literal {wrong[0]}; inputs and ANDs are even literals from 2 on")
    names, place_of, counts = np.unique(defined >> 1, return_index=True, return_counts=True)
    if (counts > 1).any():
        raise CircuitError(f"{path} defines the variable {names[counts > 1][0]} twice")
    definitions = np.append(0, names)
    undefined = used[~np.isin(used >> 1, definitions)]
    if undefined.size:
        raise CircuitError(f"{path} uses the literal {undefined[0]}, whose variable is neither an input nor an AND")
    dense = np.append(0, 1 + place_of)  # variable of the file, by its rank -> inputs, then ANDs in their order
    used = 2 * dense[np.searchsorted(definitions, used >> 1)] + (used & 1)
    n, fanins = header.inputs, used[: 2 * len(ands)].reshape(-1, 2)
    order = _dependence_order(n, fanins)
    if len(order) < len(ands):
        raise CircuitError(f"{path} has a loop: {len(ands) - len(order):,} ANDs lie on it or depend on it")
    renamed = np.arange(1 + n + len(ands))
    renamed[1 + n + order] = 1 + n + np.arange(len(ands))
    roots = used[2 * len(ands) :]
    return (
        n,
        (2 * renamed[fanins[order] >> 1] + (fanins[order] & 1)).astype(np.int32),
        (2 * renamed[roots >> 1] + (roots & 1)).astype(np.int32),
    )


@kernel
def _dependence_order(n: int, fanins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ANDs in an order in which each comes after its fan-ins; fewer ANDs if there is a loop."""
    ands = fanins.shape[0]
    order = np.empty(ands, np.int64)
    state = np.zeros(ands, np.uint8)  # 0 not seen, 1 on the stack, 2 in the order
    stack = np.empty(ands, np.int64)
    count = 0
    for root in range(ands):
        if state[root]:
            continue
        height = 1
        stack[0], state[root] = root, 1
        while height:
            k = stack[height - 1]
            below = np.int64(-1)
            for side in range(2):
                other = (fanins[k, side] >> 1) - 1 - n
                if other >= 0 and state[other] == 1:
                    return order[:count]
                if other >= 0 and state[other] == 0:
                    below = other
                    break
            if below >= 0:
                stack[height], state[below] = below, 1
                height += 1
            else:
                order[count], state[k] = k, 2
                count += 1
                height -= 1
    return order


def _from_binary(path: str, header: _Header, outputs: list[int], lines: _Lines) -> Parts:
    """Return the circuit of a binary file whose outputs have been read.

    Raises:
        CircuitError: If the ANDs are cut short or malformed, or an output is out of range.
    """
    limit = 2 * header.variables + 1
    if max(outputs, default=0) > limit:
        raise CircuitError(f"{path} uses the literal {max(outputs)}; the largest by its header is {limit}")
    data = np.frombuffer(lines.data, np.uint8)[lines.at :]
    fanins, end = _decode(data, header.inputs, header.ands)
    if end < 0:
        number = len(fanins)
        problems = {
            _CUT_SHORT: f"is cut short at AND {number} of {header.ands:,}",
            _TOO_LONG: f"has a number of more than 5 bytes at AND {number}",
            _NOT_BEFORE: f"has a fan-in that is not before its AND, or below 0, at AND {number}",
        }
        raise CircuitError(f"{path} {problems[int(end)]}")
    lines.at += int(end)
    return header.inputs, fanins, np.array(outputs, np.int32)


@kernel
def _decode(data: NDArray[np.uint8], n: int, ands: int) -> tuple[NDArray[np.int32], np.int64]:
    """Return the fan-ins of the ANDs of a binary file, and their end; a problem below 0 and the ANDs before it."""
    fanins = np.empty((ands, 2), np.int32)
    at = np.int64(0)
    for k in range(ands):
        last = np.int64(2 * (1 + n + k))
        for side in range(2):
            delta, shift = np.int64(0), np.int64(0)
            while True:
                if at >= data.shape[0]:
                    return fanins[:k], np.int64(_CUT_SHORT)
                if shift > 28:
                    return fanins[:k], np.int64(_TOO_LONG)
                byte = np.int64(data[at])
                at += 1
                delta |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            if delta > last or (side == 0 and delta == 0):
                return fanins[:k], np.int64(_NOT_BEFORE)
            last -= delta
            fanins[k, side] = last
    return fanins, at


@kernel
def _encode(deltas: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return numbers in groups of 7 bits, the lowest first; the highest bit of a byte is 1 if another byte follows."""
    data = np.empty(5 * len(deltas), np.uint8)
    at = 0
    for delta in deltas:
        rest = delta
        while rest > 127:
            data[at] = 128 | (rest & 127)
            rest >>= 7
            at += 1
        data[at] = rest
        at += 1
    return data[:at]


def _check_symbols(lines: _Lines, header: _Header) -> None:
    """Check the rest of the file after the ANDs: names of inputs and outputs, and then comments.

    Raises:
        CircuitError: If anything else follows.
    """
    sizes = {b"i": header.inputs, b"o": header.outputs, b"l": 0}
    while lines.at < len(lines.data):
        line = lines.next("a name of the symbol table, or 'c' before comments")
        if line in (b"c", b"c\r"):
            return
        match = _SYMBOL.fullmatch(line)
        if match is None or int(match[2]) >= sizes[match[1]]:
            raise CircuitError(
                f"{lines.place} continues with {_shown(line)} after its ANDs; only names of its inputs and outputs, "
                "such as 'i0 carry', and comments after a line 'c' may follow"
            )


def _shown(data: bytes) -> str:
    return repr(data[:40].decode("latin-1")) + ("..." if len(data) > 40 else "")
