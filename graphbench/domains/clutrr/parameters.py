"""The parameters of generated stories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator, model_validator

from graphbench.core.validation import StrictModel

if TYPE_CHECKING:
    from graphbench.domains.clutrr.puzzles import PuzzleParameters


class FamilySettings(StrictModel):
    """The distribution of families.

    Attributes:
        generations: How many, 2 to 5.
        min_children: Fewest children of a couple.
        max_children: Most children of a couple.
        marriage: Probability that somebody born into the family marries.
    """

    generations: int
    min_children: int
    max_children: int
    marriage: float


class StoryParameters(StrictModel):
    """The distribution of puzzles, and the wordings of their stories.

    Attributes:
        lengths: Facts on the path, in turn: puzzle i has ``lengths[i % len(lengths)]`` of them.
        rules: ``sound``, or ``paper``: then stories tell the relations that the paper's sixteen rules give its family.
        noise: ``none``, ``supporting``, ``irrelevant`` or ``disconnected``.
        held_out: Allowed clauses: ``avoid`` the held-out clauses, draw ``only`` held-out clauses, or ``any``.
        share: Share of the clauses (of two facts: of the walks) that is held out.
        held_out_seed: Seed of their choice.
        wording: Which templates: ``train`` or ``test``.
        wording_seed: Seed of the choice of the templates of ``test``; 0 for the choice of the file.
        family: The distribution of families; the default of the set of rules if left out.
    """

    lengths: tuple[int, ...] = Field(min_length=1)
    rules: Literal["sound", "paper"] = "sound"
    noise: Literal["none", "supporting", "irrelevant", "disconnected"] = "none"
    held_out: Literal["any", "avoid", "only"] = "any"
    share: float = 0.1
    held_out_seed: int = 0
    wording: Literal["train", "test"]
    wording_seed: int = 0
    family: FamilySettings | None = None

    @field_validator("lengths")
    @classmethod
    def _differ(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) < len(value):
            raise ValueError("a length stands there twice")
        return value

    @model_validator(mode="after")
    def _can_be_drawn(self) -> StoryParameters:
        for k in self.lengths:
            self.puzzles(k)
        return self

    def puzzles(self, k: int) -> PuzzleParameters:
        """Return the parameters of the puzzles with k facts."""
        from graphbench.domains.clutrr.families import FamilyParameters
        from graphbench.domains.clutrr.puzzles import PuzzleParameters

        family = None if self.family is None else FamilyParameters(**self.family.model_dump())
        return PuzzleParameters(k, self.rules, self.noise, family, self.held_out, self.share, self.held_out_seed)
