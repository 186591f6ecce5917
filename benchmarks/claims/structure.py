"""Structural rules on this project's graphs of algorithmic reasoning, beside the scores that GraphBench prints.

The rules are computed here with networkx and plain Python, independently of the package's kernels, on first draws of a
split. Every check names the data by their hash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations, pairwise
from statistics import mean
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

import graphbench
from benchmarks.claims.recipe import DIFFICULTIES
from benchmarks.claims.records import printed_scores
from benchmarks.claims.registry import Outcome, check
from benchmarks.claims.running import outcome_of
from graphbench.data.arrays.samples import Samples
from graphbench.data.build.generation import draw_samples
from graphbench.domains.algoreas.checks import Graph, graphs
from graphbench.tasks.predict.rules import rule_predictions
from graphbench.verification.measuring import arrays_hash

Rule = Callable[[Graph], NDArray[Any]]
_HASH_DIGITS = 12
_STATED = 0.0005  # scores are stated to three digits after the point, or four


@cache
def _drawn(dataset: str, split: str, count: int) -> Samples:
    """Return first draws of the first samples of a split."""
    return draw_samples(graphbench.card(dataset), split, np.arange(count))


@cache
def _predicted(rule: Rule, dataset: str, count: int) -> NDArray[Any]:
    """Return the predictions of a rule for the first test graphs."""
    return np.concatenate([rule(graph) for graph in graphs(_drawn(dataset, "test", count))])


def _hash(samples: Samples) -> str:
    return arrays_hash(samples)[:_HASH_DIGITS]


# ---------------------------------------------------------------------------------------------------------------------
# The rules, for one graph


def smaller_capacity(graph: Graph) -> NDArray[Any]:
    """Return the smaller of the capacities out of the source and into the sink, ``[1]``."""
    network = nx.DiGraph()
    for (u, v), (there, back) in zip(graph.edges.tolist(), graph.values["capacity"].tolist(), strict=True):
        network.add_edge(u, v, capacity=there)
        network.add_edge(v, u, capacity=back)
    source, sink = (int(np.flatnonzero(graph.values[name])[0]) for name in ("source", "sink"))
    cuts = network.out_degree(source, weight="capacity"), network.in_degree(sink, weight="capacity")
    return np.array([min(cuts)])


def shortest_cycles(graph: Graph) -> list[float]:
    """Return the number of edges of the shortest cycle through every edge; infinite for bridges."""
    near: list[set[int]] = [set() for _ in range(graph.nodes)]
    for u, v in graph.edges.tolist():
        near[u].add(v)
        near[v].add(u)
    return [_distance_without(near, u, v) + 1 for u, v in graph.edges.tolist()]


def _distance_without(near: Sequence[set[int]], u: int, v: int) -> float:
    """Return the distance between the nodes of an edge if the edge is left out."""
    reached, border, distance = {u}, {u}, 0
    while border:
        distance += 1
        border = set().union(*((near[node] - {v} if node == u else near[node]) for node in border)) - reached
        if v in border:
            return distance
        reached |= border
    return float("inf")


def no_short_cycle(graph: Graph) -> NDArray[Any]:
    """Return the edges on no cycle of at most seven edges, ``[m]``."""
    return np.array(shortest_cycles(graph)) > 7


def lightest_at_an_end(graph: Graph) -> NDArray[Any]:
    """Return the edges that are the lightest of one of their nodes, ``[m]``."""
    found = graph.to_networkx()
    best = {tuple(sorted((node, min(found[node], key=lambda v: found[node][v]["weight"])))) for node in found}
    return _chosen(graph, best)


def heaviest_first(graph: Graph) -> NDArray[Any]:
    """Return the greedy matching by falling weight, ``[m]``."""
    free, best = set(range(graph.nodes)), set()
    for u, v, _ in sorted(graph.to_networkx().edges(data="weight"), key=lambda edge: -edge[2]):
        if u in free and v in free:
            free -= {u, v}
            best.add(tuple(sorted((u, v))))
    return _chosen(graph, best)


def two_shortest_paths(graph: Graph) -> NDArray[Any]:
    """Return the two shorter of the three shortest paths between terminals, ``[m]``."""
    found, paths = graph.to_networkx(), []
    for a, b in combinations(np.flatnonzero(graph.values["is_terminal"]).tolist(), 2):
        paths.append(nx.single_source_dijkstra(found, a, b))
    return _chosen(graph, {tuple(sorted(step)) for _, path in sorted(paths)[:2] for step in pairwise(path)})


def largest_ancestor(graph: Graph) -> NDArray[Any]:
    """Return ranks by the largest priority of the ancestors, then by their number, ``[n]``."""
    found, priority = graph.to_networkx(directed=True), graph.values["priority"].tolist()
    above: dict[int, set[int]] = {}
    for node in nx.topological_sort(found):
        above[node] = {node}.union(*(above[before] for before in found.predecessors(node)))
    keys = [(max(priority[a] for a in above[node]), len(above[node])) for node in range(graph.nodes)]
    counts = Counter(keys)
    first, before = {}, 0
    for key in sorted(counts):
        first[key] = before + (counts[key] - 1) / 2
        before += counts[key]
    return np.array([first[key] for key in keys]) / max(graph.nodes - 1, 1)


def greedy_clique(graph: Graph) -> NDArray[Any]:
    """Return the lexicographically smallest of the largest greedy cliques, one from every node, ``[n]``."""
    near = [0] * graph.nodes
    for u, v in graph.edges.tolist():
        near[u] |= 1 << v
        near[v] |= 1 << u
    cliques = []
    for origin in range(graph.nodes):
        clique, candidates = [origin], near[origin]
        while candidates:
            nodes = [node for node in range(graph.nodes) if candidates >> node & 1]
            clique.append(max(nodes, key=lambda node: ((near[node] & candidates).bit_count(), -node)))
            candidates &= near[clique[-1]]
        cliques.append(sorted(clique))
    best = min(cliques, key=lambda clique: (-len(clique), clique))
    return np.isin(np.arange(graph.nodes), best)


def greedy_clique_largest_ids(graph: Graph) -> NDArray[Any]:
    """Return what :func:`greedy_clique` finds if all node ids are reversed, ``[n]``."""
    return greedy_clique(Graph(graph.nodes, graph.nodes - 1 - graph.edges, graph.values))[::-1]


def _chosen(graph: Graph, edges: set[Any]) -> NDArray[Any]:
    return np.array([tuple(edge) in edges for edge in graph.edges.tolist()])


RULES: Mapping[str, tuple[str, Rule]] = {
    "flow": ("value", smaller_capacity),
    "bridges": ("is_bridge", no_short_cycle),
    "mst": ("in_tree", lightest_at_an_end),
    "max_matching": ("matched", heaviest_first),
    "steiner_tree": ("in_tree", two_shortest_paths),
    "topological_sort": ("rank", largest_ancestor),
}


# ---------------------------------------------------------------------------------------------------------------------
# Checks


def _mae(predicted: NDArray[Any], target: NDArray[Any]) -> float:
    return float(np.mean(np.abs(predicted - target)))


def _f1(predicted: NDArray[Any], target: NDArray[Any]) -> float:
    hits = np.sum(predicted & (target != 0))
    return float(2 * hits / (np.sum(predicted) + np.sum(target != 0)))


@check
def structural_rule(
    task: str, graphs_scored: int, metric: str, stated: dict[str, float], beats: dict[str, Sequence[str]]
) -> Outcome:
    """The score of a structural rule on the test split, beside the printed scores of networks.

    The rule is computed twice, by the package and here, and has to predict the same.

    Args:
        task: The task; its rule is the one called ``structural``.
        graphs_scored: Number of first test graphs of every difficulty.
        metric: ``f1`` or ``mae``.
        stated: Difficulty -> the score that is stated of it, to three digits after the point.
        beats: Difficulty -> the models whose printed score is worse than the rule's, all others being better.
    """
    output, rule = RULES[task]
    problems = []
    scores, printed, hashes = {}, {}, {}
    for difficulty in DIFFICULTIES:
        name = f"algoreas/{task}_{difficulty}"
        card, samples = graphbench.card(name), _drawn(name, "test", graphs_scored)
        predicted = _predicted(rule, name, graphs_scored)
        by_package = rule_predictions(card, samples)["structural"][output]
        if not np.allclose(predicted.astype(np.float64), by_package.astype(np.float64), atol=1e-6):
            problems.append(f"{name}: the package's rule predicts something else")
        score = (_mae if metric == "mae" else _f1)(predicted, samples.values[output])
        if abs(score - stated[difficulty]) > _STATED:
            problems.append(f"{name}: {metric} {score:.4f}, stated {stated[difficulty]}")
        printed[difficulty] = printed_scores(name, metric)
        for where, value in (("here", score), ("beside the card", card.floor["test"]["structural"][metric])):
            worse = [model for model, other in printed[difficulty].items() if _is_better(value, other, metric)]
            if sorted(worse) != sorted(beats[difficulty]):
                problems.append(f"{name}: {value:.4f} {where} is better than {worse}, stated {list(beats[difficulty])}")
        scores[difficulty], hashes[difficulty] = score, _hash(samples)
    return outcome_of(problems, score=scores, printed=printed, graphs=graphs_scored, data=hashes)


def _is_better(value: float, other: float | None, metric: str) -> bool:
    return other is not None and (value < other if metric == "mae" else value > other)


@check
def cycles_of_edges(graphs_read: int, longest: int, share: float, triangles: float) -> Outcome:
    """Lengths of the shortest cycles through the edges of test graphs that are no bridges.

    Args:
        graphs_read: Number of first test graphs of every difficulty.
        longest: Edges of a cycle that is called short.
        share: At least this share of the edges lies on a short cycle, but not all do.
        triangles: At least this share of the edges lies on a triangle.
    """
    problems = []
    short, on_triangle, most, edges, hashes = {}, {}, {}, {}, {}
    for difficulty in DIFFICULTIES:
        samples = _drawn(f"algoreas/bridges_{difficulty}", "test", graphs_read)
        lengths = np.concatenate([shortest_cycles(graph) for graph in graphs(samples)])
        if np.any((lengths == np.inf) != (samples.values["is_bridge"] != 0)):
            problems.append(
                f"{difficulty}: an edge without a cycle is not labelled as a bridge, or one with a cycle is"
            )
        found = lengths[lengths < np.inf]
        short[difficulty], on_triangle[difficulty] = float(np.mean(found <= longest)), float(np.mean(found == 3))
        most[difficulty], edges[difficulty], hashes[difficulty] = int(found.max()), len(found), _hash(samples)
        if not share <= short[difficulty] < 1:
            problems.append(f"{difficulty}: {short[difficulty]:.5%} on cycles of at most {longest}, stated {share:.3%}")
        if on_triangle[difficulty] < triangles:
            problems.append(f"{difficulty}: {on_triangle[difficulty]:.1%} on triangles, stated {triangles:.0%}")
    return outcome_of(
        problems, short=short, triangles=on_triangle, most=most, edges=edges, graphs=graphs_read, data=hashes
    )


def maximum_cliques(graph: Graph) -> list[list[int]]:
    """Return all maximum cliques, each in ascending order."""
    cliques = [sorted(clique) for clique in nx.find_cliques(graph.to_networkx())]
    size = max(map(len, cliques))
    return [clique for clique in cliques if len(clique) == size]


@check
def several_maximum_cliques(graphs_read: int, stated: dict[str, float]) -> Outcome:
    """Share of training graphs with several maximum cliques, of which the label is the lexicographically smallest.

    Args:
        graphs_read: Number of first training graphs of every difficulty.
        stated: Difficulty -> the share that is stated, in whole percent.
    """
    problems = []
    several, numbers, hashes = {}, {}, {}
    for difficulty in DIFFICULTIES:
        samples = _drawn(f"algoreas/max_clique_{difficulty}", "train", graphs_read)
        counted = []
        for graph in graphs(samples):
            cliques = maximum_cliques(graph)
            counted.append(len(cliques))
            if np.flatnonzero(graph.values["in_clique"]).tolist() != min(cliques):
                problems.append(f"{difficulty}: a label is not the lexicographically smallest maximum clique")
        several[difficulty], numbers[difficulty] = mean(n > 1 for n in counted), mean(counted)
        hashes[difficulty] = _hash(samples)
        if abs(100 * several[difficulty] - stated[difficulty]) > 0.5:
            problems.append(f"{difficulty}: {several[difficulty]:.1%}, stated {stated[difficulty]} %")
    return outcome_of(problems, several=several, cliques=numbers, graphs=graphs_read, data=hashes)


@check
def ids_of_cliques(graphs_read: int, apart: float) -> Outcome:
    """F1 on validation graphs of a greedy search that takes the smallest ids first, and of one with all ids reversed.

    Args:
        graphs_read: Number of first validation graphs of every difficulty.
        apart: The second F1 is lower by at least this much, although the cliques are as large.
    """
    problems = []
    smallest, largest, sizes, hashes = {}, {}, {}, {}
    for difficulty in DIFFICULTIES:
        samples = _drawn(f"algoreas/max_clique_{difficulty}", "val", graphs_read)
        target, scores, nodes = samples.values["in_clique"], [], []
        for rule in (greedy_clique, greedy_clique_largest_ids):
            predicted = np.concatenate([rule(graph) for graph in graphs(samples)])
            scores.append(_f1(predicted, target))
            nodes.append(float(predicted.sum() / (target != 0).sum()))
        smallest[difficulty], largest[difficulty] = scores
        sizes[difficulty], hashes[difficulty] = nodes[1], _hash(samples)
        if scores[0] - scores[1] < apart or abs(nodes[0] - nodes[1]) > 0.005:
            problems.append(
                f"{difficulty}: F1 {scores[0]:.3f} and {scores[1]:.3f}, sizes {nodes}; stated {apart} apart"
            )
    return outcome_of(problems, smallest=smallest, largest=largest, sizes=sizes, graphs=graphs_read, data=hashes)
