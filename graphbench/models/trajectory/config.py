"""The configuration of trajectory models. This module loads no torch."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class TrajectoryModelConfig(BaseModel):
    """A model that predicts hints and outputs of algorithms.

    Attributes:
        kind: Always ``trajectory``: what tells these models from those on single graphs.
        processor: ``mpnn``, ``pgn``, ``gmpnn``, ``triplet_mpnn``, ``triplet_gmpnn``, ``gat``, ``gatv2``, ``deepsets``,
            ``memnet``, ``gin`` or ``gt``.
        hidden: Width ``h`` of all vectors.
        heads: Attention heads (gat, gatv2, gt); must divide ``hidden``.
        nb_triplet_features: Width of the triplets' features.
        use_layer_norm: Whether the processor's output is normalised.
        hint_mode: ``encoded_decoded``: hints are predicted and fed back; ``decoded_only``: predicted;
            ``none``: ignored.
        hint_teacher_forcing: Probability that a training sample is fed the true hint of a step (noisy teacher forcing);
            the first hint is always the true one.
        hint_repred_mode: How predicted hints are fed back: ``soft`` (probabilities, with gradients), ``hard`` (the most
            likely value), ``hard_on_eval`` (soft in training alone).
        encoder_init: Spread of the encoders' initial weights; ``xavier_on_scalars`` makes those of scalar hints smaller
            by the square root of ``hidden``.
        permutations: Predict the outputs of sorting as permutations, with a Sinkhorn operator; else as pointers.
        constant_hints_as_inputs: Make the hint ``pred_h`` an input where it never changes.
        random_positions: Replace positions by sorted random numbers, in training and validation.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["trajectory"] = "trajectory"
    processor: str = "mpnn"
    hidden: int = Field(default=128, ge=1)
    heads: int = Field(default=1, ge=1)
    nb_triplet_features: int = Field(default=8, ge=1)
    use_layer_norm: bool = True
    hint_mode: Literal["encoded_decoded", "decoded_only", "none"] = "encoded_decoded"
    hint_teacher_forcing: float = Field(default=0.0, ge=0, le=1)
    hint_repred_mode: Literal["soft", "hard", "hard_on_eval"] = "soft"
    encoder_init: Literal["default", "xavier_on_scalars"] = "xavier_on_scalars"
    permutations: bool = True
    constant_hints_as_inputs: bool = True
    random_positions: bool = True

    @model_validator(mode="after")
    def _heads_divide_hidden(self) -> TrajectoryModelConfig:
        if self.hidden % self.heads:
            raise ValueError(f"hidden={self.hidden} is not divisible by heads={self.heads}; change one of them")
        return self
