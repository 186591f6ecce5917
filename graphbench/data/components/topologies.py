"""Topologies: graphs that all samples of a dataset share, built from parameters and never stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from graphbench.data.arrays.samples import Samples


@dataclass(frozen=True)
class Topology:
    """A registered topology.

    Attributes:
        name: ``<domain>.<name>``, as cards write it.
        parameters: Pydantic model (unknown keys forbidden) that validates its parameters.
        build: ``parameters -> samples``: a pure function; one graph, with the values of its fixed features.
    """

    name: str
    parameters: type[BaseModel]
    build: Callable[[Any], Samples]
