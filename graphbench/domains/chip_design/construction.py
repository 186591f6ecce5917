"""Circuits of truth tables, built from the top down by choices: every sequence of choices gives a correct circuit.

The truth table of an output is cut into *blocks* of 64 bits, which share one circuit. A block is a *goal*: a function
that the circuit has to compute on a care set, at first on all columns of the block. Goals are met in turn:

1. If at most four ANDs of variables of the circuit express the goal on its care set, they are added
   (:mod:`~.divisors`); the values of these functions on other columns do not matter.
2. Otherwise a *choice* is due: a literal s, the selector, that is neither true nor false on the whole care set. The
   goal is split: one half has to be met where s is 1, then another where s is 0. A half is a new variable, so
   after each half the whole goal is tried once more with at most two ANDs. Otherwise ``s ? first : second`` joins the
   halves.

At the end, multiplexers of the remaining inputs join the blocks of an output. A half has fewer columns than its goal,
and a goal of one column is constant, so any choices end in a circuit that computes the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import CircuitError
from graphbench.core.kernels import kernel
from graphbench.core.rng import seed as seeded
from graphbench.domains.chip_design.aig import Aig
from graphbench.domains.chip_design.aig_kernels import Ints, Literals, Words
from graphbench.domains.chip_design.construction_choices import (
    CANDIDATES,
    FEATURES,
    candidates,
    describe,
    greedy_choice,
    play_out,
)
from graphbench.domains.chip_design.construction_kernels import (
    CHOICES,
    DEPTH,
    HEIGHT,
    MOST_GATES,
    VARIABLES,
    Construction,
    advance,
    begin,
    choose,
    circuit_of,
    finish,
)
from graphbench.domains.chip_design.truth_tables import Bits, num_inputs, to_words

MOST_INPUTS = 10
"""Most inputs of a function for which circuits are built."""


class Constructions:
    """Circuits that are built together: call ``advance``, ``choose`` for waiting circuits, and repeat to the end.

    Attributes:
        waiting: bool ``[B]``: True for circuits that wait for a choice.
    """

    def __init__(
        self,
        tables: Sequence[Bits],
        orders: Sequence[NDArray[np.int64]] | None = None,
        keys: NDArray[np.uint64] | None = None,
    ) -> None:
        """Begin circuits.

        Args:
            tables: Truth tables, bool ``[m, 2^n]`` each.
            orders: A permutation of its inputs for every table: input ``orders[b][i]`` of the table takes the part of
                input i while the circuit is built; the first six are the inputs of a block. None leaves all in order.
            keys: uint64 ``[B]``, on which the random numbers of a circuit's rollouts depend; None for 0 in all.

        Raises:
            CircuitError: If a table has more than 10 inputs.
        """
        self._inputs = np.array([num_inputs(table) for table in tables], np.int64)
        self._outputs = np.array([len(table) for table in tables], np.int64)
        if len(tables) and self._inputs.max() > MOST_INPUTS:
            raise CircuitError(
                f"table {int(self._inputs.argmax())} has {int(self._inputs.max())} inputs; give tables of at "
                f"most {MOST_INPUTS} inputs"
            )
        self._orders = [np.arange(n) for n in self._inputs] if orders is None else [np.asarray(o) for o in orders]
        words = [to_words(permuted(t, o)).ravel() for t, o in zip(tables, self._orders, strict=True)]
        count, blocks = len(tables), max(map(len, words), default=1)
        width = 1 << max(int(self._inputs.max(initial=0)) - 6, 0)
        room = 2 + int(self._inputs.max(initial=0)) + (MOST_GATES + 3) * blocks
        self._batch = Construction(
            targets=np.zeros((count, blocks), np.uint64),
            tables=np.empty((count, width, room), np.uint64),
            fanins=np.empty((count, room, 2), np.int32),
            state=np.zeros((count, CHOICES + 1), np.int64),
            goals=np.zeros((count, DEPTH, 2), np.uint64),
            frames=np.zeros((count, DEPTH, 3), np.int64),
            results=np.zeros((count, blocks), np.int64),
        )
        for target_words, row in zip(words, self._batch.targets, strict=True):
            row[: len(target_words)] = target_words
        self._keys = np.zeros(count, np.uint64) if keys is None else np.asarray(keys, np.uint64)
        self.waiting = np.ones(count, np.bool_)
        _begin_all(self._inputs, self._outputs, self._batch)

    @property
    def choices(self) -> NDArray[np.int64]:
        """int64 ``[B]``, the number of choices so far."""
        return self._batch.state[:, CHOICES]

    def advance(self) -> bool:
        """Build every circuit until it waits for a choice or is complete; return whether any circuit waits."""
        _advance_all(self.waiting, self._batch)
        return bool(self.waiting.any())

    def candidates(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8], NDArray[np.float32]]:
        """Return the options of the circuits that wait for a choice.

        Returns:
            int64 ``[w]``, the circuits that wait; int32 ``[w, C]``, selectors, 0 where there are fewer; int8
            ``[w, 1 + C, 64]`` and float32 ``[w, C, FEATURES]``, as ``construction_choices.describe`` writes them.
        """
        which = np.flatnonzero(self.waiting)
        return which, *_describe_all(which, self._batch)

    def play_outs(
        self, which: NDArray[np.int64], literals: NDArray[np.int32], *, rounds: int, noise: float = 1.0
    ) -> NDArray[np.float32]:
        """Return the mean number of ANDs until the goal is met after each candidate, under greedy choices.

        Args:
            which: int64 ``[w]``, circuits that wait.
            literals: int32 ``[w, C]``, of their candidates; 0 for none.
            rounds: Play-outs per candidate.
            noise: Largest random number that ``construction_choices.greedy_choice`` adds to an estimate.

        Returns:
            float32 ``[w, C]``, 0 where there is no candidate.
        """
        return _play_all(which, literals, rounds, noise, self._keys, self._batch)

    def choose(self, which: NDArray[np.int64], selectors: NDArray[np.integer[Any]]) -> None:
        """Make the choices that are due.

        Args:
            which: int64 ``[w]``, circuits that wait.
            selectors: int64 ``[w]``, of their candidates.
        """
        _choose_all(which, np.asarray(selectors, np.int64), self._batch)
        self.waiting[which] = False

    def circuits(self) -> list[Aig]:
        """Return the circuits, which must be complete, after structural hashing."""
        circuits = []
        for b in range(len(self._inputs)):
            n = int(self._inputs[b])
            outputs = np.empty(self._outputs[b], np.int32)
            _finish_one(self._batch, b, outputs)
            fanins = self._batch.fanins[b, n + 1 : self._batch.state[b, VARIABLES]]
            variables = np.concatenate(([0], 1 + self._orders[b], np.arange(n + 1, n + 1 + len(fanins))))
            fanins, outputs = (2 * variables[literals >> 1] + (literals & 1) for literals in (fanins, outputs))
            circuits.append(Aig(n, fanins, outputs).hashed())
        return circuits


def permuted(table: Bits, order: NDArray[np.int64]) -> Bits:
    """Return a truth table whose input i is input ``order[i]`` of another."""
    n = len(order)
    axes = [n - int(i) for i in order[::-1]]  # axis 0 is the axis of the outputs, and input 0 changes fastest
    return np.ascontiguousarray(table.reshape(len(table), *[2] * n).transpose(0, *axes).reshape(len(table), -1))


def build_greedily(
    tables: Sequence[Bits], orders: Sequence[NDArray[np.int64]] | None = None, *, noise: float = 0.0, seed: int = 0
) -> list[Aig]:
    """Return circuits built with the choices of ``construction_choices.greedy_choice``.

    Args:
        tables: Truth tables, bool ``[m, 2^n]`` each, of at most 10 inputs.
        orders: See :class:`Constructions`.
        noise: Largest random number that is added to an estimate, in ANDs.
        seed: Seed of the noise; the circuit of table b depends on the table, the seed and b.

    Raises:
        CircuitError: If a table has more inputs.
    """
    built = Constructions(tables, orders)
    _greedy_all(noise, seed, built._batch)
    built.waiting[:] = False
    return built.circuits()


@kernel
def _begin_all(inputs: Ints, outputs: Ints, batch: Construction) -> None:
    for b in range(inputs.shape[0]):
        begin(inputs[b], outputs[b], circuit_of(batch, b))


@kernel
def _advance_all(waiting: NDArray[np.bool_], batch: Construction) -> None:
    space = np.empty((3, 2 * batch.tables.shape[2]), np.int64)
    for b in range(waiting.shape[0]):
        if not waiting[b] or batch.state[b, HEIGHT] == 0:
            waiting[b] = advance(circuit_of(batch, b), space, -1)


@kernel
def _describe_all(which: Ints, batch: Construction) -> tuple[NDArray[np.int32], NDArray[np.int8], NDArray[np.float32]]:
    literals = np.zeros((which.shape[0], CANDIDATES), np.int32)
    bits = np.empty((which.shape[0], 1 + CANDIDATES, 64), np.int8)
    features = np.empty((which.shape[0], CANDIDATES, FEATURES), np.float32)
    space = np.empty(2 * batch.tables.shape[2], np.int64)
    for i in range(which.shape[0]):
        circuit = circuit_of(batch, which[i])
        candidates(circuit, literals[i])
        describe(circuit, literals[i], bits[i], features[i], space)
    return literals, bits, features


@kernel
def _play_all(
    which: Ints, literals: NDArray[np.int32], rounds: int, noise: float, keys: Words, batch: Construction
) -> NDArray[np.float32]:
    costs = np.zeros(literals.shape, np.float32)
    space = np.empty((3, 2 * batch.tables.shape[2]), np.int64)
    for i in range(which.shape[0]):
        b = which[i]
        circuit = circuit_of(batch, b)
        random = seeded(keys[b], circuit.state[CHOICES], 0, 0)
        for _ in range(rounds):
            play_out(circuit, space, literals[i], noise, random, costs[i])
    return costs / np.float32(rounds)


@kernel
def _choose_all(which: Ints, selectors: Ints, batch: Construction) -> None:
    for i in range(which.shape[0]):
        choose(selectors[i], circuit_of(batch, which[i]))


@kernel
def _greedy_all(noise: float, seed: int, batch: Construction) -> None:
    space = np.empty((3, 2 * batch.tables.shape[2]), np.int64)
    for b in range(batch.state.shape[0]):
        random = seeded(np.uint64(seed), b, 0, 0)
        circuit = circuit_of(batch, b)
        while advance(circuit, space, -1):
            choose(greedy_choice(circuit, noise, random), circuit)


@kernel
def _finish_one(batch: Construction, b: int, outputs: Literals) -> None:
    finish(circuit_of(batch, b), outputs)
