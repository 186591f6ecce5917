"""Structural rules: cheap trivial predictors that read a graph, or its weights, and learn nothing.

A rule shows how well a label can be predicted without the algorithm that computes the label.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.data.arrays.samples import Samples
from graphbench.data.components.rules import Rule

Predictions = Mapping[str, NDArray[Any]]

SHORT_CYCLE = 7
"""Edges of the longest cycles that the rule of the bridges sees."""
TRIANGLE = 3


def smaller_capacity(samples: Samples) -> Predictions:
    """Return the smaller of two cuts: the capacity out of the source, and the capacity into the sink.

    Every cut bounds the maximum flow from above (Ford and Fulkerson, 1956).

    Returns:
        ``value``: float64 ``[S]``.
    """
    edges, graph = _global_edges(samples)
    capacity = samples.values["capacity"].astype(np.float64)  # [E, 2]: u -> v, v -> u
    cuts = []
    for node, directions in (("source", (0, 1)), ("sink", (1, 0))):
        at_node = samples.values[node][edges] != 0  # [E, 2]
        leaving, arriving = directions
        amount = at_node[:, 0] * capacity[:, leaving] + at_node[:, 1] * capacity[:, arriving]
        cuts.append(np.bincount(graph, amount, minlength=len(samples)))
    return {"value": np.minimum(*cuts)}


def no_short_cycle(samples: Samples, longest: int) -> Predictions:
    """Return as bridges the edges that lie on no cycle of at most ``longest`` edges.

    Every bridge is among these edges. The other edges among them lie on longer cycles only.

    Args:
        samples: Undirected graphs.
        longest: Edges of the longest cycle that counts, at least 3.

    Returns:
        ``is_bridge``: bool ``[E]``.
    """
    from graphbench.domains.algoreas.rule_kernels import on_short_cycle

    return {"is_bridge": ~on_short_cycle(samples.node_ptr, samples.edge_ptr, _local_edges(samples), longest)}


def lightest_at_an_end(samples: Samples) -> Predictions:
    """Return as tree edges the edges that are the lightest edge of one of their two nodes.

    They are the first round of Boruvka's algorithm (1926), so all of them belong to the minimum spanning tree.

    Returns:
        ``in_tree``: bool ``[E]``.
    """
    edges, _ = _global_edges(samples)
    weight = samples.values["weight"]
    lightest = np.full(samples.node_ptr[-1], np.inf, weight.dtype)
    np.minimum.at(lightest, edges, weight[:, None])
    return {"in_tree": np.any(weight[:, None] == lightest[edges], axis=1)}


def heaviest_first(samples: Samples) -> Predictions:
    """Return the greedy matching: edges by falling weight, each taken if both of its nodes are free.

    Its weight is at least half of the maximum (Avis, 1983).

    Returns:
        ``matched``: bool ``[E]``.
    """
    from graphbench.domains.algoreas.rule_kernels import greedy_matching

    edges, graph = _global_edges(samples)
    order = np.lexsort((-samples.values["weight"], graph))
    return {"matched": greedy_matching(int(samples.node_ptr[-1]), edges, order)}


def two_shortest_paths(samples: Samples) -> Predictions:
    """Return the shortest paths between terminals, without the longest of the three.

    It is the approximation of Kou, Markowsky and Berman (1981) before its tree is pruned.

    Returns:
        ``in_tree``: bool ``[E]``.
    """
    from graphbench.domains.algoreas.rule_kernels import terminal_paths

    weight, is_terminal = samples.values["weight"], samples.values["is_terminal"] != 0
    return {"in_tree": terminal_paths(samples.node_ptr, samples.edge_ptr, _local_edges(samples), weight, is_terminal)}


def greedy_clique(samples: Samples, *, largest_ids: bool = False) -> Predictions:
    """Return the first of the largest cliques that a greedy search finds, one search from every node.

    A search adds, again and again, the candidate with the most neighbours among the candidates, of several the one of
    smallest id. Of the largest cliques the lexicographically smallest set of node ids is taken.

    Args:
        samples: Undirected graphs.
        largest_ids: Whether node ids are read in falling order. The rule then knows of the graph exactly as much; the
            difference of the two scores is the information in node ids.

    Returns:
        ``in_clique``: bool ``[N]``.
    """
    from graphbench.domains.algoreas.rule_kernels import greedy_cliques

    return {"in_clique": greedy_cliques(samples.node_ptr, samples.edge_ptr, _local_edges(samples), largest_ids)}


def greedy_members(samples: Samples) -> Predictions:
    """Return the nodes of all largest cliques that a greedy search finds, one search from every node.

    A search is that of :func:`greedy_clique`. Ties between candidates go to the smallest id, so ids still have some
    influence on which cliques are met.

    Returns:
        ``is_member``: bool ``[N]``.
    """
    from graphbench.domains.algoreas import rule_kernels

    return {"is_member": rule_kernels.greedy_members(samples.node_ptr, samples.edge_ptr, _local_edges(samples))}


def largest_ancestor(samples: Samples) -> Predictions:
    """Return ranks by the largest priority among a node and its ancestors, of equal ones by the number of ancestors.

    Nothing is taken before its ancestors, so a node waits for the ancestor of largest priority. Nodes that wait for the
    same ancestor differ by how many nodes must come before them.

    Returns:
        ``rank``: float64 ``[N]``, position / (n - 1); nodes that are equal in both have their mean position.
    """
    from graphbench.domains.algoreas.rule_kernels import ancestors

    priority = samples.values["priority"]
    largest, count = ancestors(samples.node_ptr, samples.edge_ptr, _local_edges(samples), priority)
    graph = np.repeat(np.arange(len(samples)), samples.num_nodes)
    order = np.lexsort((count, largest, graph))
    keys = np.stack([graph, largest, count], axis=1)[order]
    starts = np.flatnonzero(np.r_[True, np.any(keys[1:] != keys[:-1], axis=1)]) if len(keys) else np.zeros(0, np.int64)
    sizes = np.diff(np.r_[starts, len(keys)])
    position = np.empty(len(keys))
    position[order] = np.repeat(starts + (sizes - 1) / 2, sizes)
    last = np.maximum(samples.num_nodes - 1, 1)
    return {"rank": (position - samples.node_ptr[graph]) / last[graph]}


def _local_edges(samples: Samples) -> NDArray[np.int32]:
    """Return the edges as kernels take them; files hold the smallest type that node ids need."""
    return samples.edges.astype(np.int32)


def _global_edges(samples: Samples) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges with numbers of nodes that count through all graphs, ``[E, 2]``, and the graph of every edge."""
    graph = np.repeat(np.arange(len(samples)), samples.num_edges)
    return samples.edges.astype(np.int64) + samples.node_ptr[graph][:, None], graph


RULES: Mapping[str, Rule] = {
    "smaller_capacity": Rule(
        "The value is the smaller of two capacities: the total out of the source and the total into the sink.",
        smaller_capacity,
    ),
    "no_short_cycle": Rule(
        f"An edge is a bridge if it lies on no cycle of at most {SHORT_CYCLE} edges.",
        partial(no_short_cycle, longest=SHORT_CYCLE),
    ),
    "no_triangle": Rule(
        "An edge is a bridge if it lies on no triangle.",
        partial(no_short_cycle, longest=TRIANGLE),
    ),
    "lightest_at_an_end": Rule(
        "An edge is in the tree if no other edge at one of its two nodes is lighter.",
        lightest_at_an_end,
    ),
    "heaviest_first": Rule(
        "Edges are matched greedily: the heaviest first, each if both of its nodes are free.",
        heaviest_first,
    ),
    "two_shortest_paths": Rule(
        "An edge is in the tree if it lies on one of the two shorter of the three shortest paths between terminals.",
        two_shortest_paths,
    ),
    "greedy_clique": Rule(
        "From every node a clique grows greedily by the number of neighbours among the candidates, ties to the "
        "smallest id. The clique is the largest of these, of several the lexicographically smallest.",
        greedy_clique,
    ),
    "greedy_clique_largest_ids": Rule(
        "The same search with all node ids reversed: ties go to the largest id. The difference between the two "
        "scores shows how much node ids reveal.",
        partial(greedy_clique, largest_ids=True),
    ),
    "greedy_members": Rule(
        "From every node a clique grows greedily by the number of neighbours among the candidates. A node is a member "
        "if it is in one of the largest of these cliques.",
        greedy_members,
    ),
    "largest_ancestor": Rule(
        "Nodes are ranked by the largest priority among themselves and their ancestors, ties by the number of "
        "ancestors.",
        largest_ancestor,
    ),
}
