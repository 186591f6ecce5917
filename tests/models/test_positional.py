"""Positional encodings: against PyG and against the definitions."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.transforms import AddRandomWalkPE
from torch_geometric.utils import add_self_loops, get_laplacian, to_dense_adj

from graphbench import card
from graphbench.core.errors import ArgumentError
from graphbench.models import _lpe_cpu
from graphbench.models.build import build_model
from graphbench.models.config import ModelConfig, PositionalConfig
from graphbench.models.graphs import Layout
from graphbench.models.positional import (
    LaplacianEncoder,
    RandomWalkEncoder,
    _dense_laplacian_encoding,
    _fits_compiled_kernel,
    laplacian_encoding,
    random_walk_encoding,
)

from .conftest import batch_of, graph, random_batch


def _reference_walks(data: Data, k: int) -> torch.Tensor:
    return AddRandomWalkPE(k)(data.clone()).random_walk_pe


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.sampled_from([1, 2, 5, 16, 31, 33, 70]), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
    k=st.sampled_from([1, 2, 7, 16]),
    directed=st.booleans(),
    p=st.sampled_from([0.0, 0.1, 0.5]),
)
def test_random_walks_equal_pyg(sizes: list[int], seed: int, k: int, directed: bool, p: float) -> None:
    task = "topological_sort" if directed else "bridges"
    graphs = [graph(n, task, seed + i, p) for i, n in enumerate(sizes)]
    batch = batch_of(graphs)
    expected = torch.cat([_reference_walks(g, k) for g in graphs])
    for symmetric in {False, not directed}:
        kernel = random_walk_encoding(batch.edge_index, batch.ptr, k, symmetric=symmetric)
        torch.testing.assert_close(kernel, expected, atol=1e-6, rtol=0)


def test_random_walks_of_a_directed_cycle_and_a_random_digraph() -> None:
    cycle = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3)
    generator = torch.Generator().manual_seed(1)
    adjacency = torch.rand(20, 20, generator=generator) < 0.2
    digraph = Data(edge_index=adjacency.nonzero().t().contiguous(), num_nodes=20)
    batch = batch_of([cycle, digraph])
    walks = random_walk_encoding(batch.edge_index, batch.ptr, 6)
    assert walks[:3].tolist() == [[0, 0, 1, 0, 0, 1]] * 3
    torch.testing.assert_close(walks[3:], _reference_walks(digraph, 6), atol=1e-6, rtol=0)


@pytest.mark.parametrize("task", ["topological_sort", "bridges"])
def test_self_loops_are_added_to_every_node(task: str) -> None:
    data = graph(9, task)
    looped = Data(edge_index=add_self_loops(data.edge_index, num_nodes=9)[0], num_nodes=9)
    batch = batch_of([data])
    symmetric = task == "bridges"
    walks = random_walk_encoding(batch.edge_index, batch.ptr, 5, symmetric=symmetric, self_loops=True)
    torch.testing.assert_close(walks, _reference_walks(looped, 5), atol=1e-6, rtol=0)
    assert (walks[:, 0] > 0).all()


def test_acyclic_graphs_have_no_returns_without_self_loops() -> None:
    batch = random_batch("topological_sort")
    assert random_walk_encoding(batch.edge_index, batch.ptr, 8).abs().max() == 0


def _laplacian(data: Data) -> torch.Tensor:
    index, weight = get_laplacian(data.edge_index, num_nodes=data.num_nodes)
    return to_dense_adj(index, edge_attr=weight, max_num_nodes=data.num_nodes)[0].double()


def test_laplacian_pairs_satisfy_the_eigenvalue_equation() -> None:
    sizes = (7, 12, 30, 4, 1)
    graphs = [graph(n, "bridges", i) for i, n in enumerate(sizes)]
    batch = batch_of(graphs)
    values, vectors = laplacian_encoding(batch.edge_index, batch.ptr, 10)
    for i, (n, data) in enumerate(zip(sizes, graphs, strict=True)):
        rows = slice(int(batch.ptr[i]), int(batch.ptr[i + 1]))
        kept = min(10, n)
        basis, spectrum = vectors[rows, :kept].double(), values[rows, :kept].double()
        assert (spectrum == spectrum[0]).all()
        expected = torch.linalg.eigvalsh(_laplacian(data))[:kept] if data.num_edges else torch.zeros(kept)
        np.testing.assert_allclose(spectrum[0], expected, atol=1e-4)
        np.testing.assert_allclose(basis.T @ basis, np.eye(kept), atol=1e-5)
        if data.num_edges:
            np.testing.assert_allclose(_laplacian(data) @ basis, basis * spectrum[0], atol=1e-4)
        assert (values[rows, kept:] == 0).all() and (vectors[rows, kept:] == 0).all()
    assert torch.isfinite(vectors).all()


def _data(drawn: nx.Graph) -> Data:
    drawn = nx.convert_node_labels_to_integers(drawn)
    pairs = np.array(sorted(drawn.edges()), dtype=np.int64).reshape(-1, 2)
    return Data(edge_index=torch.tensor(np.concatenate([pairs, pairs[:, ::-1]]).T.copy()), num_nodes=len(drawn))


def _assert_lowest_pairs(graphs: list[nx.Graph], k: int) -> None:
    """Check values against NumPy in float64, residuals, orthonormality and the zeros beyond a graph's size."""
    batch = batch_of([_data(g) for g in graphs])
    values, vectors = (t.double().numpy() for t in laplacian_encoding(batch.edge_index, batch.ptr, k))
    assert values.shape == vectors.shape == (batch.num_nodes, k)
    for g, first, last in zip(graphs, batch.ptr[:-1].tolist(), batch.ptr[1:].tolist(), strict=True):
        laplacian = nx.laplacian_matrix(g).toarray().astype(float)
        kept = min(k, len(g))
        spectrum, basis = values[first, :kept], vectors[first:last, :kept]
        assert (values[first:last, :kept] == spectrum).all()
        np.testing.assert_allclose(spectrum, np.linalg.eigvalsh(laplacian)[:kept], atol=1e-4)
        np.testing.assert_allclose(laplacian @ basis, basis * spectrum, atol=1e-4)
        np.testing.assert_allclose(basis.T @ basis, np.eye(kept), atol=1e-5)
        assert (values[first:last, kept:] == 0).all() and (vectors[first:last, kept:] == 0).all()


SYMMETRIC_GRAPHS = {
    "complete": nx.complete_graph(40),
    "star": nx.star_graph(39),
    "cycle": nx.cycle_graph(40),
    "path": nx.path_graph(40),
    "no edges": nx.empty_graph(20),
    "copies": nx.disjoint_union_all([nx.cycle_graph(5)] * 6),
    "components": nx.disjoint_union_all([nx.complete_graph(7), nx.star_graph(5), nx.empty_graph(4), nx.path_graph(9)]),
    "hypercube": nx.hypercube_graph(5),
    "bipartite": nx.complete_bipartite_graph(3, 30),
    "barbell": nx.barbell_graph(15, 8),
}


@pytest.mark.parametrize("k", [1, 3, 17, 45])
@pytest.mark.parametrize("name", SYMMETRIC_GRAPHS)
def test_repeated_eigenvalues_have_orthonormal_vectors(name: str, k: int) -> None:
    _assert_lowest_pairs([SYMMETRIC_GRAPHS[name]] * 7, k)


def test_graphs_side_by_side_do_not_disturb_each_other() -> None:
    _assert_lowest_pairs([*SYMMETRIC_GRAPHS.values(), nx.empty_graph(1), *reversed(SYMMETRIC_GRAPHS.values())], 12)


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 32), min_size=1, max_size=20),
    seed=st.integers(0, 1000),
    k=st.integers(1, 34),
    p=st.sampled_from([0.0, 0.05, 0.2, 0.5, 1.0]),
)
def test_lowest_pairs_of_random_graphs(sizes: list[int], seed: int, k: int, p: float) -> None:
    _assert_lowest_pairs([nx.gnp_random_graph(n, p, seed=seed + i) for i, n in enumerate(sizes)], k)


def test_lowest_pairs_of_large_graphs() -> None:
    _assert_lowest_pairs([nx.barabasi_albert_graph(128 - i, 3, seed=i) for i in range(8)], 32)


@pytest.mark.parametrize("sizes", [(3, 30, 9), (40,) * 8, (300, 5)])
def test_both_laplacian_solvers_return_the_same_values(sizes: tuple[int, ...]) -> None:
    batch = random_batch("bridges", sizes)
    values, vectors = laplacian_encoding(batch.edge_index, batch.ptr, 12)
    expected, basis = _dense_laplacian_encoding(batch.edge_index, batch.ptr, 12)
    torch.testing.assert_close(values, expected, atol=1e-3, rtol=1e-5)
    assert values.dtype == expected.dtype == vectors.dtype == basis.dtype == torch.float32
    assert torch.equal((vectors == 0).all(dim=0), (basis == 0).all(dim=0))


def test_order_of_arcs_double_arcs_and_loops_do_not_matter() -> None:
    batch = random_batch("bridges")
    expected = laplacian_encoding(batch.edge_index, batch.ptr, 5)[0]
    extra = torch.tensor([[3, 8], [3, 8]])
    arcs = torch.cat([batch.edge_index, batch.edge_index[:, :4], extra], dim=1)
    arcs = arcs[:, torch.randperm(arcs.shape[1])]
    torch.testing.assert_close(laplacian_encoding(arcs, batch.ptr, 5)[0], expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(_dense_laplacian_encoding(arcs, batch.ptr, 5)[0], expected, atol=1e-5, rtol=0)


def test_a_batch_without_graphs_has_no_pairs() -> None:
    values, vectors = laplacian_encoding(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64), 4)
    assert values.shape == vectors.shape == (0, 4)


@pytest.mark.parametrize(
    ("sizes", "compiled"),
    [([64], True), ([65], False), ([128] * 7, False), ([128] * 8, True), ([128] + [8] * 15, False), ([257] * 8, False)],
)
def test_sizes_choose_the_laplacian_solver(sizes: list[int], compiled: bool) -> None:
    assert _fits_compiled_kernel(torch.tensor([0, *sizes]).cumsum(0)) is compiled


def test_torch_solves_what_the_kernel_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = random_batch("bridges")
    expected = laplacian_encoding(batch.edge_index, batch.ptr, 5)[0]
    nothing = np.zeros((batch.num_nodes, 5), np.float32)
    monkeypatch.setattr(_lpe_cpu, "lowest_pairs", lambda *arguments: (nothing, nothing, False))
    torch.testing.assert_close(laplacian_encoding(batch.edge_index, batch.ptr, 5)[0], expected, atol=1e-5, rtol=0)


def test_laplacian_treats_arcs_as_edges() -> None:
    directed = batch_of([graph(9, "topological_sort", 3)])
    undirected = batch_of([graph(9, "bridges", 3)])
    expected = laplacian_encoding(undirected.edge_index, undirected.ptr, 9)[0]
    torch.testing.assert_close(laplacian_encoding(directed.edge_index, directed.ptr, 9)[0], expected)


def test_equal_and_mixed_sizes_agree() -> None:
    graphs = [graph(12, "bridges", i) for i in range(3)]
    same, mixed = batch_of(graphs), batch_of([*graphs, graph(13, "bridges", 9)])
    values = laplacian_encoding(same.edge_index, same.ptr, 6)[0]
    torch.testing.assert_close(laplacian_encoding(mixed.edge_index, mixed.ptr, 6)[0][:36], values, atol=1e-4, rtol=0)


def test_number_of_threads_is_restored() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        batch = random_batch("bridges")
        _dense_laplacian_encoding(batch.edge_index, batch.ptr, 4)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def _encoder_and_layout(k: int = 6) -> tuple[LaplacianEncoder, Data, Layout]:
    batch = random_batch("bridges", (5, 8, 8))
    encoder = LaplacianEncoder(PositionalConfig(type="lpe", k=k, hidden=8), 4)
    return encoder, batch, Layout.of(batch, directed=False)


def test_signs_are_flipped_in_training_only() -> None:
    encoder, batch, layout = _encoder_and_layout()
    batch.lpe_values, batch.lpe_vectors = laplacian_encoding(batch.edge_index, batch.ptr, 6)
    encoder.eval()
    assert torch.equal(encoder(batch, layout), encoder(batch, layout))
    encoder.train()
    results = [encoder(batch, layout) for _ in range(8)]
    assert not all(torch.equal(results[0], r) for r in results[1:])


def test_a_flip_is_shared_by_the_nodes_of_a_graph() -> None:
    encoder, batch, layout = _encoder_and_layout(k=1)
    batch.lpe_values, batch.lpe_vectors = torch.zeros(21, 1), torch.ones(21, 1)
    encoder.train()
    for _ in range(5):
        embedded = encoder(batch, layout)
        for g in range(3):
            rows = embedded[batch.batch == g]
            torch.testing.assert_close(rows, rows[:1].expand_as(rows))


def test_laplacian_embedding_equals_its_definition() -> None:
    encoder, batch, layout = _encoder_and_layout(k=6)
    encoder.eval()
    with torch.no_grad():
        encoder.shift.copy_(torch.rand(6))
    values, vectors = laplacian_encoding(batch.edge_index, batch.ptr, 6)
    batch.lpe_values, batch.lpe_vectors = values, vectors
    rows = []
    for v in range(batch.num_nodes):
        pairs = min(6, int(layout.sizes[batch.batch[v]]))
        points = torch.stack([vectors[v, :pairs], values[v, :pairs] + encoder.shift[:pairs]], dim=1)
        rows.append(encoder.phi_outer(torch.relu(encoder.phi_inner(points))).sum(dim=0))
    torch.testing.assert_close(encoder(batch, layout), encoder.rho(torch.stack(rows)), atol=1e-5, rtol=1e-4)


def test_stored_walks_are_used() -> None:
    encoder = RandomWalkEncoder(PositionalConfig(type="rwse", k=4, hidden=8), 3)
    batch = random_batch("bridges")
    layout = Layout.of(batch, directed=False)
    computed = encoder(batch, layout)
    batch.rwse = random_walk_encoding(batch.edge_index, batch.ptr, 4, symmetric=True)
    torch.testing.assert_close(encoder(batch, layout), computed)
    batch.rwse = batch.rwse + 1
    assert not torch.allclose(encoder(batch, layout), computed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lpe", "rwse"])
def test_a_model_with_encodings_can_be_compiled(kind: str) -> None:
    batch = random_batch("bridges", (5, 8, 8))
    features = card("bridges_easy").features
    positional = PositionalConfig(type=kind, k=4, hidden=16)
    model = build_model(
        ModelConfig(processor="gin", layers=2, hidden=16, positional=positional), features, directed=False
    )
    model.eval()
    with torch.no_grad():
        expected = model(batch)
        found = torch.compile(model, dynamic=True, backend="eager")(batch)
    for name in expected:
        torch.testing.assert_close(found[name], expected[name])


@pytest.mark.parametrize(
    ("ptr", "edges"),
    [
        ([0, 3], [[0, 900_000], [900_000, 0]]),
        ([0, 3], [[0, -900_000], [-900_000, 0]]),
        ([0, 3], [[0, 3], [3, 0]]),
        ([0, 5, 3], [[0, 1], [1, 0]]),
        ([1, 3], [[1, 2], [2, 1]]),
        ([], [[0, 1], [1, 0]]),
        ([0, 2, 4], [[0, 3], [3, 0]]),
        ([0, 3], [[0.0, 1.0], [1.0, 0.0]]),
        ([0, 3], [0, 1]),
    ],
)
def test_arcs_that_lead_out_of_their_graph_are_refused(ptr, edges):
    arcs, ptr = torch.tensor(edges), torch.tensor(ptr, dtype=torch.long)
    for symmetric in (False, True):
        with pytest.raises(ArgumentError):
            random_walk_encoding(arcs, ptr, 4, symmetric=symmetric)
    with pytest.raises(ArgumentError):
        laplacian_encoding(arcs, ptr, 4)


def test_a_batch_with_arcs_beyond_its_nodes_has_no_layout():
    for far in (3, 900_000, -1):
        with pytest.raises(ArgumentError, match=str(far)):
            Layout.of(Data(edge_index=torch.tensor([[0, far], [far, 0]]), num_nodes=3), directed=False)
