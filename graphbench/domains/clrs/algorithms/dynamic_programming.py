"""Dynamic programming (Cormen et al., chapter 15)."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.arguments import (
    ArgumentError,
    Instances,
    Prepared,
    integers,
    positions,
    same_length,
    vector,
)
from graphbench.domains.clrs.recording import EdgeMask, EdgePointer, EdgeScalar, Ints, Log, NodePointer, record

LETTERS = 4
LARGEST_DIMENSION = 1e100  # costs stay finite
_DIAGONAL, _UP, _LEFT = 0, 1, 2


def two_strings(first_name: str, first: Instances, second_name: str, second: Instances) -> Prepared:
    """Prepare two strings over the letters 0 to 3: the nodes of the first, then the nodes of the second."""
    a = integers(first_name, first, 0, LETTERS - 1)
    b = integers(second_name, second, 0, LETTERS - 1)
    (count, in_first), in_second = a.shape, b.shape[1]
    inputs: dict[str, Any] = {
        "string": np.tile(np.repeat([0, 1], [in_first, in_second]), (count, 1)),
        "pos": positions(count, in_first, in_second),
        "key": np.concatenate([a, b], axis=1),
    }
    return Prepared((a, b), inputs)


def _dimensions(p: Instances) -> Prepared:
    """Prepare the dimensions of a chain of matrices: at least two, which is one matrix."""
    dimensions = vector("p", p, 2)
    _refuse_outside("p", dimensions, LARGEST_DIMENSION, "dimensions")
    return Prepared((dimensions,), {"pos": positions(*dimensions.shape), "p": dimensions})


def _probabilities(p: Instances, q: Instances) -> Prepared:
    """Prepare the probabilities of n keys and of the n + 1 gaps around them; one node more than keys."""
    of_keys, of_gaps = vector("p", p), vector("q", q, 2)
    same_length("p", of_keys, "q", of_gaps, extra=1)
    for name, values in (("p", of_keys), ("q", of_gaps)):
        _refuse_outside(name, values, 1.0, "probabilities")
    padded = np.pad(of_keys, ((0, 0), (0, 1)))
    return Prepared((of_keys, of_gaps), {"pos": positions(*of_gaps.shape), "p": padded, "q": of_gaps})


def _refuse_outside(name: str, values: NDArray[np.float64], most: float, description: str) -> None:
    """Raise where lists ``[S, n]`` have a number below 0 or above ``most``."""
    wrong = np.argwhere((values < 0) | (values > most))
    if len(wrong):
        i, position = wrong[0]
        raise ArgumentError(f"{name}[{position}] is {values[i, position]}; give {description} from 0 to {most}")


class MatrixChainOrderHints(NamedTuple):
    """The hints of ``matrix_chain_order``."""

    pred_h: NodePointer
    m: EdgeScalar
    s_h: EdgePointer
    msk: EdgeMask


@algorithm(_dimensions, inputs="pos:node/scalar, p:node/scalar", hints=MatrixChainOrderHints, outputs="s:edge/pointer")
def matrix_chain_order(log: Log, p: NDArray[np.float64], hints: MatrixChainOrderHints, s: NDArray[np.int32]) -> None:
    """Matrix-chain multiplication (section 15.2): the cheapest way to multiply matrices i to j, for all i and j.

    One step per round in which every product is improved from the costs of the round before, until no cost changes.
    A product that costs nothing makes no change: with dimensions of 0 the rounds may end before all products are
    computed, and ``s`` is 0 for the other products.
    """
    n = p.shape[0]
    for node in range(1, n):
        hints.pred_h[node] = node - 1
        hints.msk[node, node] = 1
    record(log)
    costs = np.full((n, n), np.inf)  # m, infinite for products that are not yet computed
    for i in range(1, n):
        costs[i, i] = 0.0
    while True:
        before, before_of, shown = costs.copy(), costs.T.copy(), hints.m.copy()  # before_of[j, i]: read along a row too
        for i in range(1, n):
            for j in range(i + 1, n):
                left, right, dimensions = before[i, i:j], before_of[j, i + 1 : j + 1], p[i:j]
                best, split = costs[i, j], -1
                for k in range(j - i):
                    cost = left[k] + right[k] + p[i - 1] * dimensions[k] * p[j]
                    if cost < best:
                        best, split = cost, i + k
                if split >= 0:
                    costs[i, j] = hints.m[i, j] = best
                    hints.s_h[i, j], hints.msk[i, j] = split, 1
        if np.all(shown == hints.m):
            break
        record(log)
    s[:] = hints.s_h


class LcsLengthHints(NamedTuple):
    """The hints of ``lcs_length``."""

    pred_h: NodePointer
    b_h: Annotated[Ints, "edge/categorical(4)"]
    c: EdgeScalar


@algorithm(
    lambda x, y: two_strings("x", x, "y", y),
    inputs="string:node/mask, pos:node/scalar, key:node/categorical(4)",
    hints=LcsLengthHints,
    outputs="b:edge/categorical(4)",
)
def lcs_length(
    log: Log, x: NDArray[np.int64], y: NDArray[np.int64], hints: LcsLengthHints, b: NDArray[np.int32]
) -> None:
    """Longest common subsequence (section 15.4): the lengths for all pairs of prefixes, and their predecessors.

    Classes of ``b``: 0 diagonal (the letters agree), 1 up, 2 left; 3 stands for none. The first step fills the first
    row and column. Then every round is one step, which computes all other cells from the round before, until the
    lengths are stable.
    """
    rows, columns = x.shape[0], y.shape[0]
    b_h, c = hints.b_h, hints.c
    for node in range(rows + columns):
        hints.pred_h[node] = node if node in (0, rows) else node - 1
    b_h[:] = -1
    for i in range(rows):
        for j in range(columns):
            b_h[i, rows + j] = _DIAGONAL
    for i in range(rows):
        agree = x[i] == y[0]
        c[i, rows] = 1.0 if agree or (i > 0 and c[i - 1, rows] == 1) else 0.0
        b_h[i, rows] = _DIAGONAL if agree else _UP
    for j in range(columns):
        agree = x[0] == y[j]
        before_agrees = j > 0 and c[0, rows + j - 1] == 1
        c[0, rows + j] = 1.0 if agree or before_agrees else 0.0
        b_h[0, rows + j] = _DIAGONAL if agree else _LEFT if before_agrees else _UP
    record(log)
    while True:
        before = c.copy()
        for i in range(1, rows):
            for j in range(rows + 1, rows + columns):
                if x[i] == y[j - rows]:
                    c[i, j], b_h[i, j] = before[i - 1, j - 1] + 1, _DIAGONAL
                elif before[i - 1, j] >= before[i, j - 1]:
                    c[i, j], b_h[i, j] = before[i - 1, j], _UP
                else:
                    c[i, j], b_h[i, j] = before[i, j - 1], _LEFT
        if np.all(before == c):
            break
        record(log)
    b[:] = b_h


class OptimalBstHints(NamedTuple):
    """The hints of ``optimal_bst``."""

    pred_h: NodePointer
    root_h: EdgePointer
    e: EdgeScalar
    w: EdgeScalar
    msk: EdgeMask


@algorithm(
    _probabilities,
    inputs="pos:node/scalar, p:node/scalar, q:node/scalar",
    hints=OptimalBstHints,
    outputs="root:edge/pointer",
)
def optimal_bst(
    log: Log, p: NDArray[np.float64], q: NDArray[np.float64], hints: OptimalBstHints, root: NDArray[np.int32]
) -> None:
    """Optimal binary search trees (section 15.5): one step per number of keys in a tree, from none to all."""
    n = p.shape[0]
    root_h, e, w = hints.root_h, hints.e, hints.w
    for node in range(1, n + 1):
        hints.pred_h[node] = node - 1
    for i in range(n + 1):
        e[i, i] = w[i, i] = q[i]
        hints.msk[i, i] = 1
    record(log)
    for size in range(1, n + 1):
        for i in range(n - size + 1):
            j = i + size
            w[i, j] = w[i, j - 1] + p[j - 1] + q[j]
            e[i, j] = np.inf
            for r in range(i, j):
                cost = e[i, r] + e[r + 1, j] + w[i, j]
                if cost < e[i, j]:
                    e[i, j], root_h[i, j] = cost, r
            hints.msk[i, j] = 1
        record(log)
    root[:] = root_h
