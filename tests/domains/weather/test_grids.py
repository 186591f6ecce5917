"""Regridding against areas of overlap of cells found by brute force, and by what it must conserve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.errors import ArgumentError
from graphbench.core.latitudes import latitude_bounds
from graphbench.domains.weather import grid_latitudes, grid_longitudes, regrid
from graphbench.domains.weather.grids import latitude_overlap, longitude_overlap
from graphbench.domains.weather.vertical import (
    geopotential_to_levels,
    sea_level_pressure,
    temperature_to_levels,
    to_levels,
)

GAUSSIAN = np.rad2deg(np.arcsin(np.polynomial.legendre.leggauss(12)[0]))


def _area(latitudes):
    return np.diff(np.sin(np.deg2rad(latitude_bounds(latitudes))))


def test_overlaps_of_latitudes_by_counting_points():
    target = grid_latitudes(8)
    sines = (np.arange(400_000) + 0.5) / 200_000 - 1  # points of equal area
    degrees = np.rad2deg(np.arcsin(sines))
    in_source = np.searchsorted(latitude_bounds(GAUSSIAN), degrees) - 1
    in_target = np.searchsorted(latitude_bounds(target), degrees) - 1
    counts = np.zeros((8, 12))
    np.add.at(counts, (in_target, in_source), 1)
    np.testing.assert_allclose(
        latitude_overlap(GAUSSIAN, target), counts / counts.sum(axis=1, keepdims=True), atol=2e-4
    )


@pytest.mark.parametrize(("source", "target"), [(24, 16), (16, 24), (96, 64), (7, 5), (8, 8)])
def test_overlaps_of_longitudes_by_counting_points(source, target):
    points = np.arange(0.0, 360.0, 360 / (source * target * 64)) + 1e-7
    step_source, step_target = 360 / source, 360 / target
    in_source = np.floor((points + step_source / 2) / step_source).astype(int) % source
    in_target = np.floor((points + step_target / 2) / step_target).astype(int) % target
    counts = np.zeros((target, source))
    np.add.at(counts, (in_target, in_source), 1)
    expected = counts / counts.sum(axis=1, keepdims=True)
    found = longitude_overlap(grid_longitudes(source), grid_longitudes(target))
    np.testing.assert_allclose(found, expected, atol=1e-3)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 20), st.integers(2, 20), st.integers(2, 20), st.integers(2, 20), st.integers(0, 2**31))
def test_global_means_and_constants_are_kept(lon_a, lat_a, lon_b, lat_b, seed):
    source, target = (grid_longitudes(lon_a), grid_latitudes(lat_a)), (grid_longitudes(lon_b), grid_latitudes(lat_b))
    fields = np.random.default_rng(seed).standard_normal((2, lon_a, lat_a))
    found = regrid(fields, source, target)
    before, after = (
        np.average(f.mean(axis=1), axis=1, weights=_area(g[1])) for f, g in ((fields, source), (found, target))
    )
    np.testing.assert_allclose(before, after, atol=1e-12)
    np.testing.assert_allclose(regrid(np.full((lon_a, lat_a), 3.5), source, target), 3.5)
    assert found.min() >= fields.min() - 1e-12
    assert found.max() <= fields.max() + 1e-12


def test_the_same_grid_changes_nothing():
    grid = grid_longitudes(64), grid_latitudes(32)
    fields = np.random.default_rng(0).standard_normal((64, 32))
    np.testing.assert_allclose(regrid(fields, grid, grid), fields, atol=1e-12)


def test_wrong_grids_are_refused():
    grid = grid_longitudes(8), grid_latitudes(4)
    with pytest.raises(ArgumentError, match="8 longitudes and 4 latitudes"):
        regrid(np.zeros((4, 8)), grid, grid)
    with pytest.raises(ArgumentError, match="evenly"):
        regrid(np.zeros((8, 4)), ([0, 1, 2, 3, 4, 5, 6, 7], grid[1]), grid)


def test_levels_against_numpys_interpolation():
    random = np.random.default_rng(1)
    pressure = np.sort(random.uniform(3e3, 1e5, (3, 8, 5)), axis=1)
    fields, levels = random.standard_normal((3, 8, 5)), np.array([1e3, 5e3, 2e4, 5e4, 8.5e4, 1.1e5])
    found = to_levels(fields, pressure, levels)
    for t in range(3):
        for p in range(5):
            expected = np.interp(np.log(levels), np.log(pressure[t, :, p]), fields[t, :, p])
            np.testing.assert_allclose(found[t, :, p], expected, atol=1e-9)


def test_below_ground_the_air_follows_the_standard_atmosphere():
    """In the standard atmosphere itself, extrapolation from any layer gives its temperature, height and pressure."""
    lapse, gas, gravity = 0.0065, 287.05, 9.80665

    def pressure_at(height):
        return 101_325.0 * (1 - lapse * height / 288.15) ** (gravity / (gas * lapse))

    heights = np.array([6000.0, 4000.0, 2500.0])
    pressure = pressure_at(heights)[None, :, None]
    temperature = (288.15 - lapse * heights)[None, :, None]
    wanted = np.array([500.0, 0.0])  # heights below the lowest layer
    levels = pressure_at(wanted)
    found = temperature_to_levels(temperature, pressure, levels)[0, :, 0]
    np.testing.assert_allclose(found, 288.15 - lapse * wanted, rtol=1e-6)
    heights_found = geopotential_to_levels(gravity * heights[None, :, None], temperature, pressure, levels)[0, :, 0]
    np.testing.assert_allclose(heights_found / gravity, wanted, atol=0.05)
    surface = pressure_at(2000.0)
    sigma = pressure_at(2500.0) / surface
    at_sea = sea_level_pressure(surface, gravity * 2000.0, 288.15 - lapse * 2500.0, sigma)
    assert at_sea == pytest.approx(101_325.0, rel=1e-3)  # the method is linear in the depth of the lowest layer
    assert sea_level_pressure(1e5, 0.0, 280.0, 0.95) == pytest.approx(1e5)


def test_sea_level_pressure_of_cold_and_hot_highlands():
    """The formulas of Trenberth et al. (1993), written out for one column each."""
    gas, gravity = 287.05, 9.80665
    for lowest, height in ((230.0, 3000.0), (288.0, 1500.0), (300.0, 1000.0)):
        surface, geopotential = lowest * (1 + 0.0065 * gas / gravity * (1 / 0.95 - 1)), gravity * height
        slope = 0.0065 * gas / gravity
        if surface < 255:
            surface = (255 + surface) / 2
        elif surface > 290.5:
            surface, slope = (290.5 + surface) / 2, 0.0
        elif surface + 0.0065 * height > 290.5:
            slope = gas * (290.5 - surface) / geopotential
        ratio = geopotential / (gas * surface)
        expected = 7e4 * np.exp(ratio * (1 - slope * ratio / 2 + (slope * ratio) ** 2 / 3))
        assert sea_level_pressure(7e4, geopotential, lowest, 0.95) == pytest.approx(expected)


@pytest.mark.parametrize("layers", [0, 1])
def test_levels_need_two_layers(layers):
    with pytest.raises(ArgumentError, match=f"{layers} layers"):
        to_levels(np.ones((layers, 2)), np.ones((layers, 2)), [500.0])
