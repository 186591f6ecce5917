"""Messages for the errors of pydantic: every problem with its key, the offending value and often a remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    create_model,
    model_serializer,
)

from graphbench.core.errors import GraphBenchError
from graphbench.core.suggestions import closest

_Model = TypeVar("_Model", bound=BaseModel)
_PLAIN = {
    **dict.fromkeys(("dict_type", "model_type"), "write keys with values (key: value)"),
    "tuple_type": "write a list ([a, b])",
}

Place = tuple[str | int, ...]
"""Keys and list indices that lead to a value."""


class StrictModel(BaseModel):
    """Base of the models of this package: unknown keys, infinity and NaN are refused, and values cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ExtensibleModel(StrictModel):
    """Base of settings that later versions extend.

    Attributes:
        added: Names of settings that older versions did not have. A setting with its default value is left out of the
            serialised settings, so that configurations and fingerprints of older runs do not change.
    """

    added: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _without_added(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = serialise(self)
        fields = type(self).model_fields
        defaults = {name: fields[name].get_default(call_default_factory=True) for name in self.added}
        return {key: value for key, value in values.items() if key not in defaults or value != defaults[key]}


@cache
def section_below(schema: type[BaseModel], *keys: str) -> type[BaseModel]:
    """Return the model of a mapping that holds a section of a schema below these keys, one within the other."""
    for key in reversed(keys):
        schema = create_model("Section", **{key: (schema, ...)})  # type: ignore[call-overload]
    return schema


def validated(schema: type[_Model], content: Any, error: type[Exception], where: str) -> _Model:
    """Return the content as a model of the schema.

    Raises:
        Exception: Of the given type, with all problems, if the schema refuses the content.
    """
    try:
        return schema.model_validate(content)
    except ValidationError as problem:
        raise error(explain(problem, schema, where=where)) from problem


def explain(
    error: ValidationError,
    schema: type[BaseModel] | None = None,
    *,
    where: str = "",
    at: Callable[[Place], str] | None = None,
    keys: Callable[[Place], Iterable[str]] | None = None,
    suggest: Callable[[str], str] | None = None,
) -> str:
    """Return all problems of a validation, separated by semicolons; unknown keys first, as they may be misspelt ones.

    Args:
        error: The error that pydantic raised.
        schema: The model that refused the content. If it is given, the message on an unknown key names the nearest key
            of the model and all of its keys, and locations do not show which alternative of a union was tried.
        where: Name of the content, e.g. a file; each problem begins with it.
        at: Returns the description of a location, e.g. file, line and key, which replaces ``where`` and the key.
        keys: Returns the keys that are allowed at the location of an unknown key, if the schema does not give them.
        suggest: Returns the suggestion for an unknown key, given in full with dots, instead of the nearest key of the
            same section; see :func:`graphbench.core.suggestions.closest`.
    """
    return "; ".join(
        _problem(item, schema, where=where, at=at, keys=keys, suggest=suggest)
        for item in sorted(error.errors(include_url=False), key=lambda item: bool(item["type"] != "extra_forbidden"))
    )


def keys_at(schema: type[BaseModel], place: Place) -> list[str]:
    """Return the keys of the model at a location inside another model; none if there is no model."""
    return _keys(_walk([schema], place)[1])


def dotted(place: Place) -> str:
    """Return a location as text: ``splits.train.counts[2]``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def _problem(
    item: Any,
    schema: type[BaseModel] | None,
    *,
    where: str,
    at: Callable[[Place], str] | None,
    keys: Callable[[Place], Iterable[str]] | None,
    suggest: Callable[[str], str] | None,
) -> str:
    unknown = item["type"] == "extra_forbidden"
    place, types = _walk([schema], item["loc"][:-1] if unknown else item["loc"])
    place = (*place, item["loc"][-1]) if unknown else place
    missing = item["type"] == "missing"
    start = where if at is None else at(place[:-1] if missing else place)
    start = f"{start}: " if start else ""
    key = "" if at is not None else dotted(place)
    if unknown:
        known = list(keys(place) if keys is not None else _keys(types))
        hint = closest(place[-1], known) if suggest is None else suggest(dotted(place))
        listed = f" (keys: {', '.join(known)})" if known else ""
        return f"{start}unknown key{f' {key!r}' if key else ''}{hint}{listed}"
    if missing:
        return f"{start}the key {str(place[-1]) if at is not None else key!r} is missing"
    cause = item.get("ctx", {}).get("error")
    is_package_error = isinstance(cause, GraphBenchError)
    message = str(cause) if is_package_error else _PLAIN.get(item["type"], item["msg"].removeprefix("Value error, "))
    if is_package_error or (item["type"] == "value_error" and (not place or isinstance(item["input"], dict))):
        return f"{start}{key}: {message}" if key and not is_package_error else f"{start}{message}"
    return f"{start}{f'{key} = ' if key else ''}{item['input']!r:.200} is refused: {message}"


def _walk(types: list[Any], place: Place) -> tuple[Place, list[Any]]:
    """Return a location without the names of union members that pydantic inserts, and the types at that location."""
    shown: list[str | int] = []
    if types == [None]:
        return place, []
    for part in place:
        options = [option for kind in types for option in _options(kind)]
        tagged = [kind for tags, kind in options if part in tags]
        inside = [entry for _, kind in options for entry in _inside(kind, part)]
        if len(options) > 1 and (tagged or not inside):
            types = tagged or [kind for _, kind in options]
        else:
            types = inside
            shown.append(part)
    return tuple(shown), types


def _options(kind: Any, tags: frozenset[Any] = frozenset()) -> Iterator[tuple[frozenset[Any], Any]]:
    """Yield the members of a union type, each with the tags by which pydantic names it."""
    from pydantic import BaseModel, Tag

    if get_origin(kind) is Annotated:
        inner, *rest = get_args(kind)
        yield from _options(inner, tags | {item.tag for item in rest if isinstance(item, Tag)})
    elif get_origin(kind) in (Union, UnionType):
        for option in get_args(kind):
            if option is not type(None):
                yield from _options(option)
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.values()
        words = {word for f in fields if get_origin(f.annotation) is Literal for word in get_args(f.annotation)}
        yield tags | words, kind
    else:
        yield tags, kind


def _inside(kind: Any, part: str | int) -> Iterator[Any]:
    """Yield the types of the values at a key or index of a value of a type."""
    if _is_model(kind):
        for name, item in kind.model_fields.items():
            if part in (name, item.alias):
                yield Annotated[item.annotation, *item.metadata] if item.metadata else item.annotation
    elif (arguments := get_args(kind)) and get_origin(kind) is not Literal:
        yield arguments[-1] if isinstance(part, str) else arguments[0]


def _keys(types: Iterable[Any]) -> list[str]:
    models = [kind for each in types for _, kind in _options(each) if _is_model(kind)]
    return list(dict.fromkeys(item.alias or name for model in models for name, item in model.model_fields.items()))


def _is_model(kind: Any) -> bool:
    from pydantic import BaseModel

    return isinstance(kind, type) and issubclass(kind, BaseModel)
