"""The training budget of a run, and its stated parts in words."""

from __future__ import annotations

from pydantic import ConfigDict

from graphbench.core.validation import StrictModel

PARTLY_SCORED = "scored on part of the graphs"


BUDGET_NOT_STATED = "budget not stated"


class Budget(StrictModel):
    """The training budget of a run.

    Attributes:
        small: True when budget or data are below the values of the configuration that is shipped under the model's
            name, none is shipped, or it is a small one; such a run is never presented as comparable with published
            scores. For a user's model: True when it saw fewer samples than the smallest published budget has, or a
            split was scored in part; None if the user does not state the budget.
        label: The budget in words, e.g. ``"300 steps of 256 graphs, hidden 64"``.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    small: bool | None
    label: str = ""


def not_stated(steps: int | None, batch_size: int | None) -> str:
    """Return the parts of a budget that are not stated, in words; empty where all are."""
    if steps is None and batch_size is None:
        return BUDGET_NOT_STATED
    return "steps not stated" if steps is None else "batch size not stated" if batch_size is None else ""
