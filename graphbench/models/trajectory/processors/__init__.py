"""Processors of dense pairs of nodes. Importing this package registers the built-in ones."""

from graphbench.models.trajectory.processors.attention import GAT, GATv2, MemoryNetwork
from graphbench.models.trajectory.processors.base import DenseProcessor, Step
from graphbench.models.trajectory.processors.message_passing import DeepSets, MessagePassing, TripletMessagePassing
from graphbench.models.trajectory.processors.pairs import TracePairs

__all__ = [
    "GAT",
    "DeepSets",
    "DenseProcessor",
    "GATv2",
    "MemoryNetwork",
    "MessagePassing",
    "Step",
    "TracePairs",
    "TripletMessagePassing",
]
