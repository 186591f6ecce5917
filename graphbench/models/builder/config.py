"""The configurations of models that generate structures. This module loads no torch."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from graphbench.models.config import ArchitectureConfig, layers_size


class BuilderModelConfig(ArchitectureConfig):
    """A policy that generates structures choice by choice (:class:`graphbench.models.builder.model.BuilderModel`).

    Attributes:
        kind: Always ``builder``, which selects this kind of model.
        environment: The environment in which structures are built, ``<domain>.<name>``.
        layers: Number of layers of the transformer.
        hidden: Width of the transformer.
        heads: Number of attention heads of the transformer.
        teacher_rounds: Rollouts per option from which the model learns.
        sharpness: Preference of the teacher for the better of two options, in nats per unit of cost.
        wandering: Share of random choices while structures are built for training; the teacher makes the other choices.
        samples: Number k of structures that are built per sample of the data; the best one is the answer.
        temperature: Sampling temperature of the choices. The first structure always takes the likeliest choices.
        considered: Number of likeliest options that are compared by rollouts before a choice is made; 0 leaves the
            choice to the transformer alone.
        rounds: Rollouts per considered option.
        remembered: Maximal number of samples of the data whose lessons are kept in memory.
    """

    kind: Literal["builder"] = "builder"
    environment: str
    layers: int = Field(default=3, ge=1)
    hidden: int = Field(default=64, ge=1)
    heads: int = Field(default=4, ge=1)
    teacher_rounds: int = Field(default=2, ge=1, le=1000)
    sharpness: float = Field(default=1.0, gt=0.0)
    wandering: float = Field(default=0.2, ge=0.0, le=1.0)
    samples: int = Field(default=8, ge=1, le=100_000)
    temperature: float = Field(default=1.0, ge=0.0)
    considered: int = Field(default=0, ge=0)
    rounds: int = Field(default=1, ge=1, le=1000)
    remembered: int = Field(default=20_000, ge=0)

    @property
    def estimated_size(self) -> int:
        """A lower bound on the number of weights of a model."""
        return layers_size(self.layers, 12 * self.hidden**2)

    @model_validator(mode="after")
    def _check(self) -> BuilderModelConfig:
        if self.hidden % self.heads:
            raise ValueError(f"hidden={self.hidden} is not divisible by heads={self.heads}; change one of them")
        return self


class SpellerModelConfig(ArchitectureConfig):
    """A model that writes structures token by token (:class:`graphbench.models.builder.speller.SpellerModel`).

    Attributes:
        kind: Always ``speller``, which selects this kind of model.
        tokenizer: The tokenizer that writes structures, ``<domain>.<name>``.
        layers: Number of layers of the transformer.
        hidden: Width of the transformer.
        heads: Number of attention heads of the transformer.
        temperature: Sampling temperature of the tokens; 0 takes the likeliest token.
        samples: Number k of sequences that are written per sample of the data; the tokenizer says which structure is
            the best, and it is the answer. The first sequence always takes the likeliest tokens if k is above 1.
    """

    added: ClassVar[frozenset[str]] = frozenset({"samples"})

    kind: Literal["speller"] = "speller"
    tokenizer: str
    layers: int = Field(default=3, ge=1)
    hidden: int = Field(default=64, ge=1)
    heads: int = Field(default=4, ge=1)
    temperature: float = Field(default=0.0, ge=0.0)
    samples: int = Field(default=1, ge=1, le=100_000)

    @property
    def estimated_size(self) -> int:
        """A lower bound on the number of weights of a model."""
        return layers_size(self.layers, 12 * self.hidden**2)

    @model_validator(mode="after")
    def _check(self) -> SpellerModelConfig:
        if self.samples > 1 and not self.temperature:
            raise ValueError(
                f"samples={self.samples} with temperature=0 writes the same {self.samples} times; raise temperature"
            )
        if self.hidden % self.heads:
            raise ValueError(f"hidden={self.hidden} is not divisible by heads={self.heads}; change one of them")
        return self
