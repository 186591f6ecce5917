"""What the domain brings."""

from __future__ import annotations

from graphbench.data.domain import Domain

DOMAIN = Domain("social", generators="graphbench.domains.social.generators:GENERATORS")
