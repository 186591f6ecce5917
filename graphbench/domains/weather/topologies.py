"""The graph that all weather samples share: grid points, mesh nodes, and the edges among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.topologies import Topology
from graphbench.domains.weather.multimesh import mesh, node_features

MESH_EDGE, GRID_TO_MESH, MESH_TO_GRID = range(3)
"""Values of the feature ``relation``."""


class MeshParameters(StrictModel):
    """Sizes of grid and mesh.

    Attributes:
        refinements: Refinements of the icosphere.
        latitudes: Latitudes of the grid.
        longitudes: Longitudes of the grid.
    """

    refinements: Annotated[int, Field(ge=0, le=6)] = 4
    latitudes: Annotated[int, Field(ge=2, le=128)] = 32
    longitudes: Annotated[int, Field(ge=2, le=256)] = 64


def _build(parameters: MeshParameters) -> Samples:
    """Return one graph with the grid points as first nodes; arcs are sorted by sender and receiver."""
    graph = mesh(parameters.refinements, parameters.latitudes, parameters.longitudes)
    points, nodes = len(graph.grid), len(graph.nodes)
    up, down = np.array([0, points]), np.array([points, 0])
    edges = np.concatenate([graph.mesh_edges + points, graph.grid_to_mesh + up, graph.mesh_to_grid + down])
    sizes = len(graph.mesh_edges), len(graph.grid_to_mesh), len(graph.mesh_to_grid)
    relation = np.repeat([MESH_EDGE, GRID_TO_MESH, MESH_TO_GRID], sizes)
    geometry = np.concatenate([graph.mesh_features, graph.grid_to_mesh_features, graph.mesh_to_grid_features])
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    return Samples(
        np.array([points + nodes]),
        np.array([len(edges)]),
        edges[order],
        {
            "grid": (np.arange(points + nodes) < points).astype(np.uint8),
            "position": node_features(np.concatenate([graph.grid, graph.nodes])),
            "relation": relation[order],
            "geometry": geometry[order],
        },
    )


TOPOLOGIES: Mapping[str, Topology] = {"mesh": Topology("weather.mesh", MeshParameters, _build)}
