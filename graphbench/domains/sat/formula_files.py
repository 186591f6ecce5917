"""Folders of DIMACS files, read as a dataset of formulas and written from formulas.

The splits are the sub-folders ``train``, ``val`` and ``test``; every other sub-folder with formulas is an
out-of-distribution split with the sub-folder's name. If a folder has no sub-folders, its formulas are assigned to
splits in the order of their `gbdhash`: the first tenth is ``test``, the second tenth ``val``, the rest ``train``. The
formulas of a split are in the alphabetical order of their file names, and the feature ``name`` holds the file names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from graphbench.catalog.cards import CORE_SPLITS
from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.errors import FormulaError
from graphbench.core.files import clear_errors
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts
from graphbench.data.components.file_sources import FileSource, file_source
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.dimacs import read_dimacs
from graphbench.domains.sat.formulas import FAMILY, formulas_as_samples
from graphbench.domains.sat.preprocessing import is_decided

NAME = Feature("name", Stage.META, Location.GRAPH, Kind.TEXT, meaning="name of the formula's file")
SUFFIXES = tuple(".cnf" + packed for packed in ("", ".gz", ".xz", ".bz2"))
MAX_VARIABLES = 50_000_000
MAX_LITERALS = 100_000_000
_HELD_OUT = 10  # one formula in ten is for testing, one in ten for validation

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


def read_formulas(folder: Path) -> dict[str, dict[str, Cnf]]:
    """Return split -> file name -> formula for a folder; the module's docstring describes the splits.

    Raises:
        FormulaError: If the folder holds no formula or too few for three splits, or a formula is malformed, too large,
            decided or present twice.
        StoreError: If the folder cannot be read.
    """
    with clear_errors(folder, "read", "choose another folder"):
        parts = {child.name: paths for child in sorted(folder.iterdir()) if (paths := _files(child))}
        direct = _files(folder)
    if parts and direct:
        raise FormulaError(
            f"{folder} holds formulas ({direct[0].name}) beside sub-folders of formulas ({next(iter(parts))}); move "
            "them into a sub-folder, which is their split"
        )
    if not parts and not direct:
        kinds = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
        raise FormulaError(f"{folder} holds no formula; expected are files named {kinds}")
    listed = parts or {"": direct}
    formulas = {split: {path.name: read_formula(path) for path in files} for split, files in listed.items()}
    _require_distinct(folder, formulas)
    if not parts:
        return _assigned(folder, formulas[""])
    missing = [split for split in CORE_SPLITS if split not in formulas]
    if missing:
        raise FormulaError(
            f"{folder} has the sub-folders {', '.join(formulas)}, but {missing[0]!r} is missing or holds no formula; "
            f"give {', '.join(CORE_SPLITS)}, or no sub-folders"
        )
    return formulas


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir() or folder.name.startswith("."):
        return []
    return sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIXES) and path.is_file())


def _require_distinct(folder: Path, splits: Mapping[str, Formulas]) -> None:
    first: dict[str, Path] = {}
    for split, formulas in splits.items():
        for name, cnf in formulas.items():
            path = folder / split / name
            other = first.setdefault(cnf.gbdhash, path)
            if other is not path:
                raise FormulaError(f"{path} holds the same formula as {other}; remove one of them")


def _assigned(folder: Path, formulas: Formulas) -> dict[str, dict[str, Cnf]]:
    if len(formulas) < len(CORE_SPLITS):
        raise FormulaError(f"{folder} holds {len(formulas)} formulas; train, val and test need at least one each")
    split = splits_by_hash([cnf.gbdhash for cnf in formulas.values()])
    return {
        name: {file: cnf for (file, cnf), chosen in zip(formulas.items(), split, strict=True) if chosen == name}
        for name in CORE_SPLITS
    }


def splits_by_hash(hashes: Sequence[str]) -> list[str]:
    """Assign three or more formulas or instances to splits by the order of their hashes; return the split of each.

    The first tenth in this order (at least one) is ``test``, the second tenth ``val``, the rest ``train``.
    """
    order = sorted(range(len(hashes)), key=lambda i: hashes[i])
    tenth = max(1, len(hashes) // _HELD_OUT)
    splits = ["train"] * len(hashes)
    for rank, i in enumerate(order[: 2 * tenth]):
        splits[i] = "test" if rank < tenth else "val"
    return splits


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
