"""How a compiled algorithm records its hints, and the types of the arrays that hold the hints.

All hints of an algorithm live in two vectors, one of integers and one of floats; the algorithm works on views of them.
``record`` closes a step: it compares the vectors with their last recorded state and appends the cells that changed.
So a trajectory is stored as a list of changes: most steps of most algorithms change a handful of cells,
whatever the size of the state.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import kernel

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

# The types of the fields of a class of hints: the array in which the algorithm works, and the type of the feature.
NodeScalar = Annotated[Floats, "node/scalar"]  # [n]
NodeMask = Annotated[Ints, "node/mask"]  # [n], 0 or 1, -1 where masked
NodeMaskOne = Annotated[Ints, "node/mask_one"]  # [1], the id of the node
NodePointer = Annotated[Ints, "node/pointer"]  # [n]
EdgeScalar = Annotated[Floats, "edge/scalar"]  # [n, n]
EdgeMask = Annotated[Ints, "edge/mask"]  # [n, n]
EdgePointer = Annotated[Ints, "edge/pointer"]  # [n, n]
GraphScalar = Annotated[Floats, "graph/scalar"]  # [1]
GraphMask = Annotated[Ints, "graph/mask"]  # [1]

Lists = tuple[Ints, Ints, Ints, Floats]
"""The changes of all steps, step after step, in four arrays.

- ``[2, steps]``: the number of cells of the integer hints and of the float hints that changed in every step;
- ``[2, changes]``: the cells of the integer hints that changed, and their new values;
- ``[changes]``: the cells of the float hints that changed;
- ``[changes]``: the new values of these float cells.

The arrays have a fixed capacity. Beyond it, ``record`` counts on without writing, so that the caller learns the
capacity that a second run needs.
"""

Log = tuple[Ints, Floats, Ints, Ints, Ints, Floats, NDArray[np.int64]]
"""The state and the record of one run of an algorithm: a plain tuple, which Numba takes fastest.

- ``[2, K]``: the values of the integer hints, now and at the last recorded step; zeros before a run;
- ``[2, F]``: the same for the float hints;
- the four arrays of ``Lists``;
- ``[3]``: steps, integer changes and float changes recorded so far.
"""

STEPS, INTS, FLOATS = range(3)  # positions in the last array of a log
_BLOCK = 128


def new_lists(steps: int, int_changes: int, float_changes: int) -> Lists:
    """Return empty lists of changes (uninitialised arrays) of the given capacities."""
    return (
        np.empty((2, steps), np.int32),
        np.empty((2, int_changes), np.int32),
        np.empty(float_changes, np.int32),
        np.empty(float_changes),
    )


@kernel
def record(log: Log) -> None:
    """Close a step: append the changes since the previous step, or since a state of zeros for the first step."""
    ints, floats, counts, int_changes, float_cells, float_values, used = log
    step = used[STEPS]
    used[STEPS] = step + 1
    first = used[INTS]
    at = first
    for start in range(0, ints.shape[1], _BLOCK):
        now, before = ints[0, start : start + _BLOCK], ints[1, start : start + _BLOCK]
        difference = np.int32(0)
        for i in range(now.shape[0]):  # a plain loop over a separate block is vectorised
            difference |= now[i] ^ before[i]
        if difference == 0:
            continue
        for i in range(now.shape[0]):
            if now[i] != before[i]:
                before[i] = now[i]
                if at < int_changes.shape[1]:
                    int_changes[0, at], int_changes[1, at] = start + i, now[i]
                at += 1
    used[INTS] = at
    changed = at - first
    first = used[FLOATS]
    at = first
    for cell in range(floats.shape[1]):
        number = floats[0, cell]
        if number != floats[1, cell]:
            floats[1, cell] = number
            if at < float_cells.shape[0]:
                float_cells[at], float_values[at] = cell, number
            at += 1
    used[FLOATS] = at
    if step < counts.shape[1]:
        counts[0, step], counts[1, step] = changed, at - first
