"""Prompts of algorithms: the questions that a domain of texts asks language models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to a language model, and the answer.

    Attributes:
        prompt: The question; ends with a newline.
        reference: The right answer, with the trace if there is one; ends with an empty line.
        algorithm: Name of the algorithm.
        size: Problem size.
        seed: Seed of the set of prompts.
        index: Number of the prompt among the prompts of this algorithm, size and seed.
        use_hints: Whether the reference has a trace.
    """

    prompt: str
    reference: str
    algorithm: str
    size: int
    seed: int
    index: int
    use_hints: bool


@runtime_checkable
class PromptGrid(Protocol):
    """Parameters of a generator that draws prompts by size and seed.

    Attributes:
        use_hints: Whether references have a trace.
    """

    use_hints: bool

    def draw_of(self, index: int) -> tuple[int, int, int]:
        """Return size, seed and draw of a sample."""
        ...
