"""Searches for designs that need no model: the nearest known circuit, its duty cycle tuned, and random circuits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.circuits.converters import Operation
from graphbench.domains.circuits.design_verifier import scores_of
from graphbench.domains.circuits.designs import Design, Goal, Outcomes, evaluated, miss
from graphbench.domains.circuits.devices import MOST_DEVICES, Circuit, net_names
from graphbench.domains.circuits.drawing import draw_topologies

_RANDOM = 1_000  # circuits that are drawn at random for the goals of the same conditions
_TUNED = 8  # circuits whose duty cycle is tuned
_DUTIES = np.arange(1, 100) / 100
_KEY = np.uint64(0x64657369)

Floats = NDArray[np.float64]


class Pool:
    """Known circuits, and what they reach under the conditions of a goal.

    Args:
        circuits: The circuits.
        duties: float64 ``[P]``, the duty cycle of each.
    """

    def __init__(self, circuits: Sequence[Circuit], duties: Sequence[float]) -> None:
        self.circuits, self.duties = list(circuits), list(duties)
        self.sizes = np.array([len(circuit.types) for circuit in self.circuits])
        self._reached: dict[Operation, Outcomes] = {}

    @classmethod
    def of(cls, designs: Sequence[Design]) -> Pool:
        """Return the pool of known designs."""
        return cls([design.checked() for design in designs], [design.duty for design in designs])

    @classmethod
    def drawn(cls, count: int, devices: int, number: int = 0) -> Pool:
        """Return random valid circuits with random duty cycles from 0.01 to 0.99; the number seeds them."""
        rng = np.random.default_rng(number)
        attempts = np.full(count, number)
        types, nets, num_nets, _ = draw_topologies(_KEY, np.arange(count), attempts, devices, 0.0, 1.0)
        circuits = [Circuit(types[i], nets[i], net_names(int(num_nets[i]))) for i in range(count)]
        return cls(circuits, rng.choice(_DUTIES, count).tolist())

    def misses(self, goal: Goal) -> Floats:
        """Return by how many tolerances each circuit misses a goal, float64 ``[P]``."""
        if goal.operation not in self._reached:  # whatever number of devices the goal allows
            anyhow = replace(goal, devices=MOST_DEVICES)
            self._reached[goal.operation] = evaluated(self.circuits, self.duties, [anyhow] * len(self.circuits))
        reached = self._reached[goal.operation]
        return np.where(self.sizes <= goal.devices, miss(reached.ratio, reached.efficiency, goal), np.inf)

    def best(self, goal: Goal) -> Design:
        """Return the design that misses a goal least; of equal ones the first."""
        number = int(self.misses(goal).argmin())
        return Design(self.circuits[number].devices, self.duties[number])

    def tuned(self, goal: Goal) -> Design:
        """Return the best design of the circuits that miss a goal least, at any duty cycle in per cent."""
        numbers = np.argsort(self.misses(goal), kind="stable")[:_TUNED].tolist()
        circuits = [self.circuits[number] for number in numbers for _ in _DUTIES]
        duties = np.tile(_DUTIES, len(numbers)).tolist()
        reached = evaluated(circuits, duties, [goal] * len(circuits))
        place = int(miss(reached.ratio, reached.efficiency, goal).argmin())
        return Design(circuits[place].devices, duties[place])


def recalled(known: Sequence[Goal], designs: Sequence[Design], goals: Sequence[Goal]) -> list[Design]:
    """Return for each goal the design whose known result misses it least.

    Nothing is simulated, and conditions do not count.
    """
    ratio, efficiency, devices = np.array([(one.ratio, one.efficiency, one.devices) for one in known]).T
    misses = (np.where(devices <= goal.devices, miss(ratio, efficiency, goal), np.inf) for goal in goals)
    return [designs[int(row.argmin())] for row in misses]


def reference_scores(
    devices: int, known_goals: Sequence[str], known: Sequence[str], goals: Sequence[str]
) -> Mapping[str, Mapping[str, float]]:
    """Return the scores of searches on goals.

    - ``nearest``: the known design whose result misses the goal least; it simulates nothing;
    - ``nearest_simulated``: the same, with all known designs simulated under the conditions of the goal;
    - ``nearest_tuned``: of the eight nearest simulated circuits, the best one at any duty cycle in per cent: 792
      further simulations;
    - ``random_1000``: the best of 1,000 random circuits with random duty cycles.

    Args:
        devices: Number of devices of random circuits.
        known_goals: The goals of the known designs, which are their results.
        known: The known designs, as texts.
        goals: The goals, as texts.
    """
    read, results = ([Goal.read(text) for text in texts] for texts in (goals, known_goals))
    designs = [Design.read(text) for text in known]
    pool, random = Pool.of(designs), Pool.drawn(_RANDOM, devices)
    chosen_designs = {
        "nearest": recalled(results, designs, read),
        "nearest_simulated": [pool.best(goal) for goal in read],
        "nearest_tuned": [pool.tuned(goal) for goal in read],
        f"random_{_RANDOM}": [random.best(goal) for goal in read],
    }
    return {name: scores_of(goals, chosen) for name, chosen in chosen_designs.items()}
