"""The configuration of text models. This module loads no torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from graphbench.models.config import ArchitectureConfig, layers_size


class TextModelConfig(ArchitectureConfig):
    """The architecture of a :class:`graphbench.models.language.TextModel`.

    Attributes:
        kind: Always ``text``, which selects this kind of model.
        layers: Number of layers.
        hidden: Embedding width.
        heads: Attention heads; their width ``hidden / heads`` must be an even number.
        context: Maximal number of characters of a prompt and its reference together.
        dropout: Dropout rate on the output of each residual branch.
        positions: ``rope`` (rotary) or ``learned``.
        randomised_positions: Range L from which the positions of a text are drawn at random, in ascending order; None
            for 0, 1, 2, ...
    """

    kind: Literal["text"] = "text"
    layers: int = Field(default=4, ge=1)
    hidden: int = Field(default=256, ge=1)
    heads: int = Field(default=4, ge=1)
    context: int = Field(default=2048, ge=2)
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    positions: Literal["rope", "learned"] = "rope"
    randomised_positions: int | None = Field(default=None, ge=2)

    @property
    def estimated_size(self) -> int:
        """A lower bound on the number of a model's weights and of the positions of one text."""
        span = self.randomised_positions or self.context
        positions = span * (self.hidden if self.positions == "learned" else 1)
        return positions + layers_size(self.layers, 12 * self.hidden**2)

    @model_validator(mode="after")
    def _check(self) -> TextModelConfig:
        if self.hidden % (2 * self.heads):
            raise ValueError(f"hidden={self.hidden} is not divisible by 2 * heads={2 * self.heads}; change one of them")
        if self.randomised_positions is not None and self.randomised_positions < self.context:
            raise ValueError(
                f"randomised_positions={self.randomised_positions} is below context={self.context}; raise it, or None"
            )
        return self
