"""The graph of a forecast: grid points, a multi-mesh, and the edges between the two, built as in GraphCast.

Lam et al., *Learning skillful medium-range global weather forecasting*, Science 382 (2023), supplement 3.5: mesh nodes
receive from all grid points within 0.6 times the longest edge of the finest mesh, and a grid point receives from the
three corners of the mesh triangle that contains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.latitudes import grid_latitudes
from graphbench.domains.weather.grids import grid_longitudes
from graphbench.domains.weather.icosahedron import face_edges, icosphere, multi_mesh_edges

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RADIUS = 0.6  # as a multiple of the longest edge of the finest mesh
_CHUNK = 256  # number of grid points per batch in the search for triangles


@dataclass(frozen=True)
class Mesh:
    """Grid points, mesh nodes, and the edges among them.

    Grid point ``longitude * latitudes + latitude`` has number ``0 .. G - 1``, as in WeatherBench 2's order of
    dimensions; mesh nodes have numbers ``0 .. M - 1``. Edges are ``[E, 2]``: sender, receiver; sorted.

    Attributes:
        grid: float64 ``[G, 3]``, grid points as unit vectors.
        nodes: float64 ``[M, 3]``, mesh nodes as unit vectors.
        mesh_edges: int64 ``[E, 2]``, edges of the multi-mesh, both directions.
        grid_to_mesh: int64 ``[E, 2]``, grid point and mesh node.
        mesh_to_grid: int64 ``[E, 2]``, mesh node and grid point.
        mesh_features: float32 ``[E, 4]``, see :func:`edge_features`, also for the next two.
        grid_to_mesh_features: float32 ``[E, 4]``.
        mesh_to_grid_features: float32 ``[E, 4]``.
    """

    grid: Floats
    nodes: Floats
    mesh_edges: Integers
    grid_to_mesh: Integers
    mesh_to_grid: Integers
    mesh_features: NDArray[np.float32]
    grid_to_mesh_features: NDArray[np.float32]
    mesh_to_grid_features: NDArray[np.float32]


def mesh(refinements: int = 4, latitudes: int = 32, longitudes: int = 64) -> Mesh:
    """Return the graph that connects an equiangular grid with the icosphere of a number of refinements.

    With the defaults: 2,048 grid points, 2,562 mesh nodes, 20,460 multi-mesh edges, 3,128 edges from the grid to the
    mesh and 6,144 back.

    Args:
        refinements: Refinements of the icosphere, 0 to 8.
        latitudes: Latitudes of the grid, at the centres of cells.
        longitudes: Longitudes of the grid, from 0 degrees.

    Raises:
        ArgumentError: If a number is not whole or out of range.
    """
    nodes, faces = icosphere(refinements)
    grid = unit_vectors(
        np.tile(grid_latitudes(latitudes), longitudes), np.repeat(grid_longitudes(longitudes), latitudes)
    )
    finest = face_edges(faces)
    longest = np.linalg.norm(nodes[finest[:, 0]] - nodes[finest[:, 1]], axis=1).max()
    inner = multi_mesh_edges(refinements)
    up, down = _within(grid, nodes, RADIUS * longest), _corners(grid, nodes, faces)
    return Mesh(
        grid,
        nodes,
        inner,
        up,
        down,
        edge_features(nodes[inner[:, 0]], nodes[inner[:, 1]]),
        edge_features(grid[up[:, 0]], nodes[up[:, 1]]),
        edge_features(nodes[down[:, 0]], grid[down[:, 1]]),
    )


def unit_vectors(latitudes: Floats, longitudes: Floats) -> Floats:
    """Return points of the sphere as unit vectors, from degrees; float64 ``[..., 3]``."""
    north, east = np.deg2rad(latitudes), np.deg2rad(longitudes)
    return np.stack([np.cos(east) * np.cos(north), np.sin(east) * np.cos(north), np.sin(north)], axis=-1)


def node_features(points: Floats) -> NDArray[np.float32]:
    """Return the sine of the latitude, and cosine and sine of the longitude, of points; float32 ``[..., 3]``.

    At a pole the longitude is 0.
    """
    east = np.arctan2(points[..., 1], points[..., 0])
    return np.stack([points[..., 2], np.cos(east), np.sin(east)], axis=-1).astype(np.float32)


def edge_features(senders: Floats, receivers: Floats) -> NDArray[np.float32]:
    """Return the length of edges, and the position of their senders as seen from their receivers.

    The position is the difference of the unit vectors in the receiver's frame (up, east, north). All four are divided
    by the longest edge of the set (GraphCast, supplement 3.5).

    Args:
        senders: float64 ``[E, 3]``, unit vectors.
        receivers: float64 ``[E, 3]``, unit vectors.

    Returns:
        float32 ``[E, 4]``.
    """
    difference = senders - receivers
    length = np.linalg.norm(difference, axis=1)
    longitude = np.arctan2(receivers[:, 1], receivers[:, 0])
    east = np.stack([-np.sin(longitude), np.cos(longitude), np.zeros_like(longitude)], axis=1)
    north = np.cross(receivers, east)
    local = [np.einsum("ij,ij->i", axis, difference) for axis in (receivers, east, north)]
    return (np.stack([length, *local], axis=1) / length.max()).astype(np.float32)


def _within(grid: Floats, nodes: Floats, radius: float) -> Integers:
    """Return all pairs (grid point, mesh node) with a distance of at most ``radius``."""
    from scipy.spatial import cKDTree

    near: Any = cKDTree(nodes).query_ball_point(grid, radius)
    senders = np.repeat(np.arange(len(grid)), [len(neighbours) for neighbours in near])
    pairs = np.stack([senders, np.concatenate([np.asarray(neighbours, np.int64) for neighbours in near])], axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _corners(grid: Floats, nodes: Floats, faces: Integers) -> Integers:
    """Return (mesh node, grid point) of the corners of the triangle that contains every grid point.

    A triangle contains a point if its three sides have the point on their left. If a point lies on a side or a corner
    of several triangles, the triangle with the smallest number counts.
    """
    corners = nodes[faces]
    sides = [np.cross(corners[:, k], corners[:, (k + 1) % 3]).T for k in range(3)]
    triangles = []
    for first in range(0, len(grid), _CHUNK):
        points = grid[first : first + _CHUNK]
        inside = np.minimum.reduce([points @ side for side in sides])
        triangles.append(np.argmax(inside > -1e-12, axis=1))
    owner = np.concatenate(triangles)
    pairs = np.stack([faces[owner].ravel(), np.repeat(np.arange(len(grid)), 3)], axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
