"""The parts a search space is written in: hyperparameters, conditions, forbidden combinations, each one checked."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from graphbench.core.errors import ConfigError

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace
    from ConfigSpace.conditions import Condition, ConditionLike
    from ConfigSpace.forbidden import ForbiddenLike
    from ConfigSpace.hyperparameters import Hyperparameter

    Parameter = Hyperparameter[Any, Any]

_KEYS = {  # per type; the first key is needed
    "float": ("range", "log", "default", "quantum"),
    "int": ("range", "log", "default", "quantum"),
    "categorical": ("choices", "default"),
    "ordinal": ("sequence", "default"),
    "constant": ("value",),
}
_OTHER_NAMES = {"bool": "categorical", "boolean": "categorical", "choice": "categorical", "str": "categorical"}
_OTHER_NAMES |= {"integer": "int", "uniform": "float", "real": "float", "double": "float", "fixed": "constant"}
_COMPARISONS = ("values", "greater_than", "less_than")
_SMALLEST_WIDTH = 1e-10  # ConfigSpace rounds floats to 13 decimal places
_MOST_STEPS = 1000  # of a range with a quantum
_DIGITS = 12


@dataclass(frozen=True)
class Source:
    """Where a space is written, for messages.

    Attributes:
        name: The file; ``space`` for a mapping in Python.
        lines: Keys and indices from the top of the file -> line, from 1.
    """

    name: str = "space"
    lines: Mapping[tuple[str | int, ...], int] = field(default_factory=dict)

    def at(self, *place: str | int) -> str:
        """Return file, line and key of a place, or the line of the innermost place around it that has one."""
        known = (place[:length] for length in range(len(place), 0, -1))
        line = next((self.lines[part] for part in known if part in self.lines), None)
        shown = place[1:] if place[:1] == ("space",) else place
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in shown).removeprefix(".")
        return f"{self.name}{'' if line is None else f':{line}'}{f': {key}' if key else ''}"


@dataclass(frozen=True)
class Entry:
    """One hyperparameter, condition or forbidden combination as it is written, and the place where it stands."""

    place: tuple[str | int, ...]
    content: Mapping[str, Any]
    source: Source

    def refuse(self, key: str | None, text: str) -> NoReturn:
        """Raise a ConfigError about one key, or about the whole entry."""
        place = self.place if key is None else (*self.place, key)
        raise ConfigError(f"{self.source.at(*place)}: {text}")

    def check_keys(self, known: Sequence[str], what: str) -> None:
        """Refuse a key that is not known."""
        for key in self.content:
            if key not in known:
                self.refuse(str(key), f"unknown key{did_you_mean(key, known)} (keys of {what}: {listed(known)})")


def entries(section: str, contents: Any, example: str, source: Source) -> list[Entry]:
    """Return the items of ``conditions`` or ``forbidden``; anything but a list of mappings is refused."""
    if isinstance(contents, str | Mapping) or not isinstance(contents, Iterable):
        raise ConfigError(f"{source.at(section)}: expected a list such as [{example}], got {contents!r}")
    found = []
    for place, content in enumerate(contents):
        if not isinstance(content, Mapping) or not content:
            raise ConfigError(f"{source.at(section, place)}: expected a mapping such as {example}, got {content!r}")
        found.append(Entry((section, place), content, source))
    return found


def hyperparameter(name: Any, content: Any, source: Source) -> Parameter:
    """Return one hyperparameter of a space.

    Raises:
        ConfigError: If something is wrong with it; the message names place, value and remedy.
    """
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{source.at('space', str(name))}: a name must be text, got {name!r}; quote it")
    entry = Entry(("space", name), content if isinstance(content, Mapping) else {}, source)
    if not isinstance(content, Mapping):
        entry.refuse(None, f"expected a mapping such as {{type: float, range: [0, 0.5]}}, got {content!r}")
    kind = content.get("type")
    if not isinstance(kind, str) or kind not in _KEYS:
        near = _OTHER_NAMES.get(str(kind).lower())
        hint = f"; did you mean {near!r}?" if near else did_you_mean(kind, _KEYS)
        what = f"unknown type {kind!r}{hint}" if "type" in content else "the key 'type' is missing"
        entry.refuse("type", f"{what} (types: {listed(_KEYS)})")
    entry.check_keys(("type", *_KEYS[kind]), f"the type {kind}")
    if (needed := _KEYS[kind][0]) not in content:
        entry.refuse(None, f"the key {needed!r} is missing; the type {kind} needs it")
    if kind in ("float", "int"):
        return _range(entry, name, kind)
    return _constant(entry, name) if kind == "constant" else _listed_values(entry, name, kind)


def _constant(entry: Entry, name: str) -> Parameter:
    from ConfigSpace import Constant

    return Constant(name, _checked_value(entry, "value", entry.content["value"]))


def _listed_values(entry: Entry, name: str, kind: str) -> Parameter:
    from ConfigSpace import CategoricalHyperparameter, OrdinalHyperparameter

    key = _KEYS[kind][0]
    given = entry.content[key]
    if not isinstance(given, list | tuple) or len(given) < 2:
        entry.refuse(key, f"expected a list of at least two values, got {given!r}; one value alone is a constant")
    values = [_checked_value(entry, key, value) for value in given]
    for place, value in enumerate(values):
        if value in values[:place]:
            entry.refuse(key, f"the value {value!r} stands there twice (true equals 1); leave one out")
    default = entry.content.get("default", values[0])
    if not any(same(default, value) for value in values):
        entry.refuse(
            "default", f"{default!r} is none of them{did_you_mean(default, values)} (values: {listed(values)})"
        )
    if kind == "ordinal":
        return OrdinalHyperparameter(name, values, default_value=default)
    return CategoricalHyperparameter(name, values, default_value=default)


def _range(entry: Entry, name: str, kind: str) -> Parameter:
    from ConfigSpace import UniformFloatHyperparameter, UniformIntegerHyperparameter

    lower, upper = _bounds(entry, kind)
    log = entry.content.get("log", False)
    if not isinstance(log, bool):
        entry.refuse("log", f"expected true or false, got {log!r}")
    if log and lower <= 0:
        entry.refuse("range", f"a logarithmic range needs a lower bound above 0, got {lower}; raise it or drop log")
    if kind == "float" and min(upper - lower, lower if log else math.inf) < _SMALLEST_WIDTH:
        entry.refuse("range", f"[{lower}, {upper}] is too fine: 13 decimal places are kept; tune a multiple of it")
    default = entry.content.get("default")
    if default is not None:
        default = _number(entry, "default", default, kind)
        if not lower <= default <= upper:
            entry.refuse("default", f"{default} is outside [{lower}, {upper}]; choose one inside or widen the range")
    if entry.content.get("quantum") is not None:
        return _stepped(entry, name, kind, (lower, upper), default)
    if kind == "int":
        return UniformIntegerHyperparameter(name, int(lower), int(upper), default_value=default, log=log)
    return UniformFloatHyperparameter(name, lower, upper, default_value=default, log=log)


def _bounds(entry: Entry, kind: str) -> tuple[float, float]:
    given = entry.content["range"]
    if not isinstance(given, list | tuple) or len(given) != 2:
        entry.refuse("range", f"expected [lower, upper], got {given!r}")
    lower, upper = (_number(entry, "range", value, kind) for value in given)
    if lower == upper:
        entry.refuse("range", f"both bounds are {lower}; write {{type: constant, value: {lower}}}")
    if lower > upper:
        entry.refuse("range", f"the lower bound {lower} is above the upper bound {upper}; swap them")
    return lower, upper


def _stepped(entry: Entry, name: str, kind: str, bounds: tuple[float, float], default: float | None) -> Parameter:
    """Return a range with a quantum as an ordinal hyperparameter; ConfigSpace has no ranges with steps."""
    from ConfigSpace import OrdinalHyperparameter

    (lower, upper), quantum = bounds, _number(entry, "quantum", entry.content["quantum"], kind)
    if entry.content.get("log"):
        entry.refuse("quantum", "a logarithmic range has no equal steps; drop log or quantum, or write an ordinal")
    if quantum <= 0:
        entry.refuse("quantum", f"expected a step above 0, got {quantum}")
    count = round((upper - lower) / quantum)
    if count < 1 or not math.isclose(lower + count * quantum, upper, abs_tol=1e-6 * quantum):
        end = round(lower + max(1, count) * quantum, _DIGITS)
        entry.refuse(
            "quantum",
            f"the range {lower} to {upper} is no multiple of the quantum {quantum}; write e.g. [{lower}, {end}]",
        )
    if count >= _MOST_STEPS:
        entry.refuse("quantum", f"{count} steps are too many, below {_MOST_STEPS} are allowed; enlarge or drop it")
    values = [round(lower + step * quantum, _DIGITS) for step in range(count + 1)]
    if default is None:
        default = values[len(values) // 2]
    nearest = min(values, key=lambda value: abs(value - default))
    if not math.isclose(nearest, default, abs_tol=1e-6 * quantum):
        entry.refuse("default", f"no steps of {quantum} lead from {lower} to {default}; the nearest value is {nearest}")
    return OrdinalHyperparameter(name, values, default_value=nearest)


def _number(entry: Entry, key: str, value: Any, kind: str) -> float:
    """Return a finite float, or an int for the type ``int``."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        entry.refuse(key, f"expected a finite number, got {value!r}")
    if kind == "float":
        return float(value)
    if value != int(value):
        entry.refuse(key, f"expected a whole number, got {value!r}; round it or use the type float")
    return int(value)


def _checked_value(entry: Entry, key: str, value: Any) -> Any:
    try:
        return plain(value, key)
    except ConfigError:
        entry.refuse(key, f"{value!r} is no text, truth value, finite number or list of these; use a name for it")


def add_conditions(space: ConfigurationSpace, written: Sequence[Entry]) -> None:
    """Add conditions to a space; of several on one child all must hold.

    Raises:
        ConfigError: If something is wrong with one; the message names place, value and remedy.
    """
    from ConfigSpace import AndConjunction

    of_child: dict[str, list[Condition]] = {}
    parents: dict[str, set[str]] = {}
    for entry in written:
        entry.check_keys(("child", "parent", *_COMPARISONS), "a condition")
        child, parent = (_named(space, entry, key) for key in ("child", "parent"))
        if (way := _way(parents, parent.name, child.name)) is not None:
            circle = " -> ".join([child.name, *way])
            entry.refuse("parent", f"{child.name} would depend on itself: {circle}; remove one of these conditions")
        parents.setdefault(child.name, set()).add(parent.name)
        of_child.setdefault(child.name, []).append(_condition(child, parent, entry))
    together: list[ConditionLike] = [
        conditions[0] if len(conditions) == 1 else AndConjunction(*conditions) for conditions in of_child.values()
    ]
    space.add(together)


def _condition(child: Parameter, parent: Parameter, entry: Entry) -> Condition:
    from ConfigSpace import GreaterThanCondition, InCondition, LessThanCondition

    given = [key for key in _COMPARISONS if key in entry.content]
    if len(given) != 1:
        entry.refuse(None, f"expected exactly one of {listed(_COMPARISONS)}, got {listed(given) or 'none'}")
    key = given[0]
    value = entry.content[key]
    if key == "values":
        if not isinstance(value, list | tuple) or not value:
            entry.refuse(key, f"expected a list of values of {parent.name}, got {value!r}")
        return InCondition(child, parent, [_known_value(parent, entry, key, item) for item in value])
    if not parent.ORDERABLE:
        entry.refuse(key, f"the values of {parent.name} have no order; use values, or make it an ordinal")
    value = _known_value(parent, entry, key, value)
    return (GreaterThanCondition if key == "greater_than" else LessThanCondition)(child, parent, value)


def add_forbidden(space: ConfigurationSpace, written: Sequence[Entry]) -> None:
    """Add combinations of values that never occur.

    Raises:
        ConfigError: If something is wrong with one; the message names place, value and remedy.
    """
    from ConfigSpace.exceptions import ForbiddenValueError

    for entry in written:
        clause = _forbidden(space, entry)
        try:
            space.add(clause)
        except ForbiddenValueError:
            entry.refuse(None, f"{dict(entry.content)} forbids the defaults; change a default or the combination")


def _forbidden(space: ConfigurationSpace, entry: Entry) -> ForbiddenLike:
    from ConfigSpace import ForbiddenAndConjunction, ForbiddenEqualsClause, ForbiddenInClause

    clauses: list[ForbiddenEqualsClause | ForbiddenInClause] = []
    for name, value in entry.content.items():
        parameter = _named(space, entry, name, name)
        if isinstance(value, list | tuple) and matching(parameter, value) is NOTHING:
            if not value:
                entry.refuse(name, "expected a value or a list of values, got an empty list")
            clauses.append(ForbiddenInClause(parameter, [_known_value(parameter, entry, name, item) for item in value]))
        else:
            clauses.append(ForbiddenEqualsClause(parameter, _known_value(parameter, entry, name, value)))
    return clauses[0] if len(clauses) == 1 else ForbiddenAndConjunction(*clauses)


def _named(space: ConfigurationSpace, entry: Entry, key: str, name: Any = None) -> Parameter:
    """Return the hyperparameter that stands at a key of an entry, or has the given name."""
    if name is None:
        if key not in entry.content:
            entry.refuse(None, f"the key {key!r} is missing")
        name = entry.content[key]
    if not isinstance(name, str) or name not in space:
        entry.refuse(key, f"{name!r} is no name in the space{did_you_mean(name, space)} (names: {listed(space)})")
    return space[name]


def _known_value(parameter: Parameter, entry: Entry, key: str, value: Any) -> Any:
    found = matching(parameter, value)
    if found is NOTHING:
        known = values_of(parameter)
        if known is None:
            entry.refuse(key, f"{value!r} is no value of {parameter.name}, whose range is {_shown_range(parameter)}")
        entry.refuse(
            key, f"{value!r} is no value of {parameter.name}{did_you_mean(value, known)} (values: {listed(known)})"
        )
    return found


def _shown_range(parameter: Any) -> str:
    return f"[{parameter.lower}, {parameter.upper}]"


def _way(parents: Mapping[str, set[str]], start: str, goal: str) -> list[str] | None:
    """Return names from one hyperparameter over parents to another; None where no way leads there."""
    if start == goal:
        return [goal]
    for parent in sorted(parents.get(start, ())):
        if (rest := _way(parents, parent, goal)) is not None:
            return [start, *rest]
    return None


NOTHING = object()
"""Stands for no value, as None can be one."""


def values_of(parameter: Parameter) -> Sequence[Any] | None:
    """Return all values of a hyperparameter, in their order; None for a range."""
    from ConfigSpace import CategoricalHyperparameter, Constant, OrdinalHyperparameter

    if isinstance(parameter, CategoricalHyperparameter):
        return parameter.choices
    if isinstance(parameter, OrdinalHyperparameter):
        return parameter.sequence
    return (parameter.value,) if isinstance(parameter, Constant) else None


def matching(parameter: Parameter, value: Any) -> Any:
    """Return a plain value as the hyperparameter knows it, or ``NOTHING`` where it is none of its values."""
    known = values_of(parameter)
    if known is not None:
        return next((own for own in known if same(plain(own, parameter.name), value)), NOTHING)
    if isinstance(value, bool) or not isinstance(value, int | float) or not bool(parameter.legal_value(value)):
        return NOTHING
    return type(parameter.default_value)(value)


def same(first: Any, second: Any) -> bool:
    """Return whether two plain values are equal and both, or neither, are truth values."""
    return bool(first == second) and isinstance(first, bool) == isinstance(second, bool)


def plain(value: Any, where: str) -> Any:
    """Return what JSON can hold: NumPy's numbers as Python's, tuples as lists.

    Raises:
        ConfigError: If JSON cannot hold the value.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(key): plain(part, where) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part, where) for part in value]
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ConfigError(f"{where}: the value {value!r} cannot be kept as JSON; use a name for it instead")


def did_you_mean(value: Any, known: Iterable[Any]) -> str:
    """Return the nearest known name as a part of a message; empty where none is near.

    Of dotted names the last part alone may be meant.
    """
    names = [str(name) for name in known]
    ends = {name.rpartition(".")[2]: name for name in reversed(names)}
    near = difflib.get_close_matches(str(value), names, n=1)
    near = near or [ends[end] for end in difflib.get_close_matches(str(value), ends, n=1)]
    return f"; did you mean {near[0]!r}?" if near else ""


def listed(values: Iterable[Any]) -> str:
    """Return values as a part of a message."""
    return ", ".join(str(value) for value in values)
