"""From arrays to text: prompts and references of many instances at once, written into one buffer by a compiled loop.

Text is cells with pieces of punctuation between them. The inputs are numbers; a state's cells are node ids, classes or
masks, or, where a state is a list of keys, the keys as they stand in the prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import copysign
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.data.arrays.trajectories import Trajectories

Array = NDArray[Any]
CELL = "#"
Lists = tuple[Array, Array, Array, Array, Array]  # step_ptr, then ptr, counts, cells and values of changes
_STEP_SEPARATOR = 2  # length of ", "
_MAX_BUFFER = 1 << 24  # bytes of the buffer, unless a single instance needs more
_DECIMALS, _SCALE = 6, 1_000_000  # numbers with more decimals are left to Python
_MAX_PLAIN, _MAX_WHOLE = 1e9, 1e15  # larger numbers are left to Python, too
_MIN_PLAIN = 1e-4  # smaller numbers have an exponent
_SHORT, _LONG = 17, 24  # maximal characters of a number that is written here, and of any number


class Texts(NamedTuple):
    """A table of short texts: number ``i`` is ``letters[ptr[i]:ptr[i + 1]]``."""

    letters: NDArray[np.uint8]
    ptr: NDArray[np.int64]


class Format(NamedTuple):
    """The text around the cells of all prompts of one algorithm and size."""

    inputs: Texts  # pieces before, between and after the cells of the inputs
    state: Texts  # pieces of a printed state
    joints: Texts  # texts between the first state and the trace, between the trace and the answer, and at the end
    slots: NDArray[np.int32]  # [cells of the trajectory's state]: position in the printed state, -1 if not printed
    whole: NDArray[np.bool_]  # [input cells]: which print as whole numbers
    longest: int  # most characters of a cell of a state, unless it is a key
    traced: bool  # whether a trace is printed
    keys: int  # first input cell of the keys, of which a state is a list; -1 where states are numbers


def text_table(texts: Sequence[str]) -> Texts:
    """Return a table of ASCII texts."""
    letters = np.array(bytearray("".join(texts).encode("ascii")), np.uint8)
    return Texts(letters, np.array([0, *accumulate(map(len, texts))]))


def pieces(template: str) -> Texts:
    """Return the text before, between and after the cells of a template, such as ``key: [# #]``."""
    letters = np.frombuffer(template.encode("ascii"), np.uint8)
    is_cell = letters == ord(CELL)
    ends = np.flatnonzero(is_cell)
    ends -= np.arange(len(ends))
    return Texts(letters[~is_cell], np.concatenate([[0], ends, [len(letters) - len(ends)]]))


_NO_WORDS = text_table([])


def pattern(shape: tuple[int, ...]) -> str:
    """Return ``#``, ``[# #]`` or ``[[# #], [# #]]`` for the shape ``(1,)``, ``(2,)`` or ``(2, 2)`` of a variable."""
    if shape == (1,):
        return CELL
    row = f"[{' '.join([CELL] * shape[-1])}]"
    return row if len(shape) == 1 else f"[{', '.join([row] * shape[0])}]"


def written(inputs: Array, hints: Trajectories, outcomes: Array, form: Format) -> Iterator[tuple[str, str]]:
    """Yield the prompt and the reference of every instance.

    Args:
        inputs: float64 ``[S, input cells]``.
        hints: The trajectories; not read where no trace is printed.
        outcomes: int32 ``[S, cells of a state]``: the answers; ``[S, 0]`` where they are the last states.
        form: The text around the cells.
    """
    ints = hints.ints
    return _written(inputs, (hints.step_ptr, ints.ptr, ints.counts, ints.cells, ints.values), outcomes, form)


def _written(inputs: Array, lists: Lists, outcomes: Array, form: Format) -> Iterator[tuple[str, str]]:
    odd = _left_to_python(inputs, form.whole)
    words, longest = _NO_WORDS, _SHORT
    if odd.any():
        numbers = zip(inputs[odd].tolist(), np.broadcast_to(form.whole, odd.shape)[odd].tolist(), strict=True)
        words, longest = text_table([str(int(number)) if whole else str(number) for number, whole in numbers]), _LONG
    per_state = len(form.state.letters) + (len(form.state.ptr) - 2) * (form.longest if form.keys < 0 else longest)
    around = len(form.inputs.letters) + inputs.shape[1] * longest + len(form.joints.letters) + per_state
    step_ptr, ptr = lists[:2]
    steps = int(step_ptr[-1] - step_ptr[0]) if form.traced else 0
    size = len(inputs) * around + steps * (per_state + _STEP_SEPARATOR)
    if size > _MAX_BUFFER and len(inputs) > 1:
        middle = len(inputs) // 2
        for part, places in ((slice(middle), slice(middle + 1)), (slice(middle, None), slice(middle, None))):
            arguments = (step_ptr[places], ptr[places], lists[2], lists[3], lists[4])
            yield from _written(inputs[part], arguments, outcomes[part], form)
        return
    buffer, ends = np.empty(size, np.uint8), np.empty((len(inputs), 2), np.int64)
    _write_all(inputs, odd, words, lists, outcomes, form, buffer, ends)
    text = buffer[: ends[-1, 1]].tobytes().decode("ascii")
    start = 0
    for middle, end in ends.tolist():
        yield text[start:middle], text[middle:end]
        start = end


@kernel
def _left_to_python(inputs: Array, whole: Array) -> Array:
    """Return which numbers ``_write_number`` cannot write as Python does."""
    odd = np.empty(inputs.shape, np.bool_)
    for i in range(inputs.shape[0]):
        for cell in range(inputs.shape[1]):
            size = abs(inputs[i, cell])
            if whole[cell]:
                odd[i, cell] = size >= _MAX_WHOLE
            else:
                is_short = _MIN_PLAIN <= size < _MAX_PLAIN and np.rint(size * _SCALE) / _SCALE == size
                odd[i, cell] = size != 0 and not is_short
    return odd


@kernel
def _write_all(
    inputs: Array,
    odd: Array,
    words: Texts,
    lists: Lists,
    outcomes: Array,
    form: Format,
    buffer: Array,
    ends: Array,
) -> None:
    """Write all prompts and references one after the other, and where each of them ends."""
    cells, whole = inputs.shape[1], form.whole
    pieces, ptr = form.inputs
    starts, stops = np.empty(cells, np.int64), np.empty(cells, np.int64)  # of the inputs of one instance
    state = np.empty(form.state.ptr.shape[0] - 2, np.int32)
    at = word = 0
    for i in range(inputs.shape[0]):
        for cell in range(cells):
            for position in range(ptr[cell], ptr[cell + 1]):
                buffer[at] = pieces[position]
                at += 1
            starts[cell] = at
            number = inputs[i, cell]
            if odd[i, cell]:
                at = _copy(words, word, buffer, at)
                word += 1
            elif not whole[cell]:
                at = _write_number(number, buffer, at)
            elif 0 <= number < 10:
                buffer[at] = ord("0") + np.int64(number)
                at += 1
            else:
                at = _write_whole(np.int64(number), buffer, at)
            stops[cell] = at
        at = _copy(form.inputs, cells, buffer, at)
        state[:] = 0
        if form.traced:
            ends[i, 0], at = _write_trace(i, lists, form, state, starts, stops, buffer, at)
            at = _copy(form.joints, 1, buffer, at)
        else:
            ends[i, 0] = at
        if outcomes.shape[1] > 0:
            state[:] = outcomes[i]
        at = _write_state(state, form, starts, stops, buffer, at)
        at = _copy(form.joints, 2, buffer, at)
        ends[i, 1] = at


@inner
def _write_trace(
    sample: int,
    lists: Lists,
    form: Format,
    state: Array,
    starts: Array,
    stops: Array,
    buffer: Array,
    at: int,
) -> tuple[int, int]:
    """Write the first state, the text after it, and the states up to the last but one; leave ``state`` at the last.

    Returns:
        Where the prompt ends, and where the trace does.
    """
    step_ptr, ptr, counts, cells, values = lists
    first, steps, change = step_ptr[sample], step_ptr[sample + 1] - step_ptr[sample], ptr[sample]
    end_of_prompt = start = end = at  # start and end: of the state written last
    for step in range(steps):
        changed = step == 0
        for _ in range(counts[first + step]):
            slot = form.slots[cells[change]]
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
            at = _write_state(state, form, starts, stops, buffer, at)
        else:
            at += end - before
            buffer[start:at] = buffer[before:end]
        end = at
        if step == 0:
            at = end_of_prompt = _copy(form.joints, 0, buffer, at)
    return end_of_prompt, at


@inner
def _write_state(state: Array, form: Format, starts: Array, stops: Array, buffer: Array, at: int) -> int:
    """Write one state at a position of the buffer; return the position behind it."""
    pieces, ptr = form.state
    nodes = _list_of(state) if form.keys >= 0 else state
    for cell in range(state.shape[0]):
        for position in range(ptr[cell], ptr[cell + 1]):
            buffer[at] = pieces[position]
            at += 1
        number = nodes[cell]
        if form.keys >= 0:
            for position in range(starts[form.keys + number], stops[form.keys + number]):
                buffer[at] = buffer[position]
                at += 1
        elif 0 <= number < 10:
            buffer[at] = ord("0") + number
            at += 1
        else:
            at = _write_whole(number, buffer, at)
    return _copy(form.state, state.shape[0], buffer, at)


@inner
def _copy(texts: Texts, number: Any, buffer: Array, at: int) -> int:
    for position in range(texts.ptr[number], texts.ptr[number + 1]):
        buffer[at] = texts.letters[position]
        at += 1
    return at


@inner
def _write_number(number: float, buffer: Array, at: int) -> int:
    """Write a number that is not whole as Python does, given that it is short."""
    if copysign(1.0, number) < 0:
        buffer[at] = ord("-")
        at += 1
    scaled = np.int64(np.rint(abs(number) * _SCALE))
    at = _write_whole(scaled // _SCALE, buffer, at)
    buffer[at] = ord(".")
    fraction = scaled % _SCALE
    last = at + 1
    for position in range(at + _DECIMALS, at, -1):
        digit = fraction % 10
        fraction //= 10
        buffer[position] = ord("0") + digit
        if digit != 0 and last == at + 1:
            last = position
    return last + 1


@inner
def _write_whole(number: Any, buffer: Array, at: int) -> int:
    if number < 0:
        buffer[at] = ord("-")
        at += 1
        number = -number
    end, limit = at + 1, 10
    while number >= limit:
        end, limit = end + 1, limit * 10
    for position in range(end - 1, at - 1, -1):
        buffer[position] = ord("0") + number % 10
        number //= 10
    return end


@inner
def _list_of(predecessors: Array) -> Array:
    """Return the nodes in the order their pointers give; the first points to itself."""
    follower = np.zeros_like(predecessors)
    nodes = np.zeros_like(predecessors)
    for node in range(predecessors.shape[0]):
        if predecessors[node] == node:
            nodes[0] = node
        else:
            follower[predecessors[node]] = node
    for position in range(1, predecessors.shape[0]):
        nodes[position] = follower[nodes[position - 1]]
    return nodes
