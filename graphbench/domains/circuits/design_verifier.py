"""The verifier of designs: it simulates each, exactly, under the conditions of its goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import EvaluationError
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.verifiers import Verdict, Verifier
from graphbench.domains.circuits.design_answers import ENDING, FORMS, GRAPH_FIELDS, MISSING, UNREADABLE, Proposals
from graphbench.domains.circuits.designs import FAULTS, GOAL, Design, Goal, evaluated
from graphbench.domains.circuits.devices import Circuit, net_names
from graphbench.domains.circuits.drawing import draw_topologies

METRICS = ("met", "valid", "ratio_error", "efficiency_loss", "mean_devices")
_OFF = "the ratio or the efficiency is not the wanted one"
REASONS = ("", MISSING, UNREADABLE, *FAULTS, _OFF)
_KEY = np.uint64(0x666C6F6F)


def _verdict(fields: Mapping[str, Any], answers: Any) -> Verdict:
    """Return what designs reach; the parts of the samples are the signs of the wanted ratio."""
    goals = [Goal.read(text) for text in fields[GOAL]]
    proposals = Proposals.of(answers)
    if len(proposals.circuits) != len(goals):
        raise EvaluationError(f"there are {len(proposals.circuits)} designs for {len(goals)} samples; give one each")
    reasons = np.array([REASONS.index(fault or "") for fault in proposals.faults], np.int64)
    given = [i for i, circuit in enumerate(proposals.circuits) if circuit is not None]
    circuits = [circuit for circuit in proposals.circuits if circuit is not None]
    outcomes = evaluated(circuits, [proposals.duties[i] for i in given], [goals[i] for i in given])
    met, valid = np.zeros(len(goals)), np.zeros(len(goals))
    ratio_error, efficiency_loss, devices = (np.full(len(goals), np.nan) for _ in range(3))
    reached = outcomes.met([goals[i] for i in given])
    for place, i in enumerate(given):
        fault = outcomes.faults[place]
        if fault is not None:
            reasons[i] = REASONS.index(fault)
            continue
        valid[i], met[i] = 1, reached[place]
        reasons[i] = 0 if met[i] else REASONS.index(_OFF)
        ratio_error[i] = abs(outcomes.ratio[place] - goals[i].ratio)
        efficiency_loss[i] = max(0.0, goals[i].efficiency - outcomes.efficiency[place])
        devices[i] = len(circuits[place].types)
    values = dict(zip(METRICS, (met, valid, ratio_error, efficiency_loss, devices), strict=True))
    groups = ["inverting" if goal.ratio < 0 else "step_up" if goal.ratio > 1 else "step_down" for goal in goals]
    return Verdict(values, reasons, REASONS, groups, proposals.details)


def scores_of(goals: Sequence[str], designs: Sequence[Design]) -> dict[str, float]:
    """Return the mean values of designs; those of which no design has a value are left out."""
    values = _verdict({GOAL: goals}, designs).values
    known = {name: column[~np.isnan(column)] for name, column in values.items()}
    return {name: float(column.mean()) for name, column in known.items() if len(column)}


def _arrays(answers: Any) -> Mapping[str, NDArray[Any]]:
    return Proposals.of(answers).arrays()


def _floors(samples: Samples) -> Mapping[str, Sequence[Design]]:
    """Return a random valid circuit for each sample, at a duty cycle of one half."""
    designs = []
    for i, text in enumerate(samples.values[GOAL].strings()):
        devices = Goal.read(text).devices
        types, nets, num_nets, _ = draw_topologies(_KEY, np.array([i]), np.zeros(1, np.int64), devices, 0.0, 1.0)
        designs.append(Design(Circuit(types[0], nets[0], net_names(int(num_nets[0]))).devices, 0.5))
    return {"random": designs}


VERIFIERS: Mapping[str, Verifier] = {
    "designs": Verifier(
        name="circuits.designs",
        answers="designs",
        forms=FORMS,
        graph_fields=GRAPH_FIELDS,
        fields=(GOAL,),
        metrics=METRICS,
        endings=(ENDING,),
        verify=_verdict,
        arrays=_arrays,
        floors=_floors,
    )
}
