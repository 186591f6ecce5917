"""Simplification of formulas by the preprocessor of CaDiCaL, as solvers apply it before their search."""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from graphbench.core.errors import MissingDependency
from graphbench.domains.sat.cnf import Cnf

_PACKAGE = "python-sat"


def preprocess(cnf: Cnf) -> Cnf:
    """Return an equisatisfiable, simpler formula without unused variables, in canonical form.

    One round of CaDiCaL 1.5.3 (probing, subsumption, vivification, bounded variable elimination), by ``python-sat``.
    GraphBench (section 3.3.1) preprocesses with SatELite (Eén and Biere 2005), which eliminates fewer variables.

    Returns:
        The simplified formula. It has no clauses if the preprocessor proves satisfiability, and a single empty clause
        if the preprocessor proves unsatisfiability.

    Raises:
        MissingDependency: If python-sat is not installed.
    """
    cnf.checked()
    if not cnf.lengths.all():
        return Cnf.from_clauses([[]])
    with _processor().Processor(bootstrap_with=list(cnf.clauses())) as processor:
        simplified = processor.process()
        if not processor.status:
            return Cnf.from_clauses([[]])
        return Cnf.from_clauses(simplified.clauses).canonical().without_unused_variables()


def is_decided(cnf: Cnf) -> bool:
    """Return whether a formula has no clause or an empty clause, so that its satisfiability is known."""
    return cnf.num_clauses == 0 or not cnf.lengths.all()


def preprocessor_version() -> str:
    """Return the version of python-sat.

    Raises:
        MissingDependency: If python-sat is not installed.
    """
    _processor()
    try:
        return version(_PACKAGE)
    except PackageNotFoundError:
        return "unknown"


def _processor() -> Any:
    return module_of_python_sat("process", "SAT formulas are preprocessed")


def module_of_python_sat(name: str, use: str) -> Any:
    """Return a module of python-sat.

    Args:
        name: Its name.
        use: What it is used for, in words, such as "SAT formulas are preprocessed".

    Raises:
        MissingDependency: If python-sat is not installed.
    """
    try:
        return importlib.import_module(f"pysat.{name}")
    except ImportError as error:
        raise MissingDependency(
            f"{use} by python-sat, which is not installed; pip install 'graphbench[sat]'"
        ) from error
