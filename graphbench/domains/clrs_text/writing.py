"""From arrays to text: nested brackets, and the states of a trajectory one after the other.

Text of a state is its cells' words with pieces of punctuation between them. Both come from tables of bytes, so a
trajectory of thousands of steps is written by a compiled loop that only copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.data.trajectories import Changes
from graphbench.kernels import kernel

Array = NDArray[Any]
_CELL = "#"
_STEP_SEPARATOR = 2  # length of ", "


class Texts(NamedTuple):
    """A table of short texts: number ``i`` is ``letters[ptr[i]:ptr[i + 1]]``."""

    letters: NDArray[np.uint8]
    ptr: NDArray[np.int64]
    longest: int  # length of the longest


def text_table(texts: Sequence[str]) -> Texts:
    """Return a table of ASCII texts."""
    lengths = [len(text) for text in texts]
    letters = np.frombuffer("".join(texts).encode("ascii"), np.uint8)
    return Texts(letters, np.array([0, *accumulate(lengths)]), max(lengths))


def nested_text(values: Any) -> str:
    """Return numbers as text: ``3``, ``[1 2]`` or ``[[1 2], [3 4]]`` for a number, a list, or a list of lists."""
    if not isinstance(values, list):
        return str(values)
    if values and isinstance(values[0], list):
        return "[" + ", ".join(map(nested_text, values)) + "]"
    return "[" + " ".join(map(str, values)) + "]"


def punctuation(shapes: Sequence[tuple[int, ...]], parentheses: bool) -> Texts:
    """Return what stands before, between and after the cells of some variables, one after the other.

    Args:
        shapes: ``(1,)`` for a bare number, ``(n,)`` or ``(n, n)``, for every variable.
        parentheses: Whether the variables stand in parentheses together.
    """
    patterns = [_CELL if shape == (1,) else nested_text(np.full(shape, _CELL, object).tolist()) for shape in shapes]
    joined = ", ".join(patterns)
    return text_table((f"({joined})" if parentheses else joined).split(_CELL))


def written(
    changes: Changes, slots: Array, outcome: Array, words: Texts, pieces: Texts, as_list: bool
) -> tuple[str, str, str]:
    """Return the first state of a trajectory, those between the first and the last, and the outcome.

    Args:
        changes: The trajectory of one sample; without steps, only the outcome is written.
        slots: int32 [cells of the trajectory's state]: the cell's place in the written state, -1 if it is not written.
        outcome: int32 [cells written]: the outcome; empty where it is the last state.
        words: The word of the value ``v`` is number ``v + 1``; -1 is the least value.
        pieces: From :func:`punctuation`.
        as_list: Whether a state consists of pointers from node to predecessor, and is written as the list of nodes.
    """
    cells = len(pieces.ptr) - 2
    per_state = len(pieces.letters) + cells * words.longest + _STEP_SEPARATOR
    buffer = np.empty((len(changes.counts) + 1) * per_state, np.uint8)
    first, middle, last = _write(
        changes.counts, changes.cells, changes.values, slots, outcome, words, pieces, as_list, buffer
    )
    text = buffer[:last].tobytes().decode("ascii")
    return text[:first], text[first:middle], text[middle:]


@kernel
def _write(
    counts: Array,
    cells: Array,
    values: Array,
    slots: Array,
    outcome: Array,
    words: Texts,
    pieces: Texts,
    as_list: bool,
    buffer: Array,
) -> tuple[int, int, int]:
    """Write all states but the last, then the outcome; return the ends of first state, trace and outcome."""
    state = np.zeros(pieces.ptr.shape[0] - 2, np.int32)
    steps = counts.shape[0]
    end_of_first = at = change = start = end = 0  # start and end: of the state written last
    for step in range(steps):
        changed = step == 0
        for _ in range(counts[step]):
            slot = slots[cells[change]]
            if slot >= 0:
                state[slot] = values[change]
                changed = True
            change += 1
        if step > 0 and step == steps - 1:
            break
        if step > 1:
            buffer[at], buffer[at + 1] = ord(","), ord(" ")
            at += 2
        before, start = start, at
        if changed:
            at = _write_state(state, words, pieces, as_list, buffer, at)
        else:
            at += end - before
            buffer[start:at] = buffer[before:end]
        end = at
        if step == 0:
            end_of_first = at
    end_of_trace = at
    if outcome.shape[0] > 0:
        state[:] = outcome
    return end_of_first, end_of_trace, _write_state(state, words, pieces, as_list, buffer, at)


@kernel
def _write_state(state: Array, words: Texts, pieces: Texts, as_list: bool, buffer: Array, at: int) -> int:
    """Write one state at a place of the buffer; return where it ends."""
    values = _list_of(state) if as_list else state
    for cell in range(values.shape[0]):
        at = _copy(pieces, cell, buffer, at)
        at = _copy(words, values[cell] + 1, buffer, at)
    return _copy(pieces, values.shape[0], buffer, at)


@kernel
def _copy(texts: Texts, number: int, buffer: Array, at: int) -> int:
    for place in range(texts.ptr[number], texts.ptr[number + 1]):
        buffer[at] = texts.letters[place]
        at += 1
    return at


@kernel
def _list_of(predecessors: Array) -> Array:
    """Return the nodes in the order their pointers give; the first points to itself."""
    follower = np.zeros_like(predecessors)
    nodes = np.zeros_like(predecessors)
    for node in range(predecessors.shape[0]):
        if predecessors[node] == node:
            nodes[0] = node
        else:
            follower[predecessors[node]] = node
    for place in range(1, predecessors.shape[0]):
        nodes[place] = follower[nodes[place - 1]]
    return nodes
