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
from graphbench.domains.clrs.recording import FLOATS, INTS, STEPS, Log, clear, new_log

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
    """One run in the form that is stored: inputs as given, hints as changes, outputs as cells."""

    nodes: int
    inputs: dict[str, Array]
    trajectory: Trajectories
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
    run = Runner(found).run(*args)
    layout = HintLayout(found.hints, run.nodes)
    ints, floats = run.trajectory.replay(layout)
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
    """Runs one algorithm again and again, with working memory that grows as needed.

    Args:
        algorithm: The algorithm.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self.algorithm = algorithm
        self._nodes = -1
        self._capacity = [_FIRST_CAPACITY] * 3  # steps, integer changes, float changes
        self._log: Log = new_log(0, 0, 0, 0, 0)
        self._layout = HintLayout((), 0)
        self._hints: tuple[Array, ...] = ()
        self._outputs: list[tuple[str, tuple[int, ...], type]] = []

    def run(self, *args: Any) -> Run:
        """Run the algorithm on its arguments.

        Raises:
            ArgumentError: If an argument has the wrong shape, size or value.
        """
        prepared = self.algorithm.prepare(*args)
        nodes = len(prepared.inputs["pos"])
        if nodes != self._nodes:
            self._nodes, self._layout = nodes, HintLayout(self.algorithm.hints, nodes)
            self._make_log()
        outputs = self._execute(prepared.arguments)
        while any(need > have for need, have in zip(self._log.used.tolist(), self._capacity, strict=True)):
            needed = zip(self._capacity, self._log.used.tolist(), strict=True)
            self._capacity = [max(have, 2 * need) for have, need in needed]
            self._make_log()
            outputs = self._execute(prepared.arguments)
        return Run(nodes, prepared.inputs, self._recorded(), outputs)

    def _make_log(self) -> None:
        self._log = new_log(self._layout.ints, self._layout.floats, *self._capacity)
        self._hints = tuple(self._layout.views(self._log.ints, self._log.floats).values())
        self._outputs = [
            (f.name, cell_shape(f, self._nodes), np.float64 if f.kind is Kind.SCALAR else np.int32)
            for f in self.algorithm.outputs
        ]

    def _execute(self, arguments: tuple[Any, ...]) -> dict[str, Array]:
        clear(self._log)
        outputs: dict[str, Array] = {name: np.zeros(shape, dtype) for name, shape, dtype in self._outputs}
        copies = (a.copy() if isinstance(a, np.ndarray) else a for a in arguments)
        self.algorithm.run(self._log, *copies, *self._hints, *outputs.values())
        return outputs

    def _recorded(self) -> Trajectories:
        log, used = self._log, self._log.used.tolist()
        steps = used[STEPS]

        def changes(counts: Array, cells: Array, values: Array, count: int) -> Changes:
            return Changes(np.array([0, count]), counts[:steps].copy(), cells[:count].copy(), values[:count].copy())

        return Trajectories(
            np.array([0, steps]),
            changes(log.int_counts, log.int_cells, log.int_values, used[INTS]),
            changes(log.float_counts, log.float_cells, log.float_values, used[FLOATS]),
        )


def run_all(algorithm: str, instances: Iterable[tuple[Any, ...]]) -> list[Run]:
    """Run an algorithm on a list of argument tuples."""
    runner = Runner(find_algorithm(algorithm))
    return [runner.run(*args) for args in instances]
