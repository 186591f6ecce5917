"""The components that the domain contributes to the registries."""

from __future__ import annotations

from graphbench.data.components.domain import Domain

DOMAIN = Domain("own", generators="graphbench.data.components.own_graphs:GENERATORS")
