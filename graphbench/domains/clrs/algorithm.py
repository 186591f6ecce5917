"""The registry of algorithms: a compiled function, its features, and the arguments it takes."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.errors import GraphBenchError
from graphbench.core.kernels import kernel
from graphbench.core.suggestions import closest
from graphbench.domains.clrs.arguments import Prepared
from graphbench.domains.clrs.names import MODULES, NAMES

Array = NDArray[Any]
_PACKAGE = "graphbench.domains.clrs.algorithms"
_WORD = re.compile(r"(\w+):(node|edge|graph)/([a-z_]+)(?:\((\d+)\))?")


class UnknownAlgorithm(GraphBenchError):
    """No algorithm has this name."""


@dataclass(frozen=True, eq=False)
class Algorithm:
    """One algorithm of the benchmark.

    Attributes:
        name: Name of the algorithm, as in ``clrs/<name>``.
        run: Compiled ``(log, *arguments, hints, *outputs) -> None``: works on the views of the hints, calls
            ``record(log)`` after every step, and leaves the result in the arrays of the outputs.
        prepare: ``(*arguments) -> Prepared``: checks the arguments of some instances of one size, one list of
            instances per argument, and makes the input features from the arguments.
        inputs: Input features.
        hints: Hint features, as the dataset has them.
        outputs: Output features.
        views_of_hints: The NamedTuple that hands the views of the hints to ``run``, one field per hint.
        summary: First line of the docstring of the function.
    """

    name: str
    run: Callable[..., None]
    prepare: Callable[..., Prepared]
    inputs: tuple[Feature, ...]
    hints: tuple[Feature, ...]
    outputs: tuple[Feature, ...]
    views_of_hints: Callable[..., tuple[Array, ...]]
    summary: str

    @property
    def features(self) -> tuple[Feature, ...]:
        """All features, inputs first."""
        return (*self.inputs, *self.hints, *self.outputs)


_REGISTERED: dict[str, Algorithm] = {}


def algorithm(
    prepare: Callable[..., Prepared], *, inputs: str, hints: type[tuple[Array, ...]], outputs: str
) -> Callable[[Callable[..., None]], Algorithm]:
    """Register an algorithm: compile the function and give it its features.

    The parameters of the function are ``log``, its arguments, ``hints``, and one array per output, in this order.
    Inputs and outputs are written ``name:location/type`` with commas between: ``pos:node/scalar, pi:node/pointer``.
    The hints are a NamedTuple, a class of a module, with one field per hint::

        class BfsHints(NamedTuple):
            reach_h: NodeMask
            pi_h: NodePointer

    The types of the fields are in ``graphbench.domains.clrs.recording``; a hint with classes is written
    ``Annotated[Ints, "graph/categorical(3)"]``. The function works in these arrays:

    ==========================  ==============================================================
    feature                     array
    ==========================  ==============================================================
    node scalar                 ``float64[n]``
    node mask, pointer, class   ``int32[n]``; a class is a number, -1 where masked
    edge ...                    the same, ``[n, n]``
    node mask_one               ``int32[1]``: the id of the node
    graph ...                   ``float64[1]`` or ``int32[1]``
    ==========================  ==============================================================

    All arrays start as zeros.

    Args:
        prepare: ``(*arguments) -> Prepared``, from ``graphbench.domains.clrs.arguments`` or another function.
        inputs: The input features.
        hints: The class of the hints.
        outputs: The output features.

    Raises:
        AlgorithmError: If the benchmark has an algorithm of this name, or the features do not fit together.
    """

    def register(function: Callable[..., None]) -> Algorithm:
        new = Algorithm(
            function.__name__,
            kernel(function),
            prepare,
            parse_features(inputs, Stage.INPUT),
            features_of_hints(hints),
            parse_features(outputs, Stage.OUTPUT),
            hints,
            (function.__doc__ or "").strip().split("\n")[0],
        )
        _check(new, function)
        _REGISTERED[new.name] = new
        return new

    return register


class AlgorithmError(GraphBenchError):
    """An algorithm is registered under a name that is taken, or with features that do not fit together."""


def _check(new: Algorithm, function: Callable[..., None]) -> None:
    taken = new.name in NAMES and not function.__module__.startswith(f"{_PACKAGE}.")
    if taken:
        raise AlgorithmError(f"{new.name!r} is one of the benchmark's algorithms; give the new algorithm another name")
    names = [feature.name for feature in new.features]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise AlgorithmError(f"{new.name} has the feature {twice[0]!r} twice; give the features different names")
    for feature in new.features:
        if (feature.kind is Kind.CATEGORICAL) != (feature.classes >= 2):
            raise AlgorithmError(f"{new.name}: {feature.name}: write a class with their number, e.g. categorical(3)")


def parse_features(text: str, stage: Stage) -> tuple[Feature, ...]:
    """Return the features of a line such as ``pos:node/scalar, s:node/mask_one``."""
    return tuple(_feature(word.strip(), stage) for word in text.replace("\n", " ").split(","))


def features_of_hints(hints: type[tuple[Array, ...]]) -> tuple[Feature, ...]:
    """Return the features of a class of hints, in the order of its fields.

    Raises:
        AlgorithmError: If the type of a field names no feature.
    """
    features = []
    if not (isinstance(hints, type) and hasattr(hints, "_fields")):
        raise AlgorithmError(f"hints is {hints!r:.80}; give a NamedTuple class with one field per hint")
    for name, annotation in get_type_hints(hints, include_extras=True).items():
        if get_origin(annotation) is not Annotated:
            raise AlgorithmError(
                f"the type of {hints.__name__}.{name} is {annotation!r}, which names no feature; give the field a type "
                'of graphbench.domains.clrs.recording, such as NodePointer, or Annotated[Ints, "graph/categorical(3)"]'
            )
        features.append(_feature(f"{name}:{get_args(annotation)[1]}", Stage.HINT))
    return tuple(features)


def _feature(text: str, stage: Stage) -> Feature:
    match = _WORD.fullmatch(text)
    if match is None:
        raise ValueError(f"feature {text!r} is not of the form name:location/type")
    name, location, kind, classes = match.groups()
    return Feature(name, stage, Location(location), Kind(kind), int(classes or 0))


def find_algorithm(name: str) -> Algorithm:
    """Return an algorithm by its name: an algorithm of the benchmark, or another one whose module was imported.

    Raises:
        UnknownAlgorithm: If no algorithm has this name; the message suggests the nearest name.
    """
    for module, names in MODULES.items() if name not in _REGISTERED else ():
        if name in names:
            importlib.import_module(f"{_PACKAGE}.{module}")
    if name not in _REGISTERED:
        registered = sorted({*NAMES, *_REGISTERED})
        raise UnknownAlgorithm(
            f"unknown algorithm {name!r}{closest(name, registered)} (there are {', '.join(registered)})"
        )
    return _REGISTERED[name]
