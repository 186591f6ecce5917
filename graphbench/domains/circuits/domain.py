"""The components of the domain."""

from __future__ import annotations

from graphbench.data.components.domain import Domain

DOMAIN = Domain(
    "circuits",
    generators="graphbench.domains.circuits.generators:GENERATORS",
    labellers="graphbench.domains.circuits.labellers:LABELLERS",
    sources="graphbench.domains.circuits.official_source:SOURCES",
    exporters="graphbench.domains.circuits.exporters:EXPORTERS",
)
