"""Satisfiability: formulas, their graphs and features, and solvers whose effort is the same on every machine.

The functions below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench.core.lazy import lazy_exports

if TYPE_CHECKING:
    from graphbench.domains.sat.cnf import Cnf
    from graphbench.domains.sat.dimacs import read_dimacs
    from graphbench.domains.sat.feature_base import base_features
    from graphbench.domains.sat.feature_groups import features
    from graphbench.domains.sat.feature_satzilla import satzilla_features
    from graphbench.domains.sat.graphs import FormulaGraph, graph
    from graphbench.domains.sat.preprocessing import preprocess
    from graphbench.domains.sat.solvers import SOLVERS, SolverRun, run_solver

_LAZY = {
    "Cnf": "graphbench.domains.sat.cnf",
    "FormulaGraph": "graphbench.domains.sat.graphs",
    "SOLVERS": "graphbench.domains.sat.solvers",
    "SolverRun": "graphbench.domains.sat.solvers",
    "base_features": "graphbench.domains.sat.feature_base",
    "features": "graphbench.domains.sat.feature_groups",
    "graph": "graphbench.domains.sat.graphs",
    "preprocess": "graphbench.domains.sat.preprocessing",
    "read_dimacs": "graphbench.domains.sat.dimacs",
    "run_solver": "graphbench.domains.sat.solvers",
    "satzilla_features": "graphbench.domains.sat.feature_satzilla",
}

__all__ = [
    "SOLVERS",
    "Cnf",
    "FormulaGraph",
    "SolverRun",
    "base_features",
    "features",
    "graph",
    "preprocess",
    "read_dimacs",
    "run_solver",
    "satzilla_features",
]

if not TYPE_CHECKING:  # else type checkers would accept every name
    __getattr__, __dir__ = lazy_exports(globals(), _LAZY)
