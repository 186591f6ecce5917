"""Kinds of tasks: the batching of samples, the loss, and the scoring and reading of predictions."""

from graphbench.tasks.base import Task
from graphbench.tasks.evaluator import Evaluator
from graphbench.tasks.registry import register_task, task_class, task_of, task_types

__all__ = ["Evaluator", "Task", "register_task", "task_class", "task_of", "task_types"]
