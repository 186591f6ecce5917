"""Files of DIMACS graphs and of the Gset, and conflict graphs of formulas, as sources of the domain."""

from __future__ import annotations

import gzip
import itertools
import lzma

import networkx as nx
import numpy as np
import pytest

import graphbench
from graphbench.core.errors import DataImportError, FormulaError, GenerationError, StoreError
from graphbench.data.components.folder_splits import read_splits
from graphbench.domains.co.graph_files import GRAPHS, MAX_EDGES, MAX_NODES, read_graph
from graphbench.domains.co.independent_set import find_independent_set
from graphbench.domains.sat import Cnf
from graphbench.domains.sat import conflict_graphs as conflicts
from graphbench.domains.sat.conflict_graphs import conflict_graph


def drawn(seed, nodes=23, p=0.3):
    return nx.gnp_random_graph(nodes, p, seed=seed)


def as_text(graph, both=False, count=None, kind="edge"):
    lines = [f"e {u + 1} {v + 1}" for u, v in graph.edges] + [f"e {v + 1} {u + 1}" for u, v in graph.edges if both]
    count = len(lines) if count is None else count
    return "\n".join(["c a comment", f"p {kind} {len(graph)} {count}", *lines]) + "\n"


def as_binary(graph):
    """The lower triangle row by row, a bit per pair, from the highest bit of a byte on."""
    header = f"c made by a test\np col {len(graph)} {graph.number_of_edges()}\n".encode()
    rows = bytearray()
    for u in range(len(graph)):
        bits = "".join("1" if graph.has_edge(u, v) else "0" for v in range(u + 1))
        bits += "0" * (-len(bits) % 8)
        rows += bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
    return f"{len(header)}\n".encode() + header + bytes(rows)


def as_gset(graph, weight=" 1"):
    lines = [f"{u + 1} {v + 1}{weight}" for u, v in graph.edges]
    return f"{len(graph)} {len(lines)}\n" + "\n".join(lines) + "\n"


def edges_of(graph):
    return sorted(tuple(sorted(edge)) for edge in graph.edges)


@pytest.mark.parametrize("nodes", [1, 7, 8, 9, 23, 64])
@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.col", lambda g: as_text(g).encode()),
        ("a.clq", lambda g: as_text(g, both=True, kind="col").encode()),
        ("a.mis", lambda g: as_text(g, both=True, count=g.number_of_edges()).encode()),
        ("a.dimacs", lambda g: as_text(g, count=2 * g.number_of_edges()).replace("\n", "\r\n").encode()),
        ("a.col.gz", lambda g: gzip.compress(as_text(g).encode())),
        ("a.clq.b", as_binary),
        ("a.col.b.xz", lambda g: lzma.compress(as_binary(g))),
        ("G14", lambda g: as_gset(g).encode()),
        ("G22.txt", lambda g: as_gset(g, "").encode()),
        ("a.rud", lambda g: as_gset(g).encode()),
    ],
)
def test_every_format_has_the_graph(tmp_path, name, write, nodes):
    graph = drawn(nodes, nodes)
    path = tmp_path / name
    path.write_bytes(write(graph))
    count, edges = read_graph(path)
    assert count == nodes and edges.dtype == np.int32 and edges.shape == (graph.number_of_edges(), 2)
    assert [tuple(edge) for edge in edges.tolist()] == edges_of(graph)


def test_lines_of_other_kinds_are_skipped(tmp_path):
    path = tmp_path / "geometric.col"
    long = "c " + "x" * 200_000
    path.write_text(f"{long}\np edge 3 1\nd 2 1 0\nv 0.1 0.2\nx 0.5\nn 2 1\n\ne 3 1\n")
    count, edges = read_graph(path)
    assert (count, edges.tolist()) == (3, [[0, 2]])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.col", b"", "no header"),
        ("a.col", b"\x00\xff\x13garbage" * 50, "line 1: .*header"),
        ("a.col", b"p edge 3\ne 1 2\n", "line 1: .*the header"),
        ("a.col", b"p edge 0 0\n", "0 nodes"),
        ("a.col", b"p edge 99999999999999999 1\n", rf"at most {MAX_NODES:,}"),
        ("a.col", b"p edge 3 99999999999\n", rf"at most {2 * MAX_EDGES:,}"),
        ("a.col", b"p edge 3 1\ne 1 4\n", "names the node 4"),
        ("a.col", b"p edge 3 1\ne 0 1\n", "names the node 0"),
        ("a.col", b"p edge 3 1\ne 2 2\n", "node 2 to itself"),
        ("a.col", b"p edge 3 5\ne 1 2\n", "holds 1 edges, but its header says 5"),
        ("a.col", b"p edge 3 1\ne 1 -2\n", "line 2: .*an edge"),
        ("a.col", b"p edge 3 1\ne 1 2 7\n", "line 2: .*an edge"),
        ("a.col", b"p edge 3 1\nn 1 5\ne 1 2\n", "node 1 has the weight 5"),
        ("a.col", b"e 1 2\np edge 3 1\n", "line 1: .*the header"),
        ("a.col", b"p edge 3 1\n" + b"1" * 100_000, "line 2: a line of more than"),
        ("a.clq.b", b"hello\n", "the length of its header"),
        ("a.clq.b", b"9999999\n", "the length of its header"),
        ("a.clq.b", b"5\nhello", "the header"),
        ("a.clq.b", as_binary(drawn(1))[:-3], "ends in the row of node"),
        ("a.clq.b", as_binary(drawn(1)) + b"x", "goes on behind the row"),
        ("a.clq.b", b"12\np col 4999999 7", "the header|ends in the row"),
        ("G1", b"3 1\n1 2 -1\n", "line 2: an edge has the weight -1"),
        ("G1", b"3 2\n1 2 1\n2 1 1\n", "one is there twice"),
        ("G1", b"3 2\n1 2 1\n", "holds 1 edges, but its header says 2"),
        ("G1", b"3\n", "line 1: .*'NODES EDGES'"),
        ("G1", b"3 1\n1\n", "line 2: .*'U V WEIGHT'"),
        ("G1.gz", b"no gzip", "cannot be read"),
        ("G1.xz", lzma.compress(as_gset(drawn(1)).encode())[:-20], "cannot be read"),
        ("a.col.bz2", b"BZh91AY", "cannot be read"),
        ("notes.md", b"", "no ending of a graph file"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataImportError, match=message) as caught:
        read_graph(path)
    assert name in str(caught.value) and "\n" not in str(caught.value) and str(caught.value).isprintable()


@pytest.mark.thorough
def test_a_file_that_unpacks_to_more_than_its_size_allows_is_refused(tmp_path):
    path = tmp_path / "bomb.col.xz"
    path.write_bytes(lzma.compress(b"c" + b" " * (1 << 28)))
    with pytest.raises(DataImportError, match="unpacks to more than"):
        read_graph(path)


def test_a_folder_is_a_dataset_with_all_graphs_in_a_split_of_their_own(tmp_path, caplog):
    place = tmp_path / "Gset"
    place.mkdir()
    for seed in range(12):
        (place / f"G{seed + 1}").write_text(as_gset(drawn(seed)))
    (place / "README").write_text("no graph")
    (place / ".hidden").write_text("no graph")
    splits = graphbench.Loader("co/ba_small:max_cut", source="files", folder=place, root=tmp_path / "root").load()
    assert {name: len(splits[name]) for name in splits} == {"train": 10, "val": 1, "test": 1, "files": 12}
    assert [graph.name for graph in splits["files"]] == sorted(f"G{seed + 1}" for seed in range(12))
    assert "1 file is not read, as graphs are named *.col" in caplog.text and caplog.text.count(": README\n") == 1
    first = splits["files"][0]
    solution = nx.algorithms.approximation.one_exchange(drawn(0), seed=1)[0]
    assert int(first.max_cut_value) >= solution and int(first.max_cut_bound) >= int(first.max_cut_value)
    batch = next(iter(splits["files"].batches(12)))
    score = graphbench.Evaluator(splits.card).evaluate(batch, batch.y.numpy())
    assert score["ratio"] == 1.0 and splits.card.protocol == "files"


def test_sub_folders_are_splits_and_the_same_graph_is_refused(tmp_path):
    for split, seed in (("train", 0), ("val", 1), ("test", 2), ("far", 3)):
        (tmp_path / split).mkdir()
        (tmp_path / split / "a.col").write_text(as_text(drawn(seed)))
    assert {split: list(own) for split, own in read_splits(tmp_path, GRAPHS).items()} == {
        "far": ["a.col"], "test": ["a.col"], "train": ["a.col"], "val": ["a.col"]
    }  # fmt: skip
    splits = graphbench.Loader("co/rb_small:mis", source="files", folder=tmp_path, root=tmp_path / "root").load()
    assert set(splits) == {"train", "val", "test", "far"}
    (tmp_path / "test" / "b.clq.b").write_bytes(as_binary(drawn(0)))
    with pytest.raises(DataImportError, match="holds the same graph as"):
        read_splits(tmp_path, GRAPHS)


def test_a_graph_that_needs_more_colours_than_the_card_has_is_an_error_with_a_remedy(tmp_path):
    for nodes in (18, 19, 20):
        (tmp_path / f"K{nodes}.col").write_text(as_text(nx.complete_graph(nodes)))
    loader = graphbench.Loader("co/ba_small:coloring", source="files", folder=tmp_path, root=tmp_path / "root")
    with pytest.raises(GenerationError, match=r"outside -1 to 15; .* a dataset with larger ranges"):
        loader.load()


def test_folders_without_graphs_are_refused(tmp_path):
    with pytest.raises(DataImportError, match=r"holds no graph; expected are files named \*.col"):
        read_splits(tmp_path, GRAPHS)
    with pytest.raises(StoreError, match="is not a folder"):
        graphbench.Loader("co/rb_small:mis", source="files", folder=tmp_path / "none", root=tmp_path / "root").load()


def most_satisfied(cnf):
    """The largest number of clauses that an assignment satisfies, by trying all."""
    clauses = [list(clause) for clause in cnf.clauses()]
    assignments = itertools.product([False, True], repeat=cnf.num_variables)
    return max(sum(any((literal > 0) == a[abs(literal) - 1] for literal in c) for c in clauses) for a in assignments)


@pytest.mark.parametrize("seed", range(12))
def test_the_largest_set_of_a_conflict_graph_is_the_number_of_clauses_that_can_be_satisfied(seed):
    rng = np.random.default_rng(seed)
    clauses = [
        [int(v) * int(rng.choice([-1, 1])) for v in rng.choice(np.arange(1, 5), size=rng.integers(1, 4), replace=False)]
        for _ in range(14)
    ]
    cnf = Cnf.from_clauses(clauses).canonical()
    nodes, edges = conflict_graph(cnf)
    literals = [(i, literal) for i, clause in enumerate(cnf.clauses()) for literal in clause]
    expected = [
        (a, b)
        for a, b in itertools.combinations(range(len(literals)), 2)
        if literals[a][0] == literals[b][0] or literals[a][1] == -literals[b][1]
    ]
    assert nodes == len(literals) and [tuple(edge) for edge in edges.tolist()] == expected
    label = find_independent_set(nodes, edges)
    assert label.proved and label.value == most_satisfied(cnf)


def test_formulas_are_graphs_of_the_domain(tmp_path, monkeypatch):
    for number in range(6):
        rng = np.random.default_rng(number)
        clauses = [[int(v) * int(rng.choice([-1, 1])) for v in rng.choice(8, 3, replace=False) + 1] for _ in range(20)]
        Cnf.from_clauses(clauses).to_dimacs(tmp_path / f"uf{number}.cnf")
    loader = graphbench.Loader("co/rb_small:mis", source="sat.conflicts", folder=tmp_path, root=tmp_path / "root")
    splits = loader.load()
    assert {name: len(splits[name]) for name in splits} == {"train": 4, "val": 1, "test": 1, "files": 6}
    assert splits.train[0].name.startswith("uf") and splits.train[0].num_nodes == 60
    assert all(int(graph.mis_value) <= 20 for graph in splits.train)
    monkeypatch.setattr(conflicts, "MAX_EDGES", 3)
    with pytest.raises(FormulaError, match="at most 3"):
        conflict_graph(Cnf.from_clauses([[1, 2, 3], [-1, 2]]).canonical())
