"""The components that the domain contributes to the registries."""

from __future__ import annotations

from graphbench.data.components.domain import Domain

DOMAIN = Domain(
    "sat",
    generators="graphbench.domains.sat.generators:GENERATORS",
    labellers="graphbench.domains.sat.labellers:LABELLERS",
    sources="graphbench.domains.sat.sources:SOURCES",
    representations="graphbench.domains.sat.representations:REPRESENTATIONS",
    problems="graphbench.domains.sat.assignments:PROBLEMS",
    exporters="graphbench.domains.sat.exporters:EXPORTERS",
)
