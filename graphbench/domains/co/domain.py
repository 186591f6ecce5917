"""The components of the domain."""

from __future__ import annotations

from graphbench.data.components.domain import Domain

DOMAIN = Domain(
    "co",
    generators="graphbench.domains.co.generators:GENERATORS",
    labellers="graphbench.domains.co.labellers:LABELLERS",
    sources="graphbench.domains.co.graph_files:SOURCES",
    problems="graphbench.domains.co.problems:PROBLEMS",
)
