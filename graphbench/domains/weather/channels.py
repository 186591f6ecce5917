"""The variables of a weather state: names, units and levels of WeatherBench 2, and the order of their channels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphbench.core.errors import ArgumentError
from graphbench.core.suggestions import closest

SURFACE: dict[str, str] = {
    "2m_temperature": "K",
    "10m_u_component_of_wind": "m s**-1",
    "10m_v_component_of_wind": "m s**-1",
    "mean_sea_level_pressure": "Pa",
    "total_precipitation_6hr": "m",
}
"""Variables at the surface, with their units in WeatherBench 2."""

ATMOSPHERE: dict[str, str] = {
    "temperature": "K",
    "u_component_of_wind": "m s**-1",
    "v_component_of_wind": "m s**-1",
    "geopotential": "m**2 s**-2",
    "specific_humidity": "kg kg**-1",
    "vertical_velocity": "Pa s**-1",
}
"""Variables on pressure levels, with their units in WeatherBench 2."""

LEVELS = (50, 100, 150, 200, 250, 300, 400, 500, 600, 700, 850, 925, 1000)
"""Pressure levels, in hPa."""


def channel_names(
    levels: Sequence[int] = LEVELS, variables: Iterable[str] = (*SURFACE, *ATMOSPHERE)
) -> tuple[str, ...]:
    """Return the names of channels: one for a surface variable, one per level for the others, ``temperature_850``.

    Args:
        levels: Pressure levels in hPa.
        variables: The variables, in the order of the channels.

    Raises:
        ArgumentError: If a variable is unknown; the message suggests the nearest name.
    """
    return tuple(
        name
        for variable in variables
        for name in ([variable] if is_surface(variable) else [f"{variable}_{level}" for level in levels])
    )


def is_surface(variable: str) -> bool:
    """Return whether a variable has one value per column of the atmosphere, and not one per level.

    Raises:
        ArgumentError: If the variable is unknown; the message suggests the nearest name.
    """
    if variable in SURFACE:
        return True
    if variable in ATMOSPHERE:
        return False
    variables = (*SURFACE, *ATMOSPHERE)
    raise ArgumentError(
        f"unknown variable {variable!r}{closest(variable, variables)} (there are {', '.join(variables)})"
    )


CHANNELS = channel_names()
"""Names of the 83 channels of a state: five at the surface, then six variables on 13 levels each."""


def variable_and_level(channel: str) -> tuple[str, int | None]:
    """Return the variable of a channel, and its level in hPa; None at the surface.

    Raises:
        ArgumentError: If no channel has this name.
    """
    if channel in SURFACE:
        return channel, None
    variable, _, level = channel.rpartition("_")
    if variable not in ATMOSPHERE or not level.isdigit():
        raise ArgumentError(f"unknown channel {channel!r}{closest(channel, CHANNELS)}")
    return variable, int(level)
