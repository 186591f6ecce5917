"""Files of graphs: DIMACS graphs, as text and binary, and the graphs of the Gset.

Graphs are undirected, without weights and loops. A format is recognised by the name of the file, behind which ``.gz``,
``.xz`` or ``.bz2`` may stand:

- ``.col``, ``.clq``, ``.mis``, ``.dimacs``: DIMACS text, ``p edge NODES EDGES`` and lines ``e U V``
  (ftp://dimacs.rutgers.edu/pub/challenge/graph/doc/ccformat.tex). Published files list an edge once or in both
  directions, and count either; both are accepted.
- ``.col.b``, ``.clq.b``: DIMACS binary, the same header as text and then the lower triangle of the adjacency matrix,
  a bit per pair, the first of a byte in its highest bit.
- ``.rud``, ``.mc``, ``.gset``, and ``G1``, ``G22.txt``: Gset (rudy), ``NODES EDGES`` and lines ``U V [WEIGHT]``.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from graphbench.core.arguments import checked_path
from graphbench.core.damage import fault_of
from graphbench.core.errors import DataImportError
from graphbench.core.packed import PACKED_ERRORS, open_packed
from graphbench.core.untrusted import shown
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.file_sources import FileSource, file_source
from graphbench.data.components.folder_splits import (
    NAME,
    PACKED,
    WHOLE,
    FileKind,
    Graph,
    graphs_as_samples,
    read_splits,
)

MAX_NODES = 5_000_000
MAX_EDGES = 50_000_000

_LINE = 1 << 16
_PREAMBLE = 1 << 20  # bytes of the text at the beginning of a binary file
_DIMACS, _BINARY, _GSET = (".col", ".clq", ".mis", ".dimacs"), (".col.b", ".clq.b"), (".rud", ".mc", ".gset")
_NUMBERED = re.compile(r"G\d+(\.txt)?")
_SKIPPED = (b"c", b"d", b"v", b"x")  # comments, and the geometry of geometric graphs


@dataclass(frozen=True)
class _Content:
    """What a file says of its graph.

    Attributes:
        nodes: Number of nodes.
        ends: int64 [lines, 2], the ends of the edges, from 1 on, in any order and direction.
        stated: Number of edges in the header.
        once: Whether the format lists every edge once.
    """

    nodes: int
    ends: NDArray[np.int64]
    stated: int
    once: bool = False


def read_graph(path: str | Path) -> Graph:
    """Return the graph of a file.

    Raises:
        DataImportError: If the name has no known ending, or the file cannot be read or unpacked, is malformed, is
            larger than 5,000,000 nodes or 50,000,000 edges, contradicts its header, or has weights or loops.
    """
    source = checked_path("path", path)
    read = _reader_of(source.name)
    if read is None:
        raise DataImportError(f"{source} has no ending of a graph file; expected are {_NAMES}")
    try:
        with open_packed(source) as file:
            content = read(source, file)
    except PACKED_ERRORS as error:
        raise DataImportError(f"{source} cannot be read: {fault_of(error)}; get the file again") from error
    return _checked(source, content)


def _checked(path: Path, content: _Content) -> Graph:
    """Return the graph of a file, if the content of the file agrees with its header."""
    nodes, ends, stated = content.nodes, content.ends, content.stated
    outside = (ends < 1) | (ends > nodes)
    if outside.any():
        raise DataImportError(f"{path} names the node {ends[outside][0]}; its header says {nodes:,} nodes, from 1 on")
    loops = ends[ends[:, 0] == ends[:, 1], 0]
    if len(loops):
        raise DataImportError(f"{path} joins the node {loops[0]} to itself; the problems are defined without loops")
    low, high = ends.min(axis=1, initial=nodes) - 1, ends.max(axis=1, initial=0) - 1
    ranks = np.unique(low * nodes + high)
    if content.once and len(ranks) < len(ends):
        raise DataImportError(f"{path} has {len(ends):,} lines of edges, and {len(ranks):,} edges: one is there twice")
    if stated not in ((len(ends),) if content.once else (len(ends), len(ranks), 2 * len(ranks))):
        raise DataImportError(f"{path} holds {len(ranks):,} edges, but its header says {stated:,}; get the file again")
    return nodes, np.stack([ranks // nodes, ranks % nodes], axis=1).astype(np.int32)


def _lines(path: Path, file: BinaryIO) -> Iterator[tuple[int, list[bytes]]]:
    """Yield (line number, words) of every line with words."""
    number = 0
    while line := file.readline(_LINE):
        number += 1
        if len(line) == _LINE and not line.endswith(b"\n"):
            if not line.startswith(_SKIPPED):
                raise DataImportError(
                    f"{path}, line {number}: a line of more than {_LINE:,} bytes; is it a graph file?"
                )
            while line and not line.endswith(b"\n"):  # the rest of a long comment
                line = file.readline(_LINE)
            continue
        words = line.split()
        if words:
            yield number, words


def _fault(path: Path, number: int, words: list[bytes], expected: str) -> NoReturn:
    text = shown(b" ".join(words).decode("latin-1"), 60)
    raise DataImportError(f"{path}, line {number}: {text!r} where {expected} is expected")


def _count(path: Path, word: bytes, most: int, noun: str) -> int:
    """Return a count of a header, at most ``most``."""
    value = int(word) if len(word) <= 12 else most + 1
    if value > most:
        raise DataImportError(f"{path} says that it has {shown(word.decode('latin-1'), 20)} {noun}; at most {most:,}")
    return value


def _header(path: Path, number: int, words: list[bytes]) -> tuple[int, int]:
    """Return the numbers of nodes and edges of a line ``p edge NODES EDGES``."""
    if len(words) != 4 or not (words[2].isdigit() and words[3].isdigit()):
        _fault(path, number, words, "the header 'p edge NODES EDGES'")
    nodes = _count(path, words[2], MAX_NODES, "nodes")
    return _at_least_one(path, nodes), _count(path, words[3], 2 * MAX_EDGES, "edges")


def _at_least_one(path: Path, nodes: int) -> int:
    if nodes < 1:
        raise DataImportError(f"{path} says that it has {nodes} nodes; a graph needs at least one")
    return nodes


def _as_ends(numbers: array[int]) -> NDArray[np.int64]:
    return np.frombuffer(numbers, np.int64).reshape(-1, 2) if numbers else np.empty((0, 2), np.int64)


def _add(path: Path, number: int, ends: array[int], words: list[bytes], expected: str) -> None:
    """Append the two ends of an edge."""
    first, second = words
    if not (first.isdigit() and second.isdigit() and len(first) <= 12 and len(second) <= 12):
        _fault(path, number, words, expected)
    ends.append(int(first))
    ends.append(int(second))
    if len(ends) > 4 * MAX_EDGES:
        raise DataImportError(f"{path} holds more than {2 * MAX_EDGES:,} lines of edges; such graphs are not read")


def _read_text(path: Path, file: BinaryIO) -> _Content:
    """Return the content of a file of DIMACS text."""
    header: tuple[int, int] | None = None
    ends = array("q")
    for number, words in _lines(path, file):
        kind = words[0]
        if kind == b"e" and header is not None and len(words) == 3:
            _add(path, number, ends, words[1:], "an edge 'e U V'")
        elif kind == b"p" and header is None:
            header = _header(path, number, words)
        elif kind == b"n" and len(words) == 3:
            if words[2] != b"1":
                raise DataImportError(
                    f"{path}, line {number}: node {shown(words[1].decode('latin-1'), 20)} has the weight "
                    f"{shown(words[2].decode('latin-1'), 20)}; the problems are those of graphs without weights"
                )
        elif not kind.startswith(_SKIPPED):
            _fault(path, number, words, "an edge 'e U V'" if header else "the header 'p edge NODES EDGES'")
    if header is None:
        raise DataImportError(f"{path} has no header 'p edge NODES EDGES'; is it a DIMACS graph?")
    return _Content(header[0], _as_ends(ends), header[1])


def _read_binary(path: Path, file: BinaryIO) -> _Content:
    """Return the content of a file of DIMACS binary."""
    first = file.readline(16).strip()
    if not first.isdigit() or int(first) > _PREAMBLE:
        raise DataImportError(f"{path} does not begin with the length of its header; is it a binary DIMACS graph?")
    text = file.read(int(first))
    header = next((words for line in text.split(b"\n") if (words := line.split()) and words[0] == b"p"), [])
    nodes, edges = _header(path, 1, header)
    rows: list[NDArray[np.int64]] = []
    edge_count = 0
    for row in range(nodes):
        width = row // 8 + 1
        bits = np.frombuffer(file.read(width), np.uint8)
        if len(bits) < width:
            raise DataImportError(f"{path} ends in the row of node {row + 1:,} of {nodes:,}; get the file again")
        columns = np.flatnonzero(np.unpackbits(bits, count=row + 1))
        edge_count += len(columns)
        if edge_count > MAX_EDGES:
            raise DataImportError(f"{path} holds more than {MAX_EDGES:,} edges; such graphs are not read")
        rows.append(np.stack([np.full(len(columns), row), columns], axis=1) + 1)
    if file.read(1):
        raise DataImportError(f"{path} goes on behind the row of its last node; get the file again")
    return _Content(nodes, np.concatenate(rows).astype(np.int64), edges)


def _read_gset(path: Path, file: BinaryIO) -> _Content:
    """Return the content of a file of the Gset."""
    lines = _lines(path, file)
    number, words = next(lines, (1, []))
    if len(words) != 2 or not (words[0].isdigit() and words[1].isdigit()):
        _fault(path, number, words, "the header 'NODES EDGES'")
    nodes = _at_least_one(path, _count(path, words[0], MAX_NODES, "nodes"))
    edges = _count(path, words[1], MAX_EDGES, "edges")
    ends = array("q")
    for number, words in lines:
        if len(words) not in (2, 3):
            _fault(path, number, words, "an edge 'U V WEIGHT'")
        if len(words) == 3 and words[2] not in (b"1", b"1.0", b"+1"):
            raise DataImportError(
                f"{path}, line {number}: an edge has the weight {shown(words[2].decode('latin-1'), 20)}; the problems "
                "are those of graphs without weights, so leave this file out"
            )
        _add(path, number, ends, words[:2], "an edge 'U V WEIGHT'")
    return _Content(nodes, _as_ends(ends), edges, once=True)


_Reader = Callable[[Path, BinaryIO], _Content]
_READERS: Mapping[tuple[str, ...], _Reader] = {_DIMACS: _read_text, _BINARY: _read_binary, _GSET: _read_gset}
_NAMES = ", ".join(f"*{suffix}" for suffixes in _READERS for suffix in suffixes) + ", G1 and G1.txt"


def _reader_of(name: str) -> _Reader | None:
    """Return the reader of a file by its name; None for a file of another kind."""
    for packed in PACKED:
        plain = name.removesuffix(packed) if packed else name
        if packed and plain == name:
            continue
        if _NUMBERED.fullmatch(plain):
            return _read_gset
        for suffixes, read in _READERS.items():
            if plain.endswith(suffixes):
                return read
    return None


def _digest(graph: Graph) -> str:
    return hashlib.sha256(graph[0].to_bytes(8, "little") + graph[1].tobytes()).hexdigest()


GRAPHS: FileKind[Graph] = FileKind(
    noun="graph",
    is_one=lambda name: _reader_of(name) is not None,
    names=f"{_NAMES}, and these with .gz, .xz or .bz2",
    read=read_graph,
    digest=_digest,
    error=DataImportError,
)


def _as_samples(folder: Path) -> dict[str, Samples]:
    return {split: graphs_as_samples(graphs) for split, graphs in read_splits(folder, GRAPHS, whole=WHOLE).items()}


FILES: FileSource = file_source("co.files", _as_samples, also=(NAME,))
"""The source ``files``: graphs of DIMACS and of the Gset."""

SOURCES: Mapping[str, FileSource] = {"files": FILES}
