"""The configuration of trajectory models. This module loads no torch."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from graphbench.models.config import ArchitectureConfig, layers_size


class TrajectoryModelConfig(ArchitectureConfig):
    """A model that predicts hints and outputs of algorithms.

    Attributes:
        kind: Always ``trajectory``, which selects this kind of model.
        processor: A processor of dense pairs of nodes (``mpnn``, ``pgn``, ``gmpnn``, ``triplet_mpnn``,
            ``triplet_gmpnn``, ``gat``, ``gatv2``, ``deepsets``, ``memnet``, ``pairs``), or a processor of sparse graphs
            (for example ``gin`` or ``gt``), which is applied to the neighbours of each step.
        hidden: Width ``h`` of all vectors.
        heads: Attention heads (gat, gatv2, gt); must divide ``hidden``.
        nb_triplet_features: Width of the triplets' features.
        use_layer_norm: Whether the processor's output is normalised.
        hint_mode: ``encoded_decoded``: hints are predicted and fed back; ``decoded_only``: predicted;
            ``none``: ignored.
        hint_teacher_forcing: Probability that a training sample reads the true hint of a step (noisy teacher forcing);
            the first hint is always true.
        hint_repred_mode: How predicted hints are fed back: ``soft`` (probabilities, with gradients), ``hard`` (the most
            likely value), ``hard_on_eval`` (soft in training alone).
        encoder_init: Spread of the encoders' initial weights; ``xavier_on_scalars`` divides the spread for scalar hints
            by the square root of ``hidden``.
        permutations: Whether the outputs of sorting are predicted as permutations, with a Sinkhorn operator; else as
            pointers.
        constant_hints_as_inputs: Whether the hints that the card's ``task.options.constant_hints`` names are inputs.
        random_positions: Whether sorted random numbers replace the input that ``task.options.positions`` names, in
            training and validation.
        history: What a step reads of the states that the processor returned in the step before (Bohde et al., 2024):
            ``kept``: all of it; ``forgotten``: nothing, so that a step reads inputs and hints alone (ForgetNet);
            ``gated``: what a learned gate lets through, which is almost closed at first (G-ForgetNet).
        gate_penalty: gated: weight of the penalty in the loss at the start of training, the mean square of the gate.
        gate_anneal: gated: number of training batches over which the weight of the penalty falls to 0, linearly.
        edge_pointers: What a pointer from a pair of nodes (i, j) to a node k is decoded from: ``pairs``: the maximum of
            vectors of (i, j) and of k; ``triplets``: a vector of (i, j, k), which also reads (i, k) and (k, j).
        steps: Number of times that the processor is applied to samples of tasks without hints.
        layers: Number of layers of a processor of sparse graphs within one step, or of rounds of ``pairs``. The
            following settings apply to processors of sparse graphs; ``pairs`` also reads ``options``.
        dropout: Dropout rate on the output of each residual branch.
        activation: Activation of the feed-forward networks.
        stochastic_depth: gt: see ``ModelConfig``.
        attention: gt: see ``ModelConfig``.
        options: Settings of one processor.
    """

    added: ClassVar[frozenset[str]] = frozenset(
        {
            "history",
            "gate_penalty",
            "gate_anneal",
            "edge_pointers",
            "steps",
            "layers",
            "dropout",
            "activation",
            "stochastic_depth",
            "attention",
            "options",
        }
    )

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
    history: Literal["kept", "forgotten", "gated"] = "kept"
    gate_penalty: float = Field(default=1.0, ge=0)
    gate_anneal: int = Field(default=1000, ge=1)
    edge_pointers: Literal["pairs", "triplets"] = "pairs"
    steps: int = Field(default=6, ge=1)
    layers: int = Field(default=1, ge=1)
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    activation: Literal["gelu", "relu"] = "relu"
    stochastic_depth: float = Field(default=0.0, ge=0.0, lt=1.0)
    attention: Literal["auto", "sdpa", "chunked", "flex"] = "auto"
    options: dict[str, Any] = Field(default_factory=dict)

    @property
    def estimated_size(self) -> int:
        """A lower bound on the number of weights of a model."""
        return self.hidden * (self.hidden + self.nb_triplet_features) + layers_size(self.layers, self.hidden**2)

    @model_validator(mode="after")
    def _settings_of_the_gate_have_a_gate(self) -> TrajectoryModelConfig:
        unread = sorted({"gate_penalty", "gate_anneal"} & self.model_fields_set)
        if unread and self.history != "gated":
            raise ValueError(
                f"{unread[0]}={getattr(self, unread[0])} is a setting of the gate, but history={self.history!r} has no "
                "gate; set history to 'gated', or remove the setting"
            )
        return self

    @model_validator(mode="after")
    def _heads_divide_hidden(self) -> TrajectoryModelConfig:
        if self.hidden % self.heads:
            raise ValueError(f"hidden={self.hidden} is not divisible by heads={self.heads}; change one of them")
        return self
