"""Prompts and references of CLRS-Text (Markeeva et al., 2024, section 3).

A prompt is the name of the algorithm, its inputs, and the first state of the hint that becomes the output. The
reference is the later states of this hint, and the output. ``pos`` and ``adj`` are not printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Kind
from graphbench.data.arrays.trajectories import cell_shape
from graphbench.domains.clrs.algorithm import Algorithm, find_algorithm
from graphbench.domains.clrs.arguments import ArgumentError
from graphbench.domains.clrs.distributions import truncate
from graphbench.domains.clrs.samplers import MOST_DECIMALS
from graphbench.domains.clrs.tracing import Runner, hint_layout, of_one_size
from graphbench.domains.clrs_text.writing import Format, pattern, pieces, text_table, written

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
_MAX_CLASSES = 4  # of a printed class; the other printed numbers are node ids and masks
_TRACED_INSTANCES = 1024  # instances that are traced before their texts are written


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
        UnknownAlgorithm: If no algorithm has this name.
        ArgumentError: If an argument has the wrong shape, size or value, or ``decimals`` is out of range.
    """
    return Renderer(algorithm, use_hints, decimals).render(args)


def traced_hints(algorithm: Algorithm) -> tuple[str, ...]:
    """Return the names of the hints that are printed step by step: one, a pair, or none."""
    if algorithm.name in _OWN_HINTS:
        return _OWN_HINTS[algorithm.name]
    hints = [feature.name for feature in algorithm.hints]
    return tuple(f"{output.name}_h" for output in algorithm.outputs if f"{output.name}_h" in hints)


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
        self._style = _style(self.algorithm, use_hints)

    def render(self, args: Sequence[Any]) -> tuple[str, str]:
        """Return the prompt and the reference of one instance.

        Raises:
            ArgumentError: If an argument has the wrong shape, size or value.
        """
        return next(self.render_all([args]))

    def render_all(self, instances: Sequence[Sequence[Any]]) -> Iterator[tuple[str, str]]:
        """Yield the prompt and the reference of every instance; a number of them are rendered at a time.

        Raises:
            ArgumentError: If an argument has the wrong shape, size or value.
        """
        for start in range(0, len(instances), _TRACED_INSTANCES):
            part = instances[start : start + _TRACED_INSTANCES]
            if self.decimals is not None:
                part = [[truncate(value, self.decimals) for value in args] for args in part]
            groups = of_one_size(part)
            if len(groups) == 1:
                yield from self._rendered(part)
                continue
            texts = [text for places in groups for text in self._rendered([part[i] for i in places])]
            yield from (texts[i] for i in np.argsort(np.concatenate(groups)))

    def _rendered(self, instances: Sequence[Sequence[Any]]) -> Iterator[tuple[str, str]]:
        """Yield prompts and references of instances of one size."""
        style = self._style
        self._runner.forget()
        runs = self._runner.run(instances)
        whole = tuple([kind is not Kind.SCALAR or _is_whole(instances[0][k]) for kind, k in style.printed.values()])
        inputs = _side_by_side([runs.inputs[name] for name in style.printed], np.float64)
        answers = list(runs.outputs.values())
        outcomes = _side_by_side([answers[0][:, :0]] if style.answers_last_hint else answers, np.int32)
        return written(inputs, self._runner.recorded(), outcomes, style.format(runs.nodes, whole))


def _is_whole(value: Any) -> bool:
    """Return whether the numbers of an input print as whole numbers, because all of them were given as integers."""
    return np.asarray(value).dtype.kind != "f"


def _side_by_side(columns: Sequence[Array], dtype: type) -> Array:
    """Return cells ``[S, ...]`` as ``[S, cells of all columns]``."""
    flat = [cells.reshape(len(cells), -1) if cells.ndim > 2 else cells for cells in columns]
    joined: Array = flat[0] if len(flat) == 1 else np.concatenate(flat, axis=1)
    return joined.astype(dtype, copy=False)


class _Style:
    """The printed features of an algorithm, with or without the trace.

    Attributes:
        printed: Input -> its type, and the position of its argument.
        answers_last_hint: Whether the answer is the last state of the traced hints.
    """

    def __init__(self, algorithm: Algorithm, use_hints: bool) -> None:
        self.algorithm = algorithm
        self.traced = traced_hints(algorithm) if use_hints else ()
        self.answers_last_hint = use_hints and algorithm.name in _ANSWER_IS_LAST_HINT
        self.in_parentheses = self.answers_last_hint and len(self.traced) > 1
        outputs = [feature.name for feature in algorithm.outputs]
        label = ", ".join(self.traced if use_hints and algorithm.name in _OWN_HINTS else outputs)
        self.label = f"({label})" if self.in_parentheses else label
        self.joints = text_table([f"\ntrace | {self.label}:\n", " | ", "\n\n"])
        self.inputs = [feature for feature in algorithm.inputs if feature.name not in _NOT_PRINTED]
        places = range(len(self.inputs))
        if tuple(feature.name for feature in self.inputs) in _IN_OTHER_ORDER:
            places = places[::-1]
        self.printed = {feature.name: (feature.kind, k) for feature, k in zip(self.inputs, places, strict=True)}
        self.sorts = any(feature.kind is Kind.PERMUTATION for feature in algorithm.outputs)
        self._formats: dict[tuple[int, tuple[bool, ...]], Format] = {}

    def format(self, nodes: int, whole: tuple[bool, ...]) -> Format:
        """Return the text around the cells of graphs with some nodes, if some inputs print as whole numbers."""
        if (nodes, whole) not in self._formats:
            self._formats[nodes, whole] = self._new_format(nodes, whole)
        return self._formats[nodes, whole]

    def _new_format(self, nodes: int, whole: tuple[bool, ...]) -> Format:
        shapes = [cell_shape(feature, nodes) for feature in self.inputs]
        sizes = [prod(shape) for shape in shapes]
        inputs = ", ".join(f"{name}: {pattern(shape)}" for name, shape in zip(self.printed, shapes, strict=True))
        opening = f"{self.algorithm.name}:\n{inputs}" + (", initial_trace: " if self.traced else f"\n{self.label}:\n")
        slots, states = self._slots(nodes)
        state = ", ".join(map(pattern, states))
        return Format(
            pieces(opening),
            pieces(f"({state})" if self.in_parentheses else state),
            self.joints,
            slots,
            np.repeat(whole, sizes),
            len(str(max(nodes, _MAX_CLASSES))) + 1,
            bool(self.traced),
            sum(sizes[: list(self.printed).index("key")]) if self.sorts else -1,
        )

    def _slots(self, nodes: int) -> tuple[NDArray[np.int32], list[tuple[int, ...]]]:
        """Return the place of every cell of the hints in a printed state, -1 if it has none, and the printed shapes."""
        hints = hint_layout(self.algorithm, nodes)
        slots = np.full(hints.ints, -1, np.int32)
        if not self.traced:
            return slots, [cell_shape(feature, nodes) for feature in self.algorithm.outputs]
        used = 0
        places = [hints.places[name] for name in self.traced]
        for slot in places:
            size = slot.cells.stop - slot.cells.start
            slots[slot.cells] = np.arange(used, used + size)
            used += size
        return slots, [slot.shape for slot in places]


_style = lru_cache(maxsize=128)(_Style)
