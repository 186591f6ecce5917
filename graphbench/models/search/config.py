"""The configuration of searches. This module loads no torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from graphbench.core.validation import StrictModel


class SearchModelConfig(StrictModel):
    """A search of the task's problem that learns nothing (:class:`graphbench.models.search.model.SearchModel`).

    Attributes:
        kind: Always ``search``, which selects this kind of model.
        method: Name of a search of the problem, such as ``greedy``, ``annealing``, ``langevin`` or ``solver``.
        options: Options of the search, such as ``steps``.
    """

    kind: Literal["search"] = "search"
    method: str
    options: dict[str, int | float] = Field(default_factory=dict)
