"""The conventions of WeatherBench 2: names of channels, weights of their errors, and hours since 1959."""

from __future__ import annotations

from graphbench.data.components.field_conventions import FieldConvention
from graphbench.domains.weather.channels import ATMOSPHERE, LEVELS, SURFACE, variable_and_level
from graphbench.domains.weather.times import clock, months
from graphbench.domains.weather.weights import channel_weights

CONVENTIONS = {
    "weatherbench": FieldConvention(
        name="weather.weatherbench",
        levels={**dict.fromkeys(SURFACE, ()), **dict.fromkeys(ATMOSPHERE, LEVELS)},
        variable_and_level=variable_and_level,
        channel_weights=channel_weights,
        months=months,
        clock=clock,
    )
}
