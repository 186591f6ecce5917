"""Arguments of the algorithms: checked before any work, and turned into input features.

A ``prepare`` function takes an algorithm's arguments as the reference does and returns what the compiled function takes
beside the input features. Input features are in the form of the benchmark: one-hot where a mask_one or a class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbench.errors import GraphBenchError

Array = NDArray[Any]


class ArgumentError(GraphBenchError, ValueError):
    """An argument of an algorithm has the wrong shape, size or value."""


@dataclass(frozen=True)
class Prepared:
    """What a run of an algorithm needs.

    Attributes:
        arguments: What the compiled function takes after its log.
        inputs: Input feature name -> array: scalars float64, masks, mask_ones and classes int8 (one-hot), pointers
            int32. Its ``pos`` tells the number of nodes.
    """

    arguments: tuple[Any, ...]
    inputs: dict[str, Array]


def positions(*lengths: int) -> NDArray[np.float64]:
    """Return ``float64[sum of lengths]``: 0, 1/n, .. (n-1)/n for every length n."""
    return _positions(lengths).copy()


@lru_cache(maxsize=64)
def _positions(lengths: tuple[int, ...]) -> NDArray[np.float64]:
    return np.concatenate([np.arange(n) / n for n in lengths])


def one_hot(chosen: ArrayLike, classes: int) -> NDArray[np.int8]:
    """Return int8 ``[..., classes]`` with a 1 at the chosen place."""
    return (np.arange(classes) == np.asarray(chosen)[..., None]).astype(np.int8)


def vector(name: str, value: ArrayLike, least: int = 1) -> NDArray[np.float64]:
    """Return a list of at least ``least`` finite numbers as a float64 copy."""
    found = _numbers(name, value)
    if found.ndim != 1 or len(found) < least:
        raise ArgumentError(f"{name} has the shape {found.shape}; give a list of {least} or more numbers")
    return found


def same_length(first: str, a: Array, second: str, b: Array, extra: int = 0) -> None:
    """Raise where ``b`` does not have the length of ``a``, plus ``extra``."""
    if len(b) != len(a) + extra:
        raise ArgumentError(f"{first} has {len(a)} entries and {second} has {len(b)}; it needs {len(a) + extra}")


def square(name: str, value: ArrayLike, least: int = 1) -> NDArray[np.float64]:
    """Return an ``n x n`` matrix of finite numbers, ``n >= least``, as a float64 copy."""
    found = _numbers(name, value)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or len(found) < least:
        raise ArgumentError(f"{name} has the shape {found.shape}; give a square matrix of {least} or more rows")
    return found


def symmetric(name: str, value: ArrayLike, least: int = 1) -> NDArray[np.float64]:
    """Return a symmetric matrix of finite numbers: the weights of an undirected graph."""
    found = square(name, value, least)
    if not np.array_equal(found, found.T):
        u, v = np.argwhere(found != found.T)[0]
        raise ArgumentError(
            f"{name} is not symmetric: {name}[{u}, {v}] = {found[u, v]} but {name}[{v}, {u}] = {found[v, u]}; "
            "the algorithm takes undirected graphs"
        )
    return found


def node(name: str, value: Any, nodes: int) -> int:
    """Return a node id."""
    chosen = np.asarray(value)
    if chosen.ndim != 0 or chosen.dtype.kind not in "iu" or not 0 <= chosen < nodes:
        raise ArgumentError(f"{name} is {value!r}; give a node id, a whole number from 0 to {nodes - 1}")
    return int(chosen)


def integers(name: str, value: ArrayLike, low: int, high: int, least: int = 1) -> NDArray[np.int64]:
    """Return a list of at least ``least`` whole numbers from ``low`` to ``high``."""
    found = np.asarray(value)
    if found.ndim != 1 or len(found) < least:
        raise ArgumentError(f"{name} has the shape {found.shape}; give a list of {least} or more whole numbers")
    whole = _numbers(name, found)
    if (whole != np.floor(whole)).any() or whole.min() < low or whole.max() > high:
        raise ArgumentError(
            f"{name} has values from {found.min()} to {found.max()}; give whole numbers, {low} to {high}"
        )
    return whole.astype(np.int64)


def _numbers(name: str, value: ArrayLike) -> NDArray[np.float64]:
    try:
        found = np.array(value, np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} is not an array of numbers ({error})") from error
    if not np.isfinite(found).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(found))[0])
        raise ArgumentError(f"{name}{list(place)} is {found[place]}; give finite numbers")
    return found


def keys(A: ArrayLike, least: int = 2) -> Prepared:
    """Prepare a list of keys ``A``, at least two: one node each."""
    found = vector("A", A, least)
    return Prepared((found,), {"pos": positions(len(found)), "key": found})


def _graph(found: NDArray[np.float64]) -> dict[str, Array]:
    adjacent = ((found != 0) | np.eye(len(found), dtype=bool)).astype(np.int8)
    return {"A": found, "adj": adjacent}


def directed_graph(A: ArrayLike) -> Prepared:
    """Prepare a graph of two nodes or more: ``A[u, v]`` is the weight of the arc u -> v, 0 where there is none."""
    found = square("A", A, 2)
    return Prepared((found,), {"pos": positions(len(found)), **_graph(found)})


def undirected_graph(A: ArrayLike) -> Prepared:
    """Prepare an undirected graph ``A`` of two nodes or more."""
    found = symmetric("A", A, 2)
    return Prepared((found,), {"pos": positions(len(found)), **_graph(found)})


def directed_graph_with_source(A: ArrayLike, s: Any) -> Prepared:
    """Prepare a graph ``A`` and a start node ``s``."""
    return _with_source(square("A", A, 2), s)


def undirected_graph_with_source(A: ArrayLike, s: Any) -> Prepared:
    """Prepare an undirected graph ``A`` and a start node ``s``."""
    return _with_source(symmetric("A", A, 2), s)


def _with_source(found: NDArray[np.float64], s: Any) -> Prepared:
    start = node("s", s, len(found))
    inputs: dict[str, Array] = {"pos": positions(len(found)), "s": one_hot(start, len(found)), **_graph(found)}
    return Prepared((found, start), inputs)
