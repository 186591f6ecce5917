"""What the rows of power converters measure, in fresh processes; :mod:`benchmarks.circuit_rows` makes rows of it."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DUTIES = (0.1, 0.3, 0.5, 0.7, 0.9)
SIZES = (5, 7, 10)
KEY = 2026
_CPU_LIMIT = 15  # seconds; the reference project gives up after 10 to 15


def drawn(count: int, devices: int) -> list[tuple[Any, float]]:
    """Return random converters and their duty cycles."""
    import numpy as np

    from graphbench.domains.circuits.devices import Circuit, net_names
    from graphbench.domains.circuits.drawing import draw_topologies

    indices = np.arange(count)
    none = np.zeros_like(indices)
    types, nets, sizes, _ = draw_topologies(np.uint64(KEY), indices, none, devices, 0.0, 1.0)
    circuits = [Circuit(t, n, net_names(int(m))) for t, n, m in zip(types, nets, sizes, strict=True)]
    return [(circuit, DUTIES[i % len(DUTIES)]) for i, circuit in enumerate(circuits)]


def steady(devices: int, count: int) -> dict[str, Any]:
    """Return CPU seconds per steady state, in one call and with one call each."""
    from graphbench.domains.circuits.converters import Operation, steady_state, steady_table

    chosen = drawn(count, devices)
    circuits, operations = [c for c, _ in chosen], [Operation(duty=duty) for _, duty in chosen]
    steady_table(circuits[:1], operations[:1])
    started = time.process_time()
    steady_table(circuits, operations)
    at_once = (time.process_time() - started) / count
    started = time.process_time()
    for circuit, duty in chosen:
        steady_state(circuit.devices, duty=duty)
    return {"at once": at_once, "one by one": (time.process_time() - started) / count}


def labels(count: int) -> dict[str, float]:
    """Return CPU seconds per circuit of ``circuits/converters_5``: drawn, and labelled and checked, as in a build."""
    import numpy as np

    import graphbench
    from graphbench.data.build.generation import draw_samples
    from graphbench.data.components.domain import find

    card = graphbench.card("circuits/converters_5")
    draw_samples(card, "train", range(2))
    generator, indices = find("generator", card.generator), np.arange(count)
    started = time.process_time()
    generator.draw(card, "train", indices, np.zeros_like(indices))
    graphs = (time.process_time() - started) / count
    started = time.process_time()
    draw_samples(card, "train", range(count))
    return {"graphs": graphs, "with labels": (time.process_time() - started) / count}


def against_spice(devices: int, count: int, settings: str, seconds: float) -> dict[str, Any]:
    """Simulate random converters with ngspice, and compare with the steady state and with the exact transient.

    Returns:
        ``runs`` and ``failed`` (more than 15 CPU seconds, or an error), mean CPU ``seconds`` of a run of ngspice,
        ``settled`` (circuits whose slowest mode has decayed to 1 %), the largest difference of their ratios from the
        steady state (``settled_worst``), the share of those within 0.01 (``settled_share``), and the same of all
        circuits and the exact transient (``transient_worst``, ``transient_share``).
    """
    from graphbench.core.errors import SolverError
    from graphbench.domains.circuits import run_spice, steady_state, to_spice, transient

    with tempfile.TemporaryDirectory() as folder:
        program = _limited(Path(folder))
        rows, failed, spent = [], 0, 0.0
        for circuit, duty in drawn(count, devices):
            options: dict[str, Any] = {"duty": duty, "seconds": seconds, "settings": settings}
            before = _children()
            try:
                means = run_spice(to_spice(circuit.devices, **options), executable=program, timeout=3600.0)
            except SolverError:
                failed += 1
                continue
            finally:
                spent += _children() - before
            state = steady_state(circuit.devices, duty=duty)
            ratio = means["mean_vout"] / 100.0
            end = transient(circuit.devices, **options).ratio
            rows.append((abs(ratio - state.ratio), abs(ratio - end), state.settling <= seconds))
    return {"runs": count, "failed": failed, "seconds": spent / count, **summary(rows)}


def summary(rows: Sequence[tuple[float, float, bool]]) -> dict[str, Any]:
    """Return worst differences and shares within 1 % of VIN, of settled circuits and of all."""
    settled = [steady for steady, _, is_settled in rows if is_settled]
    ends = [end for _, end, _ in rows]
    return {
        "settled": len(settled),
        "settled_worst": max(settled, default=0.0),
        "settled_share": _share(settled),
        "transient_worst": max(ends, default=0.0),
        "transient_share": _share(ends),
    }


def _share(differences: Sequence[float]) -> float:
    return sum(value < 0.01 for value in differences) / max(len(differences), 1)


def paper_labels(devices: int, count: int) -> Mapping[str, float]:
    """Return how labels of the paper's transient of 4 ms, without errors of ngspice, differ from those here.

    Returns:
        Shares of circuits: ``settled`` within 4 ms, ``valid`` by the reference project's rules, ``ratio`` and
        ``efficiency`` that agree within 0.01, and the same without dead time (``exact_...``); and the mean absolute
        differences ``ratio_mae`` and ``efficiency_mae``.
    """
    import numpy as np

    from graphbench.domains.circuits import steady_state, transient

    rows = []
    for circuit, duty in drawn(count, devices):
        state = steady_state(circuit.devices, duty=duty)
        ratio, efficiency, valid = transient(circuit.devices, duty=duty, settings="paper").paper_label
        own, own_efficiency, own_valid = transient(circuit.devices, duty=duty).paper_label
        rows.append([
            state.settling <= 4e-3, valid, abs(ratio - state.ratio), abs(efficiency - state.efficiency),
            own_valid, abs(own - state.ratio), abs(own_efficiency - state.efficiency),
        ])  # fmt: skip
    table = np.array(rows, float)
    near = table < 0.01
    return {
        "settled": float(table[:, 0].mean()),
        "valid": float(table[:, 1].mean()),
        "ratio": float(near[:, 2].mean()),
        "efficiency": float(near[:, 3].mean()),
        "ratio_mae": float(table[:, 2].mean()),
        "efficiency_mae": float(table[:, 3].mean()),
        "exact_valid": float(table[:, 4].mean()),
        "exact_ratio": float(near[:, 5].mean()),
        "exact_efficiency": float(near[:, 6].mean()),
    }


def _limited(folder: Path) -> str:
    """Return a program that runs ngspice for a limited CPU time."""
    found = shutil.which("ngspice")
    if found is None:
        raise RuntimeError("ngspice is not installed")
    path = folder / "ngspice"
    path.write_text(f'#!/bin/sh\nulimit -t {_CPU_LIMIT}\nexec {found} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system
