"""Positional encodings of nodes for a whole batch at once: random-walk return probabilities, Laplacian eigenpairs.

Encodings are computed on the CPU for every device: another eigensolver returns eigenvectors of other signs and other
bases of multiple eigenvalues, and a model would see other inputs on a GPU than on a CPU. ``Model.prepare`` adds them to
a batch before it is moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from graphbench.models.config import PositionalConfig
from graphbench.models.fused import is_compiled, relu_pairs
from graphbench.models.graphs import Layout, require_arcs

_CHUNK_BYTES = 1 << 28  # bound on the dense matrices in memory
_LARGEST_COMPILED = 256  # nodes; the matrices of several larger graphs fit no cache
_SMALL_COMPILED = 64  # nodes; above, torch is faster if fewer than _FEW graphs are over half as large as the largest,
_FEW = 8  # because lanes that are empty or hold small graphs cost as much as full lanes
_SIZE_STEP = 8  # graphs are padded to a multiple of this many nodes when their sizes differ


@torch.compiler.disable
def random_walk_encoding(
    edge_index: Tensor, ptr: Tensor, k: int, *, symmetric: bool = False, self_loops: bool = False
) -> Tensor:
    """Return the probabilities of being back after 1, ..., k steps of a random walk (RWSE; Dwivedi et al., 2022).

    Equal to ``torch_geometric.transforms.AddRandomWalkPE(k)`` up to rounding: column ``i - 1`` is ``diag(P^i)`` with
    ``P = D^-1 A``. All values of a node without outgoing arcs are 0.

    Args:
        edge_index: int64 [2, E].
        ptr: int64 [B+1], first node of each graph.
        k: Longest walk.
        symmetric: Whether every edge is present in both directions, which halves the work.
        self_loops: Whether one loop is added to every node first.

    Returns:
        float32 [N, k] on the device of ``edge_index``.
    """
    from graphbench.models._rwse_cpu import return_probabilities

    arcs, bounds = edge_index.cpu(), ptr.cpu()
    require_arcs(arcs, bounds)
    source, target = arcs.contiguous().numpy()
    walks = return_probabilities(source, target, bounds.numpy(), k, symmetric, self_loops)
    return torch.from_numpy(walks).to(edge_index.device)


@torch.compiler.disable
def laplacian_encoding(edge_index: Tensor, ptr: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k lowest eigenpairs of every graph's Laplacian ``L = D - A`` (LPE; Mueller and Morris, 2024).

    The eigenvalue 0 is included. Arcs of directed graphs count in both directions. Pairs beyond a graph's size are
    zero; an all-zero column of a graph's eigenvectors marks them (a true eigenvector has norm 1). A compiled kernel
    solves several graphs of up to 256 nodes at once; in all other cases torch's eigensolver on the CPU is used.

    Args:
        edge_index: int64 [2, E].
        ptr: int64 [B+1], first node of each graph.
        k: Number of eigenpairs.

    Returns:
        Eigenvalues float32 [N, k], the same for all nodes of a graph, ascending, and eigenvectors' entries float32
        [N, k], with arbitrary signs. Both on the device of ``edge_index``.
    """
    values, vectors = _lowest_pairs(edge_index.cpu(), ptr.cpu(), k)
    return values.to(edge_index.device), vectors.to(edge_index.device)


def _lowest_pairs(edge_index: Tensor, ptr: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the result of :func:`laplacian_encoding` for tensors on the CPU."""
    if _fits_compiled_kernel(ptr):
        from graphbench.core.neighbours import arc_lists
        from graphbench.models._lpe_cpu import lowest_pairs

        require_arcs(edge_index, ptr)
        source, target = edge_index.contiguous().numpy()
        bounds = ptr.numpy()
        arcs = arc_lists(bounds[-1], source, target)
        values, vectors, converged = lowest_pairs(*arcs, bounds, np.diff(bounds).argsort(kind="stable"), k)
        if converged:
            return torch.from_numpy(values), torch.from_numpy(vectors)
    return _dense_laplacian_encoding(edge_index, ptr, k)


class RandomWalkEncoder(nn.Module):
    """Maps return probabilities [N, k] to embeddings [N, d]: Linear(k, hidden), ReLU, Linear(hidden, d)."""

    def __init__(self, config: PositionalConfig, width: int) -> None:
        super().__init__()
        self.config = self.setting = config
        self.network = nn.Sequential(nn.Linear(config.k, config.hidden), nn.ReLU(), nn.Linear(config.hidden, width))

    def encodings(self, batch: Data, layout: Layout) -> dict[str, Tensor]:
        """Return ``rwse`` float32 [N, k]; the batch's attribute of this name is used where it exists."""
        walks: Tensor | None = getattr(batch, "rwse", None)
        if walks is None:
            options = {"symmetric": not layout.directed, "self_loops": self.config.self_loops}
            walks = random_walk_encoding(layout.edge_index, layout.ptr, self.config.k, **options)
        return {"rwse": walks}

    def forward(self, batch: Data, layout: Layout) -> Tensor:
        """Return embeddings [N, d]."""
        embedded: Tensor = self.network(self.encodings(batch, layout)["rwse"])
        return embedded


class LaplacianEncoder(nn.Module):
    """Maps eigenpairs to embeddings: ``rho(sum_j phi(v_j, lambda_j + eps_j))``, summed over the existing pairs.

    ``phi`` is Linear(2, hidden), ReLU, Linear(hidden, hidden), and ``rho`` Linear(hidden, hidden), ReLU,
    Linear(hidden, d). ``phi``'s second layer is linear, so it is applied once to the sum instead of to every pair,
    which computes the same function with 1/k of the work. ``eps_j`` is learned and starts at 1e-12 * j. In training,
    every eigenvector of every graph gets a random sign.
    """

    def __init__(self, config: PositionalConfig, width: int) -> None:
        super().__init__()
        self.k, self.setting = config.k, config
        self.shift = nn.Parameter(1e-12 * torch.arange(config.k))
        self.phi_inner = nn.Linear(2, config.hidden)
        self.phi_outer = nn.Linear(config.hidden, config.hidden)
        self.rho = nn.Sequential(nn.Linear(config.hidden, config.hidden), nn.ReLU(), nn.Linear(config.hidden, width))

    def encodings(self, batch: Data, layout: Layout) -> dict[str, Tensor]:
        """Return ``lpe_values`` and ``lpe_vectors`` float32 [N, k]; the batch's are used where they exist."""
        values: Tensor | None = getattr(batch, "lpe_values", None)
        vectors: Tensor | None = getattr(batch, "lpe_vectors", None)
        if values is None or vectors is None:
            values, vectors = laplacian_encoding(layout.edge_index, layout.ptr, self.k)
        return {"lpe_values": values, "lpe_vectors": vectors}

    def forward(self, batch: Data, layout: Layout) -> Tensor:
        """Return embeddings [N, d]."""
        values, vectors = self.encodings(batch, layout).values()
        sizes, kept = layout.sizes, min(self.k, layout.extent.most_nodes)
        values, vectors = values[:, :kept] + self.shift[:kept], vectors[:, :kept]
        if self.training:
            signs = torch.randint(0, 2, (layout.num_graphs, kept), device=vectors.device) * 2 - 1
            vectors = vectors * signs[layout.graph]
        total = self._sum_of_pairs(values, vectors, sizes[layout.graph], layout.extent.fewest_nodes)
        count = sizes.clamp(max=kept)[layout.graph].unsqueeze(1)
        embedded: Tensor = self.rho(F.linear(total, self.phi_outer.weight) + count * self.phi_outer.bias)
        return embedded

    def _sum_of_pairs(self, values: Tensor, vectors: Tensor, sizes: Tensor, smallest: int) -> Tensor:
        """Return the sum of phi's inner layer over the existing pairs, [N, hidden]; ``sizes`` int64 [N]."""
        inner_layer = self.phi_inner
        if is_compiled(inner_layer.out_features, values, vectors, inner_layer.weight):
            counts = sizes.clamp(max=values.shape[1])
            return relu_pairs(vectors, values, counts, inner_layer.weight, inner_layer.bias)
        if values.device.type != "cpu":  # few large operations: an accelerator waits for small ones to be launched
            there = torch.arange(values.shape[1], device=sizes.device) < sizes.unsqueeze(1)
            inner = torch.relu(inner_layer(torch.stack([vectors, values], dim=2)))
            return (inner * there.unsqueeze(2)).sum(1)
        total = torch.zeros((), device=values.device)  # pair by pair, so that the intermediate values stay in the cache
        for j in range(values.shape[1]):
            inner = torch.relu(self.phi_inner(torch.stack([vectors[:, j], values[:, j]], dim=1)))
            total = total + (inner if j < smallest else inner * (sizes > j).unsqueeze(1))
        return total


def positional_encoder(config: PositionalConfig, width: int) -> RandomWalkEncoder | LaplacianEncoder | None:
    """Return the encoder of a configuration; None for ``type: none``."""
    if config.type == "rwse":
        return RandomWalkEncoder(config, width)
    return LaplacianEncoder(config, width) if config.type == "lpe" else None


@dataclass(frozen=True, slots=True)
class _DenseGroup:
    """Graphs of a batch as dense matrices of one size."""

    size: int
    adjacency: Tensor  # float32 [G, size, size], number of arcs from row to column
    real: Tensor  # bool [G, size], False on padding
    nodes: Tensor  # int64 [real nodes], their numbers in the batch, graph by graph


def _dense_groups(edge_index: Tensor, ptr: Tensor) -> Iterator[_DenseGroup]:
    """Yield the graphs as dense matrices: all at once if they are equally large, else grouped by padded size."""
    sizes = ptr.diff()
    padded = sizes if bool((sizes == sizes[:1]).all()) else (sizes + _SIZE_STEP - 1) // _SIZE_STEP * _SIZE_STEP
    num_nodes = int(ptr[-1])
    graph = torch.repeat_interleave(torch.arange(sizes.numel()), sizes)
    for size in sorted({int(n) for n in padded.tolist()} - {0}):
        members = (padded == size).nonzero().squeeze(1)
        for chunk in torch.split(members, max(1, _CHUNK_BYTES // (4 * size * size))):
            yield _dense_group(edge_index, ptr, graph, chunk, size, num_nodes)


def _dense_group(
    edge_index: Tensor, ptr: Tensor, graph: Tensor, members: Tensor, size: int, num_nodes: int
) -> _DenseGroup:
    row_of_graph = torch.full((ptr.numel() - 1,), -1)
    row_of_graph[members] = torch.arange(members.numel())
    slot = row_of_graph[graph] * size + torch.arange(num_nodes) - ptr[graph]
    in_group = row_of_graph[graph] >= 0
    source, target = edge_index
    if members.numel() < ptr.numel() - 1:
        inside = in_group[source]
        source, target = source[inside], target[inside]
    flat = slot[source] * size + slot[target] % size
    adjacency = torch.zeros(members.numel() * size * size)
    adjacency.index_add_(0, flat, torch.ones(flat.numel()))
    real = torch.zeros(members.numel() * size, dtype=torch.bool)
    real[slot[in_group]] = True
    nodes = in_group.nonzero().squeeze(1)
    return _DenseGroup(size, adjacency.view(-1, size, size), real.view(-1, size), nodes)


def _fits_compiled_kernel(ptr: Tensor) -> bool:
    """Return whether the compiled kernel is faster than torch for graphs of the given sizes."""
    sizes = ptr.diff()
    largest = int(sizes.max()) if sizes.numel() else 0
    if largest <= _SMALL_COMPILED:
        return True
    return largest <= _LARGEST_COMPILED and int((2 * sizes > largest).sum()) >= _FEW


def _dense_laplacian_encoding(edge_index: Tensor, ptr: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the result of :func:`laplacian_encoding`, computed by torch's batched eigensolver."""
    values = torch.zeros(int(ptr[-1]), k)
    vectors = torch.zeros_like(values)
    for group in _dense_groups(edge_index, ptr):
        adjacency = (group.adjacency + group.adjacency.transpose(1, 2)).clamp(max=1.0)
        degree = adjacency.sum(dim=2)
        # Padding gets an eigenvalue above the graph's (at most 2 * max degree), so it never mixes with the graph.
        degree = torch.where(group.real, degree, 2.0 * degree.max() + 1.0)
        with _one_thread():
            spectrum, basis = torch.linalg.eigh(torch.diag_embed(degree) - adjacency)
        kept = min(k, group.size)
        inside = torch.arange(kept) < group.real.sum(dim=1, keepdim=True)
        rows = torch.zeros(*basis.shape[:2], kept) + spectrum[:, None, :kept].clamp(min=0.0)
        values[group.nodes, :kept] = (rows * inside[:, None])[group.real]
        vectors[group.nodes, :kept] = (basis[:, :, :kept] * inside[:, None])[group.real]
    return values, vectors


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run torch with one thread: batches of small eigenproblems are 5 to 20 times slower with two."""
    threads = torch.get_num_threads()
    if threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
