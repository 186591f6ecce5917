"""The components that the domain contributes to the registries."""

from __future__ import annotations

from graphbench.data.components.domain import Domain

DOMAIN = Domain(
    "weather",
    generators="graphbench.domains.weather.generators:GENERATORS",
    sources="graphbench.domains.weather.official_source:SOURCES",
    topologies="graphbench.domains.weather.topologies:TOPOLOGIES",
    exporters="graphbench.domains.weather.exporters:EXPORTERS",
    conventions="graphbench.domains.weather.conventions:CONVENTIONS",
)
