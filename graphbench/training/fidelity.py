"""The unit of a training budget. A search over configurations varies the budget: the *fidelity* of its trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphbench.core.words import counted


@dataclass(frozen=True)
class Fidelity:
    """The unit that a budget counts, and its words in messages and reports.

    Attributes:
        name: As space files and records of searches write it.
        unit: One unit of a budget.
        full_unit: One unit in words that need no context.
        spent: Head of a column of how much was spent.
        is_continued: Whether a model with a larger budget is trained on from one with a smaller budget.
    """

    name: str
    unit: str
    full_unit: str
    spent: str
    is_continued: bool

    def text(self, budget: int) -> str:
        """Return a budget in words, e.g. ``2,000 steps``."""
        return counted(budget, self.unit)

    def full_text(self, budget: int) -> str:
        """Return a budget in words that need no context, e.g. ``2,000 optimizer steps``."""
        return counted(budget, self.full_unit)


STEPS = Fidelity("steps", "step", "optimizer step", "steps done", is_continued=True)
"""Of learners that are trained in steps."""

SAMPLES = Fidelity("samples", "training sample", "training sample", "samples fitted", is_continued=False)
"""Of learners without steps: each fit is from scratch, on the first samples of the training split."""

FIDELITIES = {fidelity.name: fidelity for fidelity in (STEPS, SAMPLES)}


def recorded_fidelity(facts: Mapping[str, Any]) -> Fidelity:
    """Return the fidelity that the records of a search name; records that name none count steps."""
    return FIDELITIES.get(str(facts.get("fidelity")), STEPS)
