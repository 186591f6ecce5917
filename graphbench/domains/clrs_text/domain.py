"""What the domain brings."""

from __future__ import annotations

from graphbench.data.domain import Domain

DOMAIN = Domain("clrs_text", generators="graphbench.domains.clrs_text.generators:GENERATORS")
