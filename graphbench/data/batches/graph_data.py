"""One graph outside of any dataset as PyG ``Data``, with the fields that a dataset gives its graphs."""

from __future__ import annotations

import numpy as np
from torch_geometric.data import Data

from graphbench.catalog.features import Feature, Location
from graphbench.catalog.schema import Schema
from graphbench.data.arrays.samples import Samples
from graphbench.data.batches.batching import FlatGraphs, as_tensors, standard_fields

__all__ = ["Data", "graph_data"]


def graph_data(samples: Samples, features: tuple[Feature, ...], *, directed: bool) -> Data:
    """Return the first graph of samples.

    Args:
        samples: One graph.
        features: The features of its values.
        directed: Whether an edge is an arc; both directions of other edges are listed.

    Returns:
        ``Data`` with ``edge_index``, one field per feature, and ``x`` and ``edge_attr`` made of the inputs.
    """
    flat = FlatGraphs(
        samples.node_ptr, samples.edge_ptr, np.asarray(samples.edges), samples.values, Schema(features, directed)
    )
    fields = as_tensors(flat.gather(slice(0, 1)))
    data = Data(edge_index=fields["edge_index"], num_nodes=int(fields["ptr"][1]))
    for feature in features:
        value = fields[feature.name]
        data[feature.name] = value[0] if feature.location is Location.GRAPH and isinstance(value, list) else value
    for name, value in standard_fields(fields, features).items():
        data[name] = value
    return data
