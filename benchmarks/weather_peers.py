"""How weather is loaded and modelled with xarray and PyTorch Geometric alone: the peers of the weather benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINEConv, GPSConv, MessagePassing

from graphbench.domains.weather import ATMOSPHERE, SURFACE

NODES, EDGES, CHANNELS = 87, 7, 83  # columns of x, edge_attr and y


def state_of(data: Any, time: int) -> NDArray[np.float32]:
    """Return the state of a time of an open xarray dataset, float32 ``[points, 83]``."""
    columns = [data[name].isel(time=time).values[None] for name in SURFACE]
    columns += [data[name].isel(time=time).values for name in ATMOSPHERE]
    stacked = np.concatenate(columns)
    return stacked.reshape(len(stacked), -1).T.astype(np.float32)


class XarrayStates(torch.utils.data.Dataset[Any]):
    """The samples of a zarr store through xarray: a state, and its change within two steps.

    Args:
        path: The store.
        graph: The graph of all samples, with ``edge_index`` and ``edge_attr``.
        in_memory: Whether all values are read at once.
        as_graphs: Whether a sample is a ``Data`` with the graph, or a pair of tensors ``[points, 83]``.
    """

    def __init__(self, path: Path, graph: Data, *, in_memory: bool, as_graphs: bool = True) -> None:
        import xarray

        self.data = xarray.open_zarr(path, chunks=None)
        if in_memory:
            self.data = self.data.load()
        self.graph, self.as_graphs = graph, as_graphs

    def __len__(self) -> int:
        """Return the number of samples."""
        return int(self.data.sizes["time"]) - 2

    def __getitem__(self, time: int) -> Any:
        """Return a sample."""
        before, later = state_of(self.data, time), state_of(self.data, time + 2)
        state, change = torch.from_numpy(before), torch.from_numpy(later - before)
        if not self.as_graphs:
            return state, change
        nodes = int(self.graph.num_nodes or 0)
        x, y = torch.zeros(nodes, NODES), torch.zeros(nodes, CHANNELS)
        x[: len(state), :CHANNELS], y[: len(state)] = state, change
        x[:, CHANNELS:] = self.graph.x[:, CHANNELS:]
        return Data(x=x, y=y, edge_index=self.graph.edge_index, edge_attr=self.graph.edge_attr)


class GineLayer(nn.Module):
    """A residual layer of PyG's ``GINEConv``."""

    def __init__(self, width: int) -> None:
        super().__init__()
        network = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.conv, self.norm = GINEConv(network, train_eps=True), nn.LayerNorm(width)

    def forward(self, x: Tensor, edges: Tensor, data: Any) -> tuple[Tensor, Tensor]:
        """Return nodes and edges."""
        return x + self.conv(self.norm(x), data.edge_index, edges), edges


class GpsLayer(nn.Module):
    """A layer of PyG's ``GPSConv`` with attention among all nodes, and no message passing."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = GPSConv(width, None, heads=4, norm=None, act="gelu")

    def forward(self, x: Tensor, edges: Tensor, data: Any) -> tuple[Tensor, Tensor]:
        """Return nodes and edges."""
        return self.conv(x, data.edge_index, batch=data.batch), edges


class InteractionLayer(MessagePassing):
    """A round of an interaction network on concatenated senders, receivers and edges."""

    def __init__(self, width: int, kind: int) -> None:
        super().__init__(aggr="sum")
        self.kind = kind
        self.of_edges = nn.Sequential(
            nn.Linear(3 * width, width), nn.GELU(), nn.Linear(width, width), nn.LayerNorm(width)
        )
        self.of_nodes = nn.Sequential(
            nn.Linear(2 * width, width), nn.GELU(), nn.Linear(width, width), nn.LayerNorm(width)
        )

    def forward(self, x: Tensor, edges: Tensor, data: Any) -> tuple[Tensor, Tensor]:
        """Return nodes and edges, of which those of the layer's kind are new."""
        own = data.edge_attr[:, self.kind] > 0
        index = data.edge_index[:, own]
        messages = self.of_edges(torch.cat([x[index[0]], x[index[1]], edges[own]], dim=1))
        received = self.propagate(index, messages=messages, size=(len(x), len(x)))
        edges = edges.clone()
        edges[own] = edges[own] + messages
        return x + self.of_nodes(torch.cat([x, received], dim=1)), edges

    def message(self, messages: Tensor) -> Tensor:
        """Return what is sent along the arcs."""
        return messages


class PlainModel(nn.Module):
    """Encoder, layers and decoder on PyG's ``x`` and ``edge_attr``.

    Args:
        processor: ``gin``, ``gt`` or ``staged``.
        width: Width of embeddings.
        layers: Number of layers, of ``staged`` those on the mesh; two more go to the mesh and back.
    """

    def __init__(self, processor: str, width: int, layers: int) -> None:
        super().__init__()
        self.nodes, self.edges = nn.Linear(NODES, width), nn.Linear(EDGES, width)
        made: list[nn.Module]
        if processor == "staged":
            made = [InteractionLayer(width, kind) for kind in (1, *[0] * layers, 2)]
        else:
            made = [(GineLayer if processor == "gin" else GpsLayer)(width) for _ in range(layers)]
        self.layers = nn.ModuleList(made)
        self.decoder = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, CHANNELS))

    def forward(self, data: Any) -> Tensor:
        """Return the changes of all nodes, ``[nodes, 83]``."""
        x, edges = self.nodes(data.x), self.edges(data.edge_attr)
        for layer in self.layers:
            x, edges = layer(x, edges, data)
        found: Tensor = self.decoder(x)
        return found
