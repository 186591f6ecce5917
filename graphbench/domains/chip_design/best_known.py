"""The smallest circuits known for functions of the dataset, to which the metric ``of_best`` compares answers.

The reference circuits of the dataset are made by one script of ABC; several programs and models find smaller ones. The
file ``datasets/chip_design/best_known.npz`` has the smallest circuit that any of them found for the first functions of
the splits other than the training split. ``python -m benchmarks.best_known`` searches for smaller ones. A function is
known by its truth table, whatever dataset or draw it belongs to. Nobody has proved that these circuits are the
smallest.

The file has the arrays of :class:`~.aig.Circuits`, and ``tables``: the truth tables as text, one per line, in UTF-8.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.resources import datasets_dir
from graphbench.core.errors import CircuitError
from graphbench.core.files import atomic_path
from graphbench.domains.chip_design.aig import RUN, Aig, Circuits, equivalent
from graphbench.domains.chip_design.truth_tables import from_text

FILE = Path("chip_design", "best_known.npz")
"""The file within the folder of datasets."""
_TABLES = "tables"


@dataclass(frozen=True, eq=False)
class BestKnown:
    """The smallest circuits known.

    Attributes:
        circuits: Truth table as text -> its circuit.
    """

    circuits: Mapping[str, Aig]

    @classmethod
    def read(cls, path: Path) -> BestKnown:
        """Return the circuits of a file; every circuit is checked to be well-formed, and its function is not.

        Raises:
            CircuitError: If the arrays do not fit together.
        """
        with np.load(path, allow_pickle=False) as arrays:
            circuits = Circuits(*(arrays[name] for name in RUN))
            tables = arrays[_TABLES].tobytes().decode().splitlines()
        if len(tables) != len(circuits):
            raise CircuitError(
                f"{path} has {len(tables):,} truth tables and {len(circuits):,} circuits; restore the file"
            )
        return cls(dict(zip(tables, circuits, strict=True)))

    def write(self, path: Path) -> None:
        """Write the circuits in the order of their tables."""
        tables = sorted(self.circuits)
        run = Circuits.of([self.circuits[table] for table in tables])
        arrays: dict[str, Any] = {name: getattr(run, name) for name in RUN}
        arrays[_TABLES] = np.frombuffer("\n".join(tables).encode(), np.uint8)
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)
        with atomic_path(path) as temporary:
            temporary.write_bytes(content.getvalue())

    def improved(self, tables: Sequence[str], circuits: Sequence[Aig]) -> BestKnown:
        """Return these circuits with those of the given ones that are smaller, or of functions without one.

        Args:
            tables: Truth tables as text.
            circuits: A circuit of each.

        Raises:
            CircuitError: If a circuit computes another function.
        """
        for number, (table, circuit) in enumerate(zip(tables, circuits, strict=True)):
            if not equivalent(circuit, from_text(table)):
                raise CircuitError(f"circuit {number} does not compute the truth table {table[:40]!r}; leave it out")
        kept = dict(self.circuits)
        for table, circuit in zip(tables, circuits, strict=True):
            if table not in kept or circuit.num_ands < kept[table].num_ands:
                kept[table] = circuit
        return BestKnown(kept)

    def num_ands(self, tables: Sequence[str]) -> NDArray[np.float64]:
        """Return the numbers of ANDs, float64 ``[S]``; nan for functions without a circuit here."""
        circuits = map(self.circuits.get, tables)
        return np.array([np.nan if circuit is None else circuit.num_ands for circuit in circuits])


@cache
def best_known() -> BestKnown:
    """Return the circuits of the package, read once per process."""
    return BestKnown.read(datasets_dir() / FILE)
