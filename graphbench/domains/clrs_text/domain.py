"""The components of the domain."""

from __future__ import annotations

from graphbench.data.components.domain import Domain

DOMAIN = Domain("clrs_text", generators="graphbench.domains.clrs_text.generators:GENERATORS")
