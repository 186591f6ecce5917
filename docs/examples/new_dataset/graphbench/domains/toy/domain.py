"""What the domain brings."""

from __future__ import annotations

from graphbench.data.components.domain import Domain

DOMAIN = Domain("toy", generators="graphbench.domains.toy.generators:GENERATORS")
