"""Labels of power converters: a transient of 4 ms with dead time beside the periodic steady state (table 6)."""

from __future__ import annotations

import numpy as np

from benchmarks.circuit_runs import drawn
from benchmarks.claims.registry import Outcome, check


@check
def transients_of_converters(devices: int, count: int = 150) -> Outcome:
    """How many random converters settle within the simulated 4 ms, and whether labels are those of the steady state.

    Transients and steady states are computed exactly, by matrix exponentials.

    Args:
        devices: Devices of a circuit.
        count: Number of circuits.
    """
    from graphbench.domains.circuits import steady_state, transient

    rows = []
    for circuit, duty in drawn(count, devices):
        state = steady_state(circuit.devices, duty=duty)
        ratio, efficiency, valid = transient(circuit.devices, duty=duty, settings="paper").paper_label
        rows.append((state.settling <= 4e-3, valid, abs(ratio - state.ratio), abs(efficiency - state.efficiency)))
    table = np.array(rows, float)
    values = {
        "graphs": count,
        "settled": table[:, 0].mean(),
        "valid": table[:, 1].mean(),
        "ratio": (table[:, 2] < 0.01).mean(),
        "efficiency": (table[:, 3] < 0.01).mean(),
        "ratio_error": table[:, 2].mean(),
    }
    return Outcome(
        values["settled"] < 0.9 and values["ratio"] < 0.97, values, f"{values['settled']:.0%} settle within 4 ms"
    )


@check
def buck_converter() -> Outcome:
    """Conversion ratio and efficiency of a buck converter at a duty cycle of one half, where theory gives one half."""
    from graphbench.domains.circuits import steady_state, transient

    buck = [("Sa", "VIN", "x"), ("Sb", "x", "GND"), ("L", "x", "VOUT"), ("C", "VOUT", "GND")]
    ideal = steady_state(buck, duty=0.5)
    paper = transient(buck, duty=0.5, settings="paper")
    return Outcome(
        abs(ideal.ratio - 0.5) < 0.01 and paper.ratio < 0.4,
        {
            "ratio": ideal.ratio,
            "efficiency": ideal.efficiency,
            "paper_ratio": paper.ratio,
            "paper_efficiency": paper.efficiency,
        },
        f"steady state {ideal.ratio:.3f}, with dead time {paper.ratio:.3f}",
    )
