"""Processors of sparse graphs. Importing this package registers the built-in ones."""

from graphbench.models.processor_registry import processor_class, processor_names, register_processor
from graphbench.models.processors import (
    bipartite,
    deepsets,
    edge_transformer,
    gat,
    gcn,
    gin,
    graphconv,
    gt,
    mlp,
    pairs,
    staged,
    typed,
)
from graphbench.models.processors.base import (
    Context,
    Processed,
    Processor,
    State,
    inputs_read,
    read_options,
    require_processed,
    require_shape,
)

__all__ = [
    "Context",
    "Processed",
    "Processor",
    "State",
    "bipartite",
    "deepsets",
    "edge_transformer",
    "gat",
    "gcn",
    "gin",
    "graphconv",
    "gt",
    "inputs_read",
    "mlp",
    "pairs",
    "processor_class",
    "processor_names",
    "read_options",
    "register_processor",
    "require_processed",
    "require_shape",
    "staged",
    "typed",
]
