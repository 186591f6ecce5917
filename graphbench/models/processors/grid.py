"""A residual network of convolutions on a grid of latitudes and longitudes, the usual rival of networks on meshes.

Rasp and Thuerey (2021, "Data-driven medium-range weather prediction with a resnet pretrained on climate simulations")
forecast with such a network, whose convolutions are periodic in longitude. Here they also cross the poles: beyond the
last latitude lie the points of the same latitude on the other side of the globe.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.errors import ConfigError
from graphbench.core.validation import StrictModel
from graphbench.models.config import ModelConfig
from graphbench.models.graphs import Layout
from graphbench.models.layers import Dropout, activation_function
from graphbench.models.noise import GraphNoise
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.base import Context, Processed, Processor, State, read_options

_CLOSE = 1e-5  # sines of latitudes, and longitudes in radians, that differ by no more are the same


class GridOptions(StrictModel):
    """The settings of ``residual_grid`` below ``options`` in a model's configuration.

    Attributes:
        mask: Name of an input mask of nodes: 1 for the points of the grid; other nodes keep their embeddings.
        position: Name of an input of nodes with three columns: sine of the latitude, cosine and sine of the longitude.
        reach: How many points a convolution sees in every direction.
    """

    mask: str = "grid"
    position: str = "position"
    reach: int = Field(default=1, ge=1, le=8)


class ResidualBlock(nn.Module):
    """``x + conv(drop(act(norm(conv(act(norm(x)))))))`` at the points of a grid; the last convolution begins with 0.

    Args:
        config: The model's configuration.
        reach: How many points a convolution sees in every direction.
    """

    def __init__(self, config: ModelConfig, reach: int) -> None:
        super().__init__()
        width, size = config.hidden, 2 * reach + 1
        self.reach = reach
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        first, last = (nn.Conv2d(width, width, size) for _ in range(2))
        nn.init.zeros_(last.weight)
        self.convolutions = nn.ModuleList((first, last))
        self.activation, self.dropout = activation_function(config.activation), Dropout(config.dropout)

    def forward(self, x: Tensor, at_poles: tuple[int, int]) -> Tensor:
        """Return the updated points, [B, rows, columns, d].

        Args:
            x: [B, rows, columns, d], rows from south to north.
            at_poles: Whether the first and the last row are the poles themselves, 0 or 1.
        """
        hidden = x
        for number, (norm, convolution) in enumerate(zip(self.norms, self.convolutions, strict=True)):
            hidden = self.activation(norm(hidden))
            if number:
                hidden = self.dropout(hidden)
            wide = across_the_globe(hidden, self.reach, at_poles)
            hidden = convolution(wide.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return x + hidden


def across_the_globe(x: Tensor, reach: int, at_poles: tuple[int, int]) -> Tensor:
    """Return points [B, R, C, d] with ``reach`` rows and columns more on each side, [B, R + 2 reach, C + 2 reach, d].

    Columns continue around the globe. Beyond a pole, rows come back on the other side of it, C / 2 columns further.
    """
    half = x.shape[2] // 2
    south = x[:, at_poles[0] : at_poles[0] + reach].flip(1).roll(half, 2)
    last = x.shape[1] - at_poles[1]
    north = x[:, last - reach : last].flip(1).roll(half, 2)
    rows = torch.cat((south, x, north), dim=1)
    return torch.cat((rows[:, :, -reach:], rows, rows[:, :, :reach]), dim=2)


@register_processor("residual_grid")
class ResidualGrid(Processor):
    """One :class:`ResidualBlock` per layer at the points of a grid; edges are not read."""

    uses_edges: ClassVar[bool] = False

    @classmethod
    def reads(cls, config: ModelConfig) -> list[Feature]:
        """Return the inputs that the options name."""
        options = read_options(GridOptions, config)
        return [
            Feature(options.mask, Stage.INPUT, Location.NODE, Kind.MASK),
            Feature(options.position, Stage.INPUT, Location.NODE, Kind.SCALAR, width=3),
        ]

    def __init__(self, config: ModelConfig, context: Context) -> None:
        """Create one block per layer.

        Raises:
            ConfigError: If ``config.options`` do not fit :class:`GridOptions`.
        """
        super().__init__(config, context)
        self.options = read_options(GridOptions, config)
        self.layers = nn.ModuleList(ResidualBlock(config, self.options.reach) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.hidden)

    def prepare(self, inputs: Mapping[str, Tensor], layout: Layout, noise: GraphNoise) -> dict[str, Any]:
        """Return the points in the order of the grid, int64 [B R C], its shape, and whether it has the poles.

        Raises:
            ConfigError: If the points of a graph are no grid, or graphs of a batch have grids of different sizes.
        """
        points = torch.nonzero(inputs[self.options.mask].reshape(-1)).squeeze(1)
        position = inputs[self.options.position].index_select(0, points).double()
        graph = layout.graph.index_select(0, points)
        sine = position[:, 0]
        longitude = torch.atan2(position[:, 2], position[:, 1]).remainder(2 * math.pi)
        longitude = torch.where(longitude > 2 * math.pi - _CLOSE, 0.0, longitude)
        # sort by graph, latitude, longitude: stable sorts from the last key to the first
        order = torch.argsort(longitude, stable=True)
        order = order[torch.argsort((sine[order] / _CLOSE).round(), stable=True)]
        order = order[torch.argsort(graph[order], stable=True)]
        graph, sine, longitude = graph[order], sine[order], longitude[order]
        begins = torch.ones(len(order), dtype=torch.bool)
        begins[1:] = (sine.diff().abs() > _CLOSE) | (graph.diff() != 0)
        columns = len(order) // max(1, int(begins.sum()))
        rows = len(order) // max(1, columns * layout.num_graphs)
        grid = None
        if columns and rows * columns * layout.num_graphs == len(order):
            grid = longitude.view(-1, columns)
        regular = grid is not None and bool((begins.view(-1, columns)[:, 1:] == 0).all() & begins[::columns].all())
        if grid is None or not regular or ((grid - grid[0]).abs() > _CLOSE).any() or columns % 2:
            raise ConfigError(
                f"the {len(order):,} nodes with {self.options.mask} of {layout.num_graphs} graphs are no grid of equal "
                "latitudes and an even number of longitudes each; name mask and position of a grid in model.options"
            )
        if rows <= self.options.reach:
            raise ConfigError(f"the grid has {rows} latitudes, but model.options.reach is {self.options.reach}")
        at_poles = tuple(int(abs(float(sine[i])) > 1 - 1e-9) for i in (0, -1))
        return {"order": points[order], "shape": (layout.num_graphs, rows, columns), "at_poles": at_poles}

    def forward(self, state: State) -> Processed:
        """Return the processed nodes; nodes outside the grid keep their embeddings."""
        facts = self.facts(state)
        order, shape = facts["order"], facts["shape"]
        x = state.nodes.index_select(0, order).view(*shape, -1)
        for layer in self.layers:
            x = layer(x, facts["at_poles"])
        return Processed(state.nodes.index_copy(0, order, self.norm(x).view(len(order), -1).to(state.nodes.dtype)))
