"""The graph that all weather samples share: grid points, mesh nodes, and the edges among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.topologies import Structure
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
    """Return one graph whose first nodes are the grid points; arcs are sorted by sender and receiver."""
    found = mesh(parameters.refinements, parameters.latitudes, parameters.longitudes)
    points, nodes = len(found.grid), len(found.nodes)
    up, down = np.array([0, points]), np.array([points, 0])
    edges = np.concatenate([found.mesh_edges + points, found.grid_to_mesh + up, found.mesh_to_grid + down])
    sizes = len(found.mesh_edges), len(found.grid_to_mesh), len(found.mesh_to_grid)
    relation = np.repeat([MESH_EDGE, GRID_TO_MESH, MESH_TO_GRID], sizes)
    geometry = np.concatenate([found.mesh_features, found.grid_to_mesh_features, found.mesh_to_grid_features])
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    return Samples(
        np.array([points + nodes]),
        np.array([len(edges)]),
        edges[order],
        {
            "grid": (np.arange(points + nodes) < points).astype(np.uint8),
            "position": node_features(np.concatenate([found.grid, found.nodes])),
            "relation": relation[order],
            "geometry": geometry[order],
        },
    )


STRUCTURES: Mapping[str, Structure] = {"mesh": Structure("weather.mesh", MeshParameters, _build)}
