"""What a user says about a dataset of their own: columns, splits, metrics, and what the card tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphbench.imports.columns import Choice
from graphbench.imports.links import TASK, LinkRule
from graphbench.imports.splits import SplitRule


@dataclass(frozen=True)
class Facts:
    """What the card says besides the data.

    Attributes:
        title: A line; None makes one of the name.
        summary: What the dataset asks, in a sentence; None makes one of the target.
        licence: Licence of the data.
        citation: How to cite the data; None for nothing.
        url: Where the data are from; None for nothing.
        meanings: Column -> a line on its values, with the unit of numbers after a semicolon.
    """

    title: str | None = None
    summary: str | None = None
    licence: str = "not stated"
    citation: str | None = None
    url: str | None = None
    meanings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """How graphs become a dataset.

    Attributes:
        choice: The columns.
        rule: How samples are divided, where the user gives no splits.
        by: Group, time or size of every sample, or the name of a column of graphs that has it.
        metric: The metric that ranks models; None for the usual one of the target's type.
        also: Further metrics; None for the usual ones.
        directed: Whether edges are arcs; None finds it out.
        repair: Whether loops of undirected graphs and repeated edges are dropped.
        overlap: Whether splits may have equal graphs.
        links: Which edges are hidden, for ``task="link"``.
        facts: What the card says besides the data.
        folder: Folder of the dataset; None for the folder of the user's own datasets.
        replace: Whether a dataset of this name is replaced.
        progress: Whether to show a progress bar; None for terminals.
    """

    choice: Choice = field(default_factory=Choice)
    rule: SplitRule = field(default_factory=SplitRule)
    by: str | Sequence[Any] | None = None
    metric: str | None = None
    also: Sequence[str] | None = None
    directed: bool | None = None
    repair: bool = False
    overlap: bool = False
    links: LinkRule = field(default_factory=LinkRule)
    facts: Facts = field(default_factory=Facts)
    folder: Path | None = None
    replace: bool = False
    progress: bool | None = None

    @property
    def asks_links(self) -> bool:
        """Whether the dataset asks for hidden edges."""
        return self.choice.task == TASK
