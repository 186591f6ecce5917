"""Run algorithms on arguments: one at a time, as arrays over time, or many, as lists of changes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numba import typeof
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.data.arrays.trajectories import Changes, HintLayout, Trajectories, cell_shape
from graphbench.domains.clrs.algorithm import Algorithm, find_algorithm
from graphbench.domains.clrs.arguments import ArgumentError
from graphbench.domains.clrs.recording import FLOATS, INTS, STEPS, Log, new_lists

Array = NDArray[Any]
_State = tuple[Array, Log, Any]
_FIRST_CAPACITY = 8_192


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
class Runs:
    """Inputs and outputs of runs of an algorithm on instances of one size, as cells. The runner holds the hints.

    Attributes:
        places: int64 ``[S]``: the position of every instance among the requested instances.
        nodes: Nodes of every graph.
        inputs: Name -> cells ``[S, *cell shape]``.
        outputs: Name -> cells.
    """

    places: NDArray[np.int64]
    nodes: int
    inputs: dict[str, Array]
    outputs: dict[str, Array]


def trace(algorithm: str, *args: Any) -> Trace:
    """Run an algorithm and return its inputs, hints at every step, and outputs.

    Args:
        algorithm: Name, e.g. ``bfs``.
        *args: Its arguments, as the reference implementation takes them, e.g. an adjacency matrix and a start node.
            The arguments are not changed.

    Raises:
        UnknownAlgorithm: If no algorithm has this name.
        ArgumentError: If there are too few or too many arguments, or one has the wrong shape, size or value.
    """
    spec = find_algorithm(algorithm)
    parameters = inspect.signature(spec.prepare).parameters.values()
    taken = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    if len(args) != len(taken):
        raise ArgumentError(f"{algorithm} takes {len(taken)} arguments, {', '.join(taken)}; got {len(args)}")
    runner = Runner(spec)
    runs = runner.run([args])
    layout = hint_layout(spec, runs.nodes)
    ints, floats = runner.recorded().replay(layout)
    views = layout.views(ints[:, 0], floats[:, 0])

    def expanded(features: Iterable[Feature], cells: Mapping[str, Array]) -> dict[str, Array]:
        return {feature.name: expand(feature, cells[feature.name], runs.nodes) for feature in features}

    inputs, outputs = ({name: cells[0] for name, cells in part.items()} for part in (runs.inputs, runs.outputs))
    return Trace(expanded(spec.inputs, inputs), expanded(spec.hints, views), expanded(spec.outputs, outputs))


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


@lru_cache(maxsize=256)
def hint_layout(algorithm: Algorithm, nodes: int) -> HintLayout:
    """Return the positions of the hints of an algorithm in the state, for graphs of ``nodes`` nodes."""
    return HintLayout(algorithm.hints, nodes)


_compiled: dict[tuple[Any, ...], Callable[..., None]] = {}  # algorithm, and kinds of arguments -> compiled function


class Runner:
    """Runs one algorithm again and again, recording all runs one after the other in memory that grows as needed.

    Args:
        algorithm: The algorithm.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self.algorithm = algorithm
        self._used = np.zeros(3, np.int64)  # steps, integer changes, float changes of all runs so far
        self._marks = [[0, 0, 0]]  # the same three numbers before the first run and after every run
        self._room = [_FIRST_CAPACITY] * 3
        self._lists = new_lists(*self._room)
        self._states: dict[int, _State] = {}

    def run(self, instances: Sequence[Sequence[Any]], places: NDArray[np.int64] | None = None) -> Runs:
        """Run the algorithm on instances of one size.

        Args:
            instances: The arguments of every instance, at least one.
            places: int64 ``[S]``: the positions of the instances, for the result; 0, 1, ... if None.

        Raises:
            ArgumentError: If an argument has the wrong shape, size or value.
        """
        prepared = self.algorithm.prepare(*zip(*instances, strict=True))
        nodes = prepared.inputs["pos"].shape[1]
        count = len(instances)
        outputs = {
            f.name: np.zeros((count, *cell_shape(f, nodes)), np.float64 if f.kind is Kind.SCALAR else np.int32)
            for f in self.algorithm.outputs
        }
        self._used[:] = self._marks[-1]  # a run that raised may have counted changes
        memory, log, hints = self._states.get(nodes) or self._new_state(nodes)
        taken = [a.copy() if a.ndim > 1 else a.tolist() for a in prepared.arguments]  # a run may write into them
        kinds = (self.algorithm, *((a.dtype, a.ndim) for a in prepared.arguments))
        compiled = _compiled.get(kinds)
        if compiled is None:
            example = (log, *(a[0] for a in taken), hints, *(a[0] for a in outputs.values()))
            compiled = _compiled[kinds] = compiled_for(self.algorithm.run, example)
        results = zip(*outputs.values(), strict=True)
        for i, (instance, result) in enumerate(zip(zip(*taken, strict=True), results, strict=True)):
            memory.fill(0)
            compiled(log, *instance, hints, *result)
            needed = self._used.tolist()
            while needed[0] > self._room[0] or needed[1] > self._room[1] or needed[2] > self._room[2]:
                self._grow(needed, max(2.0, count / (i + 1)))
                memory, log, hints = self._new_state(nodes)
                for array in result:
                    array.fill(0)
                compiled(log, *(a[i].copy() for a in prepared.arguments), hints, *result)
                needed = self._used.tolist()
            self._marks.append(needed)
        return Runs(np.arange(count) if places is None else places, nodes, prepared.inputs, outputs)

    def recorded(self) -> Trajectories:
        """Return the hints of all runs since the last ``forget``, as views that are valid until the next run."""
        marks = np.array(self._marks)
        steps, ints, floats = self._marks[-1]
        counts, int_changes, float_cells, float_values = self._lists
        return Trajectories(
            marks[:, STEPS],
            Changes(marks[:, INTS], counts[0, :steps], int_changes[0, :ints], int_changes[1, :ints]),
            Changes(marks[:, FLOATS], counts[1, :steps], float_cells[:floats], float_values[:floats]),
        )

    def forget(self) -> None:
        """Forget all runs; their memory is used again."""
        self._marks = [[0, 0, 0]]

    def _grow(self, needed: list[int], factor: float) -> None:
        """Enlarge the lists to a multiple of the cells used so far, and discard the run that did not fit."""
        self._room = [max(have, int(factor * need)) for have, need in zip(self._room, needed, strict=True)]
        lists = new_lists(*self._room)
        pairs: Iterable[tuple[Array, Array]] = zip(self._lists, lists, strict=True)
        for old, new in pairs:
            new[..., : old.shape[-1]] = old
        self._lists = lists
        self._states.clear()
        self._used[:] = self._marks[-1]

    def _new_state(self, nodes: int) -> _State:
        """Return memory for graphs of one size: the whole memory, a log in that memory, and the views of the hints."""
        layout = hint_layout(self.algorithm, nodes)
        memory = np.zeros(2 * (2 * layout.floats + layout.ints), np.int32)
        floats = memory[: 4 * layout.floats].view(np.float64).reshape(2, layout.floats)
        ints = memory[4 * layout.floats :].reshape(2, layout.ints)
        log = (ints, floats, *self._lists, self._used)
        hints = self.algorithm.views_of_hints(**layout.views(ints[0], floats[0]))
        self._states[nodes] = memory, log, hints
        return self._states[nodes]


def compiled_for(function: Any, arguments: Sequence[Any]) -> Callable[..., None]:
    """Return a kernel compiled for the types of some arguments.

    At every call of a kernel, Numba looks up the types of all arguments; for a small graph, this may take longer than
    the algorithm. Calls of the returned function skip the lookup, so they must have arguments of the same types.
    """
    if not hasattr(function, "get_overload"):  # NUMBA_DISABLE_JIT=1: the Python function
        return cast(Callable[..., None], function)
    types = tuple(typeof(argument) for argument in arguments)
    function.compile(types)
    return cast(Callable[..., None], function.get_overload(types))


def run_all(algorithm: str, instances: Sequence[Sequence[Any]]) -> tuple[list[Runs], Trajectories]:
    """Run an algorithm on instances of any sizes; return the runs, size by size, and the hints, instance by instance.

    Raises:
        UnknownAlgorithm: If no algorithm has this name.
        ArgumentError: If an argument has the wrong shape, size or value.
    """
    runner = Runner(find_algorithm(algorithm))
    groups = of_one_size(instances)
    if len(groups) == 1:
        return [runner.run(instances)], runner.recorded()
    runs = [runner.run([instances[i] for i in places], places) for places in groups]
    return runs, runner.recorded().take(np.argsort(np.concatenate(groups)))


def of_one_size(instances: Sequence[Sequence[Any]]) -> list[NDArray[np.int64]]:
    """Return the numbers of the instances whose arguments have the same shapes, group by group."""
    groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for i, args in enumerate(instances):
        groups.setdefault(tuple([_shape(argument) for argument in args]), []).append(i)
    return [np.array(places) for places in groups.values()]


def _shape(argument: Any) -> tuple[int, ...]:
    if isinstance(argument, np.ndarray):
        return argument.shape
    return () if isinstance(argument, int | float) else np.shape(argument)
