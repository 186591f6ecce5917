"""Independent checks of generated graphs: structure, and labels against networkx and SciPy.

Nothing here calls the kernels that made the labels.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from graphbench.data.arrays.samples import Samples

_CLIQUE_NODES = (
    64  # larger graphs: networkx would take hours on dense ones, so maximality is checked instead of maximum
)
_RELATIVE = 1e-5  # float32 labels against float64 recomputation


@dataclass(frozen=True)
class Graph:
    """One sample, taken apart: ``edges`` int ``[m, 2]`` and the values of this graph alone."""

    nodes: int
    edges: NDArray[Any]
    values: Mapping[str, NDArray[Any]]

    def to_networkx(self, directed: bool = False) -> Any:
        """Return the graph with edge attributes ``weight`` where there are weights."""
        graph = nx.DiGraph() if directed else nx.Graph()
        graph.add_nodes_from(range(self.nodes))
        graph.add_edges_from(self.edges.tolist())
        if "weight" in self.values:
            for (u, v), weight in zip(self.edges.tolist(), self.values["weight"].tolist(), strict=True):
                graph[u][v]["weight"] = weight
        return graph


LabelCheck = Callable[[Graph], str | None]


_GRAPH_VALUES = frozenset({"model", "proved", "value", "clique_size"})
_NODE_VALUES = frozenset({"priority", "rank", "is_terminal", "in_clique", "is_member", "source", "sink"})


def graphs(samples: Samples) -> Iterator[Graph]:
    """Yield the samples one by one."""
    node_ptr, edge_ptr = samples.node_ptr, samples.edge_ptr
    for i in range(len(samples)):
        of_nodes, of_edges = slice(node_ptr[i], node_ptr[i + 1]), slice(edge_ptr[i], edge_ptr[i + 1])
        values = {
            name: value[slice(i, i + 1) if name in _GRAPH_VALUES else of_nodes if name in _NODE_VALUES else of_edges]
            for name, value in samples.values.items()
        }
        yield Graph(int(samples.num_nodes[i]), samples.edges[of_edges].astype(np.int64), values)


def check(label_check: LabelCheck, parameters: Any, samples: Samples) -> list[str]:
    """Return the problems of the samples, each naming the graph; an empty list when all is well."""
    problems = []
    for i, graph in enumerate(graphs(samples)):
        problem = structure_problem(graph, parameters.nodes, parameters.directed) or label_check(graph)
        if problem is not None:
            problems.append(f"graph {i}: {problem}")
    return problems


def structure_problem(graph: Graph, nodes: int, directed: bool) -> str | None:
    """Return a problem of node count, ids, order, loops, repeats or connectedness, or None."""
    edges = graph.edges
    if graph.nodes != nodes:
        return f"{graph.nodes} nodes instead of {nodes}"
    if len(edges) == 0 or edges.min() < 0 or edges.max() >= nodes:
        return "no edges, or node ids out of range"
    keys = edges[:, 0] * nodes + edges[:, 1]
    if (np.diff(keys) <= 0).any():
        return "edges are not sorted or repeat"
    if directed:
        if (edges[:, 0] == edges[:, 1]).any():
            return "a self-loop"
    elif (edges[:, 0] >= edges[:, 1]).any():
        return "an edge not stored as u < v"
    if not nx.is_connected(graph.to_networkx()):
        return "not connected"
    return None


def check_topological_sort(graph: Graph) -> str | None:
    """Compare the ranks with networkx's lexicographical topological sort by priority."""
    priority = graph.values["priority"]
    if len(set(priority.tolist())) != graph.nodes:
        return "priorities repeat"
    order = list(nx.lexicographical_topological_sort(graph.to_networkx(directed=True), key=lambda v: priority[v]))
    rank = np.empty(graph.nodes)
    rank[order] = np.arange(graph.nodes) / max(graph.nodes - 1, 1)
    return None if np.allclose(rank, graph.values["rank"], atol=1e-6) else "ranks differ from networkx's order"


def check_mst(graph: Graph) -> str | None:
    """Compare the tree with networkx's (weights are distinct, so it is unique)."""
    if len(set(graph.values["weight"].tolist())) != len(graph.edges):
        return "weights repeat"
    tree = {tuple(sorted(e)) for e in nx.minimum_spanning_edges(graph.to_networkx(), algorithm="prim", data=False)}
    return _compare_edges(graph, "in_tree", tree)


def check_bridges(graph: Graph) -> str | None:
    """Compare with networkx's bridges."""
    return _compare_edges(graph, "is_bridge", {tuple(sorted(e)) for e in nx.bridges(graph.to_networkx())})


def _compare_edges(graph: Graph, name: str, expected: set[tuple[int, ...]]) -> str | None:
    labelled = {tuple(e) for e in graph.edges[graph.values[name].astype(bool)].tolist()}
    wrong = labelled ^ expected
    return f"{name} is wrong on {len(wrong)} edges, e.g. {min(wrong)}" if wrong else None


def check_steiner_tree(graph: Graph) -> str | None:
    """Check that the edges form a tree over the three terminals, as light as the best meeting point allows."""
    terminals = np.flatnonzero(graph.values["is_terminal"]).tolist()
    if len(terminals) != 3:
        return f"{len(terminals)} terminals"
    full = graph.to_networkx()
    tree = full.edge_subgraph([tuple(e) for e in graph.edges[graph.values["in_tree"].astype(bool)].tolist()])
    if not all(t in tree for t in terminals) or not nx.is_tree(tree):
        return "the edges are no tree over the terminals"
    if any(degree == 1 and v not in terminals for v, degree in tree.degree):
        return "the tree has a leaf that is no terminal"
    distances = [nx.single_source_dijkstra_path_length(full, t) for t in terminals]
    best = min(sum(d[v] for d in distances) for v in full)
    weight = tree.size(weight="weight")
    return None if weight <= best * (1 + _RELATIVE) else f"tree of weight {weight:.6f}, the optimum is {best:.6f}"


def check_max_clique(graph: Graph) -> str | None:
    """Check a clique: complete, maximal, and on small graphs the lexicographically smallest maximum clique."""
    members = np.flatnonzero(graph.values["in_clique"]).tolist()
    full = graph.to_networkx()
    if not members or any(not full.has_edge(u, v) for u, v in itertools.combinations(members, 2)):
        return "the nodes are no clique"
    if set.intersection(*(set(full[v]) for v in members)):
        return "the clique can be extended"
    if graph.nodes > _CLIQUE_NODES or not graph.values["proved"][0]:
        return None
    cliques = [sorted(c) for c in nx.find_cliques(full)]
    size = max(map(len, cliques))
    best = min(c for c in cliques if len(c) == size)
    return None if members == best else f"clique {members}, expected {best}"


def check_clique_membership(graph: Graph) -> str | None:
    """Compare members with all maximum cliques that networkx lists; on larger graphs check what every label must obey.

    On larger graphs networkx would list cliques for hours. There every member needs as many neighbours among the
    members as the rest of its clique has nodes, and a greedy search must not meet a larger clique, nor a node of a
    clique as large that is no member.
    """
    members, size = set(np.flatnonzero(graph.values["is_member"]).tolist()), int(graph.values["clique_size"][0])
    full = graph.to_networkx()
    lonely = [v for v in sorted(members) if len(members & set(full[v])) < size - 1]
    if len(members) < size or lonely:
        return f"members {sorted(members)} cannot all lie in cliques of {size} nodes"
    if not graph.values["proved"][0]:
        return None
    if graph.nodes > _CLIQUE_NODES:
        cliques = [_greedy_clique(full, origin) for origin in full]
    else:
        cliques = [set(clique) for clique in nx.find_cliques(full)]
        if max(map(len, cliques)) < size:
            return f"no clique has {size} nodes"
    if max(map(len, cliques)) > size:
        return f"a clique has {max(map(len, cliques))} nodes, the label says {size}"
    expected = set().union(*(clique for clique in cliques if len(clique) == size))
    wrong = expected - members if graph.nodes > _CLIQUE_NODES else expected ^ members
    return f"is_member is wrong at {len(wrong)} nodes, e.g. {min(wrong)}" if wrong else None


def _greedy_clique(graph: Any, origin: int) -> set[int]:
    """Return the clique that grows from a node by the candidate with the most neighbours among the candidates."""
    clique, candidates = {origin}, set(graph[origin])
    while candidates:
        best = max(candidates, key=lambda node: len(candidates & set(graph[node])))
        clique.add(best)
        candidates &= set(graph[best])
    return clique


def check_flow(graph: Graph) -> str | None:
    """Compare the value with SciPy's integer maximum flow."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    source, sink = graph.values["source"], graph.values["sink"]
    if source.sum() != 1 or sink.sum() != 1 or (source & sink).any():
        return "source and sink are not two single nodes"
    capacity = graph.values["capacity"].astype(np.float64)
    grid = 2.0**22
    whole = np.round(capacity * grid).astype(np.int32)
    if (np.abs(whole / grid - capacity) > 1e-9).any():
        return "capacities are not multiples of 2**-22"
    rows = np.concatenate([graph.edges[:, 0], graph.edges[:, 1]])
    columns = np.concatenate([graph.edges[:, 1], graph.edges[:, 0]])
    matrix = csr_array((np.concatenate([whole[:, 0], whole[:, 1]]), (rows, columns)), shape=(graph.nodes, graph.nodes))
    value = maximum_flow(matrix, int(source.argmax()), int(sink.argmax())).flow_value / grid
    labelled = float(graph.values["value"][0])
    return (
        None
        if abs(labelled - value) <= _RELATIVE * max(1.0, value)
        else f"flow value {labelled:.6f}, SciPy finds {value:.6f}"
    )


def check_max_matching(graph: Graph) -> str | None:
    """Check a matching and compare its weight with networkx's."""
    matched = graph.values["matched"].astype(bool)
    ends = graph.edges[matched].reshape(-1)
    if len(set(ends.tolist())) != len(ends):
        return "two matched edges share a node"
    full = graph.to_networkx()
    best = sum(full[u][v]["weight"] for u, v in nx.max_weight_matching(full))
    weight = float(graph.values["weight"][matched].astype(np.float64).sum())
    return (
        None
        if abs(weight - best) <= _RELATIVE * best
        else f"matching of weight {weight:.6f}, networkx finds {best:.6f}"
    )


LABEL_CHECKS: Mapping[str, LabelCheck] = {
    "topological_sort": check_topological_sort,
    "mst": check_mst,
    "bridges": check_bridges,
    "steiner_tree": check_steiner_tree,
    "max_clique": check_max_clique,
    "clique_membership": check_clique_membership,
    "flow": check_flow,
    "max_matching": check_max_matching,
}
