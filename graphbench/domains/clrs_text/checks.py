"""Printed answers against independent implementations: everything is read back from the text alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Kind, Location
from graphbench.data.arrays.answers import final_answer
from graphbench.data.arrays.samples import Samples
from graphbench.domains.clrs.algorithm import Algorithm, find_algorithm
from graphbench.domains.clrs.checks import CHECKS
from graphbench.domains.clrs.generators import RENAMED

Array = NDArray[Any]

_INPUT = re.compile(r"(\w+): (.*?)(?=, \w+: |$)")
_MATCHERS = ("naive_string_matcher", "kmp_matcher")


def check_prompts(name: str, use_hints: bool, samples: Samples) -> list[str]:
    """Return the problems of prompts and references, one line per sample.

    The inputs are read from the prompt, the outputs from the reference's end, and handed to the checks of the
    trajectories: networkx, SciPy, NumPy, or the definition itself.
    """
    algorithm = find_algorithm(name)
    prompts, references = samples.values["prompt"].strings(), samples.values["reference"].strings()
    problems = []
    for i, (prompt, reference) in enumerate(zip(prompts, references, strict=True)):
        values = printed_inputs(algorithm, prompt)
        answer = printed_values(final_answer(reference))
        if not reference.endswith("\n\n") or ("|" in reference) != ("trace |" in prompt):
            problems.append(f"sample {i}: {name} has the reference {reference!r:.200}")
        elif not _is_right(algorithm, values, answer, use_hints):
            problems.append(f"sample {i}: {name} answers {final_answer(reference)!r:.200} to {prompt!r:.400}")
    return problems


def printed_values(text: str) -> list[Any]:
    """Return the objects of a printed state: numbers, and arrays of the lists and pairs."""
    commas = re.sub(r"(?<=[\w.\]])\s+(?=[-\w.\[])", ", ", text)
    values = ast.literal_eval(f"[{commas}]") if text else []
    return [np.array(value) if isinstance(value, list | tuple) else value for value in values]


def printed_inputs(algorithm: Algorithm, prompt: str) -> dict[str, Any]:
    """Return the inputs that a prompt shows, by name, as the checks of trajectories take them."""
    line = prompt.split("\n")[1].split(", initial_trace: ")[0]
    shown = {name: printed_values(text)[0] for name, text in _INPUT.findall(line)}
    values: dict[str, Any] = {}
    for feature in algorithm.inputs:
        if feature.name in shown:
            value = shown[feature.name]
            if feature.kind is Kind.MASK_ONE:
                value = _one_hot(value, _nodes(shown.values()))
            values[RENAMED.get(feature.name, feature.name)] = value
    if "A" in values:
        values["adj"] = ((values["A"] != 0) | np.eye(len(values["A"]), dtype=bool)).astype(int)
    return values


def _nodes(values: Any) -> int:
    return max(len(value) for value in values if isinstance(value, np.ndarray))


def _one_hot(position: int, size: int) -> Array:
    return (np.arange(size) == position).astype(int)


def _is_right(algorithm: Algorithm, values: dict[str, Any], answer: Sequence[Any], use_hints: bool) -> bool:
    name, nodes = algorithm.name, _nodes(values.values())
    if any(output.kind is Kind.PERMUTATION for output in algorithm.outputs) and name != "topological_sort":
        return bool(np.array_equal(answer[0], np.sort(values["key"])))
    if name in _MATCHERS and use_hints:
        return _is_last_shift(values, int(answer[0]))
    if name == "binary_search" and use_hints:
        low, high = answer[0]
        answer = [int(low)] if low == high else [-1]
    if name == "find_maximum_subarray_kadane" and use_hints:
        answer = answer[0].tolist()
    for output, value in zip(algorithm.outputs, answer, strict=True):
        is_place = output.kind is Kind.MASK_ONE and output.location is Location.NODE
        values[output.name] = _one_hot(int(value), nodes) if is_place else value
    return CHECKS[name](values)


def _is_last_shift(values: dict[str, Any], shift: int) -> bool:
    """Return whether a shift is the first match, or without a match, a shift that was tried in vain."""
    letters = "".join(map(str, values["key"].tolist()))
    first = int((values["string"] == 0).sum())
    haystack, needle = letters[:first], letters[first:]
    first_shift = haystack.find(needle)
    return shift == first_shift if first_shift >= 0 else 0 <= shift <= len(haystack)
