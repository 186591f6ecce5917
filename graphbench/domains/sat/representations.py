"""The graph representations of formulas, derived from the stored variable-clause graph."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from graphbench.data.arrays.samples import Samples
from graphbench.data.components.representations import Representation
from graphbench.domains.sat.formulas import IS_CLAUSE, NEGATED, formulas_of
from graphbench.domains.sat.graph_kernels import CLAUSE
from graphbench.domains.sat.graphs import FormulaGraphs, GraphKind, graphs_of_formulas


def _derive(kind: GraphKind, samples: Samples) -> Samples:
    """Return the graphs of all formulas, with the logarithms of counts as features."""
    graphs = graphs_of_formulas(*formulas_of(samples), kind, link_literals=kind == "lcg")
    values = {"occurrences": np.log1p(graphs.node_arrays["occurrences"].astype(np.float32)), **_kind_values(graphs)}
    return Samples(graphs.num_nodes, graphs.num_edges, graphs.edges, values)


def _kind_values(graphs: FormulaGraphs) -> Mapping[str, Any]:
    edges = graphs.edge_arrays
    if graphs.kind == "vcg":
        return {IS_CLAUSE: graphs.node_arrays["type"] == CLAUSE, NEGATED: edges["polarity"] < 0}
    if graphs.kind == "lcg":
        return {IS_CLAUSE: graphs.node_arrays["type"] == CLAUSE, "link": edges["link"]}
    return {"shared": np.log1p(edges["count"].astype(np.float32))}


REPRESENTATIONS: Mapping[str, Representation] = {
    kind: Representation(f"sat.{kind}", version=1, derive=partial(_derive, kind)) for kind in ("vg", "vcg", "lcg", "cg")
}
