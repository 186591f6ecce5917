"""Read family files: from YAML to cards, one per variant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature, parse_features
from graphbench.catalog.resources import read_yaml
from graphbench.catalog.sections import LabelSpec, Measured, NamedTask, staged
from graphbench.core.errors import CardError
from graphbench.core.suggestions import closest
from graphbench.core.validation import Place, explain, keys_at
from graphbench.core.yaml_text import TOO_DEEP

MEASURED_FOLDER = "measured"
_SPLIT_SECTIONS = ("splits", "ood", "additional")
_EARLIER_TASK_KEYS = {"problem": "options: {problem: ...}", "judge": "options: {verifier: ...}"}
_SET_BY_PLACE = {
    "id",
    "domain",
    "family",
    "variant",
    "path",
    "measured",
    "data_seed",
    "keeps_choices",
    "task_name",
    "representation",
    "graph_features",
}


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` overridden by ``changes``, mappings merged key by key.

    A key written ``name!`` in ``changes`` replaces ``name`` as a whole instead of merging into it.
    """
    merged = dict(base)
    for key, value in changes.items():
        if isinstance(key, str) and key.endswith("!"):
            merged[key[:-1]] = value
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def load_family(path: Path) -> tuple[Card, ...]:
    """Return the cards of one family file.

    Raises:
        CardError: If the file is malformed; the message gives the file, the key and the value.
    """
    raw = read_yaml(path)
    try:
        return _cards(raw, path)
    except RecursionError:
        raise CardError(f"{path}: {TOO_DEEP}") from None


def _cards(raw: Any, path: Path) -> tuple[Card, ...]:
    if not isinstance(raw, Mapping):
        raise CardError(f"{path}: a card is a mapping of keys, got {type(raw).__name__}")
    raw = _with_model(raw, path)
    variants = raw.pop("variants", None)
    domain, family = path.parent.name, path.stem
    if variants is None:
        return (_build_card(raw, domain, family, None, path),)
    if not isinstance(variants, Mapping) or not variants:
        raise CardError(f"{path}: 'variants' is a mapping name -> changes, got {variants!r}")
    return tuple(
        _build_card(
            merge(raw, _mapping({} if changes is None else changes, str(path), f"variants.{name}")),
            domain,
            family,
            name,
            path,
        )
        for name, changes in variants.items()
    )


def _with_model(raw: Mapping[str, Any], path: Path, seen: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the content of a family file, merged into the content of the file named by its key ``like``, if any.

    Raises:
        CardError: If the named file is not in the same folder, or files are like each other in a circle.
    """
    content = dict(raw)
    like = content.pop("like", None)
    if like is None:
        return content
    model = path.with_name(f"{like}.yaml")
    if not isinstance(like, str) or not model.is_file():
        raise CardError(f"{path}: it is like {like!r}, but there is no file {model}")
    if like in seen:
        raise CardError(f"{path}: files are like each other in a circle: {', '.join(seen)}")
    return merge(_with_model(_mapping(read_yaml(model), str(model), "a card"), model, (*seen, like)), content)


def _refuse_earlier_keys(content: Mapping[str, Any], where: str) -> None:
    """Refuse keys that cards of version 0.2 had under other names; the message says the present name."""

    def refuse(section: Any, keys: Mapping[str, str], place: str = "") -> None:
        for before, now in keys.items():
            if isinstance(section, Mapping) and before in section:
                raise CardError(f"{where}: the key '{place}{before}' has another name now: write {now}")

    refuse(content, {"views": "representations", "spellings": "class_aliases"})
    refuse(content.get("series"), {"structure": "series.topology"}, "series.")
    for section, key in (("tasks", _EARLIER_TASK_KEYS), ("representations", {"view": "derived_by"})):
        entries = content.get(section)
        for name, entry in entries.items() if isinstance(entries, Mapping) else ():
            refuse(entry, key, f"{section}.{name}.")
    refuse(content.get("task"), _EARLIER_TASK_KEYS, "task.")


def _build_card(raw: Mapping[str, Any], domain: str, family: str, variant: str | None, path: Path) -> Card:
    name = family if variant is None else f"{family}_{variant}"
    where = f"{path} ({domain}/{name})"
    content = dict(raw)
    _refuse_earlier_keys(content, where)
    for key in _SET_BY_PLACE & set(content):
        raise CardError(f"{where}: the key {key!r} is not for authors: it follows from the file; remove it")
    shared = _mapping(content.pop("parameters", {}), where, "parameters")
    for section in _SPLIT_SECTIONS:
        _mapping(content.get(section, {}), where, section)
    try:
        for section in _SPLIT_SECTIONS:
            if section in content:
                content[section] = {split: _resolve_split(split, content, shared, where) for split in content[section]}
    except CardError:  # a split may be missing because the key of its section is misspelt
        _refuse_unknown_keys(content, where)
        raise
    try:
        content |= _first_task_keys(content)
        return Card(
            id=f"{domain}/{name}",
            domain=domain,
            family=family,
            variant=variant,
            path=path,
            measured=_load_measured(path, name),
            **{str(key): value for key, value in content.items()},
        )
    except ValidationError as error:
        raise CardError(f"{where}: {explain(error, Card, keys=_author_keys)}") from error
    except (TypeError, ValueError) as error:
        raise CardError(f"{where}: {error}") from error


def _refuse_unknown_keys(content: Mapping[str, Any], where: str) -> None:
    valid = _author_keys(("",))
    unknown = [f"unknown key {key!r}{closest(key, valid)}" for key in content if key not in valid]
    if unknown:
        raise CardError(f"{where}: {'; '.join(unknown)} (keys: {', '.join(valid)})")


class _Tasks(BaseModel):
    """The keys of a card that define its labels and tasks."""

    labels: dict[str, LabelSpec] = {}
    tasks: dict[str, NamedTask] = Field({}, min_length=1)


def _first_task_keys(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that the first task adds to a card, none for a card without tasks; all tasks are checked.

    Raises:
        ValueError: If tasks, labels and features do not fit together.
    """
    if not {"tasks", "labels"} & set(content):
        return {}
    for key in {"metrics", "task"} & set(content):
        raise ValueError(f"{key} belongs to each task of a card with tasks; move it there")
    drawn = parse_features(content.get("features", {}))
    parsed = _Tasks.model_validate({key: content[key] for key in ("labels", "tasks") if key in content})
    unused = sorted(set(parsed.labels) - {name for task in parsed.tasks.values() for name in task.labels})
    if unused:
        raise ValueError(f"labels {unused} belong to no task; remove them")
    names = Counter(f.name for f in (*drawn, *(f for spec in parsed.labels.values() for f in spec.features)))
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        raise ValueError(f"the features {twice} are defined several times; graphs and labels need different names")
    features = {name: (*drawn, *_task_labels(name, task, parsed.labels)) for name, task in parsed.tasks.items()}
    first, task = next(iter(parsed.tasks.items()))
    return {
        **dict(parsed),
        "task_name": first,
        "task": task,
        "features": features[first],
        "metrics": task.metrics,
    }


def _task_labels(name: str, task: NamedTask, labels: Mapping[str, LabelSpec]) -> tuple[Feature, ...]:
    if not name.isidentifier():
        raise ValueError(f"the task name {name!r} is not an identifier; use letters, digits and underscores")
    try:
        return staged(labels, task)
    except ValueError as error:
        raise ValueError(f"tasks.{name}: {error}") from error


def _mapping(value: Any, where: str, key: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise CardError(f"{where}: {key!r} must be a mapping of keys, got {value!r}")
    return value


def _resolve_split(
    split: str, content: Mapping[str, Any], shared: Mapping[str, Any], where: str, seen: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return a split with ``like`` resolved and the card's shared parameters filled in."""
    specs = {name: spec for section in reversed(_SPLIT_SECTIONS) for name, spec in content.get(section, {}).items()}
    if split not in specs:
        raise CardError(f"{where}: split {seen[-1]!r} is like {split!r}, which does not exist")
    if split in seen:
        raise CardError(f"{where}: splits {', '.join(seen)} are like each other in a circle")
    spec = dict(_mapping(specs[split], where, split))
    like = spec.pop("like", None)
    model = {"parameters": shared} if like is None else _resolve_split(like, content, shared, where, (*seen, split))
    changes = _mapping(spec.get("parameters", {}), where, f"{split}.parameters")
    spec["parameters"] = merge(model["parameters"], changes)
    spec.setdefault("shift", model.get("shift"))
    return spec


def _author_keys(location: Place) -> list[str]:
    """Return the keys that an author may write in the section of the unknown key at ``location``."""
    keys = keys_at(Card, location[:-1])
    if len(location) == 1:
        return [key for key in keys if key not in _SET_BY_PLACE] + ["like", "variants", "parameters"]
    return [*keys, "like"] if location[0] in _SPLIT_SECTIONS else keys


def measured_path(card_path: Path, name: str) -> Path:
    """Return the file of measured facts of the dataset ``name`` (without its domain)."""
    return card_path.parent / MEASURED_FOLDER / f"{name}.json"


def _load_measured(card_path: Path, name: str) -> Measured | None:
    path = measured_path(card_path, name)
    if not path.is_file():
        return None
    try:
        return Measured.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise CardError(f"{path}: {explain(error, Measured)}; rewrite it with `graphbench verify --update`") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CardError(f"{path}: cannot be read: {error}; rewrite it with `graphbench verify --update`") from error
