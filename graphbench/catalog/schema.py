"""The schema of stored arrays: the features that they hold, and the meaning of a row of their edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from graphbench.catalog.features import Feature, FeatureSelection
from graphbench.catalog.series import PackSpec


@dataclass(frozen=True, slots=True)
class Schema(FeatureSelection):
    """The content of the arrays of one stored file, or of one sample.

    Attributes:
        features: The features, in the order of the card.
        directed: Whether a stored edge is an arc; otherwise it stands for both directions.
        edges: ``listed`` where the file lists the edges of every graph; ``complete`` where every pair of nodes is an
            edge, loops included; ``none`` for files of labels, which refer to the edges of the labelled graphs.
        packed: Feature -> how its values are stored in 16 bits.
    """

    features: tuple[Feature, ...]
    directed: bool = False
    edges: Literal["listed", "complete", "none"] = "listed"
    packed: Mapping[str, PackSpec] = field(default_factory=dict)

    @property
    def lists_edges(self) -> bool:
        """Whether the arrays list the edges of every graph."""
        return self.edges == "listed"

    @property
    def complete(self) -> bool:
        """Whether every pair of nodes is an edge."""
        return self.edges == "complete"
