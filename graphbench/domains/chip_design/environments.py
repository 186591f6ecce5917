"""The builder of circuits: :mod:`~.construction` in the form that models of any domain use."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graphbench.data.components.environments import Choices, Environment
from graphbench.domains.chip_design.aig import Aig
from graphbench.domains.chip_design.construction import Constructions
from graphbench.domains.chip_design.construction_choices import CANDIDATES, FEATURES
from graphbench.domains.chip_design.graphs import TABLE
from graphbench.domains.chip_design.truth_tables import from_text, num_inputs

_BLOCK = 64


class CircuitBuilding:
    """Circuits that are built together. A variant above 0 permutes the inputs at random, by table and variant."""

    def __init__(self, texts: Sequence[str], variants: Sequence[int]) -> None:
        tables = [from_text(text) for text in texts]
        keys = np.array([_key(text, variant) for text, variant in zip(texts, variants, strict=True)], np.uint64)
        orders = [
            np.random.default_rng(key).permutation(num_inputs(table)) if variant else np.arange(num_inputs(table))
            for table, key, variant in zip(tables, keys.tolist(), variants, strict=True)
        ]
        self._building = Constructions(tables, orders, keys)

    def advance(self) -> bool:
        """Build every circuit until it waits for a choice or is complete; return whether any circuit waits."""
        return self._building.advance()

    def choices(self) -> Choices:
        """Return the selectors that may be chosen, as literals."""
        which, literals, bits, features = self._building.candidates()
        return Choices(which, np.where(literals > 0, literals, -1).astype(np.int64), bits[:, 0], bits[:, 1:], features)

    def play_outs(self, choices: Choices, considered: NDArray[np.bool_], rounds: int) -> NDArray[np.float32]:
        """Return the mean number of ANDs until the goal is met, float32 ``[w, C]``; inf for options not considered."""
        candidates = considered & (choices.options > 0)
        literals = np.where(candidates, choices.options, 0).astype(np.int32)
        costs = self._building.play_outs(choices.which, literals, rounds=rounds)
        return np.where(candidates, costs, np.float32(np.inf))

    def choose(self, choices: Choices, columns: NDArray[np.int64]) -> None:
        """Choose one selector in every circuit where a choice is due."""
        self._building.choose(choices.which, np.take_along_axis(choices.options, columns[:, None], axis=1)[:, 0])

    def structures(self) -> tuple[Sequence[Aig], NDArray[np.float64]]:
        """Return the circuits and their costs: their numbers of ANDs, plus a little for their depths."""
        circuits = self._building.circuits()
        return circuits, np.array([aig.num_ands + aig.depth / (1 << 20) for aig in circuits])


def _key(text: str, variant: int) -> int:
    digest = hashlib.blake2b(f"{variant} {text}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


ENVIRONMENTS: Mapping[str, Environment] = {
    "circuits": Environment(
        name="chip_design.circuits",
        field=TABLE,
        goal=_BLOCK,
        options=CANDIDATES,
        numbers=FEATURES,
        start=CircuitBuilding,
    )
}
