"""Random numbers inside compiled kernels.

Every sample has one generator, seeded from ``(key, index, attempt, stream)`` alone, so samples may be drawn in
any order, on any number of workers, and come out the same. The generator is xoshiro256++ (Blackman and Vigna, 2021),
seeded through SplitMix64 (Steele et al., 2014), as its authors recommend. Only integer arithmetic and exact scalings
by powers of two are used: the bits do not depend on the platform's libm.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)
_S11, _S17, _S19, _S23, _S32, _S41, _S45 = (np.uint64(s) for s in (11, 17, 19, 23, 32, 41, 45))
_LOW32 = np.uint64(0xFFFFFFFF)
_TWO_M53 = 2.0**-53


@inner
def _mix(z: np.uint64) -> np.uint64:
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


@kernel
def seed(key: np.uint64, index: int, attempt: int, stream: int) -> NDArray[np.uint64]:
    """Return the state ``uint64[4]`` of the generator of one sample.

    Args:
        key: Key of the split, from ``graphbench.data.arrays.seeds.stream_key``.
        index: Position of the sample in its split.
        attempt: 0 for the first draw, 1, 2, ... for redraws of a duplicate.
        stream: Separates independent uses within a sample (0 structure, 1 features, ...).
    """
    z = _mix(np.uint64(key) + _GOLDEN)
    z = _mix((z ^ np.uint64(index)) + _GOLDEN)
    z = _mix((z ^ np.uint64(attempt)) + _GOLDEN)
    z = _mix((z ^ np.uint64(stream)) + _GOLDEN)
    state = np.empty(4, np.uint64)
    for k in range(4):
        z += _GOLDEN
        state[k] = _mix(z)
    return state


@kernel
def next_u64(state: NDArray[np.uint64]) -> np.uint64:
    """Return 64 random bits and advance ``state``."""
    total = state[0] + state[3]
    result = ((total << _S23) | (total >> _S41)) + state[0]
    shifted = state[1] << _S17
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << _S45) | (state[3] >> _S19)
    return result


@kernel
def uniform(state: NDArray[np.uint64]) -> float:
    """Return a float64 uniform on [0, 1), a multiple of 2**-53."""
    return float(next_u64(state) >> _S11) * _TWO_M53


@kernel
def below(state: NDArray[np.uint64], n: int) -> int:
    """Return an int64 uniform on 0 .. n-1, without bias (n below 2**32)."""
    bound = np.uint64(n)
    product = (next_u64(state) >> _S32) * bound
    if (product & _LOW32) < bound:  # the threshold is below the bound: a division is rarely needed (Lemire, 2019)
        threshold = ((_LOW32 + np.uint64(1)) - bound) % bound
        while (product & _LOW32) < threshold:
            product = (next_u64(state) >> _S32) * bound
    return np.int64(product >> _S32)  # type: ignore[return-value]


@kernel
def shuffle(state: NDArray[np.uint64], values: NDArray[np.int64]) -> None:
    """Permute a one-dimensional array in place, uniformly (Fisher-Yates)."""
    for i in range(values.shape[0] - 1, 0, -1):
        j = below(state, i + 1)
        values[i], values[j] = values[j], values[i]


@kernel
def permutation(state: NDArray[np.uint64], n: int) -> NDArray[np.int64]:
    """Return 0 .. n-1 in random order, uniformly, int64 ``[n]``."""
    values = np.arange(n)
    shuffle(state, values)
    return values
