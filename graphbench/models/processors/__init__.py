"""Processors of sparse graphs. Importing this package registers the built-in ones."""

from graphbench.models.processor_registry import processor_class, processor_names, register_processor
from graphbench.models.processors import deepsets, gat, gin, gt, mlp
from graphbench.models.processors.base import Context, Processed, Processor, State, require_shape, run_processor

__all__ = [
    "Context",
    "Processed",
    "Processor",
    "State",
    "deepsets",
    "gat",
    "gin",
    "gt",
    "mlp",
    "processor_class",
    "processor_names",
    "register_processor",
    "require_shape",
    "run_processor",
]
