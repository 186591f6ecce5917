"""The components of the domain."""

from __future__ import annotations

from graphbench.data.components.domain import Domain

DOMAIN = Domain(
    "chip_design",
    generators="graphbench.domains.chip_design.generators:GENERATORS",
    labellers="graphbench.domains.chip_design.labellers:LABELLERS",
    sources="graphbench.domains.chip_design.table_files:SOURCES",
    verifiers="graphbench.domains.chip_design.verifiers:VERIFIERS",
    environments="graphbench.domains.chip_design.environments:ENVIRONMENTS",
    tokenizers="graphbench.domains.chip_design.tokenizers:TOKENIZERS",
    exporters="graphbench.domains.chip_design.exporters:EXPORTERS",
    representations="graphbench.domains.chip_design.representations:REPRESENTATIONS",
)
