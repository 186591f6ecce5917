"""The base features of the package gbdc (Iser and Jabs 2024, "Global Benchmark Database")."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphbench.core.errors import ArgumentError, MissingDependency
from graphbench.domains.sat.cnf import Cnf

PREFIX = "gbdc_"


def base_features(cnf: Cnf) -> dict[str, float]:
    """Return the 58 base features of ``gbdc``, with `PREFIX` before their names.

    gbdc reads files, so the formula is written to a temporary one.

    Raises:
        MissingDependency: If gbdc is not installed.
        ArgumentError: If the formula has no clause or an empty clause, on which gbdc 0.4.3 ends the process, or a
            literal has no variable.
    """
    try:
        gbdc = importlib.import_module("gbdc")
    except ImportError as error:
        raise MissingDependency("base features need gbdc: pip install 'graphbench[sat]'") from error
    with formula_file(cnf) as path:
        return {PREFIX + name: float(value) for name, value in gbdc.extract_base_features(str(path)).items()}


@contextmanager
def formula_file(cnf: Cnf) -> Iterator[Path]:
    """Write a formula to a temporary file, from which other packages read it.

    Raises:
        ArgumentError: If the formula has no clause or an empty clause. On such formulas these packages fail or return
            meaningless features.
    """
    if cnf.num_clauses == 0 or not cnf.lengths.all():
        kind = "no clause" if cnf.num_clauses == 0 else "an empty clause"
        raise ArgumentError(f"the formula has {kind}; its features are not defined")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "formula.cnf"
        path.write_bytes(cnf.dimacs())
        yield path
