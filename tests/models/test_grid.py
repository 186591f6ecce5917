"""Residual networks on a grid of latitudes and longitudes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from graphbench.core.errors import ConfigError
from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout
from graphbench.models.processors.base import Context, State
from graphbench.models.processors.grid import ResidualGrid, across_the_globe

CONTEXT = Context(directed=True, edge_tokens=False, graph_token=False)
ROWS, COLUMNS, WIDTH = 4, 6, 8


def config(**options: object) -> ModelConfig:
    return ModelConfig(processor="residual_grid", hidden=WIDTH, layers=2, dropout=0.0, options=options)


def model(**options: object) -> ResidualGrid:
    torch.manual_seed(0)
    made = ResidualGrid(config(**options), CONTEXT).eval()
    for layer in made.layers:
        torch.nn.init.normal_(layer.convolutions[1].weight, std=0.2)
    return made


def places(latitudes: Tensor, longitudes: Tensor) -> Tensor:
    """Return the positions of all points of a grid, latitude by latitude, [R C, 3]."""
    lat, lon = latitudes.repeat_interleave(len(longitudes)), longitudes.repeat(len(latitudes))
    return torch.stack((lat.sin(), lon.cos(), lon.sin()), dim=1)


LATITUDES = torch.tensor([-60.0, -20.0, 20.0, 60.0]).deg2rad()
LONGITUDES = torch.arange(COLUMNS) * (2 * math.pi / COLUMNS)
POSITION = places(LATITUDES, LONGITUDES)


def state(nodes: Tensor, position: Tensor, graphs: int = 1, extra: int = 0) -> State:
    """Return the state of grids with ``extra`` further nodes each."""
    mask = torch.cat((torch.ones(len(position)), torch.zeros(extra))).repeat(graphs)
    whole = torch.cat((position, torch.zeros(extra, 3))).repeat(graphs, 1)
    count = len(position) + extra
    graph, ptr = torch.arange(graphs).repeat_interleave(count), torch.arange(graphs + 1) * count
    layout = Layout(torch.empty((2, 0), dtype=torch.long), graph, ptr, graphs, directed=True)
    return State(nodes, None, None, layout, {"grid": mask, "position": whole})


def test_points_beyond_the_edges_are_those_around_the_globe() -> None:
    x = torch.arange(ROWS * COLUMNS, dtype=torch.float32).view(1, ROWS, COLUMNS, 1)
    wide = across_the_globe(x, 2, (0, 0))[0, :, :, 0]
    for row in range(-2, ROWS + 2):
        for column in range(-2, COLUMNS + 2):
            own, shift = row, 0
            if row < 0:
                own, shift = -row - 1, COLUMNS // 2
            if row >= ROWS:
                own, shift = 2 * ROWS - 1 - row, COLUMNS // 2
            expected = x[0, own, (column + shift) % COLUMNS, 0]
            assert wide[row + 2, column + 2] == expected, (row, column)
    poles = across_the_globe(x, 1, (1, 1))[0, :, 1:-1, 0]
    assert poles[0].tolist() == x[0, 1, :, 0].roll(COLUMNS // 2).tolist()
    assert poles[-1].tolist() == x[0, -2, :, 0].roll(COLUMNS // 2).tolist()


@pytest.mark.parametrize("reach", [1, 2])
def test_turning_the_globe_turns_the_result(reach: int) -> None:
    processor, nodes = model(reach=reach), torch.randn(ROWS * COLUMNS, WIDTH)

    def turned(x: Tensor) -> Tensor:
        return x.view(ROWS, COLUMNS, WIDTH).roll(2, 1).view(-1, WIDTH)

    found = processor(state(turned(nodes), POSITION)).nodes
    torch.testing.assert_close(found, turned(processor(state(nodes, POSITION)).nodes), atol=1e-5, rtol=1e-4)
    mirrored = nodes.view(ROWS, COLUMNS, WIDTH).flip(0).view(-1, WIDTH)  # a kernel knows north from south
    other = processor(state(mirrored, POSITION)).nodes.view(ROWS, COLUMNS, WIDTH).flip(0).view(-1, WIDTH)
    assert not torch.allclose(other, processor(state(nodes, POSITION)).nodes, atol=1e-3)


def test_the_order_of_nodes_has_no_effect() -> None:
    processor, nodes = model(), torch.randn(ROWS * COLUMNS, WIDTH)
    order = torch.from_numpy(np.random.default_rng(0).permutation(ROWS * COLUMNS))
    found = processor(state(nodes[order], POSITION[order])).nodes
    torch.testing.assert_close(found, processor(state(nodes, POSITION)).nodes[order], atol=1e-5, rtol=1e-4)


def test_graphs_of_a_batch_are_processed_alone_and_other_nodes_stay() -> None:
    processor, extra = model(), 3
    nodes = torch.randn(2, ROWS * COLUMNS + extra, WIDTH)
    found = processor(state(nodes.view(-1, WIDTH), POSITION, 2, extra)).nodes.view(2, -1, WIDTH)
    for own, alone in zip(found, nodes, strict=True):
        torch.testing.assert_close(own, processor(state(alone, POSITION, 1, extra)).nodes, atol=1e-5, rtol=1e-4)
        assert torch.equal(own[-extra:], alone[-extra:])
    changed = nodes[0].clone()
    changed[0, 0] += 1.0
    other = processor(state(changed, POSITION, 1, extra)).nodes
    moved = ~torch.isclose(other, found[0], atol=1e-6).all(1)
    assert 1 < int(moved.sum()) < ROWS * COLUMNS + 1


def test_what_is_no_grid_is_refused() -> None:
    processor = model()
    nodes = torch.randn(ROWS * COLUMNS, WIDTH)
    uneven = POSITION.clone()
    uneven[3] = places(LATITUDES[:1] + 0.01, LONGITUDES[:1])[0]
    for position in (uneven, places(LATITUDES, LONGITUDES[:5]), places(LATITUDES, LONGITUDES)[:-1]):
        with pytest.raises(ConfigError, match="are no grid of equal latitudes"):
            processor(state(nodes[: len(position)], position))
    with pytest.raises(ConfigError, match=r"4 latitudes, but model\.options\.reach is 5"):
        model(reach=5)(state(nodes, POSITION))
    names = [feature.name for feature in ResidualGrid.reads(config())]
    assert names == ["grid", "position"]
    with pytest.raises(ConfigError, match="reach"):
        ResidualGrid(config(reach=0), CONTEXT)


def test_gradients_reach_every_weight() -> None:
    processor = model().train()
    processor(state(torch.randn(ROWS * COLUMNS, WIDTH), POSITION)).nodes.square().sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in processor.parameters())
