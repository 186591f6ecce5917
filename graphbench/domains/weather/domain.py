"""What the domain brings."""

from __future__ import annotations

from graphbench.data.domain import Domain

DOMAIN = Domain(
    "weather",
    generators="graphbench.domains.weather.generators:GENERATORS",
    structures="graphbench.domains.weather.structures:STRUCTURES",
)
