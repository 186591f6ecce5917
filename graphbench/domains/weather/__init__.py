"""Weather: fields on a latitude-longitude grid, the mesh that connects it, and simulated or reanalysed states.

The functions below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench.core.lazy import lazy_exports

if TYPE_CHECKING:
    from graphbench.core.latitudes import grid_latitudes, latitude_weights
    from graphbench.domains.weather.channels import ATMOSPHERE, CHANNELS, LEVELS, SURFACE
    from graphbench.domains.weather.generators import states_as_samples
    from graphbench.domains.weather.grids import grid_longitudes, regrid
    from graphbench.domains.weather.icosahedron import icosphere
    from graphbench.domains.weather.multimesh import Mesh, mesh
    from graphbench.domains.weather.times import hours_since_epoch
    from graphbench.domains.weather.weights import loss_weights

_LAZY = {
    "ATMOSPHERE": "graphbench.domains.weather.channels",
    "CHANNELS": "graphbench.domains.weather.channels",
    "LEVELS": "graphbench.domains.weather.channels",
    "SURFACE": "graphbench.domains.weather.channels",
    "Mesh": "graphbench.domains.weather.multimesh",
    "grid_latitudes": "graphbench.core.latitudes",
    "grid_longitudes": "graphbench.domains.weather.grids",
    "hours_since_epoch": "graphbench.domains.weather.times",
    "icosphere": "graphbench.domains.weather.icosahedron",
    "latitude_weights": "graphbench.core.latitudes",
    "loss_weights": "graphbench.domains.weather.weights",
    "mesh": "graphbench.domains.weather.multimesh",
    "regrid": "graphbench.domains.weather.grids",
    "states_as_samples": "graphbench.domains.weather.generators",
}

__all__ = [
    "ATMOSPHERE",
    "CHANNELS",
    "LEVELS",
    "SURFACE",
    "Mesh",
    "grid_latitudes",
    "grid_longitudes",
    "hours_since_epoch",
    "icosphere",
    "latitude_weights",
    "loss_weights",
    "mesh",
    "regrid",
    "states_as_samples",
]

if not TYPE_CHECKING:  # else type checkers would accept every name
    __getattr__, __dir__ = lazy_exports(globals(), _LAZY)
