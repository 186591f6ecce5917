"""Kernels of random Boolean circuits and their translation to clauses, after FuzzSAT.

Brummayer, Lonsing and Biere (2010), "Automated testing and debugging of SAT and QBF solvers".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import below, next_u64, seed, shuffle
from graphbench.domains.sat.drawing import draw_subset, real_between, rounded, whole_between, write_random_clause
from graphbench.domains.sat.random_clauses import Formula

AND, OR, XOR, IFF, ITE = range(5)
"""The operators; ITE has the operands condition, then and else."""

_TRIES = 1000
_S63 = np.uint64(63)

Circuit = tuple[int, NDArray[np.int8], NDArray[np.int32]]
"""Number v of inputs, operators int8 ``[g]``, operands int32 ``[g, 3]``.

Nodes are numbered from 1, the inputs first; gate i is node v + 1 + i. An operand is a node, or its negation if
negative; the third operand of a binary operator is 0. The last gate is the root."""


@inner
def _randomly_negated(state: NDArray[np.uint64], node: int) -> int:
    return node if next_u64(state) >> _S63 else -node


@inner
def _grow(
    state: NDArray[np.uint64],
    inputs: int,
    times: int,
    max_gates: int,
    operators: int,
    kinds: NDArray[np.int8],
    operands: NDArray[np.int32],
    references: NDArray[np.int32],
) -> int:
    """Add gates until each input is an operand ``times`` times.

    The operands of a gate are distinct, and uniform among the inputs and the gates before it.

    Returns:
        The number of gates, or -1 if more than ``max_gates`` gates are needed.
    """
    references[: inputs + 1] = 0
    waiting = inputs
    chosen = np.empty(3, np.int64)
    for gate in range(max_gates):
        kind = below(state, operators)
        arity = 3 if kind == ITE else 2
        kinds[gate] = kind
        operands[gate, 2] = 0
        draw_subset(state, inputs + gate, chosen[:arity])
        shuffle(state, chosen[:arity])
        for i in range(arity):
            node = chosen[i] + 1
            operands[gate, i] = _randomly_negated(state, node)
            references[node] += 1
            if node <= inputs and references[node] == times:
                waiting -= 1
        references[inputs + 1 + gate] = 0
        if waiting == 0:
            return gate + 1
    return -1


@inner
def _join_roots(
    state: NDArray[np.uint64],
    inputs: int,
    gates: int,
    kinds: NDArray[np.int8],
    operands: NDArray[np.int32],
    references: NDArray[np.int32],
) -> int:
    """Join the gates that no gate refers to, in random order, pairwise by binary gates until one is left.

    The joins form a tree of minimal depth.

    Returns:
        The number of gates.
    """
    roots = np.empty(2 * gates, np.int64)
    last = 0
    for node in range(inputs + 1, inputs + 1 + gates):
        if references[node] == 0:
            roots[last] = node
            last += 1
    shuffle(state, roots[:last])
    first = 0
    while last - first > 1:
        kinds[gates] = below(state, ITE)
        operands[gates, 0] = _randomly_negated(state, roots[first])
        operands[gates, 1] = _randomly_negated(state, roots[first + 1])
        operands[gates, 2] = 0
        first += 2
        gates += 1
        roots[last] = inputs + gates
        last += 1
    return gates


@kernel
def draw_circuit(
    state: NDArray[np.uint64], inputs: tuple[int, int], references: tuple[int, int], most_gates: int, ite: bool
) -> Circuit:
    """Draw a random circuit: gates of random operands until each of v inputs is an operand at least t times.

    The numbers v and t are drawn from ``inputs`` and ``references``. If the circuit needs more than ``most_gates``
    gates, it is drawn again, with new v and t. Gates that are not operands of other gates are then joined pairwise by
    further gates (fewer than there are gates), so that the circuit has one root. If none of 1000 draws gives a circuit
    of at most ``most_gates`` gates, the returned number of inputs is 0.
    """
    kinds, operands = np.empty(2 * most_gates, np.int8), np.empty((2 * most_gates, 3), np.int32)
    counts = np.empty(inputs[1] + 1 + most_gates, np.int32)
    for _ in range(_TRIES):
        v = whole_between(state, inputs[0], inputs[1])
        t = whole_between(state, references[0], references[1])
        gates = _grow(state, v, t, most_gates, 5 if ite else 4, kinds, operands, counts)
        if gates > 0:
            gates = _join_roots(state, v, gates, kinds, operands, counts)
            return v, kinds[:gates].copy(), operands[:gates].copy()
    return 0, kinds[:0].copy(), operands[:0].copy()


@inner
def _write_two(literals: NDArray[np.int32], ptr: NDArray[np.int64], j: int, a: int, b: int) -> int:
    """Write clause j of two literals; return the number of the next clause."""
    at = ptr[j]
    literals[at], literals[at + 1] = a, b
    ptr[j + 1] = at + 2
    return j + 1


@inner
def _write_three(literals: NDArray[np.int32], ptr: NDArray[np.int64], j: int, a: int, b: int, c: int) -> int:
    """Write clause j of three literals; return the number of the next clause."""
    at = ptr[j]
    literals[at], literals[at + 1], literals[at + 2] = a, b, c
    ptr[j + 1] = at + 3
    return j + 1


@inner
def _write_gate(
    literals: NDArray[np.int32], ptr: NDArray[np.int64], j: int, kind: int, g: int, a: int, b: int, c: int
) -> int:
    """Write the clauses "node g equals the operator's value" from clause j on; return the number of the next clause."""
    if kind == OR:  # not g = not a and not b
        g, a, b = -g, -a, -b
    if kind == IFF:  # not g = a xor b
        g = -g
    if kind in (AND, OR):
        j = _write_two(literals, ptr, j, -g, a)
        j = _write_two(literals, ptr, j, -g, b)
        return _write_three(literals, ptr, j, g, -a, -b)
    if kind == ITE:
        j = _write_three(literals, ptr, j, -g, -a, b)
        j = _write_three(literals, ptr, j, g, -a, -b)
        j = _write_three(literals, ptr, j, -g, a, c)
        return _write_three(literals, ptr, j, g, a, -c)
    j = _write_three(literals, ptr, j, -g, a, b)
    j = _write_three(literals, ptr, j, -g, -a, -b)
    j = _write_three(literals, ptr, j, g, -a, b)
    return _write_three(literals, ptr, j, g, a, -b)


@kernel
def circuit_clauses(
    inputs: int, kinds: NDArray[np.int8], operands: NDArray[np.int32], extra: int, length: int
) -> Formula:
    """Return the Tseitin translation of a circuit: variable i is node i, and a last clause says that the root holds.

    The arrays have room for ``extra`` further clauses of the given length at the end; their literals are not set.
    """
    gates = len(kinds)
    literals, ptr = np.empty(12 * gates + 1 + length * extra, np.int32), np.zeros(4 * gates + 2 + extra, np.int64)
    j = 0
    for gate in range(gates):
        a, b, c = int(operands[gate, 0]), int(operands[gate, 1]), int(operands[gate, 2])
        j = _write_gate(literals, ptr, j, int(kinds[gate]), inputs + 1 + gate, a, b, c)
    literals[ptr[j]] = inputs + gates
    ptr[j + 1] = ptr[j] + 1
    for i in range(j + 1, j + 1 + extra):
        ptr[i + 1] = ptr[i] + length
    return inputs + gates, literals[: ptr[j + 1 + extra]].copy(), ptr[: j + 2 + extra].copy()


@kernel
def draw_fuzz(
    key: np.uint64,
    index: int,
    attempt: int,
    inputs: tuple[int, int],
    references: tuple[int, int],
    clause_length: tuple[int, int],
    clause_ratio: tuple[float, float],
    most_gates: int,
    ite: bool,
) -> Formula:
    """Draw the clauses that say that the root of a circuit (`draw_circuit`) holds, then random clauses over all nodes.

    The random clauses have one length k, drawn from ``clause_length``; their number per variable is drawn from
    ``clause_ratio``. The number of variables is 0 if `draw_circuit` gave no circuit.
    """
    state = seed(key, index, attempt, 0)
    v, kinds, operands = draw_circuit(state, inputs, references, most_gates, ite)
    k = whole_between(state, clause_length[0], clause_length[1])
    extra = rounded(real_between(state, clause_ratio[0], clause_ratio[1]) * (v + len(kinds)))
    n, literals, ptr = circuit_clauses(v, kinds, operands, extra, k)
    chosen = np.empty(k, np.int64)
    for j in range(len(ptr) - 1 - extra, len(ptr) - 1):
        draw_subset(state, n, chosen)
        write_random_clause(state, chosen, literals, ptr[j])
    return n, literals, ptr
