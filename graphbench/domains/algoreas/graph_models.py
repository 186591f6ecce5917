"""Parameters of the random graph models: names, checks, and the arrays the kernel ``draw_graphs`` reads.

Each row of the parameter array belongs to one model of ``MODELS``; unused columns are 0:

====  ==========================================================================================
er    ``p``
nws   ``k``, ``p``; of several rings also ``share`` of the nodes on rings, ``shortest`` ring
ba    ``m``
dba   ``m1``, ``m2``, ``p``
pc    ``m``, ``p``
sbm   ``p`` within block 1, between the blocks, within block 2; fraction of nodes in block 1
====  ==========================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MODELS = ("er", "nws", "ba", "dba", "pc", "sbm")
NUM_COLUMNS = 9
_PARAMETERS = {
    "er": ("p",),
    "nws": ("k", "p"),
    "ba": ("m",),
    "dba": ("m1", "m2", "p"),
    "pc": ("m", "p"),
    "sbm": ("p", "sizes"),
}
_OPTIONAL = {"nws": ("share", "shortest")}  # given together or not at all
_SYMMETRY_TOLERANCE = 1e-8  # as in networkx
_SUM_TOLERANCE = 1e-9


def pack_models(models: Mapping[str, Mapping[str, Any]]) -> NDArray[np.float64]:
    """Return the parameter rows ``float64[6, 9]`` of the models given; rows of absent models are 0.

    Args:
        models: Model name to parameters, as in ``{"er": {"p": 0.3}, "nws": {"k": 2, "p": 0.2}, "ba": {"m": 2},
            "dba": {"m1": 3, "m2": 2, "p": 0.5}, "pc": {"m": 3, "p": 0.1},
            "sbm": {"p": [[0.5, 0.2], [0.2, 0.5]], "sizes": [0.5, 0.5]}}``. ``nws`` may also have ``share`` and
            ``shortest``: then a random number of rings, each of at least ``shortest`` nodes, have this share of the
            nodes, and the other nodes are on no ring.

    Raises:
        ValueError: A name is unknown, a parameter missing, or a value out of range.
    """
    rows = np.zeros((len(MODELS), NUM_COLUMNS))
    for name, parameters in models.items():
        _check_names(name, parameters)
        values = _sbm_row(parameters) if name == "sbm" else _plain_row(name, parameters)
        rows[MODELS.index(name), : len(values)] = values
    return rows


def pack_mixture(mixture: Mapping[str, float]) -> NDArray[np.float64]:
    """Return the mixture weights ``float64[6]`` in the order of ``MODELS``, 0 for models not named.

    Raises:
        ValueError: A name is unknown, a weight negative or not finite, or all are zero.
    """
    weights = np.zeros(len(MODELS))
    for name, weight in mixture.items():
        _check_model_name(name)
        if not _is_number(weight) or not 0 <= weight < math.inf:
            raise ValueError(f"mixture weight of '{name}' is {weight!r}; give a finite number, 0 or more")
        weights[MODELS.index(name)] = weight
    if not weights.any():
        raise ValueError(f"mixture {dict(mixture)!r} has no positive weight; give one of {', '.join(MODELS)} a weight")
    return weights


def check_models(models: Mapping[str, Mapping[str, Any]], mixture: Mapping[str, float], num_nodes: int) -> None:
    """Raise where graphs of ``num_nodes`` nodes cannot be drawn from this mixture of models.

    Models of weight 0 may be absent, and need not fit the number of nodes.

    Raises:
        ValueError: As in ``pack_models`` and ``pack_mixture``; or a model with a weight has no parameters; a graph
            of this size cannot have the degree asked for.
    """
    if not _is_integer(num_nodes) or num_nodes < 1:
        raise ValueError(f"number of nodes is {num_nodes!r}; give a whole number, 1 or more")
    rows = pack_models(models)
    weights = pack_mixture(mixture)
    for position in np.flatnonzero(weights):
        name = MODELS[position]
        if name not in models:
            raise ValueError(f"mixture gives '{name}' the weight {mixture[name]!r} but it has no parameters; add them")
        _check_size(name, rows[position], num_nodes)


def _check_size(name: str, row: NDArray[np.float64], num_nodes: int) -> None:
    if name == "nws":
        _check_rings(row, num_nodes)
    degrees = [parameter for parameter in _PARAMETERS[name] if parameter.startswith("m")]
    for column, parameter in enumerate(degrees):
        if row[column] >= num_nodes:
            raise ValueError(
                f"{name} has {parameter} = {row[column]:.0f} for {num_nodes} nodes; "
                f"give {parameter} below the number of nodes"
            )


def _check_rings(row: NDArray[np.float64], num_nodes: int) -> None:
    k, share, shortest = int(row[0]), row[2], int(row[3])
    ring_nodes = int(num_nodes * share) if share else num_nodes
    if ring_nodes < shortest:
        raise ValueError(
            f"nws has shortest = {shortest} for rings on {ring_nodes} of {num_nodes} nodes; lower it or raise share"
        )
    smallest = shortest or num_nodes
    if k > smallest:
        raise ValueError(f"nws has k = {k} for {smallest} nodes; give k of at most {smallest}")


def _check_model_name(name: str) -> None:
    if name not in MODELS:
        raise ValueError(f"unknown graph model {name!r}; known are {', '.join(MODELS)}")


def _check_names(name: str, parameters: Mapping[str, Any]) -> None:
    _check_model_name(name)
    expected = _PARAMETERS[name]
    optional = _OPTIONAL.get(name, ())
    unknown = [parameter for parameter in parameters if parameter not in (*expected, *optional)]
    if unknown:
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; it takes {', '.join((*expected, *optional))}")
    given = optional if any(parameter in parameters for parameter in optional) else ()
    missing = [parameter for parameter in (*expected, *given) if parameter not in parameters]
    if missing:
        raise ValueError(f"{name} lacks the parameter '{missing[0]}'; it takes {', '.join(expected)}")


def _plain_row(name: str, parameters: Mapping[str, Any]) -> list[float]:
    values = []
    for parameter in [key for key in (*_PARAMETERS[name], *_OPTIONAL.get(name, ())) if key in parameters]:
        value = parameters[parameter]
        if parameter in ("p", "share"):
            _check_probability(f"{name} {parameter}", value)
            if parameter == "share" and value == 0:
                raise ValueError(f"{name} share is 0; give a fraction of the nodes above 0, or leave it out")
        else:
            lowest = {"k": 0, "shortest": 3}.get(parameter, 1)
            if not _is_integer(value) or value < lowest:
                raise ValueError(f"{name} {parameter} is {value!r}; give a whole number, {lowest} or more")
        values.append(float(value))
    return values


def _sbm_row(parameters: Mapping[str, Any]) -> list[float]:
    matrix, sizes = parameters["p"], parameters["sizes"]
    if not _has_shape(matrix, 2) or not all(_has_shape(row, 2) for row in matrix):
        raise ValueError(f"sbm p is {matrix!r}; give a 2 by 2 matrix")
    for row in matrix:
        for value in row:
            _check_probability("sbm p", value)
    if abs(matrix[0][1] - matrix[1][0]) > _SYMMETRY_TOLERANCE:
        raise ValueError(f"sbm p is {matrix!r}, not symmetric; make its off-diagonal entries equal")
    if not _has_shape(sizes, 2) or not all(_is_number(size) and 0 <= size <= 1 for size in sizes):
        raise ValueError(f"sbm sizes are {sizes!r}; give two fractions of the nodes, from 0 to 1")
    if abs(sum(sizes) - 1) > _SUM_TOLERANCE:
        raise ValueError(f"sbm sizes {sizes!r} add up to {sum(sizes)}; make them add up to 1")
    return [float(matrix[0][0]), float(matrix[0][1]), float(matrix[1][1]), float(sizes[0])]


def _check_probability(name: str, value: object) -> None:
    if not _is_number(value) or not 0 <= value <= 1:  # type: ignore[operator]
        raise ValueError(f"{name} has the value {value!r}; give a probability from 0 to 1")


def _has_shape(value: object, length: int) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and len(value) == length


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
