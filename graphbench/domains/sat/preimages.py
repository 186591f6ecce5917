"""Preimage attacks: find a message with the digest of a random message, given some bits of the random message."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.core.rng import below, next_u64, seed
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.drawing import draw_subset, whole_between
from graphbench.domains.sat.hash_functions import (
    FUNCTIONS,
    EncodedHash,
    HashEncoding,
    HashName,
    clauses_of_rows,
    encoded_hash,
    hash_encoding,
)

_S63 = np.uint64(63)


@dataclass(frozen=True, eq=False)
class Preimage:
    """A preimage attack.

    Attributes:
        encoded: The clauses of the hash function under the message, followed by the digest as unit clauses.
        name: The hash function.
        rounds: Number of steps of the hash function.
        message: bool ``[512]``, the block that has the digest.
        known_bits: bool ``[512]``, True for the bits of the block that are known.
    """

    encoded: EncodedHash
    name: HashName
    rounds: int
    message: NDArray[np.bool_]
    known_bits: NDArray[np.bool_]

    @cached_property
    def encoding(self) -> HashEncoding:
        """The encoding of the hash function under the message."""
        return hash_encoding(self.encoded)

    @cached_property
    def formula(self) -> Cnf:
        """The clauses of the encoding, followed by the digest as unit clauses; constant bits need no clause."""
        return Cnf(len(self.encoded.values), *clauses_of_rows(self.encoded.clauses))


def draw_preimage(
    key: np.uint64,
    index: int,
    attempt: int,
    names: tuple[HashName, ...],
    rounds: tuple[int, int],
    fixed_bits: tuple[int, int],
) -> Preimage:
    """Draw the encoding of a hash function with the digest of a uniform block of 512 bits as unit clauses.

    Args:
        key: Key of the split.
        index: Position in the split.
        attempt: Number of the draw.
        names: The hash functions; one of them is drawn.
        rounds: Range of the number of steps.
        fixed_bits: Range of the number of known bits of the message; their positions are uniform.
    """
    chosen, steps, message, known_bits = _draw_attack(key, index, attempt, len(names), rounds, fixed_bits)
    encoded = encoded_hash(FUNCTIONS.index(names[chosen]), steps, message, known_bits)
    return Preimage(encoded, names[chosen], steps, message, known_bits)


@kernel
def _draw_attack(
    key: np.uint64, index: int, attempt: int, functions: int, rounds: tuple[int, int], fixed_bits: tuple[int, int]
) -> tuple[int, int, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the number of the attacked function, its number of steps, the message, and a mask of the known bits."""
    state = seed(key, index, attempt, 0)
    function = below(state, functions)
    steps = whole_between(state, rounds[0], rounds[1])
    fixed = np.empty(whole_between(state, fixed_bits[0], fixed_bits[1]), np.int64)
    draw_subset(state, 512, fixed)
    known_bits, message = np.zeros(512, np.bool_), np.empty(512, np.bool_)
    for bit in fixed:
        known_bits[bit] = True
    for i in range(512):
        message[i] = (next_u64(state) >> _S63) == np.uint64(1)
    return function, steps, message, known_bits
