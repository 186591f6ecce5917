"""Circuits as sequences of tokens: the two fan-ins of every AND, an end mark, and the literals of the outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import CircuitError
from graphbench.data.components.environments import Tokenizer
from graphbench.domains.chip_design.aig import Aig
from graphbench.domains.chip_design.graphs import TABLE, decoded
from graphbench.domains.chip_design.labellers import REFERENCE
from graphbench.domains.chip_design.truth_tables import from_text, num_inputs, to_words

MOST_VARIABLES = 1024
"""Most variables of a circuit that is written, the constant included."""
_END = 1
_FIRST = 2  # the token of literal 0
_LONGEST = 2 * MOST_VARIABLES
_BLOCK = 64


def goals_of(text: str) -> NDArray[np.int8]:
    """Return a truth table in blocks of 64 columns, output by output, int8 ``[m * 2^n / 64, 64]``, by -1 and 1."""
    words = np.ascontiguousarray(to_words(from_text(text))).astype("<u8").view(np.uint8).reshape(-1, 8)
    return (2 * np.unpackbits(words, axis=1, bitorder="little").astype(np.int8) - 1).reshape(-1, _BLOCK)


def tokens_of(reference: str) -> NDArray[np.int64]:
    """Return the tokens of a circuit that is given as a binary AIGER file in base 64.

    Raises:
        CircuitError: If it cannot be read, or has more than 1,023 variables.
    """
    circuit = decoded(reference)
    if 1 + circuit.num_inputs + circuit.num_ands > MOST_VARIABLES:
        raise CircuitError(
            f"a circuit of {circuit.num_inputs} inputs and {circuit.num_ands:,} ANDs has no tokens; at most "
            f"{MOST_VARIABLES - 1:,} variables have tokens"
        )
    return np.concatenate((circuit.fanins.ravel() + _FIRST, [_END], circuit.outputs + _FIRST)).astype(np.int64)


def is_complete(text: str, tokens: Sequence[int]) -> bool:
    """Return whether as many tokens follow the first end mark as there are outputs."""
    return _END in tokens and len(tokens) - tokens.index(_END) > len(text.split())


def circuit_of(text: str, tokens: Sequence[int]) -> Aig | None:
    """Return the circuit that tokens encode, whether it computes the table or not; None if there is none."""
    if not is_complete(text, tokens):
        return None
    end = tokens.index(_END)
    fanins, outputs = ((np.array(ids, np.int64) - _FIRST).astype(np.int32) for ids in (tokens[:end], tokens[end + 1 :]))
    if len(fanins) % 2:
        return None
    try:
        return Aig(num_inputs(from_text(text)), fanins.reshape(-1, 2), outputs)
    except CircuitError:
        return None


TOKENIZERS: Mapping[str, Tokenizer] = {
    "literals": Tokenizer(
        name="chip_design.literals",
        field=TABLE,
        reference=REFERENCE,
        goal=_BLOCK,
        vocabulary=_FIRST + 2 * MOST_VARIABLES,
        longest=_LONGEST,
        goals=goals_of,
        tokens=tokens_of,
        complete=is_complete,
        structure=circuit_of,
    )
}
