"""Processors: the part of a model between encoder and decoders. Importing this package registers the built-in ones."""

from graphbench.models.processors import deepsets, gat, gin, gt, mlp
from graphbench.models.processors.base import (
    PROCESSORS,
    Context,
    Processed,
    Processor,
    State,
    processor_class,
    register_processor,
)

__all__ = [
    "PROCESSORS",
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
    "register_processor",
]
