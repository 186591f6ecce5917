"""Trajectories: hints over time, stored as the cells that change from step to step.

The hints of a sample at one step are two vectors, one of integers and one of floats, in which the hints of the card are
concatenated (``HintLayout``). A stored trajectory lists the changed cells and their new values for every step; before
the first step all cells are 0. ``replay`` restores the state at every step from these lists.

Integers encode: a mask's value (-1 where masked), a class number (-1 where masked), a pointer's target, and for a
mask_one the id of its one node, so that it is a single cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.kernels import kernel
from graphbench.core.ragged import offsets, smallest_integer, take_runs

Array = NDArray[Any]
PREFIX = "hint."  # of the names of arrays in files
_LISTS = ("ptr", "counts", "cells", "values")


class Place(NamedTuple):
    """Position of a hint in the state.

    Attributes:
        is_float: Whether it is in the vector of floats.
        first: Its first cell there.
        shape: Shape of its cells: ``(n,)``, ``(n, n)``, or ``(1,)`` for a graph's value and for a mask_one.
    """

    is_float: bool
    first: int
    shape: tuple[int, ...]

    @property
    def cells(self) -> slice:
        """The cells of the hint in its vector."""
        return slice(self.first, self.first + prod(self.shape))


def cell_shape(feature: Feature, nodes: int) -> tuple[int, ...]:
    """Return the shape of one step of a feature of a graph of ``nodes`` nodes."""
    if feature.location is Location.GRAPH or feature.kind is Kind.MASK_ONE:
        return (1,)
    return (nodes,) if feature.location is Location.NODE else (nodes, nodes)


class HintLayout:
    """The positions of the hints of graphs of one size.

    Args:
        hints: The hint features, in the card's order.
        nodes: Nodes per graph.

    Attributes:
        places: Hint name -> position of the hint.
        ints: Cells of the vector of integers.
        floats: Cells of the vector of floats.
        largest: Largest integer that a cell may hold: a node id or a class number.
    """

    def __init__(self, hints: Sequence[Feature], nodes: int) -> None:
        sizes = [0, 0]
        self.places: dict[str, Place] = {}
        for feature in hints:
            is_float = feature.kind is Kind.SCALAR
            shape = cell_shape(feature, nodes)
            self.places[feature.name] = Place(is_float, sizes[is_float], shape)
            sizes[is_float] += prod(shape)
        self.ints, self.floats = sizes
        self.largest = max([nodes - 1, 1, *(feature.classes - 1 for feature in hints)])

    def views(self, ints: Array, floats: Array) -> dict[str, Array]:
        """Return hint name -> view of its cells, given vectors with the state's cells along the last axis."""
        hint_views = {}
        for name, (is_float, first, shape) in self.places.items():
            cells = (floats if is_float else ints)[..., first : first + prod(shape)]
            hint_views[name] = cells if len(shape) == 1 else cells.reshape(*cells.shape[:-1], *shape)
        return hint_views


@dataclass(frozen=True)
class Changes:
    """The changes of one of the two vectors, sample after sample and step after step.

    Attributes:
        ptr: int64 ``[S + 1]``: the changes of sample ``i`` are ``ptr[i]:ptr[i + 1]``.
        counts: Integer ``[steps of all samples]``: changes per step.
        cells: Integer ``[C]``: the cell that changed.
        values: ``[C]``: its new value.
    """

    ptr: Array
    counts: Array
    cells: Array
    values: Array

    def take(self, samples: Array, step_ptr: Array) -> Changes:
        """Return the changes of some samples, given the offsets of the steps of all."""
        sizes = (self.ptr[samples + 1] - self.ptr[samples]).astype(np.int64)
        ptr = offsets(sizes)
        steps = offsets((step_ptr[samples + 1] - step_ptr[samples]).astype(np.int64))
        first = self.ptr[samples]
        return Changes(
            ptr,
            take_runs(self.counts, step_ptr[samples], steps),
            take_runs(self.cells, first, ptr),
            take_runs(self.values, first, ptr),
        )


@dataclass(frozen=True)
class Trajectories:
    """The hints of a run of samples.

    Attributes:
        step_ptr: int64 ``[S + 1]``: offsets of the steps of every sample; sample ``i`` has ``T = step_ptr[i + 1] -
            step_ptr[i]`` steps.
        ints: Changes of masks, mask_ones, classes and pointers.
        floats: Changes of scalars.
    """

    step_ptr: Array
    ints: Changes
    floats: Changes

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.step_ptr) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64 ``[S]``: number of steps T of every sample, the first state included."""
        return np.diff(self.step_ptr).astype(np.int64)

    def take(self, samples: Array) -> Trajectories:
        """Return the trajectories of some samples, in the order given."""
        lengths = (self.step_ptr[samples + 1] - self.step_ptr[samples]).astype(np.int64)
        ints, floats = self.ints.take(samples, self.step_ptr), self.floats.take(samples, self.step_ptr)
        return Trajectories(offsets(lengths), ints, floats)

    def replay(self, layout: HintLayout) -> tuple[Array, Array]:
        """Return the state of all samples at every step, the last one repeated up to the longest sample's.

        Returns:
            ``[T, S, layout.ints]`` and ``[T, S, layout.floats]``, in the types of the stored values.
        """
        longest = int(self.lengths.max(initial=0))
        ints = np.zeros((longest, len(self), layout.ints), self.ints.values.dtype)
        floats = np.zeros((longest, len(self), layout.floats), self.floats.values.dtype)
        for changes, state in ((self.ints, ints), (self.floats, floats)):
            if state.size:
                _replay(self.step_ptr, changes.ptr, changes.counts, changes.cells, changes.values, state)
        return ints, floats

    def arrays(self) -> dict[str, Array]:
        """Return the arrays by the names they have in a file."""
        named = {"step_ptr": self.step_ptr}
        for kind, changes in (("int", self.ints), ("float", self.floats)):
            named |= {f"{kind}_{name}": getattr(changes, name) for name in _LISTS}
        return {f"{PREFIX}{name}": array for name, array in named.items()}

    @staticmethod
    def of_arrays(arrays: Mapping[str, Array]) -> Trajectories:
        """Return the trajectories in the arrays of a file."""

        def changes(kind: str) -> Changes:
            return Changes(*(arrays[f"{PREFIX}{kind}_{name}"] for name in _LISTS))

        return Trajectories(arrays[f"{PREFIX}step_ptr"], changes("int"), changes("float"))

    def compact(self, layout: HintLayout) -> Trajectories:
        """Return a copy with every array in the smallest type that is safe for all graphs of this layout."""
        largest = max(layout.ints, layout.floats)

        def smaller(changes: Changes, values: np.dtype[Any]) -> Changes:
            counts, cells = smallest_integer(largest), smallest_integer(max(largest - 1, 0))
            return Changes(
                changes.ptr, changes.counts.astype(counts), changes.cells.astype(cells), changes.values.astype(values)
            )

        integers = np.dtype(np.int8 if layout.largest <= np.iinfo(np.int8).max else np.int16)
        return Trajectories(self.step_ptr, smaller(self.ints, integers), smaller(self.floats, np.dtype(np.float32)))

    @staticmethod
    def join(parts: Iterable[Trajectories]) -> Trajectories:
        """Return the samples of all parts, one part after the other."""
        all_parts = list(parts)
        if len(all_parts) == 1:
            return all_parts[0]
        changes = []
        for pick in ("ints", "floats"):
            change_lists: list[Changes] = [getattr(part, pick) for part in all_parts]
            joined = (
                np.concatenate([getattr(c, name) for c in change_lists]) for name in ("counts", "cells", "values")
            )
            changes.append(Changes(_joined_offsets([c.ptr for c in change_lists]), *joined))
        return Trajectories(_joined_offsets([part.step_ptr for part in all_parts]), *changes)


def _joined_offsets(parts: Sequence[Array]) -> NDArray[np.int64]:
    """Return the offsets of concatenated runs."""
    return offsets(np.concatenate([np.diff(ptr) for ptr in parts]).astype(np.int64))


@kernel
def _replay(step_ptr: Array, ptr: Array, counts: Array, cells: Array, values: Array, state: Array) -> None:
    """Write the state at every step into ``state [T, S, cells]``, which holds zeros."""
    longest, samples, size = state.shape
    for sample in range(samples):
        first, at = step_ptr[sample], ptr[sample]
        steps = step_ptr[sample + 1] - first
        for t in range(longest):
            if t > 0:
                for cell in range(size):
                    state[t, sample, cell] = state[t - 1, sample, cell]
            if t < steps:
                for _ in range(counts[first + t]):
                    state[t, sample, cells[at]] = values[at]
                    at += 1
