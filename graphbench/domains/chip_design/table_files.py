"""Files of truth tables, such as those of the IWLS programming contests, as a source of functions.

A ``.truth`` file has one line per output: the 2^n values of the output as characters 0 and 1, the value at the last
assignment first, as ABC's ``read_truth -xf`` takes it. A ``.hex`` file has a hexadecimal number of 2^n / 4 digits per
line, as ``read_truth -f`` takes it. Behind either, ``.gz``, ``.xz`` or ``.bz2`` may stand. Text after ``#`` is skipped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from graphbench.core.arguments import checked_path
from graphbench.core.damage import fault_of
from graphbench.core.errors import CircuitError
from graphbench.core.packed import PACKED_ERRORS, open_packed
from graphbench.core.untrusted import shown
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts
from graphbench.data.components.file_sources import FileSource, file_source
from graphbench.data.components.folder_splits import NAME, PACKED, WHOLE, FileKind, read_splits
from graphbench.domains.chip_design.graphs import TABLE, circuits_as_samples, tables_of_texts
from graphbench.domains.chip_design.shannon import circuits_of_tables
from graphbench.domains.chip_design.truth_tables import Bits, from_text, to_text

MOST_INPUTS, MOST_OUTPUTS = 16, 64
"""Most inputs and outputs of a function that is read: circuits of larger ones are no longer small."""
_LEAST_INPUTS = 2  # tables as text need two
_BINARY, _HEXADECIMAL = ".truth", ".hex"
_LINE = (1 << MOST_INPUTS) + 4096  # bytes


def read_table(path: str | Path) -> Bits:
    """Return the truth table of a file, bool ``[m, 2^n]``.

    Raises:
        CircuitError: If the name has no known ending, or the file cannot be read or unpacked, is malformed, or has
            fewer than 2 or more than 16 inputs or more than 64 outputs.
    """
    source = checked_path("path", path)
    ending = _ending(source.name)
    if ending is None:
        raise CircuitError(f"{source} has no ending of a truth table; expected are {_NAMES}")
    rows: list[str] = []
    try:
        with open_packed(source) as file:
            number = 0
            while line := file.readline(_LINE):
                number += 1
                if len(line) == _LINE and not line.endswith(b"\n"):
                    raise CircuitError(
                        f"{source}, line {number}: more than 2^{MOST_INPUTS} values; is it a truth table?"
                    )
                words = line.partition(b"#")[0].split()
                if words:
                    rows.append(_checked_row(source, number, words, ending))
                    _check_length(source, number, rows, ending)
    except PACKED_ERRORS as error:
        raise CircuitError(f"{source} cannot be read: {fault_of(error)}; get the file again") from error
    if not rows:
        raise CircuitError(f"{source} has no line with values; a truth table has one per output")
    if ending == _HEXADECIMAL:
        return from_text(" ".join(rows).lower())
    values = np.frombuffer("".join(rows).encode("ascii"), np.uint8).reshape(len(rows), -1)
    return np.ascontiguousarray(values[:, ::-1] == ord("1"))


def _ending(name: str) -> str | None:
    for packed in PACKED:
        for ending in (_BINARY, _HEXADECIMAL):
            if name.endswith(ending + packed):
                return ending
    return None


def _checked_row(path: Path, number: int, words: list[bytes], ending: str) -> str:
    """Return the characters of a line, which must be digits of the format alone."""
    allowed = b"01" if ending == _BINARY else b"0123456789abcdefABCDEF"
    if len(words) != 1 or words[0].strip(allowed):
        text = shown(b" ".join(words).decode("latin-1"), 60)
        digits = "0 and 1" if ending == _BINARY else "hexadecimal digits"
        raise CircuitError(f"{path}, line {number}: {text!r} where the values of an output, {digits}, are expected")
    return words[0].decode("ascii")


def _check_length(path: Path, number: int, rows: list[str], ending: str) -> None:
    """Refuse lines of different lengths, lengths that are no power of two, and functions that are too large."""
    length = len(rows[-1])
    if length != len(rows[0]):
        raise CircuitError(f"{path}, line {number}: {length:,} values, but the first output has {len(rows[0]):,}")
    bits = length * (1 if ending == _BINARY else 4)
    inputs = bits.bit_length() - 1
    if bits.bit_count() != 1 or not _LEAST_INPUTS <= inputs <= MOST_INPUTS:
        raise CircuitError(
            f"{path}, line {number}: {bits:,} values; an output of n inputs has 2^n, and n is {_LEAST_INPUTS} to "
            f"{MOST_INPUTS}"
        )
    if len(rows) > MOST_OUTPUTS:
        raise CircuitError(f"{path} has more than {MOST_OUTPUTS} outputs; such functions are not read")


_NAMES = ", ".join(f"*{ending}{packed}" for ending in (_BINARY, _HEXADECIMAL) for packed in PACKED)

TABLES: FileKind[Bits] = FileKind(
    noun="truth table",
    is_one=lambda name: _ending(name) is not None,
    names=_NAMES,
    read=read_table,
    digest=lambda table: hashlib.sha256(to_text(table).encode("ascii")).hexdigest(),
    error=CircuitError,
)


def _as_samples(folder: Path) -> dict[str, Samples]:
    return {split: _samples(tables) for split, tables in read_splits(folder, TABLES, whole=WHOLE).items()}


def _samples(tables: Mapping[str, Bits]) -> Samples:
    texts = [to_text(table) for table in tables.values()]
    graphs = circuits_as_samples(circuits_of_tables(*tables_of_texts(texts)))
    values = {**graphs.values, TABLE: Texts.of(texts), NAME.name: Texts.of(tables)}
    return Samples(graphs.num_nodes, graphs.num_edges, graphs.edges, values)


FILES: FileSource = file_source("chip_design.files", _as_samples, also=(NAME,))
"""The source ``files``: truth tables, plain or compressed by gzip, xz or bzip2."""

SOURCES: Mapping[str, FileSource] = {"files": FILES}
"""The file sources of the domain."""
