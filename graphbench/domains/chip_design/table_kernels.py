"""Truth tables from words to text and back, in compiled code (:mod:`~graphbench.domains.chip_design.truth_tables`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel
from graphbench.domains.chip_design.aig_kernels import Ints, Words, words_per_output

_SPACE, _ZERO, _NINE, _A, _F = (ord(c) for c in " 09af")


@kernel
def texts_of_words(num_inputs: Ints, num_outputs: Ints, words: Words) -> tuple[NDArray[np.uint8], Ints]:
    """Return tables of 2 inputs or more as text.

    Returns:
        The characters of all texts, uint8, and int64 ``[S + 1]``, where the text of each begins.
    """
    count = num_inputs.shape[0]
    ptr = np.zeros(count + 1, np.int64)
    for s in range(count):
        ptr[s + 1] = ptr[s] + num_outputs[s] * ((np.int64(1) << (num_inputs[s] - 2)) + 1) - 1
    content = np.full(ptr[count], _SPACE, np.uint8)
    word: Any = 0
    for s in range(count):
        digits, at = np.int64(1) << (num_inputs[s] - 2), ptr[s]
        for _ in range(num_outputs[s]):
            for d in range(digits):
                value = np.int64(words[word + (d >> 4)] >> np.uint64(4 * (d & 15))) & 15
                content[at + digits - 1 - d] = _ZERO + value if value < 10 else _A + value - 10
            at += digits + 1
            word += words_per_output(num_inputs[s])
    return content, ptr


@kernel
def words_of_texts(content: NDArray[np.uint8], ptr: NDArray[Any]) -> tuple[Ints, Ints, Words]:
    """Return the numbers of inputs and outputs and the words of texts; -1 inputs for a text that is no table.

    Returns:
        int64 ``[S]``, int64 ``[S]``, and uint64, by function and output; no words for a text that is not a table.
    """
    count = ptr.shape[0] - 1
    num_inputs, num_outputs = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    words = np.zeros(content.shape[0] + 1, np.uint64)  # at least one character per word
    total: Any = 0
    for s in range(count):
        first, last = np.int64(ptr[s]), np.int64(ptr[s + 1])
        digits = np.int64(0)
        while first + digits < last and content[first + digits] != _SPACE:
            digits += 1
        n = np.int64(2)
        while (np.int64(1) << (n - 2)) < digits:
            n += 1
        m = (last - first + 1) // (digits + 1)
        if digits != np.int64(1) << (n - 2) or m * (digits + 1) - 1 != last - first:
            continue
        size: Any = words_per_output(n)
        sound: Any = True
        for j in range(m):
            at = first + j * (digits + 1)
            sound &= j == 0 or content[at - 1] == _SPACE
            for d in range(digits):
                character = np.int64(content[at + digits - 1 - d])
                value = character - _ZERO if character <= _NINE else character - _A + 10
                sound &= _ZERO <= character <= _NINE or _A <= character <= _F
                words[total + j * size + (d >> 4)] |= np.uint64(value & 15) << np.uint64(4 * (d & 15))
        if sound:
            num_inputs[s], num_outputs[s] = n, m
            total += m * size
        else:
            words[total : total + m * size] = 0
    return num_inputs, num_outputs, words[:total].copy()
