"""The order in which prompts are trained on."""

from __future__ import annotations

import numpy as np
import pytest

from graphbench.domains.clrs import sample
from graphbench.domains.clrs_text import render
from graphbench.tasks.text.prompts import Corpus, Prompts


def made_up(lengths, reference="a\n\n"):
    return Prompts(["q" * length for length in lengths], [reference] * len(lengths), [4] * len(lengths))


def test_batches_have_one_size_and_texts_of_similar_length():
    lengths = np.random.RandomState(0).randint(1, 90, 150)
    corpus = Corpus.of(made_up(lengths.tolist()), 160)
    batches = corpus.batches(16, 7, 0)
    assert [len(batch) for batch in batches] == [16] * 9
    assert len(set(np.concatenate(batches).tolist())) == 144
    assert max(np.ptp(lengths[batch]) for batch in batches) < 30
    again, other = corpus.batches(16, 7, 0), corpus.batches(16, 7, 1)
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))
    assert set(np.concatenate(batches).tolist()) != set(np.concatenate(other).tolist())
    assert [sorted(batch) for batch in Corpus.of(made_up([3, 1, 2]), 160).batches(16, 0, 0)] == [[0, 1, 2]]


@pytest.mark.parametrize(
    "algorithm", ["minimum", "bfs", "insertion_sort", "floyd_warshall", "topological_sort", "segments_intersect"]
)
def test_references_without_traces_are_those_that_are_rendered_without(algorithm):
    drawn = sample(algorithm, 6, 8, seed=2)
    traced = [render(algorithm, args, decimals=3) for args in drawn]
    prompts, references = zip(*traced, strict=True)
    shortened = Prompts(list(prompts), list(references), [6] * 8).without_traces()
    assert shortened.references == [render(algorithm, args, use_hints=False, decimals=3)[1] for args in drawn]
    assert shortened.prompts == list(prompts)
