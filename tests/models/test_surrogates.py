"""Surrogate losses: their values at 0 and 1 by brute force, their gradients, and that batches are means."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.utils import from_networkx

from graphbench.core.errors import ConfigError
from graphbench.models.surrogates import (
    SURROGATES,
    clique_loss,
    coloring_loss,
    independent_set_loss,
    max_cut_loss,
    surrogate_of,
    vertex_cover_loss,
)

SURE = 40.0  # sigmoid and softmax of such logits are 0 or 1 up to 1e-17
LOSSES = {
    "independent_set": (independent_set_loss, {"beta": 1.7}, ()),
    "max_cut": (max_cut_loss, {}, ()),
    "vertex_cover": (vertex_cover_loss, {"beta": 1.7}, ()),
    "clique": (clique_loss, {"beta": 1.7}, ()),
    "coloring": (coloring_loss, {"weight": 0.6}, (4,)),
}


def graph(edges: list[tuple[int, int]], nodes: int) -> Data:
    both = torch.tensor([*edges, *((v, u) for u, v in edges)], dtype=torch.long).reshape(-1, 2).t()
    return Data(edge_index=both, num_nodes=nodes)


def random_graphs(count: int, nodes: int = 9, p: float = 0.4) -> list[nx.Graph]:
    return [nx.gnp_random_graph(nodes + seed % 3, p, seed=seed) for seed in range(count)]


def as_data(found: nx.Graph) -> Data:
    return graph(list(found.edges), len(found))


def scores_for(name: str, nodes: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(nodes, *LOSSES[name][2], dtype=dtype, generator=torch.Generator().manual_seed(seed))


def loss_of(name: str, scores: torch.Tensor, batch: Data) -> torch.Tensor:
    function, options, _ = LOSSES[name]
    return function(scores, batch, **options)


@pytest.mark.parametrize("seed", range(4))
def test_sets_and_cuts_at_0_and_1(seed):
    found = nx.gnp_random_graph(7, 0.4, seed=seed)
    data = as_data(found)
    losses = []
    for bits in itertools.product((0, 1), repeat=7):
        scores = torch.tensor([SURE if bit else -SURE for bit in bits], dtype=torch.float64)
        inside = {v for v in found if bits[v]}
        within = found.subgraph(inside).number_of_edges()
        losses.append(independent_set_loss(scores, data).item())
        assert losses[-1] == pytest.approx(within - len(inside), abs=1e-9)
        assert independent_set_loss(scores, data, beta=3.0).item() == pytest.approx(3 * within - len(inside), abs=1e-9)
        assert max_cut_loss(scores, data).item() == pytest.approx(-nx.cut_size(found, inside), abs=1e-9)
    largest = max(len(c) for c in nx.find_cliques(nx.complement(found)))
    assert min(losses) == pytest.approx(-largest, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_covers_and_cliques_at_0_and_1(seed):
    found = nx.gnp_random_graph(7, 0.4, seed=seed)
    data, absent = as_data(found), nx.complement(found)
    covers, cliques = [], []
    for bits in itertools.product((0, 1), repeat=7):
        scores = torch.tensor([SURE if bit else -SURE for bit in bits], dtype=torch.float64)
        inside = {v for v in found if bits[v]}
        untouched = found.subgraph(set(found) - inside).number_of_edges()
        covers.append(vertex_cover_loss(scores, data, beta=2.0).item())
        assert covers[-1] == pytest.approx(len(inside) + 2 * untouched, abs=1e-9)
        cliques.append(clique_loss(scores, data, beta=2.0).item())
        assert cliques[-1] == pytest.approx(2 * absent.subgraph(inside).number_of_edges() - len(inside), abs=1e-9)
    assert min(cliques) == pytest.approx(-max(len(c) for c in nx.find_cliques(found)), abs=1e-9)
    assert min(covers) == pytest.approx(7 - max(len(c) for c in nx.find_cliques(absent)), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_colourings_at_0_and_1(seed):
    found = nx.gnp_random_graph(5, 0.5, seed=seed)
    data = as_data(found)
    for colours in itertools.product(range(3), repeat=5):
        scores = SURE * torch.eye(3, dtype=torch.float64)[list(colours)]
        broken = sum(colours[u] == colours[v] for u, v in found.edges)
        assert coloring_loss(scores, data).item() == pytest.approx(broken, abs=1e-9)
        expected = broken + 0.5 * len(set(colours))
        assert coloring_loss(scores, data, weight=0.5).item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["independent_set", "max_cut"])
def test_the_loss_is_the_mean_over_independent_draws(name):
    found = nx.gnp_random_graph(7, 0.5, seed=3)
    data, scores = as_data(found), scores_for(name, 7)
    p, expected = scores.sigmoid().tolist(), 0.0
    for bits in itertools.product((0, 1), repeat=7):
        chance = np.prod([p[v] if bit else 1 - p[v] for v, bit in enumerate(bits)])
        inside = {v for v in found if bits[v]}
        within = found.subgraph(inside).number_of_edges()
        expected += chance * (1.7 * within - len(inside) if name == "independent_set" else -nx.cut_size(found, inside))
    assert loss_of(name, scores, data).item() == pytest.approx(expected, abs=1e-9)


def test_broken_edges_of_a_colouring_are_the_mean_over_independent_draws():
    found = nx.gnp_random_graph(5, 0.6, seed=4)
    scores = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    p, expected = scores.softmax(1).numpy(), 0.0
    for colours in itertools.product(range(3), repeat=5):
        chance = np.prod([p[v, c] for v, c in enumerate(colours)])
        expected += chance * sum(colours[u] == colours[v] for u, v in found.edges)
    assert coloring_loss(scores, as_data(found)).item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", list(LOSSES))
def test_gradients(name):
    batch = Batch.from_data_list([as_data(found) for found in random_graphs(3)])
    scores = scores_for(name, batch.num_nodes).requires_grad_()
    assert torch.autograd.gradcheck(lambda values: loss_of(name, values, batch), (scores,))


@pytest.mark.parametrize("name", list(LOSSES))
def test_a_batch_has_the_mean_of_its_graphs(name):
    graphs = [as_data(found) for found in random_graphs(5)] + [graph([], 3)]
    parts = [scores_for(name, data.num_nodes, seed) for seed, data in enumerate(graphs)]
    whole = loss_of(name, torch.cat(parts), Batch.from_data_list(graphs))
    singles = torch.stack([loss_of(name, part, data) for part, data in zip(parts, graphs, strict=True)])
    torch.testing.assert_close(whole, singles.mean())


@pytest.mark.parametrize("name", list(LOSSES))
def test_names_of_nodes_and_order_of_edges_do_not_matter(name):
    found = nx.gnp_random_graph(12, 0.3, seed=5)
    scores = scores_for(name, 12)
    new = torch.randperm(12, generator=torch.Generator().manual_seed(2))
    renamed = from_networkx(nx.relabel_nodes(found, dict(enumerate(new.tolist()))))
    order = {v: row for row, v in enumerate(nx.relabel_nodes(found, dict(enumerate(new.tolist()))))}
    rows = torch.tensor([order[v] for v in new.tolist()])
    moved = torch.empty_like(scores)
    moved[rows] = scores
    torch.testing.assert_close(loss_of(name, moved, renamed), loss_of(name, scores, as_data(found)))


@pytest.mark.parametrize("name", list(LOSSES))
def test_float32_and_saturated_scores(name):
    batch = Batch.from_data_list([as_data(nx.gnp_random_graph(150, 0.2, seed=seed)) for seed in range(4)])
    scores = 3 * scores_for(name, batch.num_nodes)
    exact, single = loss_of(name, scores, batch), loss_of(name, scores.float(), batch)
    assert single.dtype == torch.float32
    assert single.item() == pytest.approx(exact.item(), rel=1e-5)
    assert loss_of(name, scores.bfloat16(), batch).dtype == torch.float32
    extreme = (1e4 * scores.float()).requires_grad_()
    loss_of(name, extreme, batch).backward()
    assert torch.isfinite(extreme.grad).all()


@pytest.mark.parametrize("name", list(LOSSES))
def test_autocast_changes_nothing(name):
    batch = Batch.from_data_list([as_data(found) for found in random_graphs(3)])
    scores = scores_for(name, batch.num_nodes, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        inside = loss_of(name, scores, batch)
    torch.testing.assert_close(inside, loss_of(name, scores, batch), rtol=0, atol=0)


def test_following_the_gradient_solves_small_problems():
    found = nx.petersen_graph()
    data = as_data(found)
    best = {"independent_set": 4, "max_cut": 12}
    for name, optimum in best.items():
        reached = []
        for seed in range(5):
            scores = (0.1 * scores_for(name, 10, seed)).requires_grad_()
            optimizer = torch.optim.Adam([scores], 0.1)
            for _ in range(300):
                optimizer.zero_grad()
                loss = SURROGATES.find(name).loss(scores, data)
                loss.backward()
                optimizer.step()
            reached.append(-loss.item())
        assert max(reached) == pytest.approx(optimum, abs=0.05)


def test_bad_arguments_are_named():
    data = graph([(0, 1)], 2)
    for name in ("independent_set", "max_cut"):
        with pytest.raises(ConfigError, match=r"shape \[2, 1\]; give \[2\]"):
            SURROGATES.find(name).loss(torch.zeros(2, 1), data)
    with pytest.raises(ConfigError, match=r"shape \[3\]; give \[2\]"):
        independent_set_loss(torch.zeros(3), data)
    with pytest.raises(ConfigError, match=r"shape \[2\]; give \[2, colours\]"):
        coloring_loss(torch.zeros(2), data)
    with pytest.raises(ConfigError, match=r"beta = 0\.5; give a number from 1 on"):
        independent_set_loss(torch.zeros(2), data, beta=0.5)
    with pytest.raises(ConfigError, match="weight = -1"):
        coloring_loss(torch.zeros(2, 2), data, weight=-1)


def test_settings_of_a_loss_are_checked_and_used() -> None:
    batch = Batch.from_data_list([Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)])
    scores = torch.tensor([0.3, -0.2])
    found = surrogate_of("independent_set", {"beta": 2.0})(scores, batch)
    assert torch.equal(found, independent_set_loss(scores, batch, beta=2.0))
    with pytest.raises(ConfigError, match=r"training\.task\.surrogate\.gamma: the loss 'independent_set'"):
        surrogate_of("independent_set", {"gamma": 1.0})
    with pytest.raises(ConfigError, match="'max_cut' has no settings"):
        surrogate_of("max_cut", {"beta": 1.0})
    with pytest.raises(ConfigError, match="unknown surrogate loss 'sudoku'"):
        surrogate_of("sudoku", {})


@pytest.mark.parametrize("name", LOSSES)
def test_other_graphs_and_scores_are_named(name):
    scores, shape = scores_for(name, 3), LOSSES[name][2]
    cases = {
        "the graphs are directed": Data(edge_index=torch.tensor([[0], [1]]), num_nodes=3),
        "node 2 of the batch is joined to itself": Data(edge_index=torch.tensor([[0, 1, 2], [1, 0, 2]]), num_nodes=3),
        "edge_index names node 7 of a batch of 3 nodes": Data(edge_index=torch.tensor([[0, 7], [7, 0]]), num_nodes=3),
        "the batch has edge_weight": Data(
            edge_index=torch.tensor([[0, 1], [1, 0]]), edge_weight=torch.ones(2), num_nodes=3
        ),
    }
    for message, batch in cases.items():
        with pytest.raises(ConfigError, match=message):
            loss_of(name, scores, batch)
    batch = graph([(0, 1)], 3)
    with pytest.raises(ConfigError, match=r"torch\.int64.*floating-point"):
        loss_of(name, torch.zeros(3, *shape, dtype=torch.long), batch)
    with pytest.raises(ConfigError, match="the scores are ndarray"):
        loss_of(name, np.zeros((3, *shape)), batch)


@pytest.mark.parametrize("reversed_arcs", [0, 1])
def test_one_arc_without_its_reverse_among_many_is_found(reversed_arcs):
    batch = Batch.from_data_list([as_data(found) for found in random_graphs(20)])
    both = batch.edge_index
    batch.edge_index = both[:, 1:] if reversed_arcs == 0 else torch.cat([both[:, 1:], both[:, 1:2]], dim=1)
    with pytest.raises(ConfigError, match="the graphs are directed"):
        max_cut_loss(scores_for("max_cut", batch.num_nodes), batch)


def test_settings_are_refused_before_there_are_data():
    for task, settings, message in (
        ("independent_set", {"beta": 0.5}, r"training\.task\.surrogate: beta = 0\.5; give a number from 1 on"),
        ("independent_set", {"beta": float("inf")}, r"training\.task\.surrogate: beta = inf"),
        ("coloring", {"weight": float("inf")}, r"training\.task\.surrogate: weight = inf"),
        ("coloring", {"weight": float("nan")}, r"training\.task\.surrogate: weight = nan"),
    ):
        with pytest.raises(ConfigError, match=message):
            surrogate_of(task, settings)
