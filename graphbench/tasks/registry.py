"""The kinds of tasks by name: those that come with the package, and those that plug-ins register."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphbench.core.errors import CardError, PluginError
from graphbench.core.plugins import about_broken, owner_in_words, owner_of
from graphbench.core.registry import Registry
from graphbench.core.suggestions import closest

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.tasks.base import Task

_BUILT_IN = {
    "predict": "graphbench.tasks.predict:PredictTask",
    "trace": "graphbench.tasks.trace:TraceTask",
    "solve": "graphbench.tasks.solve:SolveTask",
    "text": "graphbench.tasks.text:TextTask",
}
_REGISTERED: Registry[type[Task]] = Registry("type of task", CardError)


def register_task(cls: type[Task]) -> type[Task]:
    """Make a kind of task available to cards as ``task: {type: <cls.type>}``; usable as a class decorator.

    Raises:
        PluginError: If another class already has the name.
    """
    if cls.type in _BUILT_IN:
        raise PluginError(
            f"{owner_in_words(owner_of(cls.__module__))} registers the type of task {cls.type!r}, which graphbench "
            "itself has already; choose another name"
        )
    _REGISTERED.add(cls.type, cls, cls.__module__)
    return cls


def task_types() -> list[str]:
    """Return the names of all kinds of tasks."""
    return [*_BUILT_IN, *_REGISTERED]


def task_class(name: str) -> type[Task]:
    """Return the class of a kind of task.

    Raises:
        CardError: If there is none of that name; the message suggests the nearest.
    """
    if name in _BUILT_IN:
        module, _, cls = _BUILT_IN[name].partition(":")
        found: type[Task] = getattr(import_module(module), cls)
        return found
    if name not in _REGISTERED:
        raise CardError(
            f"unknown type of task {name!r}{closest(name, task_types())} (known: {', '.join(task_types())}; a plug-in "
            f"may add others){about_broken()}"
        )
    return _REGISTERED[name]


def task_of(card: Card, settings: Mapping[str, Any] | None = None) -> Task:
    """Return the task of a card.

    Args:
        card: The card.
        settings: Settings of a run that the kind of task may have, such as ``decoding``; see the task's class.

    Raises:
        CardError: If the card's task type is unknown, or the card does not fit it.
        ConfigError: If the task does not have a setting, or refuses its value.
    """
    return task_class(card.task.type)(card, **(settings or {}))
