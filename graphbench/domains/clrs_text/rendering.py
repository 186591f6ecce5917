"""Prompts and references of CLRS-Text (Markeeva et al., 2024, section 3).

A prompt is the algorithm's name, its inputs, and the first state of one hint, the one that turns into the output; the
reference is the hint's later states and the output. ``pos`` and ``adj`` are not printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind
from graphbench.data.trajectories import Changes, HintLayout, cell_shape
from graphbench.domains.clrs.algorithm import Algorithm, find_algorithm
from graphbench.domains.clrs.arguments import ArgumentError
from graphbench.domains.clrs.distributions import truncate
from graphbench.domains.clrs.samplers import MOST_DECIMALS
from graphbench.domains.clrs.tracing import Run, Runner
from graphbench.domains.clrs_text.writing import Texts, nested_text, punctuation, text_table, written

Array = NDArray[Any]

_NOT_PRINTED = ("pos", "adj")
_OWN_HINTS = {  # algorithms whose trace is not the hint named after the output
    "binary_search": ("low", "high"),
    "find_maximum_subarray_kadane": ("best_low", "best_high"),
    "quickselect": ("pivot",),
    "naive_string_matcher": ("s",),
    "kmp_matcher": ("s",),
}
_ANSWER_IS_LAST_HINT = ("binary_search", "find_maximum_subarray_kadane", "quickselect")
_IN_OTHER_ORDER = (("s", "A"), ("key", "target"))  # printed inputs whose arguments come the other way round
_MOST_CLASSES = 4  # of a printed class; the other printed numbers are node ids and masks
_NO_CHANGES = Changes(*[np.zeros(0, np.int32)] * 4)
_LAST_STATE = np.zeros(0, np.int32)


def render(algorithm: str, args: Sequence[Any], use_hints: bool = True, decimals: int | None = None) -> tuple[str, str]:
    """Return the prompt and the reference answer of one instance, in the format of CLRS-Text.

    Whole numbers print as such, so ``[5, 2]`` and ``[5.0, 2.0]`` differ; floats print with all their digits.

    Args:
        algorithm: Name, e.g. ``insertion_sort``.
        args: The algorithm's arguments, as :func:`graphbench.domains.clrs.trace` takes them.
        use_hints: Whether the trace is part of the answer.
        decimals: Digits after the point to which floats are cut, towards zero, before the algorithm runs; None for all.

    Returns:
        The prompt, which ends with a newline, and the reference, which ends with an empty line.

    Raises:
        UnknownAlgorithm: If there is no algorithm of that name.
        ArgumentError: If an argument has the wrong shape, size or value, or ``decimals`` is out of range.
    """
    return Renderer(algorithm, use_hints, decimals).render(args)


def traced_hints(algorithm: Algorithm) -> tuple[str, ...]:
    """Return the names of the hints that are printed step by step: one, a pair, or none."""
    if algorithm.name in _OWN_HINTS:
        return _OWN_HINTS[algorithm.name]
    hints = [feature.name for feature in algorithm.hints]
    return tuple(f"{output.name}_h" for output in algorithm.outputs if f"{output.name}_h" in hints)


@dataclass(frozen=True)
class _Layout:
    """What depends on the number of nodes alone.

    Attributes:
        slots: int32 [cells of the state]: the cell's place in the printed state, -1 if it is not printed.
        pieces: Punctuation of a printed state.
        words: Words of -1, 0, 1, ...
    """

    slots: NDArray[np.int32]
    pieces: Texts
    words: Texts


class Renderer:
    """Renders many instances of one algorithm.

    Args:
        algorithm: Name of the algorithm.
        use_hints: Whether the trace is part of the answer.
        decimals: Digits after the point to which floats are cut; None for all.
    """

    def __init__(self, algorithm: str, use_hints: bool = True, decimals: int | None = None) -> None:
        if decimals is not None and not 0 <= decimals <= MOST_DECIMALS:
            raise ArgumentError(f"decimals is {decimals}; give 0 to {MOST_DECIMALS}, or None for all digits")
        self.algorithm = find_algorithm(algorithm)
        self.decimals = decimals
        self._runner = Runner(self.algorithm)
        self._outputs = [feature.name for feature in self.algorithm.outputs]
        self._sorts = any(feature.kind is Kind.PERMUTATION for feature in self.algorithm.outputs)
        self._traced = traced_hints(self.algorithm) if use_hints else ()
        self._answers_last_hint = use_hints and algorithm in _ANSWER_IS_LAST_HINT
        self._in_parentheses = self._answers_last_hint and len(self._traced) > 1
        names = ", ".join(self._traced if use_hints and algorithm in _OWN_HINTS else self._outputs)
        self._label = f"({names})" if self._in_parentheses else names
        self._printed = [feature for feature in self.algorithm.inputs if feature.name not in _NOT_PRINTED]
        self._places = list(range(len(self._printed)))
        if tuple(feature.name for feature in self._printed) in _IN_OTHER_ORDER:
            self._places.reverse()
        self._layouts: dict[int, _Layout] = {}

    def render(self, args: Sequence[Any]) -> tuple[str, str]:
        """Return the prompt and the reference of one instance.

        Raises:
            ArgumentError: If an argument has the wrong shape, size or value.
        """
        if self.decimals is not None:
            args = [truncate(value, self.decimals) for value in args]
        self._runner.forget()
        run = self._runner.run(*args)
        inputs = self._inputs_text(run, args)
        first, trace, answer = self._states_text(run, args)
        opening = f"{self.algorithm.name}:\n{inputs}"
        if not self._traced:
            return f"{opening}\n{self._label}:\n", f"{answer}\n\n"
        return f"{opening}, initial_trace: {first}\ntrace | {self._label}:\n", f"{trace} | {answer}\n\n"

    def _inputs_text(self, run: Run, args: Sequence[Any]) -> str:
        places = zip(self._printed, self._places, strict=True)
        return ", ".join([f"{feature.name}: {_input_text(feature, run, args[place])}" for feature, place in places])

    def _states_text(self, run: Run, args: Sequence[Any]) -> tuple[str, str, str]:
        layout = self._layout(run.nodes)
        words = layout.words
        if self._sorts:
            words = text_table(["", *map(str, _as_given(run.inputs["key"], args[0]).tolist())])
        outcome = _LAST_STATE if self._answers_last_hint else _joined([run.outputs[name] for name in self._outputs])
        changes = self._runner.last_ints() if self._traced else _NO_CHANGES
        return written(changes, layout.slots, outcome, words, layout.pieces, self._sorts)

    def _layout(self, nodes: int) -> _Layout:
        if nodes not in self._layouts:
            self._layouts[nodes] = self._make_layout(nodes)
        return self._layouts[nodes]

    def _make_layout(self, nodes: int) -> _Layout:
        hints = HintLayout(self.algorithm.hints, nodes)
        slots = np.full(hints.ints, -1, np.int32)
        shapes = [cell_shape(feature, nodes) for feature in self.algorithm.outputs]
        if self._traced:
            places = [hints.places[name] for name in self._traced]
            shapes = [place.shape for place in places]
            used = 0
            for place in places:
                size = place.cells.stop - place.cells.start
                slots[place.cells] = np.arange(used, used + size)
                used += size
        words = text_table([str(value) for value in range(-1, max(nodes, _MOST_CLASSES))])
        return _Layout(slots, punctuation(shapes, self._in_parentheses), words)


def _input_text(feature: Feature, run: Run, given: Any) -> str:
    values = run.inputs[feature.name]
    if feature.kind is Kind.MASK_ONE:
        return str(int(values.argmax()))
    if feature.kind is Kind.CATEGORICAL:
        values = values.argmax(-1)
    elif feature.kind is Kind.SCALAR:
        values = _as_given(values, given)
    return nested_text(values.tolist())


def _as_given(values: Array, given: Any) -> Array:
    """Return float64 values as whole numbers where they were given as such."""
    return values if np.asarray(given).dtype.kind == "f" else values.astype(np.int64)


def _joined(arrays: Sequence[Array]) -> Array:
    return arrays[0].ravel() if len(arrays) == 1 else np.concatenate([array.ravel() for array in arrays])
