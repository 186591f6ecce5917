"""Search spaces: ConfigSpace builds them from their written form, with clear errors, and gives them back in it.

A space is written as a mapping from names to hyperparameters::

    {"lr": {"type": "float", "range": [1e-6, 0.1], "log": True}, "layers": {"type": "int", "range": [2, 6]}}

ConfigSpace takes long to import, so it is imported where it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from pydantic import ValidationError

from graphbench.core.errors import ConfigError
from graphbench.core.suggestions import closest
from graphbench.core.validation import Place, dotted, explain
from graphbench.tuning.written_space import (
    Condition,
    Entry,
    WrittenSpace,
    listed,
    plain,
    same,
    written_combination,
    written_conditions,
    written_hyperparameter,
)

if TYPE_CHECKING:
    from ConfigSpace import Configuration, ConfigurationSpace
    from ConfigSpace.hyperparameters import Hyperparameter

    from graphbench.training.config import RunConfig

    Parameter = Hyperparameter[Any, Any]

NOTHING = object()
"""No value, as None can be a value."""


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
        """Return file, line and key of a location; a key without a line gets the line of the nearest key around it."""
        enclosing = (place[:length] for length in range(len(place), 0, -1))
        line = next((self.lines[outer] for outer in enclosing if outer in self.lines), None)
        key = dotted(place[1:] if place[:1] == ("space",) else place)
        return f"{self.name}{'' if line is None else f':{line}'}{f': {key}' if key else ''}"

    def refuse(self, place: Place, text: str) -> NoReturn:
        """Raise a ConfigError that names a location in the file and says why its content is refused."""
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
        ConfigError: If a part is refused; the message names the key, the value and the remedy.
    """
    from ConfigSpace import ConfigurationSpace

    if isinstance(hyperparameters, ConfigurationSpace):
        return hyperparameters
    source = source or Source()
    content: Any = {"space": hyperparameters, "conditions": conditions, "forbidden": forbidden}
    if _has_sections(hyperparameters):
        content = hyperparameters
    try:
        return build_space(WrittenSpace.model_validate(content), source)
    except ValidationError as error:
        raise ConfigError(explain(error, WrittenSpace, at=source.at)) from None


def build_space(written: WrittenSpace, source: Source) -> ConfigurationSpace:
    """Return the search space of a written form whose parts are valid separately.

    Raises:
        ConfigError: If the parts do not fit together; the message names the key, the value and the remedy.
    """
    from ConfigSpace.exceptions import ForbiddenValueError

    entries = [{"name": name, **hyperparameter.entry()} for name, hyperparameter in written.space.items()]
    try:
        parameters = _decoded(entries)
    except (ValueError, TypeError, ArithmeticError) as error:
        source.refuse(("space",), f"ConfigSpace refuses it: {error}; choose smaller numbers")
    conditions = _condition_entries(parameters, written.conditions, source)
    forbidden = [
        _clause(parameters, combination, ("forbidden", number), source)
        for number, combination in enumerate(written.forbidden)
    ]
    try:
        return _decoded(entries, conditions, forbidden)
    except ForbiddenValueError:
        for number, clause in enumerate(forbidden):
            try:
                _decoded(entries, conditions, [clause])
            except ForbiddenValueError:
                text = f"{written.forbidden[number]} forbids the defaults; change a default or the combination"
                source.refuse(("forbidden", number), text)
        raise


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
    entries = {entry["name"]: entry for entry in content["hyperparameters"]}
    conditions = [part for entry in content["conditions"] for part in written_conditions(entry)]
    forbidden = [written_combination(entry) for entry in content["forbiddens"]]
    return {
        "space": {name: plain(written_hyperparameter(entries[name]), name) for name in sorted(entries)},
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
    for entry in content["hyperparameters"]:
        value = matching(space[entry["name"]], _value_at(values, entry["name"]))
        if value is not NOTHING and "default_value" in entry:
            entry["default_value"] = value
    try:
        return ConfigurationSpace.from_serialized_dict(content)
    except ValueError as error:
        raise ConfigError(f"the values of {config.model_name} are forbidden in its space: {error}") from None


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


def _has_sections(written: Any) -> bool:
    """Return whether a mapping holds a space with its conditions, and not hyperparameters."""
    section = written.get("space") if isinstance(written, Mapping) else None
    is_section = isinstance(section, Mapping) and not isinstance(section.get("type"), str)
    return is_section and written.keys() <= WrittenSpace.model_fields.keys()


def _decoded(
    hyperparameters: Sequence[Entry], conditions: Sequence[Entry] = (), forbidden: Sequence[Entry] = ()
) -> ConfigurationSpace:
    from ConfigSpace import ConfigurationSpace

    content = {"hyperparameters": hyperparameters, "conditions": conditions, "forbiddens": forbidden}
    return ConfigurationSpace.from_serialized_dict(deepcopy(content))  # which takes keys out of the entries


def _condition_entries(space: ConfigurationSpace, conditions: Sequence[Condition], source: Source) -> list[Entry]:
    """Return one entry for all conditions of a child; all of them must hold."""
    of_child: dict[str, list[Entry]] = {}
    parents: dict[str, set[str]] = {}
    for number, condition in enumerate(conditions):
        for key in ("child", "parent"):
            _named(space, getattr(condition, key), ("conditions", number, key), source)
        parents.setdefault(condition.child, set()).add(condition.parent)
        _refuse_circle(parents, condition.child, ("conditions", number, "parent"), source)
        parent, place = space[condition.parent], ("conditions", number, condition.comparison)
        if condition.values is None and not parent.ORDERABLE:
            source.refuse(place, f"the values of {parent.name} have no order; use values, or make it an ordinal")
        given = condition.values or [getattr(condition, condition.comparison)]
        entry = condition.entry([_typed(parent, value, place, source) for value in given])
        of_child.setdefault(condition.child, []).append(entry)
    return [
        entries[0] if len(entries) == 1 else {"type": "AND", "child": child, "conditions": entries}
        for child, entries in of_child.items()
    ]


def _refuse_circle(parents: Mapping[str, set[str]], child: str, place: Place, source: Source) -> None:
    """Refuse conditions by which a hyperparameter depends on itself."""
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        names = error.args[1][:0:-1]  # each depends on the next one
        start = names.index(child)
        circle = " -> ".join([*names[start:], *names[: start + 1]])
        source.refuse(place, f"{child} would depend on itself: {circle}; remove one of these conditions")


def _clause(space: ConfigurationSpace, combination: Mapping[str, Any], place: Place, source: Source) -> Entry:
    """Return the entry of a combination of values that never occurs."""
    clauses: list[Entry] = []
    for name, value in combination.items():
        part = (*place, name)
        parameter = _named(space, name, part, source)
        if not isinstance(value, list) or matching(parameter, value) is not NOTHING:
            clauses.append({"type": "EQUALS", "name": name, "value": _typed(parameter, value, part, source)})
        elif value:
            clauses.append({"type": "IN", "name": name, "values": [_typed(parameter, v, part, source) for v in value]})
        else:
            source.refuse(part, "expected a value or a list of values, got an empty list")
    return clauses[0] if len(clauses) == 1 else {"type": "AND", "clauses": clauses}


def _named(space: ConfigurationSpace, name: str, place: Place, source: Source) -> Parameter:
    """Return the hyperparameter of a name."""
    if name not in space:
        source.refuse(place, f"{name!r} is no name in the space{closest(name, space)} (names: {listed(space)})")
    return space[name]


def _typed(parameter: Any, value: Any, place: Place, source: Source) -> Any:
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


def _value_at(values: Any, key: str) -> Any:
    """Return the value at a dotted key of nested mappings; ``NOTHING`` if there is none."""
    for part in key.split("."):
        values = values.get(part, NOTHING) if isinstance(values, Mapping) else NOTHING
    return values


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
