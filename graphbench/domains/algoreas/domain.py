"""The components of the domain."""

from __future__ import annotations

from graphbench.data.components.domain import Domain

DOMAIN = Domain(
    "algoreas",
    generators="graphbench.domains.algoreas.generators:GENERATORS",
    rules="graphbench.domains.algoreas.rules:RULES",
    measures="graphbench.domains.algoreas.measures:MEASURES",
)
