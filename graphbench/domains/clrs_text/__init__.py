"""CLRS-Text: the thirty algorithms of CLRS as prompts for language models (Markeeva et al., 2024)."""

from graphbench.data.arrays.answers import answer_of, exact_match
from graphbench.data.components.prompts import Prompt
from graphbench.domains.clrs_text.export import export
from graphbench.domains.clrs_text.rendering import Renderer, render
from graphbench.domains.clrs_text.sets import few_shot_examples, paper_prompts, paper_protocol, prompts

__all__ = [
    "Prompt",
    "Renderer",
    "answer_of",
    "exact_match",
    "export",
    "few_shot_examples",
    "paper_prompts",
    "paper_protocol",
    "prompts",
    "render",
]
