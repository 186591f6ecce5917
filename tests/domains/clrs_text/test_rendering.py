"""Prompts and references against the reference's own, character for character."""

import numpy as np
import pytest

from graphbench.catalog.features import Kind
from graphbench.data.trajectories import Changes
from graphbench.domains.clrs.algorithm import UnknownAlgorithm, find_algorithm
from graphbench.domains.clrs.algorithms import NAMES
from graphbench.domains.clrs.arguments import ArgumentError
from graphbench.domains.clrs_text import Renderer, render
from graphbench.domains.clrs_text.rendering import traced_hints
from graphbench.domains.clrs_text.writing import nested_text, punctuation, text_table, written

HULLS = ("graham_scan", "jarvis_march")  # their samplers redraw truncated points
TRACED = {"segments_intersect": 0, "binary_search": 2, "find_maximum_subarray_kadane": 2, "topological_sort": 2}


def arguments(line):
    return list(line["inputs"].values())


@pytest.mark.parametrize("algorithm", NAMES)
def test_text_is_the_reference_s(golden_lines, algorithm):
    lines = [line for line in golden_lines[algorithm] if not line["has_tie"]]
    assert len(lines) >= 20
    for line in lines:
        prompt, reference = render(algorithm, arguments(line), line["use_hints"])
        where = {key: line[key] for key in ("algorithm", "index", "use_hints", "decimals")}
        assert prompt == line["prompt"], where
        assert reference == line["reference"], where


@pytest.mark.parametrize("algorithm", [name for name in NAMES if name not in HULLS])
def test_truncating_whole_inputs_gives_the_reference_s_truncated_text(golden_lines, algorithm):
    lines = golden_lines[algorithm]
    whole = {(line["index"], line["use_hints"]): line for line in lines if line["decimals"] is None}
    truncated = [line for line in lines if line["decimals"] == 3 and not line["has_tie"]]
    for line in truncated:
        args = arguments(whole[line["index"], line["use_hints"]])
        found = render(algorithm, args, line["use_hints"], decimals=3)
        assert found == (line["prompt"], line["reference"]), (algorithm, line["index"])


def test_arrays_and_lists_give_the_same_text():
    matrix = [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert render("bfs", [np.array(matrix), np.int64(1)]) == render("bfs", [matrix, 1])


def test_one_renderer_takes_instances_of_any_size(golden_lines):
    renderer = Renderer("bfs")
    for line in sorted(golden_lines["bfs"], key=lambda line: (line["draw"], line["length"])):
        if line["use_hints"]:
            assert renderer.render(arguments(line)) == (line["prompt"], line["reference"])


def test_whole_numbers_print_as_given():
    prompt, reference = render("insertion_sort", [[5, 2, 4, 3, 1]])
    assert prompt == "insertion_sort:\nkey: [5 2 4 3 1], initial_trace: [5 2 4 3 1]\ntrace | pred:\n"  # figure 1
    assert reference == "[2 5 4 3 1], [2 4 5 3 1], [2 3 4 5 1] | [1 2 3 4 5]\n\n"
    prompt, reference = render("insertion_sort", [[2.0, 1.0]], use_hints=False)
    assert (prompt, reference) == ("insertion_sort:\nkey: [2.0 1.0]\npred:\n", "[1.0 2.0]\n\n")


def test_unknown_algorithm_and_bad_arguments_are_told():
    with pytest.raises(UnknownAlgorithm, match="did you mean 'bfs'"):
        render("bsf", [[[1]], 0])
    with pytest.raises(ArgumentError, match="decimals is -1; give 0 to 15"):
        render("bfs", [[[0, 1], [1, 0]], 0], decimals=-1)
    with pytest.raises(ArgumentError, match="square matrix"):
        render("bfs", [[1, 2, 3], 0])


def test_floats_print_as_numpy_scalars_do():
    bits = np.random.default_rng(0).integers(0, 2**63, 20_000).view(np.float64)
    numbers = np.concatenate([bits[np.isfinite(bits)], [0.0, -0.0, 1e-4, 1e-5, 1e15, 1e16, 0.1 + 0.2]])
    assert nested_text(numbers.tolist())[1:-1].split() == [str(number) for number in numbers]


def test_every_trace_is_written_from_whole_states():
    """The writer, which copies unchanged states and follows changes, against one that formats every state anew."""
    random = np.random.default_rng(1)
    for shape in ((1,), (5,), (4, 4)):
        size = int(np.prod(shape))
        slots = np.full(size + 3, -1, np.int32)
        slots[random.permutation(size + 3)[:size]] = np.arange(size)
        counts = random.integers(0, 3, 9).astype(np.int32)
        cells = random.integers(0, size + 3, counts.sum()).astype(np.int32)
        values = random.integers(-1, 12, counts.sum()).astype(np.int32)
        changes = Changes(np.array([0, counts.sum()]), counts, cells, values)
        words = text_table([str(value) for value in range(-1, 12)])
        outcome = np.zeros(0, np.int32)
        found = written(changes, slots, outcome, words, punctuation([shape], False), False)
        state, texts, at = np.zeros(size, int), [], 0
        for count in counts:
            for change in range(at, at + count):
                if slots[cells[change]] >= 0:
                    state[slots[cells[change]]] = values[change]
            at += count
            texts.append(str(state[0]) if shape == (1,) else nested_text(state.reshape(shape).tolist()))
        assert found == (texts[0], ", ".join(texts[1:-1]), texts[-1])


@pytest.mark.parametrize("name", NAMES)
def test_the_traced_hints_are_whole_numbers_that_the_writer_knows(name):
    algorithm = find_algorithm(name)
    traced = [hint for hint in algorithm.hints if hint.name in traced_hints(algorithm)]
    assert len(traced) == len(traced_hints(algorithm)) == TRACED.get(name, 1)
    assert all(hint.kind is not Kind.SCALAR and hint.classes <= 4 for hint in traced)
