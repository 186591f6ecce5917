"""The written form of a search space, and its translation to the entries of ConfigSpace's serialised form and back.

The checks are the ones whose failure ConfigSpace does not notice, or does not explain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    StrictBool,
    ValidationInfo,
    field_validator,
    model_validator,
)

from graphbench.core.errors import ConfigError
from graphbench.core.suggestions import closest
from graphbench.core.validation import StrictModel

Entry = dict[str, Any]

_TYPES = ("float", "int", "categorical", "ordinal", "constant")
_OTHER_NAMES = {
    "bool": "categorical", "boolean": "categorical", "choice": "categorical", "str": "categorical", "integer": "int",
    "uniform": "float", "real": "float", "double": "float", "fixed": "constant",
}  # fmt: skip
_COMPARISONS = {"values": "IN", "greater_than": "GT", "less_than": "LT"}  # key of a condition -> type of its entry
_FINEST = 1e-10  # ConfigSpace rounds floats to 13 decimal places
_MAX_STEPS = 1000  # of a range with a quantum
_DIGITS = 12  # of values between the bounds, so that every machine describes them alike


def plain(value: Any, name: str = "") -> Any:
    """Return a value of the hyperparameter of a name in types of JSON: NumPy's numbers as Python's, tuples as lists.

    Raises:
        ConfigError: If JSON cannot hold the value.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(key): plain(part, name) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part, name) for part in value]
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ConfigError(f"{name and f'{name}: '}the value {value!r} cannot be kept as JSON; use a name for it instead")


def same(first: Any, second: Any) -> bool:
    """Return whether two plain values are equal and both, or neither, are bools."""
    return bool(first == second) and isinstance(first, bool) == isinstance(second, bool)


def listed(values: Any) -> str:
    """Return values as a part of a message."""
    return ", ".join(map(str, values))


def _number(value: Any, info: ValidationInfo) -> int | float:
    """Return a number in the type of the range that it belongs to."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not abs(value) < math.inf:
        raise ValueError("expected a finite number")
    if info.data.get("type") == "float":
        try:
            return float(value)
        except OverflowError:
            raise ValueError("expected a number that fits a float") from None
    if value != int(value):
        raise ValueError("expected a whole number; round it or use the type float")
    return int(value)


def _pair(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError("expected [lower, upper]")
    return value


def _different(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) < 2:
        raise ValueError("expected a list of at least two values; one value alone is a constant")
    for index, item in enumerate(value):
        if any(bool(item == other) for other in value[:index]):
            raise ValueError(f"the value {item!r} is listed twice (true equals 1); leave one out")
    return value


def _one_of_the_values(value: Any, info: ValidationInfo) -> Any:
    values = info.data.get("choices", info.data.get("sequence"))
    if values is not None and not any(same(value, allowed) for allowed in values):
        raise ValueError(f"it is none of the values{closest(value, values)} (values: {listed(values)})")
    return value


Number = Annotated[Any, BeforeValidator(_number)]
Value = Annotated[Any, BeforeValidator(lambda value: plain(value))]
Values = Annotated[list[Value], BeforeValidator(_different)]
OneOfTheValues = Annotated[Value, AfterValidator(_one_of_the_values)]


def _faults(key: str, value: Any, lower: float, upper: float, log: bool, quantum: float | None) -> Iterator[str]:
    """Yield the reasons for which the value of a key of a range does not fit the keys before it."""
    if key == "range":
        if lower == upper:
            yield f"both bounds are {lower}; write {{type: constant, value: {lower}}}"
        if lower > upper:
            yield f"the lower bound {lower} is above the upper bound {upper}; swap them"
        if upper - lower < _FINEST:
            yield "the range is too fine: 13 decimal places are kept; tune a multiple of it"
    if key == "log" and log and lower <= 0:
        yield f"a logarithmic range needs a lower bound above 0, got {lower}; raise it or drop log"
    if key == "log" and log and lower < _FINEST:
        yield f"the lower bound {lower} is too fine: 13 decimal places are kept; tune a multiple of it"
    if key == "default" and not lower <= value <= upper:
        yield f"it is outside [{lower}, {upper}]; choose one inside or widen the range"
    if quantum is None:
        return
    if quantum <= 0:
        yield "expected a step above 0"
    if log:
        yield "a logarithmic range has no equal steps; drop log or quantum, or write an ordinal"
    if (upper - lower) / quantum >= _MAX_STEPS:
        yield f"{(upper - lower) / quantum:.0f} steps are too many, below {_MAX_STEPS} are allowed; enlarge or drop it"
    end = upper if key == "quantum" else value
    nearest = round(lower + round((end - lower) / quantum) * quantum, _DIGITS)
    if key == "default" and abs(nearest - end) > 1e-6 * quantum:
        yield f"no steps of {quantum} lead to it from {lower}; the nearest value is {nearest}"
    if key == "quantum" and (nearest == lower or abs(nearest - end) > 1e-6 * quantum):
        end = lower + quantum if nearest == lower else nearest
        yield f"the range {lower} to {upper} is no multiple of it; write e.g. [{lower}, {end}]"


class Range(StrictModel):
    """All numbers, or all integers, from a lower to an upper bound, both included; with ``log`` on a logarithmic scale.

    With a quantum, the range holds only the lower bound and the values whole steps above it. Keys are validated in the
    order of their definition, so that each validator can read the keys before it.
    """

    type: Literal["float", "int"]
    range: Annotated[tuple[Number, Number], BeforeValidator(_pair)]
    log: StrictBool = False
    quantum: Number | None = None
    default: Number | None = None

    @field_validator("range", "log", "quantum", "default")
    @classmethod
    def _fits(cls, value: Any, info: ValidationInfo) -> Any:
        keys = {"log": False, "quantum": None, **info.data, str(info.field_name): value}
        if value is not None and "range" in keys:
            lower, upper = keys["range"]
            for fault in _faults(str(info.field_name), value, lower, upper, keys["log"], keys["quantum"]):
                raise ValueError(fault)
        return value

    def entry(self) -> Entry:
        """Return the entry without the name; a range with a quantum gives an ordinal, as ConfigSpace has no steps."""
        (lower, upper), quantum = self.range, self.quantum
        if quantum is None:
            bounds = {"lower": lower, "upper": upper, "log": self.log}
            return {"type": f"uniform_{self.type}", **bounds, "default_value": self.default}
        values = [round(lower + step * quantum, _DIGITS) for step in range(round((upper - lower) / quantum) + 1)]
        wanted = values[len(values) // 2] if self.default is None else self.default
        default = min(values, key=lambda value: abs(value - wanted))
        return {"type": "ordinal", "sequence": values, "default_value": default}

    def scaled(self, share: float, largest: int) -> Range | Constant:
        """Return a range of integers with bounds multiplied by a share below 1, and at most ``largest``."""
        lower, upper = (round(bound * share) for bound in self.range)
        lower, upper = max(1, lower) if self.log else lower, min(upper, largest)
        if lower >= upper:
            return Constant(type="constant", value=max(0, upper))
        fields: dict[str, Any] = {"type": "int", "range": (lower, upper)} | ({"log": True} if self.log else {})
        if self.default is not None:
            fields["default"] = min(max(round(self.default * share), lower), upper)
        return Range(**fields)


class _Values(StrictModel):
    """Values that are listed; the first one is the default unless another default is given."""

    def entry(self) -> Entry:
        """Return the entry, without the name."""
        entry = self.model_dump(exclude_unset=True)
        return {"default_value" if key == "default" else key: value for key, value in entry.items()}


class Categorical(_Values):
    """Values without an order."""

    type: Literal["categorical"]
    choices: Values
    default: OneOfTheValues = None


class Ordinal(_Values):
    """Values in an order."""

    type: Literal["ordinal"]
    sequence: Values
    default: OneOfTheValues = None


class Constant(_Values):
    """One value."""

    type: Literal["constant"]
    value: Value


def _of_known_type(value: Any) -> Any:
    """Refuse values other than a mapping with an existing type; the message of pydantic has no suggestion."""
    if isinstance(value, BaseModel):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("expected a mapping such as {type: float, range: [0, 0.5]}")
    kind = value.get("type")
    if kind not in _TYPES:
        near = closest(kind, _TYPES, aliases=_OTHER_NAMES) if "type" in value else ""
        fault = f"unknown type {kind!r}{near}" if "type" in value else "the key 'type' is missing"
        raise ValueError(f"{fault} (types: {listed(_TYPES)})")
    return dict(value)


class Condition(StrictModel):
    """The condition for a hyperparameter: the parent has one of some values, or is above or below a limit."""

    child: str
    parent: str
    values: list[Value] | None = Field(None, min_length=1)
    greater_than: Value = None
    less_than: Value = None

    @model_validator(mode="after")
    def _has_one_comparison(self) -> Self:
        comparisons = [key for key in _COMPARISONS if key in self.model_fields_set]
        if len(comparisons) != 1:
            raise ValueError(f"expected exactly one of {listed(_COMPARISONS)}, got {listed(comparisons) or 'none'}")
        return self

    @property
    def comparison(self) -> str:
        """The key that compares: ``values``, ``greater_than`` or ``less_than``."""
        return next(key for key in _COMPARISONS if key in self.model_fields_set)

    def entry(self, values: list[Any]) -> Entry:
        """Return the entry with the values, or the limit, in the type of the parent's values."""
        compared = {"values": values} if self.values is not None else {"value": values[0]}
        return {"type": _COMPARISONS[self.comparison], "child": self.child, "parent": self.parent, **compared}


def _by_name(value: Any) -> Any:
    """Refuse values other than a mapping from texts, with an example."""
    if not isinstance(value, Mapping) or not value:
        example = "{'lr': {'type': 'float', 'range': [1e-6, 0.1], 'log': True}}"
        raise ValueError(f"expected a mapping from names to hyperparameters, e.g. {example}")
    for name in value:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a name must be text, got {name!r}; quote it")
    return dict(value)


Hyperparameter = Annotated[
    Annotated[Range | Categorical | Ordinal | Constant, Field(discriminator="type")], BeforeValidator(_of_known_type)
]
Combination = Annotated[dict[str, Value], Field(min_length=1)]


class WrittenSpace(StrictModel):
    """The hyperparameters of a space, the conditions under which they exist, and the combinations that never occur."""

    space: Annotated[dict[str, Hyperparameter], BeforeValidator(_by_name)]
    conditions: tuple[Condition, ...] = ()
    forbidden: tuple[Combination, ...] = ()


def written_hyperparameter(entry: Entry) -> dict[str, Any]:
    """Return the written form of a hyperparameter's entry; distributions without one keep the entry's form."""
    if entry["type"] not in ("uniform_float", "uniform_int"):
        unused = ("name", "meta") if entry.get("weights") is not None else ("name", "meta", "weights")
        return {"default" if key == "default_value" else key: part for key, part in entry.items() if key not in unused}
    kind, default = entry["type"].removeprefix("uniform_"), entry["default_value"]
    shown = float(f"{default:.{_DIGITS}g}") if isinstance(default, float) else default
    return {"type": kind, "range": [entry["lower"], entry["upper"]], "log": entry["log"], "default": shown}


def written_conditions(entry: Entry) -> list[dict[str, Any]]:
    """Return the written form of a condition's entry, one condition for each part of a conjunction."""
    if entry["type"] == "AND":
        return [part for each in entry["conditions"] for part in written_conditions(each)]
    key = {"EQ": "values", **{kind: key for key, kind in _COMPARISONS.items()}}.get(entry["type"])
    if key is None:
        return [dict(entry)]
    compared = list(entry.get("values", [entry.get("value")])) if key == "values" else entry["value"]
    return [{"child": entry["child"], "parent": entry["parent"], key: compared}]


def written_combination(entry: Entry) -> dict[str, Any]:
    """Return the written form of a forbidden clause's entry; relations keep the entry's form."""
    clauses = entry["clauses"] if entry["type"] == "AND" else [entry]
    if any(clause["type"] not in ("EQUALS", "IN") for clause in clauses):
        return dict(entry)
    return {clause["name"]: list(clause["values"]) if "values" in clause else clause["value"] for clause in clauses}
