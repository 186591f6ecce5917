"""Names in files of earlier versions, and the form of configurations that digests are taken of.

Configurations and cards had other names for some of their keys. Files with the earlier names are read with the current
names, and digests of configurations are taken of the earlier form, so that runs of all versions with one configuration
have one digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphbench.core.errors import ConfigError

_TASK_SECTIONS = ("surrogate", "decoding")  # of ``training`` in earlier versions, now of ``training.task``
_MODEL_KEYS = {"builder": "environment", "spelling": "tokenizer"}  # of models that generate structures
_EARLIER_MODEL_KEYS = {now: before for before, now in _MODEL_KEYS.items()}
_TASK_KEYS = {"problem": "problem", "judge": "verifier"}  # of a card's ``task``, now of ``task.options``
_CARD_KEYS = {"spellings": "class_aliases", "view": "representation"}


def config_in_current_names(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration, or a part of one such as overrides, whose keys have the names of this version.

    Raises:
        ConfigError: If a key is given under both of its names with different values.
    """
    renamed = dict(config)
    if isinstance(model := config.get("model"), Mapping):
        renamed["model"] = _renamed(model, _MODEL_KEYS, "model.")
    training = config.get("training")
    if isinstance(training, Mapping) and any(name in training for name in _TASK_SECTIONS):
        renamed["training"] = _with_task_section(training)
    if config.get("overridden"):
        renamed["overridden"] = sorted(_current_key(key) for key in config["overridden"])
    return renamed


def config_for_digests(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration in the form that digests are taken of, which version 0.2 wrote to files."""
    renamed = dict(config)
    if isinstance(model := config.get("model"), Mapping):
        renamed["model"] = _renamed(model, _EARLIER_MODEL_KEYS, "model.")
    training = config.get("training")
    if isinstance(training, Mapping) and isinstance(task := training.get("task"), Mapping):
        others = {name: value for name, value in training.items() if name != "task"}
        decoding = {name: value for name, value in task.items() if name not in _TASK_SECTIONS}
        sections = {"surrogate": task.get("surrogate", {}), "decoding": {**decoding, **task.get("decoding", {})}}
        renamed["training"] = {**others, **sections}
    if config.get("overridden"):
        renamed["overridden"] = sorted(_key_for_digests(key) for key in config["overridden"])
    return renamed


def _with_task_section(training: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section ``training`` with the options of its earlier sections in ``task``."""
    others = {name: value for name, value in training.items() if name not in _TASK_SECTIONS}
    task = others.get("task", {})
    if not isinstance(task, Mapping):
        return others
    merged = dict(task)
    for name in _TASK_SECTIONS:
        before, now = training.get(name), task.get(name, {})
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            for key in before.keys() & now.keys():
                _require_equal(f"training.{name}.{key}", before[key], f"training.task.{name}.{key}", now[key])
            before = {**before, **now}
        if before:
            merged[name] = before
    return {**others, "task": merged} if merged or "task" in others else others


def _current_key(key: str) -> str:
    for name in _TASK_SECTIONS:
        if key == f"training.{name}" or key.startswith(f"training.{name}."):
            return f"training.task.{key.removeprefix('training.')}"
    return _renamed_key(key, _MODEL_KEYS)


def _key_for_digests(key: str) -> str:
    if key.startswith("training.task."):
        option = key.removeprefix("training.task.")
        is_section = option.partition(".")[0] in _TASK_SECTIONS
        return f"training.{option}" if is_section else f"training.decoding.{option}"
    return _renamed_key(key, _EARLIER_MODEL_KEYS)


def _renamed_key(key: str, names: Mapping[str, str]) -> str:
    section, _, name = key.partition(".")
    return f"model.{names[name]}" if section == "model" and name in names else key


def card_in_current_names(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a card that the identity of a run holds, in the names of this version."""
    renamed = _renamed(card, _CARD_KEYS)
    if isinstance(task := card.get("task"), Mapping):
        options = {now: task[before] for before, now in _TASK_KEYS.items() if task.get(before) is not None}
        others = {name: value for name, value in task.items() if name not in _TASK_KEYS}
        renamed["task"] = {**others, "options": {**options, **others.get("options", {})}}
    if isinstance(series := card.get("series"), Mapping):
        renamed["series"] = _renamed(series, {"structure": "topology"})
    return renamed


def _renamed(values: Mapping[str, Any], names: Mapping[str, str], section: str = "") -> dict[str, Any]:
    for before, now in names.items():
        if before in values and now in values:
            _require_equal(section + before, values[before], section + now, values[now])
    return {names.get(name, name): value for name, value in values.items()}


def _require_equal(before: str, earlier: Any, now: str, current: Any) -> None:
    if earlier != current:
        raise ConfigError(
            f"{before} = {earlier!r} and {now} = {current!r} are one key, whose name is {now} now; leave {before} out"
        )
