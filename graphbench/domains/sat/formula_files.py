"""Folders of DIMACS files, read as a dataset of formulas and written from formulas.

The splits are those of :mod:`graphbench.data.components.folder_splits`, by the order of `gbdhash` in a folder without
sub-folders. The feature ``name`` holds the file names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from graphbench.core.errors import FormulaError
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts
from graphbench.data.components.file_sources import FileSource, file_source
from graphbench.data.components.folder_splits import NAME, PACKED, FileKind, read_splits
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.dimacs import read_dimacs
from graphbench.domains.sat.formulas import FAMILY, formulas_as_samples
from graphbench.domains.sat.preprocessing import is_decided

SUFFIXES = tuple(".cnf" + packed for packed in PACKED)
MAX_VARIABLES = 50_000_000
MAX_LITERALS = 100_000_000

Formulas = Mapping[str, Cnf]
"""File name -> formula in canonical form."""


def read_formula(path: Path) -> Cnf:
    """Return the formula of a file in canonical form and without unused variables, as it is stored in datasets.

    Raises:
        FormulaError: If the file is malformed or too large, or the formula is already decided: it has no clause, or an
            empty clause.
    """
    return canonical_formula(read_dimacs(path, max_literals=MAX_LITERALS), path)


def canonical_formula(cnf: Cnf, path: Path) -> Cnf:
    """Return a formula that was read from a file in the form stored in datasets; see :func:`read_formula`."""
    if cnf.num_variables > MAX_VARIABLES:
        raise FormulaError(
            f"{path} has {cnf.num_variables:,} variables; datasets take formulas of at most {MAX_VARIABLES:,}"
        )
    formula = cnf.canonical().without_unused_variables()
    if is_decided(formula):
        why = "a clause is empty" if formula.num_clauses else "all clauses always hold"
        raise FormulaError(f"{path} is decided before any search: {why}; remove the file")
    return formula


FORMULAS: FileKind[Cnf] = FileKind(
    noun="formula",
    is_one=lambda name: name.endswith(SUFFIXES),
    names=", ".join(f"*{suffix}" for suffix in SUFFIXES),
    read=read_formula,
    digest=lambda cnf: cnf.gbdhash,
    error=FormulaError,
)


def read_formulas(folder: Path, *, whole: str = "") -> dict[str, dict[str, Cnf]]:
    """Return split -> file name -> formula for a folder, by :mod:`graphbench.data.components.folder_splits`.

    Args:
        folder: The folder.
        whole: Name of a further split with all formulas of a folder without sub-folders; empty for none.

    Raises:
        FormulaError: If the folder holds no formula or too few for three splits, or a formula is malformed, too large,
            decided or present twice.
        StoreError: If the folder cannot be read.
    """
    return read_splits(folder, FORMULAS, whole=whole)


def _as_samples(folder: Path) -> dict[str, Samples]:
    return {split: _samples(formulas) for split, formulas in read_formulas(folder).items()}


def _samples(formulas: Formulas) -> Samples:
    drawn = formulas_as_samples(list(formulas.values()), np.zeros(len(formulas), np.int64))
    values = {name: value for name, value in drawn.values.items() if name != FAMILY}
    return Samples(drawn.num_nodes, drawn.num_edges, drawn.edges, {**values, NAME.name: Texts.of(formulas)})


FILES: FileSource = file_source("sat.files", _as_samples, also=(NAME,))
"""The source ``files``: DIMACS files, plain or compressed by gzip, xz or bzip2."""


def write_formulas(formulas: Iterable[Cnf], folder: Path, suffix: str = ".cnf.xz") -> int:
    """Write formulas to a folder, one file each, named by number and `gbdhash` so that reading keeps their order.

    Args:
        formulas: The formulas.
        folder: The folder to write to; it is created.
        suffix: One of ``SUFFIXES``.

    Returns:
        The number of files written.

    Raises:
        StoreError: If a file cannot be written.
    """
    count = 0
    for cnf in formulas:
        cnf.to_dimacs(folder / f"{count:07d}-{cnf.gbdhash}{suffix}")
        count += 1
    return count
