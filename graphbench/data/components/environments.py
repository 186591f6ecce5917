"""Two ways in which a model may generate structures of a domain: environments and tokenizers.

An environment builds a structure by choices, and every sequence of choices gives a correct structure. A model that
chooses at random gets correct structures, and a model that chooses well gets good structures: a model learns quality
alone. A tokenizer writes a structure as a sequence of tokens; a model may write any sequence, correct or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Choices:
    """The choices that are due in structures that are being built together.

    Attributes:
        which: int64 ``[w]``, the structures in which a choice is due.
        options: int64 ``[w, C]``, the options of every choice; -1 where there are fewer options.
        goal: int8 ``[w, G]``, the structure to build, as a vector of -1, 0 and 1.
        bits: int8 ``[w, C, G]``, the options in the terms of the goal; 0 where there are fewer options.
        numbers: float32 ``[w, C, N]``, further numbers that describe the options; 0 where there are fewer options.
    """

    which: NDArray[np.int64]
    options: NDArray[np.int64]
    goal: NDArray[np.int8]
    bits: NDArray[np.int8]
    numbers: NDArray[np.float32]

    def __len__(self) -> int:
        """Return the number of choices that are due."""
        return len(self.which)


class Building(Protocol):
    """Structures that are being built together; the result of one structure does not depend on the others."""

    def advance(self) -> bool:
        """Build on until a choice is due in every structure or it is complete, and return whether one is due."""
        ...

    def choices(self) -> Choices:
        """Return the choices that are due."""
        ...

    def play_outs(self, choices: Choices, considered: NDArray[np.bool_], rounds: int) -> NDArray[np.float32]:
        """Return the cost of options if simple choices follow, float32 ``[w, C]``; inf for options not considered.

        Args:
            choices: The choices that are due.
            considered: bool ``[w, C]``, the options to consider.
            rounds: Number of play-outs over which costs are averaged.
        """
        ...

    def choose(self, choices: Choices, columns: NDArray[np.int64]) -> None:
        """Choose one option in every structure where a choice is due, int64 ``[w]``, by its column."""
        ...

    def structures(self) -> tuple[Sequence[Any], NDArray[np.float64]]:
        """Return the complete structures, as the domain's verifier takes them, and the cost of each."""
        ...


@dataclass(frozen=True)
class Environment:
    """An environment: a way to build structures.

    Attributes:
        name: ``<domain>.<name>``, as configurations write it.
        field: The input of samples that it reads, a text of graphs.
        goal: Width G of a goal.
        options: Most options C of a choice.
        numbers: Numbers N that describe an option.
        start: ``(texts, variants) -> building``: begin one structure per text. The variant, 0 or above, changes how one
            text is built: structures of the same text and variant differ by the choices alone.
    """

    name: str
    field: str
    goal: int
    options: int
    numbers: int
    start: Callable[[Sequence[str], Sequence[int]], Building]


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer: a way to write structures as sequences of tokens; token 0 is no token of any sequence.

    Attributes:
        name: ``<domain>.<name>``, as configurations write it.
        field: The input of samples that describes the wanted structure, a text of graphs.
        reference: The feature of samples that holds a structure to learn from, a text of graphs.
        goal: Width G of the vectors that :attr:`goals` returns.
        vocabulary: Number of tokens, with token 0.
        longest: Most tokens of a sequence.
        goals: ``text -> int8 [P, G]``, the wanted structure as vectors of -1, 0 and 1.
        tokens: ``reference -> int64 [L]``, the sequence of a structure.
        complete: ``(text, tokens) -> whether they are a complete sequence``; after that nothing is written.
        structure: ``(text, tokens) -> structure``, as the domain's verifier takes it; None for a wrong sequence.
        costs: ``(texts, structures) -> float64 [S]``: how bad each structure is, so that the best of several can be the
            answer; inf for wrong ones and None. None if structures cannot be compared without the answer.
    """

    name: str
    field: str
    reference: str
    goal: int
    vocabulary: int
    longest: int
    goals: Callable[[str], NDArray[np.int8]]
    tokens: Callable[[str], NDArray[np.int64]]
    complete: Callable[[str, Sequence[int]], bool]
    structure: Callable[[str, Sequence[int]], Any]
    costs: Callable[[Sequence[str], Sequence[Any]], NDArray[np.float64]] | None = None
