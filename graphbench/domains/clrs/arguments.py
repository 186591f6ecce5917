"""Arguments of the algorithms: checked before any work, and turned into input features.

A ``prepare`` function works on many instances of one size at once: it takes a list per argument, with one entry per
instance as the reference takes it. ``vector``, ``square``, ``node`` and the like check such a list and stack it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import GraphBenchError

Array = NDArray[Any]
Floats = NDArray[np.float64]
Instances = Any
"""One argument of every instance: a sequence of S, or an array ``[S, ...]``."""


class ArgumentError(GraphBenchError, ValueError):
    """An argument of an algorithm has the wrong shape, size or value."""


@dataclass(frozen=True)
class Prepared:
    """The arguments and inputs of an algorithm's runs on S instances.

    Attributes:
        arguments: Arguments of the compiled function after its log, stacked: float64 or int64 ``[S, ...]``, and ``[S]``
            for single numbers.
        inputs: Input feature name -> its cells: node ``[S, n]``, edge ``[S, n, n]``, graph ``[S, 1]``; a mask_one is
            the id of its node, ``[S, 1]``, a class its number. ``pos`` tells the number of nodes.
    """

    arguments: tuple[Array, ...]
    inputs: dict[str, Array]


def positions(instances: int, *lengths: int) -> Floats:
    """Return ``float64[instances, sum of lengths]``: 0, 1/n, .. (n-1)/n for every length n."""
    row = _positions(lengths)
    numbers = np.empty((instances, len(row)))
    numbers[:] = row
    return numbers


@lru_cache(maxsize=64)
def _positions(lengths: tuple[int, ...]) -> Floats:
    return np.concatenate([np.arange(n) / n for n in lengths])


def vector(name: str, values: Instances, least: int = 1) -> Floats:
    """Return lists of at least ``least`` finite numbers as a float64 copy ``[S, n]``."""
    numbers = _numbers(name, values)
    if numbers.ndim != 2 or numbers.shape[1] < least:
        raise ArgumentError(f"{name} has the shape {numbers.shape[1:]}; give a list of {least} or more numbers")
    return numbers


def same_length(first: str, a: Array, second: str, b: Array, extra: int = 0) -> None:
    """Raise where the lists ``b`` do not have the length of the lists ``a``, plus ``extra``."""
    needed = a.shape[1] + extra
    if b.shape[1] != needed:
        raise ArgumentError(f"{first} has {a.shape[1]} entries and {second} has {b.shape[1]}; it needs {needed}")


def square(name: str, values: Instances, least: int = 1) -> Floats:
    """Return ``n x n`` matrices of finite numbers, ``n >= least``, as a float64 copy ``[S, n, n]``."""
    numbers = _numbers(name, values)
    if numbers.ndim != 3 or numbers.shape[1] != numbers.shape[2] or numbers.shape[1] < least:
        raise ArgumentError(f"{name} has the shape {numbers.shape[1:]}; give a square matrix of {least} or more rows")
    return numbers


def symmetric(name: str, values: Instances, least: int = 1) -> Floats:
    """Return symmetric matrices of finite numbers: the weights of undirected graphs."""
    matrix = square(name, values, least)
    mirrored = matrix.transpose(0, 2, 1)
    if not np.array_equal(matrix, mirrored):
        i, u, v = np.argwhere(matrix != mirrored)[0]
        raise ArgumentError(
            f"{name} is not symmetric: {name}[{u}, {v}] = {matrix[i, u, v]} but {name}[{v}, {u}] = {matrix[i, v, u]}; "
            "the algorithm takes undirected graphs"
        )
    return matrix


def node(name: str, values: Instances, nodes: int) -> NDArray[np.int64]:
    """Return node ids, int64 ``[S]``."""
    chosen = _stacked(values)
    whole = chosen.ndim == 1 and chosen.dtype.kind in "iu"
    if not whole or not ((chosen >= 0) & (chosen < nodes)).all():
        wrong = next(value for value in values if not whole or not 0 <= value < nodes)
        raise ArgumentError(f"{name} is {wrong!r}; give a node id, a whole number from 0 to {nodes - 1}")
    return chosen.astype(np.int64)


def integers(name: str, values: Instances, low: int, high: int, least: int = 1) -> NDArray[np.int64]:
    """Return lists of at least ``least`` whole numbers from ``low`` to ``high``, int64 ``[S, n]``."""
    whole = _numbers(name, values)
    if whole.ndim != 2 or whole.shape[1] < least:
        raise ArgumentError(f"{name} has the shape {whole.shape[1:]}; give a list of {least} or more whole numbers")
    numbers = _stacked(values)
    if (whole != np.floor(whole)).any() or whole.min() < low or whole.max() > high:
        raise ArgumentError(
            f"{name} has values from {numbers.min()} to {numbers.max()}; give whole numbers, {low} to {high}"
        )
    return whole.astype(np.int64)


def _numbers(name: str, values: Instances) -> Floats:
    try:
        numbers = _stacked(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} is not an array of numbers ({error})") from error
    if not np.isfinite(numbers).all():
        position = tuple(np.argwhere(~np.isfinite(numbers))[0].tolist())
        raise ArgumentError(f"{name}{list(position[1:])} is {numbers[position]}; give finite numbers")
    return numbers


def _stacked(values: Instances, dtype: type | None = None) -> Array:
    """Return a new array ``[S, ...]`` of the arguments of S instances; a single one may be anything like an array."""
    return np.array(values[0], dtype)[None] if len(values) == 1 else np.array(values, dtype)


def keys(A: Instances, least: int = 2) -> Prepared:
    """Prepare lists of keys ``A``, at least two: one node each."""
    prepared = vector("A", A, least)
    return Prepared((prepared,), {"pos": positions(*prepared.shape), "key": prepared})


def _graph(matrices: Floats) -> dict[str, Array]:
    return {"A": matrices, "adj": (matrices != 0) | np.eye(matrices.shape[1], dtype=bool)}


def directed_graph(A: Instances) -> Prepared:
    """Prepare graphs of two nodes or more: ``A[u, v]`` is the weight of the arc u -> v, 0 where there is none."""
    return _without_source(square("A", A, 2))


def undirected_graph(A: Instances) -> Prepared:
    """Prepare undirected graphs ``A`` of two nodes or more."""
    return _without_source(symmetric("A", A, 2))


def _without_source(matrices: Floats) -> Prepared:
    return Prepared((matrices,), {"pos": positions(*matrices.shape[:2]), **_graph(matrices)})


def directed_graph_with_source(A: Instances, s: Instances) -> Prepared:
    """Prepare graphs ``A`` and their start nodes ``s``."""
    return _with_source(square("A", A, 2), s)


def undirected_graph_with_source(A: Instances, s: Instances) -> Prepared:
    """Prepare undirected graphs ``A`` and their start nodes ``s``."""
    return _with_source(symmetric("A", A, 2), s)


def _with_source(matrices: Floats, s: Instances) -> Prepared:
    start = node("s", s, matrices.shape[1])
    inputs: dict[str, Array] = {"pos": positions(*matrices.shape[:2]), "s": start[:, None], **_graph(matrices)}
    return Prepared((matrices, start), inputs)
