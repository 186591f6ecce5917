"""Run algorithms on arguments: one at a time, as arrays over time, or many, as lists of changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.data.trajectories import Changes, HintLayout, Trajectories, cell_shape
from graphbench.domains.clrs.algorithm import Algorithm, find_algorithm
from graphbench.domains.clrs.recording import FLOATS, INTS, STEPS, Log, clear, new_lists, new_log

Array = NDArray[Any]
_FIRST_CAPACITY = 1024


@dataclass(frozen=True)
class Trace:
    """One run of an algorithm.

    Masks, mask_ones and classes are int8 and one-hot (1, 0, and -1 where masked), pointers int32, scalars float64.

    Attributes:
        inputs: Name -> array; node ``[n]``, edge ``[n, n]``, graph ``[]``, classes on a further last axis.
        hints: Name -> array with a leading time axis ``T``, not padded.
        outputs: Name -> array.
    """

    inputs: dict[str, Array]
    hints: dict[str, Array]
    outputs: dict[str, Array]


@dataclass(frozen=True)
class Run:
    """One run: inputs as given, outputs as cells. Its hints are with the runner."""

    nodes: int
    inputs: dict[str, Array]
    outputs: dict[str, Array]


def trace(algorithm: str, *args: Any) -> Trace:
    """Run an algorithm and return its inputs, hints at every step, and outputs.

    Args:
        algorithm: Name, e.g. ``bfs``.
        *args: Its arguments, as the reference implementation takes them, e.g. an adjacency matrix and a start node.
            They are not changed.

    Raises:
        UnknownAlgorithm: If there is no algorithm of that name.
        ArgumentError: If an argument has the wrong shape, size or value.
    """
    found = find_algorithm(algorithm)
    runner = Runner(found)
    run = runner.run(*args)
    layout = HintLayout(found.hints, run.nodes)
    ints, floats = runner.recorded().replay(layout)
    views = layout.views(ints[:, 0], floats[:, 0])
    hints = {feature.name: expand(feature, views[feature.name], run.nodes) for feature in found.hints}
    outputs = {feature.name: expand(feature, run.outputs[feature.name], run.nodes) for feature in found.outputs}
    return Trace(run.inputs, hints, outputs)


def expand(feature: Feature, cells: Array, nodes: int) -> Array:
    """Return cells ``[..., *cell shape]`` in the form of the benchmark: one-hot, graph values without an axis."""
    if feature.kind is Kind.MASK_ONE or feature.location is Location.GRAPH:
        cells = cells[..., 0]
    if feature.kind is Kind.SCALAR:
        return cells.astype(np.float64)
    if feature.kind in (Kind.POINTER, Kind.PERMUTATION):
        return cells.astype(np.int32)
    if feature.kind is Kind.MASK:
        return cells.astype(np.int8)
    width = nodes if feature.kind is Kind.MASK_ONE else feature.classes
    one_hot = (np.arange(width) == cells[..., None]).astype(np.int8)
    one_hot[..., -1][cells == -1] = -1
    return one_hot


class Runner:
    """Runs one algorithm again and again, recording all runs one after the other in memory that grows as needed.

    Args:
        algorithm: The algorithm.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self.algorithm = algorithm
        self._used = np.zeros(3, np.int64)  # steps, integer changes, float changes of all runs so far
        self._marks = [[0, 0, 0]]  # the same after every run, from before the first on
        self._lists = new_lists(*[_FIRST_CAPACITY] * 3)
        self._states: dict[int, _State] = {}

    def run(self, *args: Any) -> Run:
        """Run the algorithm on its arguments.

        Raises:
            ArgumentError: If an argument has the wrong shape, size or value.
        """
        prepared = self.algorithm.prepare(*args)
        nodes = len(prepared.inputs["pos"])
        self._used[:] = self._marks[-1]  # a run that raised may have left something
        outputs = self._execute(nodes, prepared.arguments)
        used = self._used.tolist()
        while any(need > have for need, have in zip(used, self._capacity(), strict=True)):
            self._grow(used)
            outputs = self._execute(nodes, prepared.arguments)
            used = self._used.tolist()
        self._marks.append(used)
        return Run(nodes, prepared.inputs, outputs)

    def recorded(self) -> Trajectories:
        """Return the hints of all runs since the last ``forget``, as copies."""
        marks = np.array(self._marks)
        steps, ints, floats = self._marks[-1]
        own = self._lists
        return Trajectories(
            marks[:, STEPS],
            Changes(marks[:, INTS], *(a.copy() for a in (own[0][:steps], own[1][:ints], own[2][:ints]))),
            Changes(marks[:, FLOATS], *(a.copy() for a in (own[3][:steps], own[4][:floats], own[5][:floats]))),
        )

    def last_ints(self) -> Changes:
        """Return the changes of the integer hints in the last run; valid until the next one."""
        (first_step, first, _), (step, last, _) = self._marks[-2:]
        counts, cells, values = self._lists[:3]
        return Changes(np.array([0, last - first]), counts[first_step:step], cells[first:last], values[first:last])

    def forget(self) -> None:
        """Forget all runs; their memory is used again."""
        self._used[:] = 0
        self._marks = [[0, 0, 0]]

    def _capacity(self) -> tuple[int, int, int]:
        return len(self._lists[0]), len(self._lists[1]), len(self._lists[4])

    def _grow(self, needed: list[int]) -> None:
        """Make room for what a run needs, keep what earlier runs recorded, and go back to before the run."""
        sizes = [max(have, 2 * need) for have, need in zip(self._capacity(), needed, strict=True)]
        lists = new_lists(*sizes)
        for old, new in zip(self._lists, lists, strict=True):
            new[: len(old)] = old
        self._lists = lists
        self._states.clear()
        self._used[:] = self._marks[-1]

    def _execute(self, nodes: int, arguments: tuple[Any, ...]) -> dict[str, Array]:
        state = self._states.get(nodes) or self._new_state(nodes)
        clear(state.log)
        outputs: dict[str, Array] = {name: np.zeros(shape, dtype) for name, shape, dtype in state.outputs}
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        self.algorithm.run(state.log, *copies, *state.hints, *outputs.values())
        return outputs

    def _new_state(self, nodes: int) -> _State:
        layout = HintLayout(self.algorithm.hints, nodes)
        log = new_log(layout.ints, layout.floats, self._lists, self._used)
        outputs = tuple(
            (f.name, cell_shape(f, nodes), np.float64 if f.kind is Kind.SCALAR else np.int32)
            for f in self.algorithm.outputs
        )
        state = _State(log, tuple(layout.views(log.ints, log.floats).values()), outputs)
        self._states[nodes] = state
        return state


@dataclass(frozen=True)
class _State:
    """Working memory for graphs of one size."""

    log: Log
    hints: tuple[Array, ...]
    outputs: tuple[tuple[str, tuple[int, ...], type], ...]


def run_all(algorithm: str, instances: Iterable[tuple[Any, ...]]) -> tuple[list[Run], Trajectories]:
    """Run an algorithm on a list of argument tuples; return the runs and their hints."""
    runner = Runner(find_algorithm(algorithm))
    return [runner.run(*args) for args in instances], runner.recorded()
