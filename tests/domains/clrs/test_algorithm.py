"""Registering and calling algorithms: what is refused, before any work."""

from typing import Annotated, NamedTuple

import pytest

from graphbench.catalog.features import Kind, Location, Stage
from graphbench.domains.clrs import sample, trace
from graphbench.domains.clrs.algorithm import AlgorithmError, algorithm, find_algorithm
from graphbench.domains.clrs.arguments import ArgumentError
from graphbench.domains.clrs.names import NAMES
from graphbench.domains.clrs.recording import GraphScalar, Ints, NodeMaskOne
from graphbench.domains.clrs.tracing import Runner, compiled_for


def hints_of(**types):
    return NamedTuple("Hints", list(types.items()))


def register(name="own", **features):
    def run(log, keys, hints, least):
        pass

    run.__name__ = name
    given = {"inputs": "pos:node/scalar, key:node/scalar", "outputs": "least:node/mask_one"}
    return algorithm(None, **{"hints": hints_of(i=NodeMaskOne), **given, **features})(run)


def test_the_fields_of_the_class_of_hints_are_the_hint_features():
    kinds = hints_of(i=NodeMaskOne, phase=Annotated[Ints, "graph/categorical(3)"], total=GraphScalar)
    hints = register(hints=kinds).hints
    assert [(f.name, f.location, f.kind, f.classes) for f in hints] == [
        ("i", Location.NODE, Kind.MASK_ONE, 0),
        ("phase", Location.GRAPH, Kind.CATEGORICAL, 3),
        ("total", Location.GRAPH, Kind.SCALAR, 0),
    ]
    assert {f.stage for f in hints} == {Stage.HINT}


def test_a_hint_whose_type_names_no_feature_is_refused():
    with pytest.raises(AlgorithmError, match=r"Hints\.i.*int"):
        register(hints=hints_of(i=int))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thorough
def test_every_algorithm_works_on_one_view_per_hint(name):
    spec = find_algorithm(name)
    assert [hint.name for hint in spec.hints] == list(spec.views_of_hints._fields)
    runner = Runner(spec)
    runner.run(sample(name, 8, 2, 0))
    (_, _, views), *others = runner._states.values()
    assert not others and isinstance(views, spec.views_of_hints)


def test_a_kernel_without_compiled_code_is_called_itself():
    def run(log):
        raise NotImplementedError

    assert compiled_for(run, [1]) is run


def test_the_benchmark_s_names_are_taken():
    for name in ("bfs", "quickselect"):
        with pytest.raises(AlgorithmError, match=f"'{name}' is one of"):
            register(name)
        assert find_algorithm(name).run.__module__.startswith("graphbench.")
    assert register("own").name == "own"


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({"hints": hints_of(key=NodeMaskOne)}, "the feature 'key' twice"),
        ({"outputs": "least:node/mask_one, least:node/mask"}, "the feature 'least' twice"),
        (
            {"hints": hints_of(phase=Annotated[Ints, "graph/categorical"])},
            r"phase.*categorical\(3\)",
        ),
        ({"hints": hints_of(phase=Annotated[Ints, "graph/categorical(1)"])}, "phase: write a class with their number"),
        ({"hints": hints_of(phase=Annotated[Ints, "graph/mask(3)"])}, "phase: write a class with their number"),
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
