"""Kinds of tasks: how samples are batched, what the loss is, how predictions are scored and read from files."""

from graphbench.tasks.base import Task
from graphbench.tasks.evaluator import Evaluator
from graphbench.tasks.registry import register_task, task_class, task_of, task_types

__all__ = ["Evaluator", "Task", "register_task", "task_class", "task_of", "task_types"]
