"""Interpolation from the layers of a model to pressure levels, and the pressure at sea level."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbench.core.errors import ArgumentError
from graphbench.core.kernels import kernel
from graphbench.domains.weather.elementary import exp, log, power

Floats = NDArray[np.float64]

GRAVITY = 9.80665  # m s**-2
DRY_AIR = 287.05  # gas constant, J kg**-1 K**-1
LAPSE_RATE = 0.0065  # of the standard atmosphere, K m**-1
_WARM, _COLD = 290.5, 255.0  # K, limits of the reduction to sea level


def to_levels(fields: ArrayLike, pressure: ArrayLike, levels: ArrayLike) -> Floats:
    """Return fields on pressure levels: linear in the logarithm of pressure, constant beyond the first and last layer.

    Args:
        fields: ``[..., layers, points]``, layers from the top down.
        pressure: Pressure of the layers in Pa, ``[..., layers, points]``, increasing from layer to layer.
        levels: Pressure of the levels in Pa, ``[levels]``.

    Returns:
        float64 ``[..., levels, points]``.

    Raises:
        ArgumentError: If the shapes differ, or there are fewer than two layers.
    """
    values, layers = np.asarray(fields, np.float64), log(pressure)
    if values.shape != layers.shape or values.ndim < 2:
        raise ArgumentError(f"fields have the shape {list(values.shape)}, the pressure {list(layers.shape)}")
    if values.shape[-2] < 2:
        raise ArgumentError(f"fields have {values.shape[-2]} layers; levels are interpolated between at least two")
    wanted = log(levels)
    interpolated = np.empty((*values.shape[:-2], len(wanted), values.shape[-1]))
    flat = values.reshape(-1, *values.shape[-2:])
    _interpolate(flat, layers.reshape(flat.shape), wanted, interpolated.reshape(len(flat), len(wanted), -1))
    return interpolated


@kernel
def _interpolate(values: Floats, layers: Floats, wanted: Floats, result: Floats) -> None:
    for t in range(values.shape[0]):
        for p in range(values.shape[2]):
            for w in range(wanted.shape[0]):
                above = 0
                while above < values.shape[1] - 2 and layers[t, above + 1, p] < wanted[w]:
                    above += 1
                low, high = layers[t, above, p], layers[t, above + 1, p]
                share = min(max((wanted[w] - low) / (high - low), 0.0), 1.0)
                result[t, w, p] = (1 - share) * values[t, above, p] + share * values[t, above + 1, p]


def temperature_to_levels(temperature: ArrayLike, pressure: ArrayLike, levels: ArrayLike) -> Floats:
    """Return the temperature on pressure levels; below the lowest layer it follows the standard lapse rate.

    Arguments and result as for :func:`to_levels`, in K.
    """
    values, layers, wanted = _floats(temperature, pressure, levels)
    interpolated = to_levels(values, layers, wanted)
    ratio = np.maximum(wanted[:, None] / layers[..., -1:, :], 1.0)
    below = ratio > 1
    return np.where(below, values[..., -1:, :] * power(ratio, DRY_AIR * LAPSE_RATE / GRAVITY), interpolated)


def geopotential_to_levels(
    geopotential: ArrayLike, temperature: ArrayLike, pressure: ArrayLike, levels: ArrayLike
) -> Floats:
    """Return the geopotential on pressure levels; below the lowest layer the air has the standard lapse rate.

    Args:
        geopotential: Of the layers in m**2 s**-2, ``[..., layers, points]``.
        temperature: Of the layers in K.
        pressure: Of the layers in Pa.
        levels: Pressure of the levels in Pa.

    Returns:
        float64 ``[..., levels, points]``.
    """
    values, layers, wanted = _floats(geopotential, pressure, levels)
    interpolated = to_levels(values, layers, wanted)
    lowest = np.asarray(temperature, np.float64)[..., -1:, :]
    ratio = np.maximum(wanted[:, None] / layers[..., -1:, :], 1.0)
    depth = lowest / LAPSE_RATE * (power(ratio, DRY_AIR * LAPSE_RATE / GRAVITY) - 1)
    return np.where(ratio > 1, values[..., -1:, :] - GRAVITY * depth, interpolated)


def sea_level_pressure(
    surface_pressure: ArrayLike, surface_geopotential: ArrayLike, temperature: ArrayLike, sigma: float
) -> Floats:
    """Return the pressure at mean sea level in Pa, by the method of ECMWF.

    The air below the surface has the standard lapse rate, with limits for very warm and very cold surfaces (Trenberth,
    Berry and Buja, *Vertical interpolation and truncation of model-coordinate data*, NCAR TN-396, 1993, section 2).

    Args:
        surface_pressure: Pa.
        surface_geopotential: Geopotential of the surface in the model's dynamics, m**2 s**-2; it may be negative.
        temperature: Of the lowest layer, K.
        sigma: Pressure of the lowest layer over surface pressure.
    """
    pressure, lowest = np.asarray(surface_pressure, np.float64), np.asarray(temperature, np.float64)
    height = np.asarray(surface_geopotential, np.float64)
    surface = lowest * (1 + DRY_AIR * LAPSE_RATE / GRAVITY * (1 / sigma - 1))
    at_sea = surface + LAPSE_RATE * height / GRAVITY
    standard = DRY_AIR * LAPSE_RATE / GRAVITY
    warm, hot = (at_sea > _WARM) & (surface <= _WARM), (at_sea > _WARM) & (surface > _WARM)
    safe = np.where(np.abs(height) > 1e-3, height, 1e-3)
    exponent = np.where(warm, DRY_AIR * (_WARM - surface) / safe, np.where(hot, 0.0, standard))
    cold = surface < _COLD
    surface = np.where(hot, (_WARM + surface) / 2, np.where(cold, (_COLD + surface) / 2, surface))
    over = height / (DRY_AIR * surface)
    x = np.where(cold, standard, exponent) * over
    return pressure * exp(over * (1 - x / 2 + x**2 / 3))


def _floats(values: ArrayLike, pressure: ArrayLike, levels: ArrayLike) -> tuple[Floats, Floats, Floats]:
    return np.asarray(values, np.float64), np.asarray(pressure, np.float64), np.asarray(levels, np.float64)
