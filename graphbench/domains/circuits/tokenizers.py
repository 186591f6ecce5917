"""Designs as sequences of tokens: the duty cycle in steps of 0.005, each device with its two nets, and an end.

A goal is rows of 64 thermometers: the value of a number counts how many thresholds it passes. The ratio and the
efficiency have a second row within the step of the first, so they are read to 0.002 and 0.0003.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import ArgumentError
from graphbench.data.components.environments import Tokenizer
from graphbench.domains.circuits.design_generator import REFERENCE
from graphbench.domains.circuits.designs import GOAL, Design, Goal, evaluated, miss
from graphbench.domains.circuits.devices import TYPES, net_names

_END = 1
_DUTY_STEPS = 200
_FIRST_DUTY = 1  # the token of a duty cycle is this plus its steps, 1 to 199
_FIRST_KIND = _FIRST_DUTY + _DUTY_STEPS
_FIRST_NET = _FIRST_KIND + len(TYPES)
_MOST_DEVICES, _MOST_NETS = 12, 27
_LONGEST = 2 + 3 * _MOST_DEVICES
_WIDTH = 64
_LOWEST_RATIO, _RATIO_STEP = -4.0, 0.125
_LOWEST_LOAD, _LOAD_STEP = -2.0, 0.125  # logarithms to base 10


def _thermometer(steps: float) -> NDArray[np.int8]:
    """Return 1 for the thresholds 0, 1, ... that a number of steps passes, and -1 for the others."""
    return np.where(np.arange(_WIDTH) < steps, 1, -1).astype(np.int8)


def goals_of(text: str) -> NDArray[np.int8]:
    """Return a goal as vectors of -1 and 1, int8 ``[6, 64]``."""
    goal = Goal.read(text)
    rows = []
    for steps in ((goal.ratio - _LOWEST_RATIO) / _RATIO_STEP, goal.efficiency * _WIDTH):
        rows += [_thermometer(steps), _thermometer((steps - math.floor(steps)) * _WIDTH)]
    rows.append(_thermometer((math.log10(goal.operation.load) - _LOWEST_LOAD) / _LOAD_STEP))
    rows.append(_thermometer(goal.devices))
    return np.stack(rows)


def tokens_of(reference: str) -> NDArray[np.int64]:
    """Return the tokens of a design.

    Raises:
        ArgumentError: If the design cannot be read, or has more than 12 devices.
    """
    design = Design.read(reference)
    circuit = design.checked()
    if len(circuit.types) > _MOST_DEVICES:
        raise ArgumentError(f"a design of {len(circuit.types)} devices has no tokens; at most {_MOST_DEVICES} do")
    duty = min(max(round(_DUTY_STEPS * design.duty), 1), _DUTY_STEPS - 1)
    parts = np.column_stack((circuit.types + _FIRST_KIND, circuit.nets + _FIRST_NET)).ravel()
    return np.concatenate(([_FIRST_DUTY + duty], parts, [_END])).astype(np.int64)


def is_complete(text: str, tokens: Sequence[int]) -> bool:
    """Return whether the tokens end with the end mark."""
    return bool(tokens) and tokens[-1] == _END


def design_of(text: str, tokens: Sequence[int]) -> Design | None:
    """Return the design that tokens encode, whether it meets the goal or not; None if there is none."""
    if not is_complete(text, tokens) or len(tokens) % 3 != 2:
        return None
    duty, parts = tokens[0] - _FIRST_DUTY, np.array(tokens[1:-1], np.int64).reshape(-1, 3)
    kinds, nets = parts[:, 0] - _FIRST_KIND, parts[:, 1:] - _FIRST_NET
    if not 1 <= duty < _DUTY_STEPS or not len(parts) or not ((kinds >= 0) & (kinds < len(TYPES))).all():
        return None
    if not ((nets >= 0) & (nets < _MOST_NETS)).all() or (nets[:, 0] == nets[:, 1]).any():
        return None
    names = net_names(_MOST_NETS)
    rows = zip(kinds.tolist(), nets.tolist(), strict=True)
    return Design([(TYPES[kind], names[a], names[b]) for kind, (a, b) in rows], duty / _DUTY_STEPS)


def costs_of(texts: Sequence[str], designs: Sequence[Design | None]) -> NDArray[np.float64]:
    """Return by how many tolerances designs miss their goals, by simulation; inf for those that do not work."""
    costs = np.full(len(texts), math.inf)
    given = [(i, design) for i, design in enumerate(designs) if design is not None]
    goals = [Goal.read(texts[i]) for i, _ in given]
    circuits = [design.checked() for _, design in given]
    reached = evaluated(circuits, [design.duty for _, design in given], goals)
    for place, (i, _) in enumerate(given):
        one = slice(place, place + 1)
        costs[i] = miss(reached.ratio[one], reached.efficiency[one], goals[place])[0]
    return costs


TOKENIZERS: Mapping[str, Tokenizer] = {
    "designs": Tokenizer(
        name="circuits.designs",
        field=GOAL,
        reference=REFERENCE,
        goal=_WIDTH,
        vocabulary=_FIRST_NET + _MOST_NETS,
        longest=_LONGEST,
        goals=goals_of,
        tokens=tokens_of,
        complete=is_complete,
        structure=design_of,
        costs=costs_of,
    )
}
