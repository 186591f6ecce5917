"""Prompts and references against the reference's own, character for character."""

import numpy as np
import pytest

from graphbench.catalog.features import Kind
from graphbench.data.arrays.trajectories import Changes, Trajectories
from graphbench.domains.clrs import sample
from graphbench.domains.clrs.algorithm import UnknownAlgorithm, find_algorithm
from graphbench.domains.clrs.arguments import ArgumentError
from graphbench.domains.clrs.names import NAMES
from graphbench.domains.clrs_text import Renderer, render, writing
from graphbench.domains.clrs_text.rendering import traced_hints
from graphbench.domains.clrs_text.writing import CELL, Format, pattern, pieces, text_table, written

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


def nested_text(values):
    """Return numbers, a list or a list of lists of them as text."""
    if not isinstance(values, list):
        return str(values)
    return f"[{(', ' if isinstance(values[0], list) else ' ').join(map(nested_text, values))}]"


def test_patterns_are_nested_lists():
    for shape in ((3,), (2, 2), (4, 4)):
        assert pattern(shape) == nested_text(np.full(shape, CELL, object).tolist())
    assert pattern((1,)) == CELL


def written_numbers(numbers, whole):
    """Return the words that the writer makes of numbers, which it takes a row at a time."""
    rows, cells = numbers.shape
    table = text_table([""] * 3)
    nothing = Changes(*[np.zeros(rows + 1, np.int64)] * 4)
    form = Format(
        pieces("# " * cells),
        pieces("|"),
        table,
        np.zeros(0, np.int32),
        np.full(cells, whole),
        1,
        False,
        -1,
    )
    texts = written(numbers, Trajectories(nothing.ptr, nothing, nothing), np.zeros((rows, 0), np.int32), form)
    return " ".join(prompt for prompt, _ in texts).split()


def test_floats_print_as_numpy_scalars_do():
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**63, 20_000).view(np.float64)
    cut = [random.integers(-(10**k), 10**k, 5000) / 10.0**d for d in range(8) for k in (d, d + 1, d + 3, 13)]
    close = np.concatenate([np.nextafter(part, side) for part in cut[::5] for side in (-np.inf, np.inf)])
    special = [0.0, -0.0, 1e-4, 9.9e-5, 1e-5, -1e-5, 1e9, 1e15, 1e16, 0.1 + 0.2, 999999999.999999, 0.3, 5e-324]
    numbers = np.concatenate([bits[np.isfinite(bits)], *cut, close, special])
    numbers = numbers[: len(numbers) // 7 * 7].reshape(-1, 7)
    assert written_numbers(numbers, False) == [str(number) for number in numbers.ravel()]


def test_whole_numbers_print_with_all_their_digits():
    sizes = np.concatenate([10.0 ** np.arange(19), 10.0 ** np.arange(16) - 1, np.arange(100), [2.0**62]])
    numbers = np.concatenate([sizes, -sizes])[:, None]
    assert written_numbers(numbers, True) == [str(int(number)) for number in numbers.ravel()]


def random_changes(random, size, samples):
    """Return trajectories of 9 steps each of a state of some cells."""
    counts = random.integers(0, 3, 9 * samples).astype(np.int32)
    cells = random.integers(0, size, counts.sum()).astype(np.int32)
    values = random.integers(-1, 12, counts.sum()).astype(np.int32)
    ptr = np.concatenate([[0], np.cumsum(counts.reshape(samples, 9).sum(1))])
    changes = Changes(ptr, counts, cells, values)
    return Trajectories(9 * np.arange(samples + 1), changes, changes)


def test_every_trace_is_written_from_whole_states():
    """The writer, which copies unchanged states and follows changes, against one that formats every state anew."""
    random = np.random.default_rng(1)
    for shape in ((1,), (5,), (4, 4)):
        size = int(np.prod(shape))
        slots = np.full(size + 3, -1, np.int32)
        slots[random.permutation(size + 3)[:size]] = np.arange(size)
        hints = random_changes(random, size + 3, 20)
        form = Format(
            pieces("number # and "),
            pieces(pattern(shape)),
            text_table([" then\n", " | ", "\n\n"]),
            slots,
            np.array([True]),
            2,
            True,
            -1,
        )
        found = list(written(np.arange(20.0)[:, None], hints, np.zeros((20, 0), np.int32), form))
        for number in range(20):
            state, texts, at = np.zeros(size, int), [], hints.ints.ptr[number]
            for count in hints.ints.counts[9 * number : 9 * number + 9]:
                for change in range(at, at + count):
                    if slots[hints.ints.cells[change]] >= 0:
                        state[slots[hints.ints.cells[change]]] = hints.ints.values[change]
                at += count
                texts.append(str(state[0]) if shape == (1,) else nested_text(state.reshape(shape).tolist()))
            first, *middle, last = texts
            assert found[number] == (f"number {number} and {first} then\n", f"{', '.join(middle)} | {last}\n\n")


def test_long_texts_are_written_part_by_part(monkeypatch):
    instances = sample("bubble_sort", 9, 50, 0)
    whole = list(Renderer("bubble_sort").render_all(instances))
    monkeypatch.setattr(writing, "_MAX_BUFFER", 20_000)
    assert list(Renderer("bubble_sort").render_all(instances)) == whole
    assert sum(len(prompt) + len(reference) for prompt, reference in whole) > 100_000


def test_many_instances_of_several_sizes_are_rendered_as_one_by_one():
    instances = [args for draw in range(70) for size in (4, 9, 6) for args in sample("heapsort", size, 1, draw)]
    for decimals in (None, 3):
        renderer = Renderer("heapsort", decimals=decimals)
        assert list(renderer.render_all(instances)) == [renderer.render(args) for args in instances]


@pytest.mark.parametrize("name", NAMES)
def test_the_traced_hints_are_whole_numbers_that_the_writer_knows(name):
    algorithm = find_algorithm(name)
    traced = [hint for hint in algorithm.hints if hint.name in traced_hints(algorithm)]
    assert len(traced) == len(traced_hints(algorithm)) == TRACED.get(name, 1)
    assert all(hint.kind is not Kind.SCALAR and hint.classes <= 4 for hint in traced)
