"""Formulas in conjunctive normal form, as two flat arrays."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import itertools
import lzma
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphbench.core.arguments import checked_path
from graphbench.core.errors import ArgumentError
from graphbench.core.files import atomic_path
from graphbench.core.kernels import inner, kernel

_COMPRESS: Mapping[str, Callable[[bytes], bytes]] = {
    ".gz": partial(gzip.compress, mtime=0),  # equal formulas give equal files
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
_MAX_VARIABLE = 2**31 - 1
_MAX_CHARACTERS = 12  # of an int32 as text, with its sign and a space
_INSERTION_LIMIT = 32  # clauses of at most this many literals are sorted by insertion


@dataclass(frozen=True, eq=False)
class Cnf:
    """A formula in conjunctive normal form.

    Attributes:
        num_variables: Number n of variables. The variables are 1 .. n; some of them may occur in no clause.
        literals: int32 ``[L]``, the literals of all clauses one after the other: ``v`` for a variable, ``-v`` for its
            negation.
        ptr: int64 ``[m + 1]``: the literals of clause ``j`` are ``literals[ptr[j]:ptr[j + 1]]``. A clause may be empty.

    Raises:
        ArgumentError: If an array has a wrong shape or dtype, a literal is 0 or above ``num_variables``, or ``ptr``
            does not rise from 0 to L. Functions that read a formula raise it, too, if the arrays were changed later.
    """

    num_variables: int
    literals: NDArray[np.int32]
    ptr: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Check the arrays."""
        self.checked()

    def checked(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return ``literals`` (int32) and ``ptr`` (int64) as contiguous arrays, which compiled functions read.

        Raises:
            ArgumentError: If the arrays do not describe a formula of ``num_variables`` variables.
        """
        n, literals, ptr = self.num_variables, np.asarray(self.literals), np.asarray(self.ptr)
        if not isinstance(n, (int, np.integer)) or not 0 <= n <= _MAX_VARIABLE:
            raise ArgumentError(f"num_variables={n!r} is refused; give a whole number from 0 to {_MAX_VARIABLE}")
        if any(array.ndim != 1 or array.dtype.kind not in "iu" for array in (literals, ptr)):
            arrays = f"literals {literals.dtype} {list(literals.shape)} and ptr {ptr.dtype} {list(ptr.shape)}"
            raise ArgumentError(f"the formula has {arrays}; give integers [L] and [m + 1]")
        if not len(ptr) or ptr[0] != 0 or ptr[-1] != len(literals) or (ptr[1:] < ptr[:-1]).any():
            raise ArgumentError(f"ptr is {ptr.tolist()!s:.60}; it rises from 0 to the {len(literals)} literals")
        if len(literals) and (literals.max() > n or literals.min() < -n or not literals.all()):
            position = int(np.argmax((literals == 0) | (literals > n) | (literals < -n)))
            raise ArgumentError(f"the literal {literals[position]} at position {position}: variables are 1 .. {n}")
        return np.ascontiguousarray(literals, np.int32), np.ascontiguousarray(ptr, np.int64)

    def has_plain_arrays(self) -> bool:
        """Return whether compiled functions may read the arrays as they are, if they check ``ptr`` and the literals."""
        n, literals, ptr = self.num_variables, self.literals, self.ptr
        return (
            all(isinstance(array, np.ndarray) and array.ndim == 1 for array in (literals, ptr))
            and literals.dtype == np.int32
            and ptr.dtype == np.int64
            and literals.flags.c_contiguous
            and ptr.flags.c_contiguous
            and isinstance(n, (int, np.integer))
            and bool(0 <= n <= _MAX_VARIABLE and len(ptr) and ptr[0] == 0 and ptr[-1] == len(literals))
        )

    @classmethod
    def from_clauses(cls, clauses: Iterable[Sequence[int]], num_variables: int | None = None) -> Cnf:
        """Return the formula of clauses given as sequences of literals.

        Args:
            clauses: The clauses.
            num_variables: Number of variables; None for the largest variable that occurs.

        Raises:
            ValueError: If a literal is not a whole number, is 0 or needs more than 32 bits, or its variable exceeds
                ``num_variables``.
        """
        lists = [list(clause) for clause in clauses]
        flat = list(itertools.chain.from_iterable(lists))
        if wrong := {kind for kind in set(map(type, flat)) if kind is bool or not issubclass(kind, (int, np.integer))}:
            first = next(literal for literal in flat if type(literal) in wrong)
            raise ValueError(f"a clause holds {first!r}; literals are whole numbers, such as -3 for the negation of 3")
        if flat and max(max(flat), -min(flat)) > _MAX_VARIABLE:
            raise ValueError(f"a clause holds {max(flat, key=abs)}; the largest possible variable is {_MAX_VARIABLE}")
        ptr = np.zeros(len(lists) + 1, np.int64)
        np.cumsum([len(clause) for clause in lists], out=ptr[1:])
        literals = np.array(flat, np.int32)
        largest = int(np.abs(literals).max(initial=0))
        if not literals.all():
            raise ValueError("a clause holds the literal 0; variables are numbered from 1")
        if num_variables is not None and largest > num_variables:
            raise ValueError(f"a clause holds the variable {largest}, but there are {num_variables}")
        return cls(largest if num_variables is None else num_variables, literals, ptr)

    @property
    def num_clauses(self) -> int:
        """The number m of clauses."""
        return len(self.ptr) - 1

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """int64 ``[m]``: the number of literals of every clause."""
        return np.diff(self.ptr)

    def clauses(self) -> Iterator[list[int]]:
        """Yield the clauses as lists of literals."""
        literals, ptr = self.literals.tolist(), self.ptr.tolist()
        for first, last in itertools.pairwise(ptr):
            yield literals[first:last]

    def canonical(self) -> Cnf:
        """Return the formula in canonical form.

        In canonical form, the literals of a clause are distinct and sorted by their variables, and no clause holds a
        literal and its negation. The clauses keep their order.
        """
        return Cnf(self.num_variables, *_canonical(*self.checked()))

    def without_unused_variables(self) -> Cnf:
        """Return the formula with the variables that occur renumbered 1, 2, ... in the same order."""
        literals, ptr = self.checked()
        if self.num_variables > len(literals):  # a header can name billions of variables that no clause has
            variables, rank = np.unique(np.abs(literals), return_inverse=True)
            return Cnf(len(variables), np.sign(literals) * (rank.reshape(-1) + 1).astype(np.int32), ptr)
        used = np.zeros(self.num_variables + 1, bool)
        used[np.abs(literals)] = True
        number = np.cumsum(used).astype(np.int32)
        return Cnf(int(used.sum()), np.sign(literals) * number[np.abs(literals)], ptr)

    def is_satisfied_by(self, model: NDArray[np.bool_]) -> bool:
        """Return whether every clause holds under an assignment, bool ``[n]``: ``model[v - 1]`` is the value of v.

        Raises:
            ValueError: If the assignment does not have one value per variable.
        """
        literals, ptr = self.checked()
        if np.shape(model) != (self.num_variables,):
            raise ValueError(
                f"the model has the shape {np.shape(model)}; the formula has {self.num_variables} variables"
            )
        return first_violated(literals, ptr, 0, np.asarray(model, np.bool_)) == self.num_clauses

    def body(self, between: str = " ") -> str:
        """Return the clauses as the text that follows the header of a DIMACS file; every clause ends with 0.

        Args:
            between: The character that separates two clauses.
        """
        return _body(*self.checked(), ord(between)).tobytes().decode("ascii")

    def dimacs(self) -> bytes:
        """Return the formula as the content of a DIMACS file."""
        lines = [f"p cnf {self.num_variables} {self.num_clauses}", *([self.body("\n")] if self.num_clauses else ()), ""]
        return "\n".join(lines).encode("ascii")

    @cached_property
    def gbdhash(self) -> str:
        """The identifier of the formula in GBD (Iser and Jabs 2024): MD5 of its clauses, as hexadecimal digits."""
        return hashlib.md5(self.body().encode("ascii"), usedforsecurity=False).hexdigest()

    def to_dimacs(self, path: str | Path) -> None:
        """Write the formula as a DIMACS file, compressed if the suffix is ``.gz``, ``.bz2`` or ``.xz``.

        Raises:
            StoreError: If the file cannot be written.
        """
        target = checked_path("path", path)
        data = self.dimacs()
        with atomic_path(target) as aside:
            aside.write_bytes(_COMPRESS[target.suffix](data) if target.suffix in _COMPRESS else data)

    def __repr__(self) -> str:
        """Return a text with the numbers of variables, clauses and literals."""
        return f"Cnf({self.num_variables:,} variables, {self.num_clauses:,} clauses, {len(self.literals):,} literals)"


@kernel
def _canonical(literals: NDArray[np.int32], ptr: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    result, starts = np.empty_like(literals), np.zeros(len(ptr), np.int64)
    size = clauses = 0
    for j in range(len(ptr) - 1):
        first = size
        ordered = _sorted(literals[ptr[j] : ptr[j + 1]])
        tautology = False
        for literal in ordered:
            if size > first and abs(result[size - 1]) == abs(literal):
                tautology = tautology or result[size - 1] != literal
            else:
                result[size] = literal
                size += 1
        if tautology:
            size = first
        else:
            clauses += 1
            starts[clauses] = size
    return result[:size].copy(), starts[: clauses + 1].copy()


@inner
def _sorted(clause: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the literals sorted by their variables."""
    if len(clause) > _INSERTION_LIMIT:
        result: NDArray[np.int32] = clause[np.argsort(np.abs(clause))]
        return result
    result = clause.copy()
    for i in range(1, len(result)):
        literal, position = result[i], i
        while position > 0 and abs(result[position - 1]) > abs(literal):
            result[position] = result[position - 1]
            position -= 1
        result[position] = literal
    return result


@kernel
def first_violated(literals: NDArray[np.int32], ptr: NDArray[np.int64], first: int, model: NDArray[np.bool_]) -> int:
    """Return the first clause from number ``first`` on that an assignment violates; the number of clauses if none."""
    for j in range(first, len(ptr) - 1):
        holds = False
        for k in range(ptr[j], ptr[j + 1]):
            if model[abs(literals[k]) - 1] == (literals[k] > 0):
                holds = True
                break
        if not holds:
            return j
    return len(ptr) - 1


@kernel
def _body(literals: NDArray[np.int32], ptr: NDArray[np.int64], between: int) -> NDArray[np.uint8]:
    """Return the clauses as ASCII; the literals are separated by spaces, and every clause ends with 0."""
    space, minus, zero = 32, 45, 48
    text = np.empty(_MAX_CHARACTERS * len(literals) + 2 * len(ptr), np.uint8)
    at = 0
    for j in range(len(ptr) - 1):
        for k in range(ptr[j], ptr[j + 1]):
            number = np.int64(literals[k])
            if number < 0:
                text[at] = minus
                at += 1
                number = -number
            last = at
            power = 10
            while number >= power:
                power *= 10
                last += 1
            for digit in range(last, at - 1, -1):
                text[digit] = zero + number % 10
                number //= 10
            text[last + 1] = space
            at = last + 2
        text[at], text[at + 1] = zero, between
        at += 2
    return text[: max(0, at - 1)].copy()
