"""Chip design: truth tables, and and-inverter graphs that compute them.

The functions below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench.core.lazy import lazy_exports

if TYPE_CHECKING:
    from graphbench.domains.chip_design.aig import Aig, Circuits, equivalent
    from graphbench.domains.chip_design.synthesis import SCRIPTS, optimise, synthesise

_LAZY = {
    "Aig": "graphbench.domains.chip_design.aig",
    "Circuits": "graphbench.domains.chip_design.aig",
    "SCRIPTS": "graphbench.domains.chip_design.synthesis",
    "equivalent": "graphbench.domains.chip_design.aig",
    "optimise": "graphbench.domains.chip_design.synthesis",
    "synthesise": "graphbench.domains.chip_design.synthesis",
}

__all__ = ["SCRIPTS", "Aig", "Circuits", "equivalent", "optimise", "synthesise"]

if not TYPE_CHECKING:  # else type checkers would accept every name
    __getattr__, __dir__ = lazy_exports(globals(), _LAZY)
