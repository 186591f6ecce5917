"""The kinds of tasks by name: the kinds of the package, and the kinds that plug-ins register."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphbench.core.errors import CardError
from graphbench.core.registry import Registry

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.tasks.base import Task

_BUILT_IN = {
    "predict": "graphbench.tasks.predict.task:PredictTask",
    "trace": "graphbench.tasks.trace.task:TraceTask",
    "solve": "graphbench.tasks.solve.task:SolveTask",
    "select": "graphbench.tasks.select.task:SelectTask",
    "forecast": "graphbench.tasks.forecast.task:ForecastTask",
    "generate": "graphbench.tasks.generate.task:GenerateTask",
    "link": "graphbench.tasks.link.task:LinkTask",
    "text": "graphbench.tasks.text.task:TextTask",
}
_TASKS: Registry[type[Task]] = Registry("type of task", CardError, lambda: _BUILT_IN)


def register_task(cls: type[Task]) -> type[Task]:
    """Make a kind of task available to cards as ``task: {type: <cls.type>}``; usable as a class decorator.

    Raises:
        PluginError: If another class already has the name.
    """
    _TASKS.add(cls.type, cls, cls.__module__)
    return cls


def task_types() -> list[str]:
    """Return the names of all kinds of tasks."""
    return list(_TASKS)


def task_class(name: str) -> type[Task]:
    """Return the class of a kind of task.

    Raises:
        CardError: If there is none of that name; the message suggests the nearest.
    """
    return _TASKS.find(name)


def task_of(card: Card, train_options: Mapping[str, Any] | None = None) -> Task:
    """Return the task of a card.

    Args:
        card: The card.
        train_options: The options of the run, ``training.task`` of its configuration; None for the defaults.

    Raises:
        CardError: If the card's task type is unknown, or the card does not fit it.
        ConfigError: If the kind of task does not have an option of the run, or refuses its value.
    """
    return task_class(card.task.type)(card, train_options)
