"""The components of the domain."""

from __future__ import annotations

from graphbench.data.components.domain import Domain

DOMAIN = Domain("clrs", generators="graphbench.domains.clrs.generators:GENERATORS")
