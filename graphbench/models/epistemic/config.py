"""The configuration of epistemic models. This module loads no torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from graphbench.models.config import ArchitectureConfig, layers_size


class EpistemicModelConfig(ArchitectureConfig):
    """A model that composes relations along the shortest walks between two marked nodes.

    The model reads three inputs, which the configuration names, and no other input of the data.

    Attributes:
        kind: Always ``epistemic``, which selects this kind of model.
        relation: Name of the input that gives every arc its relation, a class.
        source: Name of the mask_one input of nodes at which the walks begin.
        target: Name of the mask_one input of nodes at which the walks end.
        symbols: Number of latent relations of a facet.
        facets: Number of independent states of a pair of nodes, each with a composition and latent relations of its
            own.
        passes: The pairs of nodes that have a state. ``ends``: pairs that begin at the source (forward pass) and pairs
            that end at the target (backward pass), which are composed at every node in between. ``pairs``: all pairs
            of nodes on the walks, composed at every node between the two.
        pooling: How the compositions at several nodes are combined. ``votes``: sums of what is known, so that most
            votes win. ``product`` and ``minimum``: intersections of what is possible.
        tied: Whether the classes of the output are the first classes of ``relation``, so that an answer is recognised
            by the vector of the relation. Otherwise answers have vectors of their own.
        gain: Factor between weights and logits. A decay of the weights bounds the weights, and the gain says how
            certain a state can become within this bound.
        doubt: Logit of the unknown against all latent relations together, for a composition that was not learned.
    """

    kind: Literal["epistemic"] = "epistemic"
    relation: str = ""
    source: str = ""
    target: str = ""
    symbols: int = Field(default=32, ge=2)
    facets: int = Field(default=1, ge=1)
    passes: Literal["ends", "pairs"] = "pairs"
    pooling: Literal["votes", "product", "minimum"] = "votes"
    tied: bool = False
    gain: float = Field(default=8.0, gt=0.0)
    doubt: float = 3.0

    @property
    def estimated_size(self) -> int:
        """A lower bound on the number of weights of a model."""
        return layers_size(self.facets, self.symbols**3)
