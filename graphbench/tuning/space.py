"""Search spaces: from their written form to ConfigSpace, with clear errors, and back to plain values.

A space is a mapping from names to hyperparameters::

    {"lr": {"type": "float", "range": [1e-6, 0.1], "log": True}, "layers": {"type": "int", "range": [2, 6]}}

ConfigSpace takes long to import, so it is imported where it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from pydantic import ValidationError

from graphbench.core.errors import ConfigError
from graphbench.core.suggestions import closest
from graphbench.core.validation import Place, dotted, explain
from graphbench.tuning.space_models import AnyHyperparameter, Condition, WrittenSpace, listed, plain, same

if TYPE_CHECKING:
    from ConfigSpace import Configuration, ConfigurationSpace
    from ConfigSpace.conditions import Condition as BuiltCondition
    from ConfigSpace.conditions import ConditionLike
    from ConfigSpace.forbidden import ForbiddenLike

    from graphbench.training.config import RunConfig
    from graphbench.tuning.space_models import Parameter

_SHOWN_DIGITS = 12  # digits of the defaults that ConfigSpace computes, so that every machine describes them alike
_RANGES = {"uniform_float": "float", "uniform_int": "int"}
_COMPARED = {"GT": "greater_than", "LT": "less_than"}
_SECTIONS = {"space", "conditions", "forbidden"}


@dataclass(frozen=True)
class Source:
    """The file or mapping that a space is written in, for messages.

    Attributes:
        name: The file; ``space`` for a mapping in Python.
        lines: Keys and indices from the top of the file -> line, from 1.
    """

    name: str = "space"
    lines: Mapping[Place, int] = field(default_factory=dict)

    def at(self, place: Place) -> str:
        """Return file, line and key of a place; a place without a line gets the line of the innermost place around."""
        enclosing = (place[:length] for length in range(len(place), 0, -1))
        line = next((self.lines[outer] for outer in enclosing if outer in self.lines), None)
        shown = place[1:] if place[:1] == ("space",) else place
        key = dotted(shown)
        return f"{self.name}{'' if line is None else f':{line}'}{f': {key}' if key else ''}"

    def refuse(self, place: Place, text: str) -> NoReturn:
        """Raise a ConfigError about the content of a place."""
        raise ConfigError(f"{self.at(place)}: {text}")


def space_from(
    hyperparameters: ConfigurationSpace | Mapping[str, Any],
    conditions: Sequence[Any] = (),
    forbidden: Sequence[Any] = (),
    source: Source | None = None,
) -> ConfigurationSpace:
    """Return the search space of a written form.

    Args:
        hyperparameters: name -> ``{type: float | int, range: [lower, upper], log, default, quantum}``,
            ``{type: categorical, choices, default}``, ``{type: ordinal, sequence, default}`` or
            ``{type: constant, value}``. A range includes its bounds; with a ``quantum`` it holds the lower bound and
            the values whole steps above it. Or a mapping with the keys ``space``, ``conditions`` and ``forbidden``, as
            :func:`describe` returns it. A ``ConfigurationSpace`` is returned as it is.
        conditions: ``{child, parent, values: [...]}``, ``{child, parent, greater_than}`` or ``{..., less_than}``: the
            child exists only where the parent's value fulfils the condition; all conditions of a child must hold.
        forbidden: Combinations ``{name: value, name: value}`` that never occur; a list means any of several values.
        source: The file or mapping that holds the space, for messages.

    Raises:
        ConfigError: If a part is refused; the message names place, value and remedy.
    """
    from ConfigSpace import ConfigurationSpace

    if isinstance(hyperparameters, ConfigurationSpace):
        return hyperparameters
    source = source or Source()
    parts = {"space": hyperparameters, "conditions": conditions, "forbidden": forbidden}
    try:
        written = WrittenSpace.model_validate(hyperparameters if _is_whole(hyperparameters) else parts)
    except ValidationError as error:
        raise ConfigError(explain(error, WrittenSpace, at=source.at)) from None
    return build_space(written.space, written.conditions, written.forbidden, source)


def build_space(
    hyperparameters: Mapping[str, AnyHyperparameter],
    conditions: Sequence[Condition],
    forbidden: Sequence[Mapping[str, Any]],
    source: Source,
) -> ConfigurationSpace:
    """Return the search space of parts that are valid separately.

    Raises:
        ConfigError: If the parts do not fit together; the message names place, value and remedy.
    """
    from ConfigSpace import ConfigurationSpace

    space = ConfigurationSpace()
    space.add([hyperparameter.build(name) for name, hyperparameter in hyperparameters.items()])
    _add_conditions(space, conditions, source)
    _add_forbidden(space, forbidden, source)
    return space


def to_plain(configuration: Configuration) -> dict[str, Any]:
    """Return name -> value of a configuration's active hyperparameters, as plain values that JSON can hold.

    A choice is returned as it was written: an integer among floats stays an integer, and a bool a bool.

    Raises:
        ConfigError: If a ready-made space holds a value that JSON cannot.
    """
    space, vector = configuration.config_space, configuration.get_array()
    values = {}
    for name in space:
        position = vector[space.index_of[name]]
        if np.isnan(position):
            continue
        choices = values_of(space[name])
        if choices is None:
            values[name] = plain(configuration[name], name)
        else:  # the look-up of ConfigSpace makes one NumPy type of all choices
            values[name] = plain(choices[round(position) if len(choices) > 1 else 0], name)
    return values


def describe(space: ConfigurationSpace) -> dict[str, Any]:
    """Return the written form of a space: ``space``, ``conditions`` and ``forbidden``.

    The written form identifies the space: it is equal for spaces of equal content in any order, in every process and on
    every machine. Parts without a written form (weights, other distributions, other conditions of ready-made spaces)
    are in the form of ConfigSpace.

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
    """Return the space with the values of a run's configuration as defaults, as far as they are in the space.

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
    """Return whether a mapping holds a space with its conditions, and not hyperparameters."""
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
    """Return the written form of a condition; a conjunction is written as several."""
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
    """Return the value at a dotted key of nested mappings; ``NOTHING`` if there is none."""
    value: Any = values
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return NOTHING
        value = value[part]
    return value


def _add_conditions(space: ConfigurationSpace, written: Sequence[Condition], source: Source) -> None:
    """Add conditions to a space; all conditions of one child must hold."""
    from ConfigSpace import AndConjunction

    of_child: dict[str, list[BuiltCondition]] = {}
    parents: dict[str, set[str]] = {}
    for number, condition in enumerate(written):
        place: Place = ("conditions", number)
        child, parent = (_named(space, getattr(condition, key), (*place, key), source) for key in ("child", "parent"))
        if (path := _path(parents, parent.name, child.name)) is not None:
            circle = " -> ".join([child.name, *path])
            source.refuse(
                (*place, "parent"),
                f"{child.name} would depend on itself: {circle}; remove one of these conditions",
            )
        parents.setdefault(child.name, set()).add(parent.name)
        of_child.setdefault(child.name, []).append(_condition(child, parent, condition, place, source))
    together: list[ConditionLike] = [
        conditions[0] if len(conditions) == 1 else AndConjunction(*conditions) for conditions in of_child.values()
    ]
    space.add(together)


def _condition(child: Parameter, parent: Parameter, written: Condition, place: Place, source: Source) -> BuiltCondition:
    from ConfigSpace import GreaterThanCondition, InCondition, LessThanCondition

    place = (*place, written.comparison)
    if written.values is not None:
        return InCondition(child, parent, [_known_value(parent, value, place, source) for value in written.values])
    if not parent.ORDERABLE:
        source.refuse(place, f"the values of {parent.name} have no order; use values, or make it an ordinal")
    value = _known_value(parent, getattr(written, written.comparison), place, source)
    return (GreaterThanCondition if written.comparison == "greater_than" else LessThanCondition)(child, parent, value)


def _add_forbidden(space: ConfigurationSpace, written: Sequence[Mapping[str, Any]], source: Source) -> None:
    """Add combinations of values that never occur."""
    from ConfigSpace.exceptions import ForbiddenValueError

    for number, combination in enumerate(written):
        place: Place = ("forbidden", number)
        try:
            space.add(_forbidden(space, combination, place, source))
        except ForbiddenValueError:
            source.refuse(place, f"{dict(combination)} forbids the defaults; change a default or the combination")


def _forbidden(
    space: ConfigurationSpace, combination: Mapping[str, Any], place: Place, source: Source
) -> ForbiddenLike:
    from ConfigSpace import ForbiddenAndConjunction, ForbiddenEqualsClause, ForbiddenInClause

    clauses: list[ForbiddenEqualsClause | ForbiddenInClause] = []
    for name, value in combination.items():
        value_place = (*place, name)
        parameter = _named(space, name, value_place, source)
        if isinstance(value, list) and matching(parameter, value) is NOTHING:
            if not value:
                source.refuse(value_place, "expected a value or a list of values, got an empty list")
            clauses.append(
                ForbiddenInClause(parameter, [_known_value(parameter, v, value_place, source) for v in value])
            )
        else:
            clauses.append(ForbiddenEqualsClause(parameter, _known_value(parameter, value, value_place, source)))
    return clauses[0] if len(clauses) == 1 else ForbiddenAndConjunction(*clauses)


def _named(space: ConfigurationSpace, name: str, place: Place, source: Source) -> Parameter:
    """Return the hyperparameter of a name."""
    if name not in space:
        source.refuse(place, f"{name!r} is no name in the space{closest(name, space)} (names: {listed(space)})")
    return space[name]


def _known_value(parameter: Any, value: Any, place: Place, source: Source) -> Any:
    """Return a written value in the hyperparameter's type."""
    typed = matching(parameter, value)
    if typed is NOTHING:
        allowed = values_of(parameter)
        if allowed is None:
            hint = f", whose range is [{parameter.lower}, {parameter.upper}]"
        else:
            hint = f"{closest(value, allowed)} (values: {listed(allowed)})"
        source.refuse(place, f"{value!r} is no value of {parameter.name}{hint}")
    return typed


def _path(parents: Mapping[str, set[str]], start: str, goal: str) -> list[str] | None:
    """Return the names on a path from one hyperparameter over its parents to another; None if there is no path."""
    if start == goal:
        return [goal]
    for parent in sorted(parents.get(start, ())):
        if (rest := _path(parents, parent, goal)) is not None:
            return [start, *rest]
    return None


NOTHING = object()
"""No value, as None can be a value."""


def values_of(parameter: Parameter) -> Sequence[Any] | None:
    """Return all values of a hyperparameter, in their order; None for a range."""
    from ConfigSpace import CategoricalHyperparameter, Constant, OrdinalHyperparameter

    if isinstance(parameter, CategoricalHyperparameter):
        return parameter.choices
    if isinstance(parameter, OrdinalHyperparameter):
        return parameter.sequence
    return (parameter.value,) if isinstance(parameter, Constant) else None


def matching(parameter: Parameter, value: Any) -> Any:
    """Return a plain value in the hyperparameter's type, or ``NOTHING`` if it is not one of its values."""
    allowed = values_of(parameter)
    if allowed is not None:
        return next((typed for typed in allowed if same(plain(typed, parameter.name), value)), NOTHING)
    if isinstance(value, bool) or not isinstance(value, int | float) or not bool(parameter.legal_value(value)):
        return NOTHING
    return type(parameter.default_value)(value)
