"""And-inverter graphs: circuits of two-input ANDs whose connections may be inverted.

Variables are numbered as in AIGER files: variable 0 is the constant false, variables ``1 .. n`` are the inputs, and
variables ``n + 1 .. n + a`` the ANDs, in an order in which every AND comes after its fan-ins. The literal ``2 v`` is
variable v, and ``2 v + 1`` its inversion; so 0 is false and 1 is true. Input i of a truth table, which counts from 0,
is variable ``i + 1``. :mod:`~graphbench.domains.chip_design.truth_tables` has the order of assignments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import CircuitError
from graphbench.core.ragged import offsets
from graphbench.domains.chip_design.aig_kernels import (
    depths_run,
    first_wrong_and,
    first_wrong_circuit,
    hashed_one,
    simulate_run,
)
from graphbench.domains.chip_design.aiger import MOST_ANDS, aiger_bytes, read_parts
from graphbench.domains.chip_design.circuit_graphs import CIRCUIT_FEATURES, run_as_samples
from graphbench.domains.chip_design.truth_tables import MOST_INPUTS, Bits, Words, as_bits, num_inputs, to_bits, to_words

if TYPE_CHECKING:
    from graphbench.data.batches.layouts import Data

RUN = ("num_inputs", "and_ptr", "fanins", "output_ptr", "outputs")


@dataclass(frozen=True, eq=False)
class Aig:
    """An and-inverter graph; its arrays are copies that cannot be changed.

    Attributes:
        num_inputs: Number n of inputs.
        fanins: int32 ``[ands, 2]``, the two fan-ins of every AND as literals. AND k is variable ``n + 1 + k``; its
            fan-ins are literals of lower variables.
        outputs: int32 ``[m]``, the literal that drives each output.

    Raises:
        CircuitError: If a fan-in or an output is no literal of a lower variable.
    """

    num_inputs: int
    fanins: NDArray[np.int32]
    outputs: NDArray[np.int32]

    def __post_init__(self) -> None:
        """Check the arrays and keep copies of them that cannot be changed."""
        n, fanins, outputs = checked_parts(self.num_inputs, self.fanins, self.outputs)
        object.__setattr__(self, "num_inputs", n)
        object.__setattr__(self, "fanins", _immutable(fanins))
        object.__setattr__(self, "outputs", _immutable(outputs))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the constructor call for copying and unpickling: both check the circuit, and copies are read-only."""
        return type(self), (self.num_inputs, self.fanins, self.outputs)

    @classmethod
    def from_aiger(cls, path_or_bytes: str | Path | bytes) -> Aig:
        """Return the circuit of an AIGER file, ASCII or binary; see :func:`~.aiger.read_parts`.

        Raises:
            CircuitError: If the file cannot be read or is malformed.
        """
        return cls(*read_parts(path_or_bytes))

    def to_aiger(self, *, ascii: bool = False) -> bytes:
        """Return the circuit as an AIGER file, binary or ASCII."""
        return aiger_bytes(*checked_parts(self.num_inputs, self.fanins, self.outputs), ascii=ascii)

    def to_data(self) -> Data:
        """Return the circuit as a PyG graph with ``gate``, ``inverted``, and ``x`` and ``edge_attr`` made of them.

        :func:`~.circuit_graphs.run_as_samples` has the order of its nodes and arcs.
        """
        from graphbench.data.batches.layouts import graph_data

        return graph_data(run_as_samples(*Circuits.of([self]).arrays), CIRCUIT_FEATURES, directed=True)

    @property
    def num_outputs(self) -> int:
        """The number m of outputs."""
        return len(self.outputs)

    @property
    def num_ands(self) -> int:
        """The number of ANDs, dead and duplicate ones included."""
        return len(self.fanins)

    @cached_property
    def depth(self) -> int:
        """The number of levels: the largest number of ANDs on a path from an input to an output."""
        return int(Circuits.of([self]).depths[0])

    def simulate(self) -> Bits:
        """Return the truth table, bool ``[m, 2^n]``.

        Raises:
            CircuitError: If the circuit has more than 20 inputs.
        """
        return to_bits(self.simulate_words(), self.num_inputs)

    def simulate_words(self) -> Words:
        """Return the truth table as words, uint64 ``[m, W]`` (:mod:`~.truth_tables`).

        Raises:
            CircuitError: If the circuit has more than 20 inputs.
        """
        if not self.num_outputs:
            return np.empty((0, max(1, (1 << self.num_inputs) >> 6)), np.uint64)
        return Circuits.of([self]).simulate().reshape(self.num_outputs, -1)

    def hashed(self) -> Aig:
        """Return the circuit after structural hashing, without dead ANDs.

        An AND with a constant fan-in, or with the same variable twice, is replaced by an equal literal. Of several ANDs
        with the same fan-ins, one is kept.
        """
        n, *literals = checked_parts(self.num_inputs, self.fanins, self.outputs)
        fanins, outputs, _, _ = hashed_one(n, *literals)
        return Aig(n, fanins, outputs)

    @property
    def num_dead(self) -> int:
        """The number of ANDs on which no output depends."""
        return int(hashed_one(*checked_parts(self.num_inputs, self.fanins, self.outputs))[2])

    @property
    def num_duplicates(self) -> int:
        """The number of ANDs that structural hashing replaces by a constant, a literal or an AND before them."""
        return int(hashed_one(*checked_parts(self.num_inputs, self.fanins, self.outputs))[3])

    def __repr__(self) -> str:
        """Return the sizes."""
        return f"Aig(inputs={self.num_inputs}, outputs={self.num_outputs}, ands={self.num_ands})"


def checked_parts(num_inputs: Any, fanins: Any, outputs: Any) -> tuple[int, NDArray[np.int32], NDArray[np.int32]]:
    """Return the parts of a circuit as compiled functions take them: an integer, int32 ``[ands, 2]`` and ``[m]``.

    Args:
        num_inputs: Number of inputs.
        fanins: Integers ``[ands, 2]``.
        outputs: Integers ``[m]``.

    Raises:
        CircuitError: If a part has another shape or type, or a fan-in or an output is no literal of a lower variable.
    """
    try:
        n, fanins, outputs = index(num_inputs), np.asarray(fanins), np.asarray(outputs)
    except (TypeError, ValueError) as error:
        raise CircuitError(f"the parts of the circuit are no integer and two arrays of integers: {error}") from error
    if fanins.ndim != 2 or fanins.shape[1] != 2 or outputs.ndim != 1:
        raise CircuitError(
            f"fanins has the shape {list(fanins.shape)} and outputs {list(outputs.shape)}; give [ands, 2] and [m]"
        )
    if n < 0 or n + len(fanins) > MOST_ANDS:
        raise CircuitError(f"a circuit has {n:,} inputs and {len(fanins):,} ANDs; at most {MOST_ANDS:,} are allowed")
    if fanins.dtype.kind not in "iu" or outputs.dtype.kind not in "iu":
        raise CircuitError(f"fanins is {fanins.dtype} and outputs {outputs.dtype}; give integers")
    limit = 2 * (1 + n + len(fanins))
    if len(fanins) and (fanins.min() < 0 or fanins.max() >= limit):
        raise CircuitError(f"a fan-in lies outside the literals 0 to {limit - 1}")
    if len(outputs) and (outputs.min() < 0 or outputs.max() >= limit):
        raise CircuitError(f"an output lies outside the literals 0 to {limit - 1}")
    fanins, outputs = np.array(fanins, np.int32, order="C"), np.array(outputs, np.int32)
    wrong = first_wrong_and(n, fanins)
    if wrong >= 0:
        raise CircuitError(
            f"AND {wrong} (literal {2 * (1 + n + wrong)}) has the fan-ins {fanins[wrong].tolist()}; "
            "every AND comes after its fan-ins"
        )
    return n, fanins, outputs


def _shaped_parts(num_inputs: Any, fanins: Any, outputs: Any) -> tuple[int, NDArray[np.int32], NDArray[np.int32]]:
    """Return the parts of a circuit with their shapes and types checked; the values are not yet checked."""
    int32 = all(type(array) is np.ndarray and array.dtype == np.int32 for array in (fanins, outputs))
    shaped = int32 and fanins.ndim == 2 and fanins.shape[1] == 2 and outputs.ndim == 1
    if shaped and type(num_inputs) is int and 0 <= num_inputs <= MOST_ANDS:
        return num_inputs, fanins, outputs
    return checked_parts(num_inputs, fanins, outputs)


def _immutable(array: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return a copy that lies in an object of bytes, so that nothing can make it writable."""
    return np.ndarray(array.shape, array.dtype, buffer=array.tobytes())


def equivalent(aig: Aig, table: Any) -> bool:
    """Return whether a circuit computes a truth table; False if the numbers of inputs or outputs differ.

    Args:
        aig: The circuit.
        table: An array of 0 and 1, ``[m, 2^n]``, or ``[2^n]`` for one output.

    Raises:
        CircuitError: If the table is malformed.
    """
    bits = as_bits(table)
    if aig.num_inputs != num_inputs(bits) or aig.num_outputs != len(bits):
        return False
    return bool(np.array_equal(aig.simulate_words(), to_words(bits)))


@dataclass(frozen=True, eq=False)
class Circuits:
    """Circuits one after the other, as flat arrays; they are checked before every call of a compiled function.

    Attributes:
        num_inputs: int64 ``[S]``, inputs per circuit.
        and_ptr: int64 ``[S + 1]``: the ANDs of circuit i are rows ``and_ptr[i]:and_ptr[i + 1]``.
        fanins: int32 ``[A, 2]``, literals that count within the circuit, as in :class:`Aig`.
        output_ptr: int64 ``[S + 1]``: the outputs of circuit i.
        outputs: int32 ``[M]``.

    Raises:
        CircuitError: If the arrays do not fit together, or an array has another type.
    """

    num_inputs: NDArray[np.int64]
    and_ptr: NDArray[np.int64]
    fanins: NDArray[np.int32]
    output_ptr: NDArray[np.int64]
    outputs: NDArray[np.int32]

    def __post_init__(self) -> None:
        """Check the arrays, and keep read-only copies of them."""
        arrays: tuple[NDArray[Any], ...] = self._checked()
        for name, array in zip(RUN, arrays, strict=True):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def of(cls, aigs: Sequence[Aig]) -> Circuits:
        """Return circuits as flat arrays.

        Raises:
            CircuitError: If a circuit was changed and is no longer valid.
        """
        parts = [_shaped_parts(aig.num_inputs, aig.fanins, aig.outputs) for aig in aigs]
        return cls(
            np.array([n for n, _, _ in parts], np.int64),
            offsets(np.array([len(fanins) for _, fanins, _ in parts], np.int64)),
            np.concatenate([np.empty((0, 2), np.int32), *(fanins for _, fanins, _ in parts)]),
            offsets(np.array([len(outputs) for _, _, outputs in parts], np.int64)),
            np.concatenate([np.empty(0, np.int32), *(outputs for _, _, outputs in parts)]),
        )

    def _checked(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
        arrays = [np.asarray(getattr(self, name)) for name in RUN]
        num_inputs, and_ptr, fanins, output_ptr, outputs = arrays
        forms = ", ".join(f"{name} {a.dtype} {list(a.shape)}" for name, a in zip(RUN, arrays, strict=True))
        rows, ends = (num_inputs.size,), (num_inputs.size + 1,)
        shapes = (rows, ends, (len(fanins) if fanins.ndim else 0, 2), ends, (outputs.size,))
        if any(a.dtype.kind not in "iu" for a in arrays) or tuple(a.shape for a in arrays) != shapes:
            raise CircuitError(f"circuits have the arrays {forms}; give integers [S], [S + 1], [A, 2], [S + 1] and [M]")
        for ptr, total in ((and_ptr, len(fanins)), (output_ptr, len(outputs))):
            if ptr[0] != 0 or ptr[-1] != total or (ptr[1:] < ptr[:-1]).any():
                raise CircuitError(f"offsets of circuits run from {ptr[0]} to {ptr[-1]}, not from 0 up to {total:,}")
        if num_inputs.size and (num_inputs.min() < 0 or int(num_inputs.max()) + len(fanins) > MOST_ANDS):
            wrong = num_inputs.min() if num_inputs.min() < 0 else num_inputs.max()
            raise CircuitError(f"a circuit has {wrong:,} inputs; give 0 to {MOST_ANDS - len(fanins):,}")
        int32 = np.iinfo(np.int32)
        if any(a.size and (a.min() < 0 or a.max() > int32.max) for a in (fanins, outputs)):
            raise CircuitError("a fan-in or an output of a circuit lies outside the literals that int32 holds")
        types = (np.int64, np.int64, np.int32, np.int64, np.int32)
        run: Any = tuple(np.array(a, dtype, order="C") for a, dtype in zip(arrays, types, strict=True))
        if (wrong := first_wrong_circuit(*run)) >= 0:
            raise CircuitError(f"circuit {wrong} has a fan-in or an output that is no literal of a variable before it")
        return run  # type: ignore[no-any-return]

    def __len__(self) -> int:
        """Return the number of circuits."""
        return len(self.num_inputs)

    def __getitem__(self, index: int) -> Aig:
        """Return one circuit."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"circuit {index} of {len(self)}")
        i = index % len(self)
        return Aig(
            int(self.num_inputs[i]),
            self.fanins[self.and_ptr[i] : self.and_ptr[i + 1]],
            self.outputs[self.output_ptr[i] : self.output_ptr[i + 1]],
        )

    def __iter__(self) -> Iterator[Aig]:
        """Yield the circuits."""
        return (self[i] for i in range(len(self)))

    @property
    def arrays(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
        """Copies of all attributes in order, as compiled functions take them, checked.

        Raises:
            CircuitError: If an array was changed and no longer fits the other arrays.
        """
        return self._checked()

    @property
    def num_ands(self) -> NDArray[np.int64]:
        """int64 ``[S]``, ANDs per circuit."""
        return np.diff(self.and_ptr)

    @property
    def num_outputs(self) -> NDArray[np.int64]:
        """int64 ``[S]``, outputs per circuit."""
        return np.diff(self.output_ptr)

    @cached_property
    def depths(self) -> NDArray[np.int64]:
        """int64 ``[S]``, levels per circuit."""
        return depths_run(*self.arrays)

    @property
    def word_ptr(self) -> NDArray[np.int64]:
        """int64 ``[S + 1]``: the words of circuit i in the result of :meth:`simulate`."""
        return offsets(self.num_outputs * (1 << np.maximum(self.num_inputs - 6, 0)))

    def simulate(self) -> Words:
        """Return all truth tables as words, uint64: circuit by circuit, output by output.

        Raises:
            CircuitError: If a circuit has more than 20 inputs.
        """
        arrays = self.arrays
        if len(self) and self.num_inputs.max() > MOST_INPUTS:
            raise CircuitError(
                f"circuit {int(self.num_inputs.argmax())} has {int(self.num_inputs.max())} inputs; truth tables are "
                f"computed for at most {MOST_INPUTS}"
            )
        return simulate_run(*arrays)
