"""Search spaces: from a mapping to ConfigSpace with every mistake named, and back to plain, readable values.

A space is a mapping from names to hyperparameters::

    {"lr": {"type": "float", "range": [1e-6, 0.1], "log": True}, "layers": {"type": "int", "range": [2, 6]}}

ConfigSpace takes long to import, so it is imported where it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphbench.core.errors import ConfigError
from graphbench.tuning.space_parts import (
    NOTHING,
    Source,
    add_conditions,
    add_forbidden,
    entries,
    hyperparameter,
    matching,
    plain,
    values_of,
)

if TYPE_CHECKING:
    from ConfigSpace import Configuration, ConfigurationSpace

    from graphbench.training.config import RunConfig

_SHOWN_DIGITS = 12  # of defaults that ConfigSpace computes, so that they are described alike on every machine
_RANGES = {"uniform_float": "float", "uniform_int": "int"}
_COMPARED = {"GT": "greater_than", "LT": "less_than"}
_SECTIONS = {"space", "conditions", "forbidden"}


def space_from(
    hyperparameters: ConfigurationSpace | Mapping[str, Any],
    conditions: Sequence[Any] = (),
    forbidden: Sequence[Any] = (),
    source: Source | None = None,
) -> ConfigurationSpace:
    """Return the search space that is written down.

    Args:
        hyperparameters: name -> ``{type: float | int, range: [lower, upper], log, default, quantum}``,
            ``{type: categorical, choices, default}``, ``{type: ordinal, sequence, default}`` or
            ``{type: constant, value}``. A range includes its bounds; with a ``quantum`` it holds the lower bound and
            what lies whole steps above it. Or a mapping with the keys ``space``, ``conditions`` and ``forbidden``, as
            :func:`describe` returns it. A ``ConfigurationSpace`` is returned as it is.
        conditions: ``{child, parent, values: [...]}``, ``{child, parent, greater_than}`` or ``{..., less_than}``: the
            child exists only where its parent's value is so; where several name a child, all must hold.
        forbidden: Combinations ``{name: value, name: value}`` that never occur; a list stands for several values.
        source: Where all this is written, for messages.

    Raises:
        ConfigError: If something is wrong with it; the message names place, value and remedy.
    """
    from ConfigSpace import ConfigurationSpace

    if isinstance(hyperparameters, ConfigurationSpace):
        return hyperparameters
    if _is_whole(hyperparameters):
        whole: Mapping[str, Any] = hyperparameters
        return space_from(whole["space"], whole.get("conditions", ()), whole.get("forbidden", ()), source)
    source = source or Source()
    if not isinstance(hyperparameters, Mapping) or not hyperparameters:
        raise ConfigError(
            f"{source.at('space')}: expected a mapping from names to hyperparameters, "
            f"e.g. {{'lr': {{'type': 'float', 'range': [1e-6, 0.1], 'log': True}}}}, got {hyperparameters!r}"
        )
    space = ConfigurationSpace()
    space.add([hyperparameter(name, content, source) for name, content in hyperparameters.items()])
    add_conditions(space, entries("conditions", conditions, "{child: a, parent: b, values: [1, 2]}", source))
    add_forbidden(space, entries("forbidden", forbidden, "{a: 1, b: 2}", source))
    return space


def to_plain(configuration: Configuration) -> dict[str, Any]:
    """Return name -> value of a configuration's active hyperparameters, as plain values that JSON can hold.

    A choice comes back as it was written: among floats an integer stays one, and a truth value a truth value.

    Raises:
        ConfigError: If a ready-made space holds a value that JSON cannot.
    """
    space, vector = configuration.config_space, configuration.get_array()
    found = {}
    for name in space:
        place = vector[space.index_of[name]]
        if np.isnan(place):
            continue
        known = values_of(space[name])
        if known is None:
            found[name] = plain(configuration[name], name)
        else:  # ConfigSpace's own look-up makes one NumPy type of all choices
            found[name] = plain(known[round(place) if len(known) > 1 else 0], name)
    return found


def describe(space: ConfigurationSpace) -> dict[str, Any]:
    """Return a space as it is written: ``space``, ``conditions`` and ``forbidden``.

    It is the identity of the space: equal for spaces of equal content, in whatever order that was written, in every
    process and on every machine. What has no written form (weights, other distributions, other conditions of ready-made
    spaces) stands in the words of ConfigSpace.

    Raises:
        ConfigError: If a ready-made space holds a value that JSON cannot.
    """
    content = space.to_serialized_dict()
    items = {item["name"]: item for item in content["hyperparameters"]}
    conditions = [part for item in content["conditions"] for part in _described_conditions(item)]
    forbidden = [_described_forbidden(item) for item in content["forbiddens"]]
    return {
        "space": {name: plain(_described(items[name]), name) for name in sorted(items)},
        "conditions": sorted(plain(conditions, "conditions"), key=_canonical),
        "forbidden": sorted(plain(forbidden, "forbidden"), key=_canonical),
    }


def defaults_from(config: RunConfig, space: ConfigurationSpace) -> ConfigurationSpace:
    """Return the space with the values of a run's configuration as defaults, where they lie inside.

    Args:
        config: The configuration that is tuned.
        space: Its names are dotted keys of the configuration, e.g. ``training.lr``; the others keep their defaults.

    Raises:
        ConfigError: If the values together are a combination that the space forbids.
    """
    from ConfigSpace import ConfigurationSpace

    values, content = config.model_dump(mode="json"), space.to_serialized_dict()
    for item in content["hyperparameters"]:
        value = matching(space[item["name"]], _looked_up(values, item["name"]))
        if value is not NOTHING and "default_value" in item:
            item["default_value"] = value
    try:
        return ConfigurationSpace.from_serialized_dict(content)
    except ValueError as error:
        raise ConfigError(f"the values of {config.model_name} are forbidden in its space: {error}") from None


def _is_whole(written: Any) -> bool:
    """Return whether a mapping holds a space with its conditions, not hyperparameters."""
    section = written.get("space") if isinstance(written, Mapping) else None
    return isinstance(section, Mapping) and not isinstance(section.get("type"), str) and written.keys() <= _SECTIONS


def _described(item: Mapping[str, Any]) -> dict[str, Any]:
    kind = item["type"]
    if kind in _RANGES:
        shown = {"type": _RANGES[kind], "range": [item["lower"], item["upper"]], "log": item["log"]}
        return shown | {"default": _rounded(item["default_value"])}
    if kind == "constant":
        return {"type": kind, "value": item["value"]}
    unused = ("name", "meta") if item.get("weights") is not None else ("name", "meta", "weights")
    return {"default" if key == "default_value" else key: value for key, value in item.items() if key not in unused}


def _rounded(value: float) -> float:
    return float(f"{value:.{_SHOWN_DIGITS}g}") if isinstance(value, float) else value


def _described_conditions(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a condition as it is written; a conjunction is written as several."""
    kind = item["type"]
    if kind == "AND":
        return [part for each in item["conditions"] for part in _described_conditions(each)]
    if kind in ("OR", "NEQ"):
        return [dict(item)]
    shown = {"child": item["child"], "parent": item["parent"]}
    if kind in _COMPARED:
        return [shown | {_COMPARED[kind]: item["value"]}]
    return [shown | {"values": [item["value"]] if kind == "EQ" else list(item["values"])}]


def _described_forbidden(item: Mapping[str, Any]) -> dict[str, Any]:
    clauses = item["clauses"] if item["type"] == "AND" else [item]
    if any(clause["type"] not in ("EQUALS", "IN") for clause in clauses):
        return dict(item)
    return {clause["name"]: list(clause["values"]) if "values" in clause else clause["value"] for clause in clauses}


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _looked_up(values: Mapping[str, Any], key: str) -> Any:
    """Return the value at a dotted key of nested mappings; ``NOTHING`` where there is none."""
    found: Any = values
    for part in key.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return NOTHING
        found = found[part]
    return found
