"""DeepSets: a dummy baseline that sees each graph as a set of nodes (Zaheer et al., 2017)."""

from __future__ import annotations

from torch import Tensor

from graphbench.models.graphs import Layout, segment_mean
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors.gin import GIN, GINLayer


class DeepSetsLayer(GINLayer):
    """GIN's layer with the mean over the graph instead of the sum over neighbours; it has as many weights as GIN's."""

    def aggregate(self, nodes: Tensor, edges: Tensor | None, layout: Layout) -> Tensor:
        """Return the mean over all nodes of a node's graph, [N, d]."""
        return segment_mean(nodes, layout.graph, layout.sizes).index_select(0, layout.graph)


@register_processor("deepsets")
class DeepSets(GIN):
    """A stack of :class:`DeepSetsLayer`."""

    uses_edges = False
    layer = DeepSetsLayer
