"""Processors of trajectory models, by name."""

from __future__ import annotations

import difflib

from graphbench.core.errors import UnknownModel
from graphbench.models.trajectory.processors.attention import GAT, GATv2, GraphTransformer
from graphbench.models.trajectory.processors.base import Processor, Step
from graphbench.models.trajectory.processors.memory import MemoryNetwork
from graphbench.models.trajectory.processors.message_passing import GIN, DeepSets, MessagePassing, TripletMessagePassing

__all__ = ["PROCESSORS", "Processor", "Step", "processor_class"]

PROCESSORS: dict[str, type[Processor]] = {
    "mpnn": MessagePassing,
    "pgn": MessagePassing,
    "gmpnn": MessagePassing,
    "triplet_mpnn": TripletMessagePassing,
    "triplet_gmpnn": TripletMessagePassing,
    "deepsets": DeepSets,
    "gin": GIN,
    "gat": GAT,
    "gatv2": GATv2,
    "gt": GraphTransformer,
    "memnet": MemoryNetwork,
}


def processor_class(name: str) -> type[Processor]:
    """Return the class behind a processor's name.

    Raises:
        UnknownModel: If there is none; the message suggests the nearest.
    """
    if name not in PROCESSORS:
        near = difflib.get_close_matches(name, PROCESSORS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UnknownModel(f"unknown processor {name!r} for trajectories; {hint}(there are {', '.join(PROCESSORS)})")
    return PROCESSORS[name]
