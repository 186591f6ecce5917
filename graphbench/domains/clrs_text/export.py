"""Prompts as JSON files, under the field names that other tools know."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

from graphbench.core.errors import GenerationError
from graphbench.core.files import atomic_path
from graphbench.data.components.prompts import Prompt

Style = Literal["json", "jsonl", "huggingface"]


def export(path: Path, prompts: Iterable[Prompt], style: Style = "jsonl") -> int:
    """Write prompts to a file, which appears whole or not at all; nothing is held in memory.

    ===============  =========================================================================================
    style            content
    ===============  =========================================================================================
    ``jsonl``        one example a line: ``prompt``, ``references``, ``auxiliary`` (``length``, ``seed``,
                     ``use_hints``), ``algo_name``
    ``json``         one object, as the reference generator writes: ``name`` (``clrs_text_<algorithm>``) and
                     ``examples``; for one algorithm
    ``huggingface``  one row a line: ``text``, ``question``, ``answer``, ``algo_name``, ``length``, ``use_hints``
    ===============  =========================================================================================

    Args:
        path: The file. One that exists is replaced.
        prompts: The prompts to write.
        style: Names and layout of the fields.

    Returns:
        The number of prompts written.

    Raises:
        GenerationError: If there is no such style or no prompt, or ``json`` is asked for with prompts of several
            algorithms.
        StoreError: If the file cannot be written.
    """
    if style not in get_args(Style):
        raise GenerationError(f"there is no style {style!r}; use one of {', '.join(get_args(Style))}")
    stream = iter(prompts)
    first = next(stream, None)
    if first is None:
        raise GenerationError(f"there is no prompt to write to {path}; ask for at least one")
    everything = chain([first], stream)
    written = 0
    with atomic_path(Path(path)) as aside, aside.open("w", encoding="utf-8", newline="\n") as file:
        for text in _document(everything, first.algorithm) if style == "json" else _lines(everything, style):
            file.write(text)
            written += 1
        if style == "json":
            file.write("]}\n")
    return written


def _lines(prompts: Iterable[Prompt], style: Style) -> Iterator[str]:
    for prompt in prompts:
        fields = _row(prompt) if style == "huggingface" else {**_example(prompt), "algo_name": prompt.algorithm}
        yield json.dumps(fields) + "\n"


def _document(prompts: Iterable[Prompt], algorithm: str) -> Iterator[str]:
    """Yield the reference's document example by example; the closing brackets are left to the caller."""
    opening = f'{{"name": {json.dumps(f"clrs_text_{algorithm}")}, "examples": ['
    for number, prompt in enumerate(prompts):
        if prompt.algorithm != algorithm:
            raise GenerationError(
                f"a file of style 'json' holds one algorithm, got {algorithm} and {prompt.algorithm}; "
                "write one file each, or use the style 'jsonl'"
            )
        yield (opening if number == 0 else ", ") + json.dumps(_example(prompt))


def _example(prompt: Prompt) -> dict[str, Any]:
    auxiliary = {"length": prompt.size, "seed": prompt.seed, "use_hints": prompt.use_hints}
    return {"prompt": prompt.prompt, "references": [prompt.reference], "auxiliary": auxiliary}


def _row(prompt: Prompt) -> dict[str, Any]:
    return {
        "text": prompt.prompt + prompt.reference,
        "question": prompt.prompt,
        "answer": prompt.reference,
        "algo_name": prompt.algorithm,
        "length": prompt.size,
        "use_hints": prompt.use_hints,
    }
