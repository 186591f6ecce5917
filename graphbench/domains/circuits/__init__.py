"""Power converters: random circuits of switches, capacitors and inductors, and their exact periodic steady state.

The functions below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench.core.lazy import lazy_exports

if TYPE_CHECKING:
    from graphbench.domains.circuits.converters import SteadyState, Waveforms, steady_state, waveforms
    from graphbench.domains.circuits.graphs import devices_to_sample, sample_to_devices
    from graphbench.domains.circuits.reference_files import read_simulated_circuits
    from graphbench.domains.circuits.spice import run_spice, to_spice
    from graphbench.domains.circuits.transients import Transient, transient

_LAZY = {
    "SteadyState": "graphbench.domains.circuits.converters",
    "Transient": "graphbench.domains.circuits.transients",
    "Waveforms": "graphbench.domains.circuits.converters",
    "devices_to_sample": "graphbench.domains.circuits.graphs",
    "read_simulated_circuits": "graphbench.domains.circuits.reference_files",
    "run_spice": "graphbench.domains.circuits.spice",
    "sample_to_devices": "graphbench.domains.circuits.graphs",
    "steady_state": "graphbench.domains.circuits.converters",
    "to_spice": "graphbench.domains.circuits.spice",
    "transient": "graphbench.domains.circuits.transients",
    "waveforms": "graphbench.domains.circuits.converters",
}

__all__ = [
    "SteadyState",
    "Transient",
    "Waveforms",
    "devices_to_sample",
    "read_simulated_circuits",
    "run_spice",
    "sample_to_devices",
    "steady_state",
    "to_spice",
    "transient",
    "waveforms",
]

if not TYPE_CHECKING:  # else type checkers would accept every name
    __getattr__, __dir__ = lazy_exports(globals(), _LAZY)
