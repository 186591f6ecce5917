"""Registering and calling algorithms: what is refused, before any work."""

import pytest

from graphbench.domains.clrs import sample, trace
from graphbench.domains.clrs.algorithm import AlgorithmError, algorithm, find_algorithm
from graphbench.domains.clrs.arguments import ArgumentError
from graphbench.domains.clrs.names import NAMES


def register(name="own", **features):
    def run(log, keys, least):
        pass

    run.__name__ = name
    given = {"inputs": "pos:node/scalar, key:node/scalar", "hints": "i:node/mask_one", "outputs": "least:node/mask_one"}
    return algorithm(None, **{**given, **features})(run)


def test_the_benchmark_s_names_are_taken():
    for name in ("bfs", "quickselect"):
        with pytest.raises(AlgorithmError, match=f"'{name}' is one of the benchmark's algorithms"):
            register(name)
        assert find_algorithm(name).run.__module__.startswith("graphbench.")
    assert register("own").name == "own"


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({"hints": "key:node/mask_one"}, "the feature 'key' twice"),
        ({"outputs": "least:node/mask_one, least:node/mask"}, "the feature 'least' twice"),
        ({"hints": "phase:graph/categorical"}, r"phase: write a class with their number, e.g. categorical\(3\)"),
        ({"hints": "phase:graph/categorical(1)"}, "phase: write a class with their number"),
        ({"hints": "phase:graph/mask(3)"}, "phase: write a class with their number"),
    ],
)
def test_features_that_do_not_fit_together(features, words):
    with pytest.raises(AlgorithmError, match=words):
        register(**features)


@pytest.mark.parametrize("arguments", [(), ([[0, 1], [1, 0]],), ([[0, 1], [1, 0]], 0, 1)])
def test_the_number_of_arguments_is_told(arguments):
    with pytest.raises(ArgumentError, match=f"bfs takes 2 arguments, A, s; got {len(arguments)}"):
        trace("bfs", *arguments)


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_takes_what_its_sampler_draws(name):
    args = sample(name, 4, 1, 0)[0]
    assert trace(name, *args).outputs
    with pytest.raises(ArgumentError, match=f"{name} takes {len(args)} arguments"):
        trace(name, *args, 1)


def test_ragged_letters_are_no_string():
    with pytest.raises(ArgumentError, match="x is not an array of numbers"):
        trace("lcs_length", [[0], [0, 1]], [0])
