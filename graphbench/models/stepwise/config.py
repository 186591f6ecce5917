"""The configuration of stepwise models. This module loads no torch."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from graphbench.models.config import ModelConfig


class StepwiseModelConfig(ModelConfig):
    """A network of graphs that decides a solution in rounds (:class:`graphbench.models.stepwise.model.StepwiseModel`).

    Attributes:
        kind: Always ``stepwise``, which selects this kind of model.
        rounds: Number of evaluations of the network in which the first solution of a graph is decided; a few more
            follow where nodes are left. Round r of R decides a share of 1 / (R - r + 1) of the nodes that it could;
            in colourings, every round decides all nodes that it could.
        repairs: How often a random part of the solution is taken back and decided anew; the better solution is kept.
        repair_rounds: As ``rounds``, for the nodes of a repair.
        repair_parts: Which nodes a repair takes back. ``scattered``: every node with the same probability, in
            colourings more often beside a node without a colour. ``regions``: the nodes that are nearest to a random
            node, or to a node without a colour, when every node has a random length, within 12 edges; where these are
            too few, further nodes are scattered. ``alternating``: both in turn.
            Regions help in sparse graphs, where scattered nodes are seldom neighbours of each other.
        kept: Mean share of the decided nodes that a repair keeps; null takes 0.5 for sets, 0.75 for colours and 0.9 for
            cuts.
        copies: Number of solutions of a graph that are built side by side; the best one is the answer.
        temperature: Scale of the Gumbel noise on the scores of all copies but the first, and in repairs.
        unrolled: Number of rounds in a training step that decide; each of them has a loss.
        revised: Number of further rounds in a training step, before each of which a random part of the solution is
            taken back, as in repairs.
        teacher: What solutions in training begin with. ``none``: with nothing, and the model decides on. ``labels``:
            with a random part of the solution in the data, so that training reads labels
            (``training.task.imitation``).
    """

    added: ClassVar[frozenset[str]] = ModelConfig.added | {"repair_parts"}

    kind: Literal["stepwise"] = "stepwise"
    rounds: int = Field(default=12, ge=1, le=1000)
    repairs: int = Field(default=0, ge=0, le=10_000)
    repair_rounds: int = Field(default=3, ge=1, le=1000)
    repair_parts: Literal["scattered", "regions", "alternating"] = "scattered"
    kept: float | None = Field(default=None, ge=0.0, lt=1.0)
    copies: int = Field(default=1, ge=1, le=1000)
    temperature: float = Field(default=0.3, ge=0.0)
    unrolled: int = Field(default=4, ge=1, le=100)
    revised: int = Field(default=0, ge=0, le=100)
    teacher: Literal["none", "labels"] = "none"
