"""Kernel of preimage attacks: find a message with the digest of a random message, some of whose bits are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.domains.rng import below, next_u64, seed
from graphbench.domains.sat.drawing import draw_subset, whole_between
from graphbench.domains.sat.hash_functions import encode
from graphbench.domains.sat.random_clauses import Formula

_S63 = np.uint64(63)


@kernel
def draw_preimage(
    key: np.uint64,
    index: int,
    attempt: int,
    functions: NDArray[np.int64],
    rounds: tuple[int, int],
    fixed_bits: tuple[int, int],
) -> tuple[Formula, NDArray[np.bool_]]:
    """Draw the encoding of a hash function with the digest of a uniform block of 512 bits as unit clauses.

    Args:
        key: Key of the split.
        index: Position in the split.
        attempt: Number of the draw.
        functions: int64: the hash functions to choose from, 0 for MD4, 1 for SHA-1 and 2 for SHA-256.
        rounds: Range of the number of steps.
        fixed_bits: Range of the number of bits of the message that are known. Which ones they are is drawn uniformly.

    Returns:
        The formula, and the assignment that belongs to the block, which satisfies it.
    """
    state = seed(key, index, attempt, 0)
    function = functions[below(state, len(functions))]
    steps = whole_between(state, rounds[0], rounds[1])
    fixed = np.empty(whole_between(state, fixed_bits[0], fixed_bits[1]), np.int64)
    draw_subset(state, 512, fixed)
    known, message = np.zeros(512, np.bool_), np.empty(512, np.bool_)
    for bit in fixed:
        known[bit] = True
    for i in range(512):
        message[i] = (next_u64(state) >> _S63) == np.uint64(1)
    n, clauses, starts, model, _, digest, digest_bits = encode(function, steps, message, known)
    literals = np.empty(len(clauses) + len(digest), np.int32)
    ptr = np.empty(len(starts) + len(digest), np.int64)
    literals[: len(clauses)] = clauses
    ptr[: len(starts)] = starts
    units = 0
    for i in range(len(digest)):
        if abs(digest[i]) <= n:  # other bits do not depend on the free bits of the message
            literals[len(clauses) + units] = digest[i] if digest_bits[i] else -digest[i]
            units += 1
            ptr[len(starts) - 1 + units] = len(clauses) + units
    return (n, literals[: len(clauses) + units].copy(), ptr[: len(starts) + units].copy()), model.copy()
