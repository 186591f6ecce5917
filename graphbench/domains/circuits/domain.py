"""The components of the domain."""

from __future__ import annotations

from graphbench.data.components.domain import Domain

DOMAIN = Domain(
    "circuits",
    generators="graphbench.domains.circuits.generators:GENERATORS",
    labellers="graphbench.domains.circuits.labellers:LABELLERS",
    sources="graphbench.domains.circuits.official_source:SOURCES",
    verifiers="graphbench.domains.circuits.design_verifier:VERIFIERS",
    tokenizers="graphbench.domains.circuits.tokenizers:TOKENIZERS",
    exporters="graphbench.domains.circuits.exporters:EXPORTERS",
    augmentations="graphbench.domains.circuits.augmentations:AUGMENTATIONS",
)
