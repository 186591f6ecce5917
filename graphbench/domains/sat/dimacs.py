"""Formulas in DIMACS files, plain or compressed (.gz, .bz2, .xz).

Files are read in pieces, so memory is bounded by the size of the formula, and a file that is not a formula gives one
error. The reader also accepts the variations that occur in published collections: comments between clauses, clauses
over several lines, the ``%`` at the end of SATLIB files, carriage returns, and a last clause without its 0.
"""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from graphbench.core.arguments import checked_path
from graphbench.core.damage import fault_of
from graphbench.core.errors import FormulaError
from graphbench.core.kernels import kernel
from graphbench.core.packed import PACKED_ERRORS, open_packed
from graphbench.domains.sat.cnf import Cnf

MAX_LITERALS = 200_000_000
_MAX_NUMBER = 2**31 - 1
_PIECE = 1 << 20
_LINE = 1 << 16
_NEWLINE, _RETURN, _SPACE, _TAB, _MINUS, _ZERO, _NINE = (ord(c) for c in "\n\r \t-09")
_COMMENT, _END = ord("c"), ord("%")

# state of the parser
_MODE, _VALUE, _SIGN, _LENGTH, _LINE_NUMBER, _ERROR, _SIZE = range(7)
_BETWEEN, _IN_NUMBER, _IN_COMMENT, _AFTER_END, _AFTER_MINUS = range(5)
_BAD_BYTE, _TOO_LARGE = 1, 2


def read_dimacs(path: str | Path, *, max_literals: int = MAX_LITERALS) -> Cnf:
    """Return the formula of a DIMACS file as written: no literal or clause is sorted, merged or removed.

    Args:
        path: The file; with the suffix ``.gz``, ``.bz2`` or ``.xz`` it is decompressed.
        max_literals: Largest number of literals; a file with more literals is refused while it is read.

    Raises:
        FormulaError: If the file cannot be read or decompressed, is not a DIMACS CNF file, is too large, or if its
            numbers of variables and clauses differ from its header.
    """
    source = checked_path("path", path)
    try:
        with open_packed(source) as file:
            num_variables, num_clauses, line = _read_header(source, file)
            literals, lengths = _read_clauses(source, file, line, max_literals)
    except PACKED_ERRORS as error:
        raise FormulaError(f"{source} cannot be read: {fault_of(error)}; get the file again") from error
    largest = int(np.abs(literals).max(initial=0))
    if largest > num_variables:
        raise FormulaError(f"{source} holds the variable {largest}, but its header says {num_variables} variables")
    if len(lengths) != num_clauses:
        raise FormulaError(f"{source} holds {len(lengths):,} clauses, but its header says {num_clauses:,}")
    ptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ptr[1:])
    return Cnf(num_variables, literals, ptr)


def _read_header(path: Path, file: BinaryIO) -> tuple[int, int, int]:
    """Return the number of variables, the number of clauses, and the line number of the header."""
    number = 0
    while line := file.readline(_LINE):
        number += 1
        line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        text = line.decode("latin-1").strip()
        if text.startswith("c") or not text:
            while line and not line.endswith(b"\n"):  # skips the rest of a long comment
                line = file.readline(_LINE)
            continue
        words = text.split()
        if words[0] != "p":
            break
        if len(words) != 4 or words[1] != "cnf" or not (words[2].isdecimal() and words[3].isdecimal()):
            raise FormulaError(
                f"{path}, line {number}: the header is {text[:60]!r}; expected 'p cnf VARIABLES CLAUSES'"
            )
        counts = [int(word) if len(word) <= 12 else _MAX_NUMBER + 1 for word in words[2:]]
        if max(counts) > _MAX_NUMBER:
            raise FormulaError(f"{path}, line {number}: the header {text[:60]!r} has a number above {_MAX_NUMBER:,}")
        return counts[0], counts[1], number
    raise FormulaError(f"{path} has no header 'p cnf VARIABLES CLAUSES' before its clauses; is it a DIMACS CNF file?")


def _read_clauses(
    path: Path, file: BinaryIO, line: int, max_literals: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    state = np.zeros(_SIZE, np.int64)
    state[_SIGN], state[_LINE_NUMBER] = 1, line + 1
    literals, lengths, total = [np.empty(0, np.int32)], [np.empty(0, np.int64)], 0
    while piece := file.read(_PIECE):
        codes, ends = _parse(np.frombuffer(piece, np.uint8), state)
        if state[_ERROR] == _BAD_BYTE:
            raise FormulaError(
                f"{path}, line {state[_LINE_NUMBER]}: {chr(state[_VALUE])!r} where a literal is expected"
            )
        if state[_ERROR] == _TOO_LARGE:
            raise FormulaError(f"{path}, line {state[_LINE_NUMBER]}: a literal is above {_MAX_NUMBER:,}")
        literals.append(codes)
        lengths.append(ends)
        total += len(codes)
        if total > max_literals:
            raise FormulaError(
                f"{path} holds more than {max_literals:,} literals; raise max_literals if memory suffices"
            )
        if state[_MODE] == _AFTER_END:
            break
    codes, ends = _parse(np.array([_NEWLINE], np.uint8), state)  # completes a number at the end of the file
    literals.append(codes)
    lengths.append(ends)
    if state[_LENGTH]:  # a last clause without its 0
        lengths.append(np.array([state[_LENGTH]]))
    return np.concatenate(literals), np.concatenate(lengths)


@kernel
def _parse(piece: NDArray[np.uint8], state: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the literals in a piece of a file, and the lengths of the clauses that end in it."""
    literals, lengths = np.empty(len(piece) // 2 + 1, np.int32), np.empty(len(piece) // 2 + 1, np.int64)
    num_literals = num_clauses = 0
    mode, value, sign, length, line = state[0], state[1], state[2], state[3], state[4]
    for byte in piece:
        if mode == _AFTER_END:
            break
        blank = byte in (_SPACE, _NEWLINE, _TAB, _RETURN)
        if mode == _IN_COMMENT:
            if byte == _NEWLINE:
                mode = _BETWEEN
        elif _ZERO <= byte <= _NINE:
            value = value * 10 + (byte - _ZERO) if mode == _IN_NUMBER else np.int64(byte - _ZERO)
            mode = _IN_NUMBER
            if value > _MAX_NUMBER:
                state[_ERROR] = _TOO_LARGE
                break
        elif blank and mode != _AFTER_MINUS:
            if mode == _IN_NUMBER:
                if value == 0:
                    lengths[num_clauses] = length
                    num_clauses += 1
                    length = 0
                else:
                    literals[num_literals] = sign * value
                    num_literals += 1
                    length += 1
                mode, value, sign = _BETWEEN, 0, 1
        elif mode == _BETWEEN and byte == _MINUS:
            mode, sign = _AFTER_MINUS, -1
        elif mode == _BETWEEN and byte == _COMMENT:
            mode = _IN_COMMENT
        elif mode == _BETWEEN and byte == _END:
            mode = _AFTER_END
        else:
            state[_ERROR], value = _BAD_BYTE, np.int64(byte)
            break
        if byte == _NEWLINE:
            line += 1
    state[0], state[1], state[2], state[3], state[4] = mode, value, sign, length, line
    return literals[:num_literals].copy(), lengths[:num_clauses].copy()
