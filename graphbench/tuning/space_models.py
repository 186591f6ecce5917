"""The written form of a search space, hyperparameters and conditions, as pydantic models.

ConfigSpace takes long to import, so it is imported where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
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

if TYPE_CHECKING:
    from ConfigSpace.hyperparameters import Hyperparameter

    Parameter = Hyperparameter[Any, Any]

_OTHER_NAMES = {
    "bool": "categorical", "boolean": "categorical", "choice": "categorical", "str": "categorical", "integer": "int",
    "uniform": "float", "real": "float", "double": "float", "fixed": "constant",
}  # fmt: skip
_SMALLEST_WIDTH = 1e-10  # ConfigSpace rounds floats to 13 decimal places
_MAX_STEPS = 1000  # of a range with a quantum
_DIGITS = 12
_EXAMPLE = "{type: float, range: [0, 0.5]}"
_CONDITION = "{child: a, parent: b, values: [1, 2]}"
_FORBIDDEN = "{a: 1, b: 2}"


def plain(value: Any, where: str) -> Any:
    """Return a value in types of JSON: NumPy's numbers as Python's, tuples as lists.

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


def same(first: Any, second: Any) -> bool:
    """Return whether two plain values are equal and both, or neither, are bools."""
    return bool(first == second) and isinstance(first, bool) == isinstance(second, bool)


def listed(values: Any) -> str:
    """Return values as a part of a message."""
    return ", ".join(map(str, values))


def _plain_value(value: Any) -> Any:
    try:
        return plain(value, "")
    except ConfigError:
        raise ValueError("expected text, a truth value, a number or a list of these; use a name for it") from None


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise ValueError("expected a finite number")
    return value.item() if isinstance(value, np.generic) else value


def _whole_number(value: Any) -> int:
    number = _number(value)
    if number != int(number):
        raise ValueError("expected a whole number; round it or use the type float")
    return int(number)


Value = Annotated[Any, BeforeValidator(_plain_value)]
Number = Annotated[float, BeforeValidator(_number)]
WholeNumber = Annotated[int, BeforeValidator(_whole_number)]


class _Range(StrictModel):
    """All values from a lower to an upper bound, both included.

    With a quantum, the range holds only the lower bound and the values whole steps above it. Keys are validated in the
    order of their definition, so that each validator can read the keys before it.
    """

    type: Any
    range: tuple[Any, Any]
    log: StrictBool = False
    quantum: Any = None
    default: Any = None

    @field_validator("range", mode="before")
    @classmethod
    def _is_pair(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise ValueError("expected [lower, upper]")
        return value

    @field_validator("range")
    @classmethod
    def _rises(cls, value: tuple[float, float]) -> tuple[float, float]:
        lower, upper = value
        if lower == upper:
            raise ValueError(f"both bounds are {lower}; write {{type: constant, value: {lower}}}")
        if lower > upper:
            raise ValueError(f"the lower bound {lower} is above the upper bound {upper}; swap them")
        return value

    @field_validator("log")
    @classmethod
    def _has_logarithms(cls, value: bool, info: ValidationInfo) -> bool:
        lower = info.data.get("range", (1, 2))[0]
        if value and lower <= 0:
            raise ValueError(f"a logarithmic range needs a lower bound above 0, got {lower}; raise it or drop log")
        if value and lower < _SMALLEST_WIDTH:
            raise ValueError(f"the lower bound {lower} is too fine: 13 decimal places are kept; tune a multiple of it")
        return value

    @field_validator("quantum")
    @classmethod
    def _divides(cls, value: Any, info: ValidationInfo) -> Any:
        if value is None or "range" not in info.data:
            return value
        lower, upper = info.data["range"]
        if value <= 0:
            raise ValueError("expected a step above 0")
        if info.data.get("log"):
            raise ValueError("a logarithmic range has no equal steps; drop log or quantum, or write an ordinal")
        count = round((upper - lower) / value)
        if count < 1 or not math.isclose(lower + count * value, upper, abs_tol=1e-6 * value):
            end = round(lower + max(1, count) * value, _DIGITS)
            raise ValueError(f"the range {lower} to {upper} is no multiple of it; write e.g. [{lower}, {end}]")
        if count >= _MAX_STEPS:
            raise ValueError(f"{count} steps are too many, below {_MAX_STEPS} are allowed; enlarge or drop it")
        return value

    @field_validator("default")
    @classmethod
    def _is_inside(cls, value: Any, info: ValidationInfo) -> Any:
        if value is None or not info.data.keys() >= {"range", "quantum"}:
            return value
        (lower, upper), quantum = info.data["range"], info.data["quantum"]
        if not lower <= value <= upper:
            raise ValueError(f"it is outside [{lower}, {upper}]; choose one inside or widen the range")
        if quantum is not None:
            nearest = lower + round((value - lower) / quantum) * quantum
            if not math.isclose(nearest, value, abs_tol=1e-6 * quantum):
                raise ValueError(
                    f"no steps of {quantum} lead to it from {lower}; the nearest value is {round(nearest, _DIGITS)}"
                )
        return value

    def build(self, name: str) -> Parameter:
        """Return the hyperparameter of ConfigSpace.

        A range with a quantum becomes an ordinal hyperparameter, as ConfigSpace has no ranges with a quantum.
        """
        from ConfigSpace import OrdinalHyperparameter, UniformFloatHyperparameter, UniformIntegerHyperparameter

        (lower, upper), quantum = self.range, self.quantum
        if quantum is None:
            uniform = UniformIntegerHyperparameter if self.type == "int" else UniformFloatHyperparameter
            return uniform(name, lower, upper, default_value=self.default, log=self.log)
        values = [round(lower + step * quantum, _DIGITS) for step in range(round((upper - lower) / quantum) + 1)]
        wanted = values[len(values) // 2] if self.default is None else self.default
        default = min(values, key=lambda value: abs(value - wanted))
        return OrdinalHyperparameter(name, values, default_value=default)


class FloatRange(_Range):
    """A range of numbers; with ``log`` uniform on a logarithmic scale."""

    type: Literal["float"]
    range: tuple[Number, Number]
    quantum: Number | None = None
    default: Number | None = None

    @field_validator("range")
    @classmethod
    def _is_wide(cls, value: tuple[float, float]) -> tuple[float, float]:
        if value[1] - value[0] < _SMALLEST_WIDTH:
            raise ValueError("the range is too fine: 13 decimal places are kept; tune a multiple of it")
        return value


class IntRange(_Range):
    """A range of whole numbers."""

    type: Literal["int"]
    range: tuple[WholeNumber, WholeNumber]
    quantum: WholeNumber | None = None
    default: WholeNumber | None = None

    def scaled(self, share: float, largest: int) -> IntRange | Constant:
        """Return the range with bounds multiplied by a share below 1, and at most ``largest``."""
        lower, upper = (round(bound * share) for bound in self.range)
        lower, upper = max(1, lower) if self.log else lower, min(upper, largest)
        if lower >= upper:
            return Constant(type="constant", value=max(0, upper))
        fields: dict[str, Any] = {"type": "int", "range": (lower, upper)} | ({"log": True} if self.log else {})
        if self.default is not None:
            fields["default"] = min(max(round(self.default * share), lower), upper)
        return IntRange(**fields)


class _Values(StrictModel):
    """A list of values; the first value is the default unless another default is given."""

    @staticmethod
    def _checked(value: Any) -> Any:
        if not isinstance(value, list | tuple) or len(value) < 2:
            raise ValueError("expected a list of at least two values; one value alone is a constant")
        for index, item in enumerate(value):
            if any(bool(item == other) for other in value[:index]):
                raise ValueError(f"the value {item!r} is listed twice (true equals 1); leave one out")
        return value

    @staticmethod
    def _known(value: Any, values: list[Any] | None) -> Any:
        if values is not None and not any(same(value, allowed) for allowed in values):
            raise ValueError(f"it is none of the values{closest(value, values)} (values: {listed(values)})")
        return value


class Categorical(_Values):
    """Values without an order."""

    type: Literal["categorical"]
    choices: Annotated[list[Value], BeforeValidator(_Values._checked)]
    default: Value = None

    @field_validator("default")
    @classmethod
    def _is_a_choice(cls, value: Any, info: ValidationInfo) -> Any:
        return cls._known(value, info.data.get("choices"))

    def build(self, name: str) -> Parameter:
        """Return the hyperparameter of ConfigSpace."""
        from ConfigSpace import CategoricalHyperparameter

        default = self.default if "default" in self.model_fields_set else self.choices[0]
        return CategoricalHyperparameter(name, self.choices, default_value=default)


class Ordinal(_Values):
    """Values in an order."""

    type: Literal["ordinal"]
    sequence: Annotated[list[Value], BeforeValidator(_Values._checked)]
    default: Value = None

    @field_validator("default")
    @classmethod
    def _is_in_the_sequence(cls, value: Any, info: ValidationInfo) -> Any:
        return cls._known(value, info.data.get("sequence"))

    def build(self, name: str) -> Parameter:
        """Return the hyperparameter of ConfigSpace."""
        from ConfigSpace import OrdinalHyperparameter

        default = self.default if "default" in self.model_fields_set else self.sequence[0]
        return OrdinalHyperparameter(name, self.sequence, default_value=default)


class Constant(StrictModel):
    """One value."""

    type: Literal["constant"]
    value: Value

    def build(self, name: str) -> Parameter:
        """Return the hyperparameter of ConfigSpace."""
        from ConfigSpace import Constant as ConstantHyperparameter

        return ConstantHyperparameter(name, self.value)


_TYPES = ("float", "int", "categorical", "ordinal", "constant")


def _of_known_type(value: Any) -> Any:
    """Refuse values other than a mapping with a known type; the message of pydantic has no suggestion."""
    if isinstance(value, BaseModel):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a mapping such as {_EXAMPLE}")
    kind = value.get("type")
    if kind not in _TYPES:
        near = closest(kind, _TYPES, aliases=_OTHER_NAMES) if "type" in value else ""
        fault = f"unknown type {kind!r}{near}" if "type" in value else "the key 'type' is missing"
        raise ValueError(f"{fault} (types: {listed(_TYPES)})")
    return dict(value)


AnyHyperparameter = Annotated[
    Annotated[FloatRange | IntRange | Categorical | Ordinal | Constant, Field(discriminator="type")],
    BeforeValidator(_of_known_type),
]


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


_COMPARISONS = ("values", "greater_than", "less_than")


def _space(value: Any) -> Any:
    if not isinstance(value, Mapping) or not value:
        raise ValueError(
            "expected a mapping from names to hyperparameters, "
            "e.g. {'lr': {'type': 'float', 'range': [1e-6, 0.1], 'log': True}}"
        )
    for name in value:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a name must be text, got {name!r}; quote it")
    return dict(value)


def _list_of(example: str) -> BeforeValidator:
    def check(value: Any) -> list[Any]:
        if isinstance(value, str | Mapping) or not hasattr(value, "__iter__"):
            raise ValueError(f"expected a list such as [{example}]")
        return list(value)

    return BeforeValidator(check)


def _mapping_such_as(example: str) -> BeforeValidator:
    def check(value: Any) -> Any:
        if not isinstance(value, Mapping | BaseModel) or value == {}:
            raise ValueError(f"expected a mapping such as {example}")
        return value

    return BeforeValidator(check)


Hyperparameters = Annotated[dict[str, AnyHyperparameter], BeforeValidator(_space)]
Conditions = Annotated[list[Annotated[Condition, _mapping_such_as(_CONDITION)]], _list_of(_CONDITION)]
Forbidden = Annotated[list[Annotated[dict[str, Value], _mapping_such_as(_FORBIDDEN)]], _list_of(_FORBIDDEN)]


class WrittenSpace(StrictModel):
    """The written form of a space in Python."""

    space: Hyperparameters
    conditions: Conditions = Field(default_factory=list)
    forbidden: Forbidden = Field(default_factory=list)
