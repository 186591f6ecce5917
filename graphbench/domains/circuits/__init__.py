"""Power converters: random circuits of switches, capacitors and inductors, and their exact periodic steady state.

The functions below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench.core.lazy import lazy_exports

if TYPE_CHECKING:
    from graphbench.domains.circuits.converters import SteadyState, Waveforms, steady_state, waveforms
    from graphbench.domains.circuits.spice import run_spice, to_spice

_LAZY = {
    "SteadyState": "graphbench.domains.circuits.converters",
    "Waveforms": "graphbench.domains.circuits.converters",
    "run_spice": "graphbench.domains.circuits.spice",
    "steady_state": "graphbench.domains.circuits.converters",
    "to_spice": "graphbench.domains.circuits.spice",
    "waveforms": "graphbench.domains.circuits.converters",
}

__all__ = ["SteadyState", "Waveforms", "run_spice", "steady_state", "to_spice", "waveforms"]

__getattr__, __dir__ = lazy_exports(globals(), _LAZY)
