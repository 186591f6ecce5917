"""Weights of grid points by area, and of channels in the training loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import ArgumentError
from graphbench.domains.weather.channels import ATMOSPHERE, LEVELS, SURFACE, is_surface, variable_and_level

Floats = NDArray[np.float64]

VARIABLE_WEIGHTS: Mapping[str, float] = {name: 1.0 if name == "2m_temperature" else 0.1 for name in SURFACE}
"""The weights w_j of surface variables in the loss, from GraphCast (supplement 4.2); all other variables have 1."""


def loss_weights(
    levels: Sequence[float] = LEVELS,
    variables: Sequence[str] | None = None,
    weights: Mapping[str, float] = VARIABLE_WEIGHTS,
) -> Floats:
    """Return the weight of every channel's squared error, ``w_j * s_jl`` of GraphBench, section 3.4.1.

    A level has the weight of its pressure over the mean pressure of the levels, a surface variable 1.

    Args:
        levels: Pressure levels in hPa.
        variables: The variables in the order of the channels; None for all.
        weights: ``w_j`` by variable; 1 for variables that are missing.

    Returns:
        float64 ``[channels]``, in the order of :func:`~.channels.channel_names`.

    Raises:
        ArgumentError: If a variable is unknown, ``variables`` is empty, a level is not positive, or a weight is
            negative.
    """
    pressure = np.asarray(levels, np.float64)
    if pressure.ndim != 1 or not len(pressure) or not (pressure > 0).all():
        raise ArgumentError(f"levels must be positive pressures in hPa, got {levels!r}")
    of_levels = pressure / pressure.mean()
    names = (*SURFACE, *ATMOSPHERE) if variables is None else tuple(variables)
    wrong = [name for name, weight in weights.items() if name not in {**SURFACE, **ATMOSPHERE} or not weight >= 0]
    if wrong or not names:
        fault = f"weights[{wrong[0]!r}] is {weights[wrong[0]]!r}" if wrong else "variables is empty"
        raise ArgumentError(
            f"{fault}; give variables among {', '.join((*SURFACE, *ATMOSPHERE))}, and weights from 0 on"
        )
    return np.concatenate([weights.get(name, 1.0) * (np.ones(1) if is_surface(name) else of_levels) for name in names])


def channel_weights(channels: Sequence[str], weights: Mapping[str, float] = VARIABLE_WEIGHTS) -> Floats:
    """Return the weights of :func:`loss_weights` for channels in any order; float64 ``[channels]``.

    Raises:
        ArgumentError: If a name is not the name of a channel.
    """
    pairs = [variable_and_level(channel) for channel in channels]
    pressures: dict[str, list[int]] = {}
    for variable, level in pairs:
        pressures.setdefault(variable, []).append(level or 0)
    products = [
        weights.get(variable, 1.0) * (1.0 if level is None else level / np.mean(pressures[variable]))
        for variable, level in pairs
    ]
    return np.array(products)
