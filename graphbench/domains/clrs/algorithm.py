"""The registry of algorithms: a compiled function, its features, and the arguments it takes."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.errors import GraphBenchError
from graphbench.core.kernels import kernel
from graphbench.domains.clrs.arguments import Prepared
from graphbench.domains.clrs.names import MODULES, NAMES

Array = NDArray[Any]
_PACKAGE = "graphbench.domains.clrs.algorithms"
_WORD = re.compile(r"(\w+):(node|edge|graph)/([a-z_]+)(?:\((\d+)\))?")


class UnknownAlgorithm(GraphBenchError):
    """No algorithm has that name."""


@dataclass(frozen=True, eq=False)
class Algorithm:
    """One algorithm of the benchmark.

    Attributes:
        name: Its name, as in ``clrs/<name>``.
        run: Compiled ``(log, *arguments, *hints, *outputs) -> None``: works on the hints' views, calls ``record(log)``
            after every step, and leaves the result in the outputs' arrays.
        prepare: ``(*arguments) -> Prepared``: checks the arguments of some instances of one size, a list per argument,
            and makes the input features from them.
        inputs: Input features.
        hints: Hint features, as the dataset has them.
        outputs: Output features.
        summary: First line of the function's docstring.
    """

    name: str
    run: Callable[..., None]
    prepare: Callable[..., Prepared]
    inputs: tuple[Feature, ...]
    hints: tuple[Feature, ...]
    outputs: tuple[Feature, ...]
    summary: str

    @property
    def features(self) -> tuple[Feature, ...]:
        """All features, inputs first."""
        return (*self.inputs, *self.hints, *self.outputs)


_REGISTERED: dict[str, Algorithm] = {}


def algorithm(
    prepare: Callable[..., Prepared], *, inputs: str, hints: str, outputs: str
) -> Callable[[Callable[..., None]], Algorithm]:
    """Register an algorithm: compile the function and give it its features.

    Features are written ``name:location/type`` with commas between: ``pi_h:node/pointer, phase:graph/categorical(3)``.
    The function's parameters are ``log``, its arguments, then one array per hint and one per output, in that order:

    ==========================  ==============================================================
    feature                     array the function works on
    ==========================  ==============================================================
    node scalar                 ``float64[n]``
    node mask, pointer, class   ``int32[n]``; a class is a number, -1 where masked
    edge ...                    the same, ``[n, n]``
    node mask_one               ``int32[1]``: the id of the node
    graph ...                   ``float64[1]`` or ``int32[1]``
    ==========================  ==============================================================

    All start as zeros.

    Args:
        prepare: ``(*arguments) -> Prepared``, from ``graphbench.domains.clrs.arguments`` or your own.
        inputs: The input features.
        hints: The hint features.
        outputs: The output features.

    Raises:
        AlgorithmError: If the benchmark has an algorithm of that name, or the features do not fit together.
    """

    def register(function: Callable[..., None]) -> Algorithm:
        new = Algorithm(
            function.__name__,
            kernel(function),
            prepare,
            parse_features(inputs, Stage.INPUT),
            parse_features(hints, Stage.HINT),
            parse_features(outputs, Stage.OUTPUT),
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
        raise AlgorithmError(f"{new.name!r} is one of the benchmark's algorithms; name yours otherwise")
    names = [feature.name for feature in new.features]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise AlgorithmError(f"{new.name} has the feature {twice[0]!r} twice; give each a name of its own")
    for feature in new.features:
        if (feature.kind is Kind.CATEGORICAL) != (feature.classes >= 2):
            raise AlgorithmError(f"{new.name}: {feature.name}: write a class with their number, e.g. categorical(3)")


def parse_features(text: str, stage: Stage) -> tuple[Feature, ...]:
    """Return the features of a line such as ``pos:node/scalar, s:node/mask_one``."""
    features = []
    for word in text.replace("\n", " ").split(","):
        match = _WORD.fullmatch(word.strip())
        if match is None:
            raise ValueError(f"feature {word.strip()!r} is not of the form name:location/type")
        name, location, kind, classes = match.groups()
        features.append(Feature(name, stage, Location(location), Kind(kind), int(classes or 0)))
    return tuple(features)


def find_algorithm(name: str) -> Algorithm:
    """Return an algorithm by its name: one of the benchmark's, or one of your own that was imported.

    Raises:
        UnknownAlgorithm: If there is none of that name; the message suggests the nearest.
    """
    for module, names in MODULES.items() if name not in _REGISTERED else ():
        if name in names:
            importlib.import_module(f"{_PACKAGE}.{module}")
    if name not in _REGISTERED:
        registered = sorted({*NAMES, *_REGISTERED})
        near = difflib.get_close_matches(str(name), registered, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UnknownAlgorithm(f"unknown algorithm {name!r}; {hint}(there are {', '.join(registered)})")
    return _REGISTERED[name]
