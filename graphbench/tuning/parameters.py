"""Hyperparameters in reports: on a scale from 0 to 1, as a number for a model, and as text.

Hyperparameters are read from the plain form of a space in results (:func:`graphbench.tuning.space.describe`), so that a
report needs neither the run nor the library that the space came from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LISTS = ("choices", "sequence")
_LIMITS = {"values", "greater_than", "less_than"}  # conditions of other kinds are not read
_MAX_LISTED = 8  # values of a longer list are shortened


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition for a parameter: its parent has one of some values, or is on one side of a limit.

    Attributes:
        parent: Name of the parent.
        values: Values of the parent; None if there is a limit.
        above: Limit that the parent's value must exceed; None for no lower limit.
        below: Limit that the parent's value must stay below; None for no upper limit.
    """

    parent: str
    values: tuple[Any, ...] | None = None
    above: Any = None
    below: Any = None

    def __str__(self) -> str:
        """Return e.g. ``where optimizer is sgd``."""
        if self.values is not None:
            return f"where {self.parent} is {' or '.join(map(value_text, self.values))}"
        sign, limit = ("<", self.below) if self.above is None else (">", self.above)
        return f"where {self.parent} {sign} {value_text(limit)}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One hyperparameter of a space.

    Attributes:
        name: The name, e.g. ``training.lr``.
        default: The default value.
        values: All values in order, if the parameter is a list; empty for a range.
        low: Lower bound of a range, included.
        high: Upper bound of a range, included.
        whole: Whether a range holds integers alone.
        log: Whether a range is searched on a logarithmic scale.
        ordered: Whether the values have an order.
        conditions: The conditions under which the parameter is active; all must hold.
    """

    name: str
    default: Any
    values: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 1.0
    whole: bool = False
    log: bool = False
    ordered: bool = True
    conditions: tuple[Condition, ...] = ()

    @property
    def varies(self) -> bool:
        """Whether the parameter has more than one value."""
        return len(self.values) > 1 or (not self.values and self.high > self.low)

    @property
    def has_default(self) -> bool:
        """Whether the hyperparameter has a default."""
        return self.default is not None or None in self.values

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest code."""
        return (0.0, float(len(self.values) - 1)) if self.values else (self._scaled(self.low), self._scaled(self.high))

    @property
    def range_text(self) -> str:
        """The values, e.g. ``1e-06 to 0.1, logarithmic``, and the conditions."""
        if self.values:
            shown = _listed(self.values)
        else:
            shown = f"{value_text(self.low)} to {value_text(self.high)}{', logarithmic' if self.log else ''}"
        return "; ".join((shown, *map(str, self.conditions)))

    def code(self, value: Any) -> float:
        """Return a value as a number: its logarithm on a logarithmic scale, its index in a list.

        A value that is not in the list has the default's index.
        """
        if not self.values:
            return self._scaled(float(value))
        indices = [index for index, listed in enumerate(self.values) if _same(listed, value)]
        return float(indices[0]) if indices else (0.0 if _same(value, self.default) else self.code(self.default))

    def place(self, value: Any) -> float:
        """Return where a value lies on the parameter's scale, from 0 to 1."""
        low, high = self.bounds
        return (self.code(value) - low) / (high - low) if high > low else 0.5

    def codes_at(self, shares: Floats) -> Floats:
        """Return the codes at quantiles of a uniform distribution: float64 of the shape of ``shares`` in [0, 1)."""
        if self.values:
            return np.floor(shares * len(self.values))
        if not self.whole:
            low, high = self.bounds
            return low + shares * (high - low)
        low, high = self._scaled(self.low - 0.5 + 1e-9), self._scaled(self.high + 0.5 - 1e-9)
        drawn = low + shares * (high - low)
        return np.log(np.rint(np.exp(drawn))) if self.log else np.rint(drawn)

    def _scaled(self, value: float) -> float:
        return math.log(value) if self.log else float(value)


def read_parameters(described: Mapping[str, Any], configurations: Iterable[Mapping[str, Any]]) -> tuple[Parameter, ...]:
    """Return the parameters of a space, in its order.

    Args:
        described: ``{"space": name -> hyperparameter, "conditions": [...]}``, or the hyperparameters alone.
        configurations: The configurations tried; they give the range of a hyperparameter without bounds.
    """
    plain = "space" in described and "conditions" in described
    entries: Mapping[str, Any] = described["space"] if plain else described
    conditions: Sequence[Mapping[str, Any]] = described["conditions"] if plain else ()
    tried = list(configurations)
    return tuple(
        _parameter(name, entry, conditions, [c[name] for c in tried if name in c]) for name, entry in entries.items()
    )


def active_codes(parameters: Sequence[Parameter], codes: Floats) -> Floats:
    """Return codes ``[..., parameters]`` in which every inactive parameter has its default."""
    columns_of = {parameter.name: column for column, parameter in enumerate(parameters)}
    active: dict[str, NDArray[np.bool_]] = {}

    def is_active(parameter: Parameter) -> NDArray[np.bool_]:
        if parameter.name not in active:
            active[parameter.name] = np.ones(codes.shape[:-1], dtype=bool)
            for condition in parameter.conditions:
                if condition.parent in columns_of:
                    parent = parameters[columns_of[condition.parent]]
                    holds = is_active(parent) & _holds(condition, parent, codes[..., columns_of[parent.name]])
                    active[parameter.name] = active[parameter.name] & holds
        return active[parameter.name]

    columns = [
        np.where(is_active(parameter), codes[..., column], parameter.code(parameter.default))
        for column, parameter in enumerate(parameters)
    ]
    return np.stack(columns, axis=-1)


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return the shortest unique ending of each dotted name: ``lr`` for ``training.lr``."""
    parts = {name: name.split(".") for name in names}
    shortened = {}
    for name in names:
        endings = (".".join(parts[name][-count:]) for count in range(1, len(parts[name]) + 1))
        others = [other for other in names if other != name]
        shortened[name] = next((e for e in endings if not any(f".{o}".endswith(f".{e}") for o in others)), name)
    return shortened


def config_text(config: Mapping[str, Any]) -> str:
    """Return a configuration in one line, with the shortest unambiguous names."""
    names = short_names(list(config))
    return ", ".join(f"{names[key]} {value_text(value)}" for key, value in config.items())


def value_text(value: Any) -> str:
    """Return a value of a configuration as readable text: four digits of a float, JSON of anything but text."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.4g}"
    return json.dumps(value, default=str)


def _parameter(
    name: str, entry: Mapping[str, Any], conditions: Sequence[Mapping[str, Any]], tried: Sequence[Any]
) -> Parameter:
    conditions_of_name = tuple(
        _condition(item) for item in conditions if item.get("child") == name and item.keys() & _LIMITS
    )
    default = entry.get("default", entry.get("default_value", tried[0] if tried else None))
    kind = str(entry.get("type", ""))
    if "value" in entry:
        return Parameter(name, entry["value"], values=(entry["value"],), conditions=conditions_of_name)
    for key in _LISTS:
        if key in entry:
            return Parameter(
                name,
                default,
                values=tuple(entry[key]),
                ordered=kind.startswith("ordinal"),
                conditions=conditions_of_name,
            )
    bounds = entry.get("range", (entry.get("lower"), entry.get("upper")))
    numbers = [v for v in (*bounds, *tried, default) if isinstance(v, int | float) and not isinstance(v, bool)]
    if not numbers:
        return Parameter(
            name, default, values=tuple(dict.fromkeys(map(value_text, tried))), conditions=conditions_of_name
        )
    log, whole = bool(entry.get("log", False)) and min(numbers) > 0, "int" in kind
    return Parameter(name, default, (), min(numbers), max(numbers), whole=whole, log=log, conditions=conditions_of_name)


def _listed(values: Sequence[Any]) -> str:
    if len(values) <= _MAX_LISTED:
        return ", ".join(map(value_text, values))
    first, second, last = (value_text(value) for value in (*values[:2], values[-1]))
    return f"{first}, {second}, ..., {last} ({len(values)} values)"


def _condition(item: Mapping[str, Any]) -> Condition:
    values = item.get("values")
    return Condition(
        str(item["parent"]), None if values is None else tuple(values), item.get("greater_than"), item.get("less_than")
    )


def _holds(condition: Condition, parent: Parameter, codes: Floats) -> NDArray[np.bool_]:
    if condition.values is not None:
        return np.isin(codes, [parent.code(value) for value in condition.values])
    if condition.above is not None:
        return codes > parent.code(condition.above) + 1e-12
    return codes < parent.code(condition.below) - 1e-12


def _same(first: Any, second: Any) -> bool:
    return bool(first == second) and isinstance(first, bool) == isinstance(second, bool)
