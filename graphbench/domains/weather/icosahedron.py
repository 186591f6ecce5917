"""Spherical meshes: an icosahedron with faces that are repeatedly split into four."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.arguments import whole_number
from graphbench.core.errors import ArgumentError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MAX_REFINEMENTS = 8  # refinements: 655,362 vertices


def icosphere(refinements: int) -> tuple[Floats, Integers]:
    """Return vertices and faces of an icosahedron that was refined ``refinements`` times.

    Each refinement splits every triangle at the midpoints of its edges, moved onto the unit sphere. The vertices of
    coarser meshes come first. The icosahedron is oriented as in GraphCast (Lam et al., 2023, supplement 3.5): it is
    rotated around the y axis so that a face is parallel to the equatorial plane at the poles.

    Args:
        refinements: Number of refinements, 0 to 8.

    Returns:
        float64 ``[10 * 4**R + 2, 3]``, unit vectors, and int64 ``[20 * 4**R, 3]``, the vertices of every face,
        counter-clockwise as seen from outside.

    Raises:
        ArgumentError: If ``refinements`` is not a whole number from 0 to 8.
    """
    times = whole_number("refinements", refinements, 0)
    if times > _MAX_REFINEMENTS:
        raise ArgumentError(f"refinements must be from 0 to {_MAX_REFINEMENTS}, got {times}")
    vertices, faces = _icosahedron()
    for _ in range(times):
        vertices, faces = _refined(vertices, faces)
    return vertices, faces


def face_edges(faces: Integers) -> Integers:
    """Return the undirected edges of faces, each once with ``u < v``, sorted; int64 ``[E, 2]``."""
    pairs = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    return np.unique(np.sort(pairs, axis=1), axis=0)


def multi_mesh_edges(refinements: int) -> Integers:
    """Return the edges of the meshes of all refinements up to the given one, in both directions.

    As in GraphCast's multi-mesh, the nodes are the nodes of the finest mesh, which begin with the nodes of the coarser
    meshes.

    Returns:
        int64 ``[E, 2]``, sender and receiver, sorted.
    """
    edges = np.concatenate([face_edges(icosphere(level)[1]) for level in range(refinements + 1)])
    return np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)


def _icosahedron() -> tuple[Floats, Integers]:
    golden = (1 + np.sqrt(5)) / 2
    corners = [
        point for a in (1.0, -1.0) for b in (golden, -golden) for point in ((a, b, 0.0), (0.0, a, b), (b, 0.0, a))
    ]
    vertices = np.array(corners) / np.hypot(1.0, golden)
    between_faces = 2 * np.arcsin(golden / np.sqrt(3))
    angle = (np.pi - between_faces) / 2
    c, s = np.cos(angle), np.sin(angle)
    vertices = vertices @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    distance = np.linalg.norm(vertices[:, None] - vertices[None], axis=-1)
    near = (distance > 0) & (distance < 1.01 * distance[distance > 1e-9].min())
    faces = [triple for triple in combinations(range(12), 3) if all(near[a, b] for a, b in combinations(triple, 2))]
    return vertices, _outward(vertices, np.array(faces, np.int64))


def _outward(vertices: Floats, faces: Integers) -> Integers:
    """Return faces with their vertices counter-clockwise as seen from outside."""
    inward = np.linalg.det(vertices[faces]) < 0
    faces = faces.copy()
    faces[inward] = faces[inward][:, [0, 2, 1]]
    return faces


def _refined(vertices: Floats, faces: Integers) -> tuple[Floats, Integers]:
    edges = face_edges(faces)
    middle = vertices[edges].sum(axis=1)
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    keys = edges[:, 0] * len(vertices) + edges[:, 1]

    def midpoint(a: int, b: int) -> Integers:
        pair = np.sort(faces[:, [a, b]], axis=1)
        return len(vertices) + np.searchsorted(keys, pair[:, 0] * len(vertices) + pair[:, 1])

    ab, bc, ca = midpoint(0, 1), midpoint(1, 2), midpoint(2, 0)
    a, b, c = faces.T
    parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return np.concatenate([vertices, middle]), np.concatenate([np.stack(part, axis=1) for part in parts])
