"""Cuts of sparse graphs (table 13): an upper bound that needs no solver."""

from __future__ import annotations

import random
from collections import deque
from itertools import pairwise
from statistics import mean

import networkx as nx
import numpy as np

from benchmarks.claims.registry import Outcome, check
from graphbench.records.published import published


def _odd_walk(near: dict[int, set[int]], root: int, longest: int) -> list[int] | None:
    """Return a shortest closed walk of odd length from a node, or None if all are longer than ``longest``."""
    start, goal = (root, 0), (root, 1)
    before: dict[tuple[int, int], tuple[int, int] | None] = {start: None}
    depth = {start: 0}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        if depth[here] == longest:
            continue
        for v in near[here[0]]:
            there = (v, 1 - here[1])
            if there in before:
                continue
            before[there], depth[there] = here, depth[here] + 1
            if there == goal:
                walk = [root]
                step = before[there]
                while step is not None:
                    walk.append(step[0])
                    step = before[step]
                return walk
            queue.append(there)
    return None


def disjoint_odd_cycles(graph: nx.Graph) -> int:
    """Return a number of odd cycles of which no two share an edge.

    A cut leaves at least one edge of every odd cycle uncut, so no cut has more edges than the graph less this number.
    Cycles are taken out in the order of their lengths: a shortest closed odd walk of the graph is a cycle.
    """
    near = {v: set(graph[v]) for v in graph}
    found, longest = 0, 3
    while longest <= len(near):
        for root in near:
            while (walk := _odd_walk(near, root, longest)) is not None:
                for u, v in pairwise(walk):
                    near[u].discard(v)
                    near[v].discard(u)
                found += 1
        longest += 2
        if not any(near.values()) or longest > 15:
            break
    return found


@check
def cuts_of_attached_graphs(graphs: int = 30) -> Outcome:
    """Upper bounds on the cuts of Barabási-Albert graphs of 200 to 300 nodes beside table 13's mean cut.

    Graphs are drawn by networkx. Lower bounds are cuts that this package's solver finds, recounted edge by edge.

    Args:
        graphs: Number of graphs.
    """
    from graphbench import card
    from graphbench.data.components.domain import find
    from graphbench.domains.co.solving import SOLVERS

    labels = card("co/ba_small:max_cut")
    effort = find("labeller", labels.labellers[0]).parse(labels, "test")
    source = random.Random("cuts")
    (printed,) = [s.value for s in published("co/ba_small:max_cut") if s.model == "solver"]
    sizes, bounds, cuts = [], [], []
    for i in range(graphs):
        graph = nx.barabasi_albert_graph(source.randint(200, 300), 2, seed=source.randrange(2**32))
        edges = np.array(sorted(graph.edges), np.int32)
        label = SOLVERS["max_cut"].solve(len(graph), edges, effort, i)
        side = label.solution
        cuts.append(int((side[edges[:, 0]] != side[edges[:, 1]]).sum()))
        sizes.append(len(edges))
        bounds.append(len(edges) - disjoint_odd_cycles(graph))
    assert printed is not None
    below = mean(bounds) / mean(sizes)
    printed_share = printed / 495.8
    return Outcome(
        all(cut <= bound for cut, bound in zip(cuts, bounds, strict=True)) and below < printed_share - 0.03,
        {
            "graphs": graphs,
            "edges": mean(sizes),
            "bound": mean(bounds),
            "cut": mean(cuts),
            "bound_share": below,
            "cut_share": mean(cuts) / mean(sizes),
            "printed": printed,
            "printed_share": printed_share,
        },
        f"bound {mean(bounds):.1f} of {mean(sizes):.1f} edges",
    )
