"""The components of the domain."""

from __future__ import annotations

from graphbench.data.components.domain import Domain

DOMAIN = Domain(
    "chip_design",
    generators="graphbench.domains.chip_design.generators:GENERATORS",
    labellers="graphbench.domains.chip_design.labellers:LABELLERS",
    judges="graphbench.domains.chip_design.judging:JUDGES",
    builders="graphbench.domains.chip_design.building:BUILDERS",
    spellings="graphbench.domains.chip_design.spelling:SPELLINGS",
    exporters="graphbench.domains.chip_design.exporters:EXPORTERS",
    views="graphbench.domains.chip_design.views:VIEWS",
)
