"""Names in files of earlier versions, and the form of configurations that digests are taken of.

Configurations and cards had other names for some of their keys. Files with the earlier names are read with the current
names, and digests of configurations are taken of the earlier form, so that runs of all versions with one configuration
have one digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TASK_SECTIONS = ("surrogate", "decoding")  # of ``training`` in earlier versions, now of ``training.task``
_MODEL_KEYS = {"builder": "environment", "spelling": "tokenizer"}  # of models that generate structures
_TASK_KEYS = {"problem": "problem", "judge": "verifier"}  # of a card's ``task``, now of ``task.options``
_CARD_KEYS = {"spellings": "class_aliases", "view": "representation"}


def config_in_current_names(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration, or a part of one such as overrides, whose keys have the names of this version."""
    renamed = dict(config)
    if isinstance(model := config.get("model"), Mapping):
        renamed["model"] = _renamed(model, _MODEL_KEYS)
    training = config.get("training")
    if isinstance(training, Mapping) and any(name in training for name in _TASK_SECTIONS):
        sections = {name: training[name] for name in _TASK_SECTIONS if training.get(name)}
        others = {name: value for name, value in training.items() if name not in _TASK_SECTIONS}
        task = others.get("task", {})
        if sections or "task" in others:
            others["task"] = {**sections, **task} if isinstance(task, Mapping) else task
        renamed["training"] = others
    return renamed


def config_for_digests(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration in the form that digests are taken of, which version 0.2 wrote to files."""
    renamed = dict(config)
    if isinstance(model := config.get("model"), Mapping):
        renamed["model"] = _renamed(model, {now: before for before, now in _MODEL_KEYS.items()})
    training = config.get("training")
    if isinstance(training, Mapping) and isinstance(task := training.get("task"), Mapping):
        others = {name: value for name, value in training.items() if name != "task"}
        further = {name: value for name, value in task.items() if name not in _TASK_SECTIONS}
        sections = {name: task.get(name, {}) for name in _TASK_SECTIONS}
        renamed["training"] = {**others, **sections, **({"task": further} if further else {})}
    return renamed


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


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in values.items()}
