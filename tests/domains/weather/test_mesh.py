"""The mesh against SciPy's convex hull, brute-force distances and plain geometry."""

from __future__ import annotations

import itertools
import pkgutil

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from graphbench.core.errors import ArgumentError
from graphbench.domains.weather import icosphere, mesh
from graphbench.domains.weather.multimesh import node_features


@pytest.fixture(scope="module")
def full():
    return mesh()


@pytest.mark.parametrize("refinements", [0, 1, 2, 4])
def test_faces_are_the_convex_hull_of_the_vertices(refinements):
    vertices, faces = icosphere(refinements)
    assert vertices.shape == (10 * 4**refinements + 2, 3)
    np.testing.assert_allclose(np.linalg.norm(vertices, axis=1), 1)
    hull = {tuple(sorted(face)) for face in ConvexHull(vertices).simplices.tolist()}
    assert {tuple(sorted(face)) for face in faces.tolist()} == hull
    assert len(faces) == len(hull) == 20 * 4**refinements
    assert (np.linalg.det(vertices[faces]) > 0).all()  # counter-clockwise from outside


def test_coarser_vertices_come_first():
    np.testing.assert_array_equal(icosphere(3)[0][:162], icosphere(2)[0])


def test_a_face_is_parallel_to_the_equator_at_both_poles():
    vertices, faces = icosphere(0)
    heights = np.sort(vertices[faces][..., 2], axis=1)
    flat = np.isclose(heights[:, 0], heights[:, 2])
    assert flat.sum() == 2
    assert heights[flat, 0].max() == pytest.approx(-heights[flat, 0].min())


def test_sizes_of_graphcasts_recipe(full):
    sizes = len(full.grid), len(full.nodes), len(full.mesh_edges), len(full.grid_to_mesh), len(full.mesh_to_grid)
    assert sizes == (2048, 2562, 20_460, 3_128, 6_144)
    assert len(full.nodes) - len(np.unique(full.grid_to_mesh[:, 1])) == 328  # no grid point near them


def test_multi_mesh_has_the_edges_of_every_hull(full):
    expected = set()
    for level in range(5):
        hull = ConvexHull(icosphere(level)[0]).simplices
        for face in hull.tolist():
            expected |= set(itertools.permutations(face, 2))
    assert set(map(tuple, full.mesh_edges.tolist())) == expected


def test_grid_points_are_where_their_numbers_say(full):
    for longitude, latitude in ((0, 0), (3, 31), (63, 15), (16, 16)):
        north, east = np.deg2rad(-87.1875 + 5.625 * latitude), np.deg2rad(5.625 * longitude)
        expected = [np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)]
        np.testing.assert_allclose(full.grid[32 * longitude + latitude], expected, atol=1e-12)


def test_grid_to_mesh_by_brute_force(full):
    inner = full.mesh_edges
    lengths = np.linalg.norm(full.nodes[inner[:, 0]] - full.nodes[inner[:, 1]], axis=1)
    finest = {tuple(sorted(edge)) for face in icosphere(4)[1].tolist() for edge in itertools.permutations(face, 2)}
    longest = max(n for n, edge in zip(lengths, inner.tolist(), strict=True) if tuple(sorted(edge)) in finest)
    distance = np.linalg.norm(full.grid[:, None] - full.nodes[None], axis=2)
    np.testing.assert_array_equal(np.argwhere(distance <= 0.6 * longest), full.grid_to_mesh)


def test_grid_points_lie_in_their_triangles(full):
    faces = {tuple(sorted(face)) for face in icosphere(4)[1].tolist()}
    for point in range(len(full.grid)):
        corners = full.mesh_to_grid[full.mesh_to_grid[:, 1] == point, 0]
        assert tuple(sorted(corners.tolist())) in faces
        weights = np.linalg.solve(full.nodes[corners].T, full.grid[point])
        assert weights.min() > -1e-9  # a positive combination of the corners, so the ray hits the triangle


def test_edge_features_by_rotating_the_receiver_to_the_origin(full):
    for features, senders, receivers, edges in (
        (full.mesh_features, full.nodes, full.nodes, full.mesh_edges),
        (full.grid_to_mesh_features, full.grid, full.nodes, full.grid_to_mesh),
        (full.mesh_to_grid_features, full.nodes, full.grid, full.mesh_to_grid),
    ):
        longest = max(np.linalg.norm(senders[s] - receivers[r]) for s, r in edges.tolist())
        for e in np.random.default_rng(0).integers(0, len(edges), 25):
            sender, receiver = senders[edges[e, 0]], receivers[edges[e, 1]]
            east, north = np.arctan2(receiver[1], receiver[0]), np.arcsin(receiver[2])
            about_z = [[np.cos(east), np.sin(east), 0], [-np.sin(east), np.cos(east), 0], [0, 0, 1]]
            about_y = [[np.cos(north), 0, np.sin(north)], [0, 1, 0], [-np.sin(north), 0, np.cos(north)]]
            turn = np.array(about_y) @ np.array(about_z)
            np.testing.assert_allclose(turn @ receiver, [1, 0, 0], atol=1e-9)
            expected = np.array([np.linalg.norm(sender - receiver), *(turn @ sender - turn @ receiver)]) / longest
            np.testing.assert_allclose(features[e], expected, atol=1e-6)


def test_edges_are_sorted_and_differ(full):
    for edges in (full.mesh_edges, full.grid_to_mesh, full.mesh_to_grid):
        np.testing.assert_array_equal(np.unique(edges, axis=0), edges)


def test_node_features():
    points = np.array([[0.0, 0.0, 1.0], [0.0, -1.0, 0.0], [np.sqrt(0.5), 0.0, -np.sqrt(0.5)]])
    expected = [[1, 1, 0], [0, 0, -1], [-np.sqrt(0.5), 1, 0]]
    np.testing.assert_allclose(node_features(points), expected, atol=1e-7)


def test_other_grids():
    small = mesh(1, 8, 16)
    assert len(small.grid) == 128
    assert len(small.nodes) == 42
    assert len(small.mesh_to_grid) == 3 * 128


@pytest.mark.parametrize("refinements", [-1, 9, 1.5, "4"])
def test_wrong_refinements_are_refused(refinements):
    with pytest.raises(ArgumentError, match="refinements"):
        icosphere(refinements)


def test_the_functions_are_not_hidden_by_modules():
    """Modules whose names are those of functions would replace them once they are imported."""
    import graphbench.domains.social as social
    import graphbench.domains.weather as weather

    for package in (social, weather):
        modules = {info.name for info in pkgutil.iter_modules(package.__path__)}
        assert not modules & set(package.__all__)
