"""The components that the domain contributes to the registries."""

from __future__ import annotations

from graphbench.data.components.domain import Domain

DOMAIN = Domain(
    "social",
    generators="graphbench.domains.social.generators:GENERATORS",
    sources="graphbench.domains.social.archive_source:SOURCES",
    exporters="graphbench.domains.social.exporters:EXPORTERS",
)
