"""The components that the domain contributes to the registries."""

from __future__ import annotations

from graphbench.data.components.domain import Domain

DOMAIN = Domain(
    "clutrr",
    generators="graphbench.domains.clutrr.generators:GENERATORS",
    sources="graphbench.domains.clutrr.files.official:SOURCES",
    words={"lengths": "facts"},
)
