"""Datasets of tables: edges, nodes and graphs in CSV files."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import CORE_SPLITS
from graphbench.core.arguments import checked_path
from graphbench.core.damage import damage_named
from graphbench.core.errors import DataImportError
from graphbench.core.suggestions import closest
from graphbench.core.untrusted import open_regular_text, require_regular
from graphbench.core.words import counted
from graphbench.imports.dataset import Imported, import_graphs
from graphbench.imports.graphs import RawGraph
from graphbench.imports.options import ImportOptions, settings_of
from graphbench.imports.splits import usual_split

_MISSING = frozenset({"", "nan", "NaN", "NA", "null", "None"})  # of numbers; of texts the empty one alone
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|Inf|infinity|Infinity)")


def from_csv(
    name: str,
    edges: str | Path,
    *,
    nodes: str | Path | None = None,
    graphs: str | Path | None = None,
    source: str = "source",
    destination: str = "target",
    node: str = "node",
    graph: str = "graph",
    split_column: str = "split",
    **options: Unpack[ImportOptions],
) -> Imported:
    """Make a dataset of CSV files, which may be compressed (``.gz``).

    ``edges`` has the columns ``source`` and ``target``, the names of the two nodes of an edge, and ``nodes`` the column
    ``node``. A file of several graphs has the column ``graph`` besides, and ``graphs`` has a row per graph. All other
    columns are features: numbers, or texts. Without ``nodes``, the nodes are those that edges name. A column ``split``
    of ``graphs`` (of ``nodes``, for a single graph) gives the splits: ``train``, ``val``, ``test``, and names of
    further test splits; without it a rule divides the samples. The target is a column ``y`` of any of the files,
    unless the option ``target`` names another one.

    Args:
        name: As for ``from_pyg``.
        edges: The file of edges.
        nodes: The file of nodes.
        graphs: The file of graphs.
        source: Column with the first node of an edge.
        destination: Column with the second node of an edge.
        node: Column with the name of a node.
        graph: Column with the name of the graph; a file without it has a single graph.
        split_column: Column with the split.
        **options: See :class:`~graphbench.imports.options.ImportOptions`.

    Raises:
        DataImportError: As for ``from_pyg``; the message names file, row and column.
        ArgumentError: If an argument is unknown.
    """
    settings = settings_of(options)
    tables = _Tables(source, destination, node, graph, split_column)
    files = {"edges": edges, "nodes": nodes, "graphs": graphs}
    read = {what: read_table(checked_path(what, path)) for what, path in files.items() if path is not None}
    joined_graphs = tables.graphs(read["edges"], read.get("nodes"), read.get("graphs"))
    return import_graphs(name, tables.by_split(joined_graphs), settings)


class Table:
    """A CSV file in columns of texts.

    Attributes:
        path: The file.
        columns: Column -> the text of every row.
    """

    def __init__(self, path: Path, columns: Mapping[str, list[str]]) -> None:
        self.path = path
        self.columns = columns

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values()), []))

    def column(self, name: str, argument: str) -> list[str]:
        """Return a column.

        Raises:
            DataImportError: If the file lacks it; the message names the argument that chooses it.
        """
        if name not in self.columns:
            raise DataImportError(
                f"{self.path} has no column {name!r}{closest(name, self.columns)}; it has {', '.join(self.columns)}; "
                f"say which one with {argument}="
            )
        return self.columns[name]


def read_table(path: Path) -> Table:
    """Return a CSV file, which begins with the names of its columns.

    Raises:
        DataImportError: If the file cannot be read, a name is missing or occurs twice, or a line is too short or long.
    """
    with damage_named(path, DataImportError, "write it again as CSV with a line of headings"):
        require_regular(path)
        with opened(path) as file:
            rows = csv.reader(file, strict=True)
            heads = [head.strip() for head in next(rows, [])]
            if not heads or len(set(heads)) < len(heads) or "" in heads:
                raise DataImportError(
                    f"{path} needs a first line with the names of its columns, each once; got {heads}"
                )
            columns: dict[str, list[str]] = {head: [] for head in heads}
            for number, row in enumerate(rows, start=2):
                if not row:
                    continue
                if len(row) != len(heads):
                    raise DataImportError(f"{path} has {len(row)} cells in line {number}, and {len(heads)} columns")
                for head, cell in zip(heads, row, strict=True):
                    columns[head].append(cell.strip())
    return Table(path, columns)


def opened(path: Path) -> TextIO:
    """Open a text file, which is unpacked on the way if its name ends in ``.gz``."""
    if path.suffix == ".gz":
        return cast(TextIO, gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return open_regular_text(path, encoding="utf-8-sig", newline="")


def values_of(cells: Sequence[str]) -> NDArray[Any]:
    """Return the cells of a column as whole numbers, as numbers with nan for missing ones, or as texts.

    ``1_000`` and ``007`` are texts: Python reads them as numbers, other programs write names in this way.
    """
    if all(map(_WHOLE.fullmatch, cells)):
        try:
            return np.array([int(cell) for cell in cells], np.int64)
        except OverflowError:
            return np.array([float(cell) for cell in cells])
    named = any(re.fullmatch("[+-]?0[0-9]+", cell) for cell in cells)
    if not named and all(cell in _MISSING or _NUMBER.fullmatch(cell) for cell in cells):
        return np.array([np.nan if cell in _MISSING else float(cell) for cell in cells])
    return np.array(cells, dtype=object).astype(str)


class _Tables:
    """The names of the columns that are no features, and the graphs of tables that have them."""

    def __init__(self, source: str, destination: str, node: str, graph: str, split: str) -> None:
        self.source, self.destination, self.node, self.graph, self.split = source, destination, node, graph, split

    def graphs(self, edges: Table, nodes: Table | None, graphs: Table | None) -> list[RawGraph]:
        """Return the graphs, in the order of the file of graphs, or else of their first appearance."""
        ends = [edges.column(self.source, "source"), edges.column(self.destination, "destination")]
        named = self.graph in edges.columns
        for table, what in ((nodes, "nodes"), (graphs, "graphs")):
            if table is not None and (self.graph in table.columns) != named:
                has, lacks = (edges, table) if named else (table, edges)
                raise DataImportError(
                    f"{has.path} has the column {self.graph!r} and {lacks.path} lacks it; write it into all files "
                    f"(another name: graph=), or into none for a single graph [{what}]"
                )
        edge_owner = edges.columns[self.graph] if named else [""] * len(edges)
        known: dict[str, dict[str, int]] = {}
        if graphs is not None:
            names = graphs.columns[self.graph] if named else [""] * len(graphs)
            if len(set(names)) < len(names):
                raise DataImportError(f"{graphs.path} has a graph twice; write one row per graph")
            known = {name: {} for name in names}
        node_owner = [] if nodes is None else nodes.columns[self.graph] if named else [""] * len(nodes)
        node_names = [] if nodes is None else nodes.column(self.node, "node")
        for line, (owner, node) in enumerate(zip(node_owner, node_names, strict=True), start=2):
            node_numbers = self._of(known, owner, graphs, nodes, line)
            if node in node_numbers:
                raise DataImportError(f"{nodes and nodes.path} has the node {node!r} twice in line {line}")
            node_numbers[node] = len(node_numbers)
        rows: dict[str, list[int]] = {name: [] for name in known}
        arcs: dict[str, list[tuple[int, int]]] = {name: [] for name in known}
        for i, (owner, u, v) in enumerate(zip(edge_owner, *ends, strict=True)):
            node_numbers = self._of(known, owner, graphs, edges, i + 2)
            for end in (u, v):
                if end not in node_numbers:
                    if nodes is not None:
                        raise DataImportError(
                            f"{edges.path} has the node {end!r} in line {i + 2}, {nodes.path} has not"
                        )
                    node_numbers[end] = len(node_numbers)
            arcs.setdefault(owner, []).append((node_numbers[u], node_numbers[v]))
            rows.setdefault(owner, []).append(i)
        return self._joined(known, arcs, rows, (edges, nodes, graphs), node_owner)

    def _of(
        self, known: dict[str, dict[str, int]], owner: str, graphs: Table | None, table: Table | None, line: int
    ) -> dict[str, int]:
        if owner not in known and graphs is not None:
            raise DataImportError(
                f"{table and table.path} names the graph {owner!r} in line {line}, which {graphs.path} lacks"
            )
        return known.setdefault(owner, {})

    def _joined(
        self,
        known: Mapping[str, Mapping[str, int]],
        arcs: Mapping[str, Sequence[tuple[int, int]]],
        edge_rows: Mapping[str, Sequence[int]],
        tables: tuple[Table, Table | None, Table | None],
        node_owner: Sequence[str],
    ) -> list[RawGraph]:
        edges, nodes, graphs = tables
        no_features = {self.source, self.destination, self.node, self.graph}
        at_edges, at_nodes, at_graphs = (
            {} if table is None else {k: values_of(c) for k, c in table.columns.items() if k not in no_features}
            for table in (edges, nodes, graphs)
        )
        twice = (at_edges.keys() & at_nodes.keys()) | (at_graphs.keys() & (at_edges.keys() | at_nodes.keys()))
        if twice:
            raise DataImportError(f"two files have the column {min(twice)!r}; give the columns different names")
        node_rows: dict[str, list[int]] = {name: [] for name in known}
        for i, owner in enumerate(node_owner):
            node_rows[owner].append(i)
        joined_graphs = []
        for number, (name, node_numbers) in enumerate(known.items()):
            values = {key: column[edge_rows.get(name, [])] for key, column in at_edges.items()}
            values |= {key: column[node_rows[name]] for key, column in at_nodes.items()}
            values |= {key: column[number : number + 1] for key, column in at_graphs.items()}
            pairs = np.array(arcs.get(name, []), np.int64).reshape(-1, 2).T
            joined_graphs.append(
                RawGraph(len(node_numbers), pairs, values, f"the graph {name!r}" if name else "the graph")
            )
        return joined_graphs

    def by_split(self, graphs: list[RawGraph]) -> dict[str, list[RawGraph]] | list[RawGraph]:
        """Return split -> its graphs, if a column says it; else all graphs. Nodes of a single graph get masks."""
        if any(self.split not in graph.values for graph in graphs):
            return graphs
        if len(graphs) == 1 and len(graphs[0].values[self.split]) == graphs[0].num_nodes:
            (graph,) = graphs
            names = np.array([usual_split(name) for name in graph.values[self.split].astype(str).tolist()])
            other = sorted(set(names.tolist()) - {*CORE_SPLITS, ""})
            if other:
                raise DataImportError(
                    f"the column {self.split!r} has {other[0]!r} at {counted(int(sum(names == other[0])), 'node')}; "
                    "a node is in train, val or test, or in none (an empty cell)"
                )
            values = {key: value for key, value in graph.values.items() if key != self.split}
            values |= {f"{name}_mask": names == name for name in CORE_SPLITS}
            return [RawGraph(graph.num_nodes, graph.edges, values, graph.name)]
        parts: dict[str, list[RawGraph]] = {}
        for graph in graphs:
            split = str(graph.values[self.split][0])
            values = {key: value for key, value in graph.values.items() if key != self.split}
            parts.setdefault(usual_split(split), []).append(RawGraph(graph.num_nodes, graph.edges, values, graph.name))
        return parts
