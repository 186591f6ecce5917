"""The peers of the weather benchmark load and compute what the package does."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("zarr")
pytest.importorskip("xarray")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
runs = importlib.import_module("benchmarks.weather_runs")
peers = importlib.import_module("benchmarks.weather_peers")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Return the folder of a small set of made-up states."""
    place = tmp_path_factory.mktemp("benchmark")
    found = runs.prepare(str(place), 10)
    assert found["states"] == 26 and found["bytes"] > 10 * 2_048 * 83 * 2
    return str(place)


@pytest.mark.slow
def test_both_sides_load_the_same_numbers(root):
    assert runs.same_batches(root)


@pytest.mark.parametrize("side", ["ours", "lazy", "single", "memory", "tensors"])
def test_batches_of_every_side_have_the_same_shapes(root, side):
    graph = runs._example(root)
    batch = next(iter(runs._open(root, side, graph, 2)(0)))
    if side == "tensors":
        assert [field.shape for field in batch] == [(2, 2_048, 83)] * 2
    else:
        assert batch.x.shape == (2 * 4_610, 87) and batch.y.shape == (2 * 4_610, 83)
        assert batch.edge_index.shape == (2, 2 * 29_732)


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["gin", "gt", "staged"])
def test_plain_models_let_messages_reach_the_grid(root, processor):
    """The change at a grid point depends on the state of another one, through the mesh or by attention."""
    graph = runs._example(root)
    graph.batch = torch.zeros(graph.num_nodes, dtype=torch.long)
    torch.manual_seed(0)
    graph.x = torch.randn_like(graph.x)
    model = peers.PlainModel(processor, 8, 2).eval()
    senders, receivers = graph.edge_index
    with torch.no_grad():
        before = model(graph)
        graph.x[senders[graph.relation == 1][0]] += 3.0
        after = model(graph)
    assert before.shape == (4_610, 83)
    changed = (before != after).any(dim=1)
    assert changed[receivers[graph.relation == 1][0]] and changed[:2_048].sum() > 1


def test_regridding_and_scores_of_peers_are_ours():
    assert runs.regridding(2, 1)["peer"] > 0  # both assert that the numbers are equal
    assert runs.scoring(2, 1)["peer"] > 0
