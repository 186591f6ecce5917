"""Trained models of algorithmic reasoning on graphs that no split holds: rings, grids, bottlenecks, other ranges.

A score on a test split may come from a shortcut that its random graphs allow. Each row scores the committed weights of
a model on one kind of graph; labels are computed with networkx, apart from the package's own generators. Where a rule
without learned weights exists, its score stands beside the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import networkx as nx
import numpy as np
import torch
from sklearn.metrics import f1_score, mean_absolute_error
from torch_geometric.data import Batch, Data

import graphbench
from benchmarks.common import Row, Sizes, main, row_or_failure
from graphbench.catalog.cards import Card

SETTINGS = {
    "weights": "committed ones of one seed, as graphbench.load_model returns them",
    "labels": "networkx; every kind of graph is drawn from a seed of its own",
    "beside": "a rule without learned weights, on the same graphs",
    "page": "docs/generalising.md",
}
MODELS = {
    "mst": "pairs",
    "bridges": "arcs",
    "topological_sort": "pairs",
    "max_matching": "arcs",
    "steiner_tree": "pairs",
    "flow": "cuts",
}
Rng = np.random.Generator
TERMINALS = 3


@dataclass(frozen=True)
class Case:
    """One graph as a sample of a task.

    Attributes:
        data: The sample as the models read it.
        label: The labels: a decision for each direction of every edge, or a number for each node or for the graph.
        rule: What a rule without learned weights predicts, as the labels.
    """

    data: Data
    label: np.ndarray
    rule: np.ndarray


# --------------------------------------------------------------------------------------------------------------------
# Samples


def _sample(arcs: list[tuple[int, int]], nodes: int, **features: np.ndarray) -> Data:
    """Return a sample with features of nodes and of arcs, which are given in the order of the card."""
    tensors = {name: torch.as_tensor(values) for name, values in features.items()}
    at_nodes = [t.float() for name, t in tensors.items() if name in ("priority", "source", "sink", "is_terminal")]
    at_arcs = [t.float() for name, t in tensors.items() if name in ("weight", "capacity")]
    joined = {"x": at_nodes, "edge_attr": at_arcs}
    merged = {name: torch.stack(parts, 1) for name, parts in joined.items() if parts}
    index = torch.tensor(arcs, dtype=torch.int64).T.contiguous()
    return Data(edge_index=index, num_nodes=nodes, model=torch.zeros(1, dtype=torch.int64), **tensors, **merged)


def _both_ways(graph: nx.Graph) -> list[tuple[int, int]]:
    return [arc for u, v in graph.edges for arc in ((u, v), (v, u))]


def _renumbered(graph: Any, rng: Rng) -> Any:
    """Return the graph with nodes that are numbered at random, so that their numbers tell nothing."""
    return nx.relabel_nodes(graph, dict(zip(graph.nodes, rng.permutation(len(graph)).tolist(), strict=True)))


def weigh(graph: nx.Graph, rng: Rng, low: float, high: float) -> nx.Graph:
    """Return the renumbered graph with random weights."""
    graph = _renumbered(graph, rng)
    for u, v in graph.edges:
        graph[u][v]["weight"] = float(rng.uniform(low, high))
    return graph


def _edges_case(graph: nx.Graph, label: set[frozenset[int]], rule: set[frozenset[int]], **nodes: Any) -> Case:
    arcs = _both_ways(graph)
    weights = np.array([graph[u][v].get("weight", 0.0) for u, v in arcs], dtype=np.float32)
    weighed = {"weight": weights} if nx.is_weighted(graph) else {}

    def mask(edges: set[frozenset[int]]) -> np.ndarray:
        return np.array([frozenset(arc) in edges for arc in arcs])

    data = _sample(arcs, len(graph), **weighed, **nodes)
    return Case(data, mask(label), mask(rule))


def _spanning(graph: nx.Graph) -> Case:
    """The rule: edges that are the lightest of one of their nodes."""
    tree = {frozenset(edge) for edge in nx.minimum_spanning_tree(graph).edges}
    lightest = {frozenset((u, min(graph[u], key=lambda v: graph[u][v]["weight"]))) for u in graph}
    return _edges_case(graph, tree, lightest)


def _bridges(graph: nx.Graph) -> Case:
    """The rule: edges on no cycle of at most seven edges."""
    bridges = {frozenset(edge) for edge in nx.bridges(graph)}
    far = set()
    for u, v in graph.edges:
        rest = nx.restricted_view(graph, [], [(u, v)])
        if v not in nx.single_source_shortest_path_length(rest, u, cutoff=6):
            far.add(frozenset((u, v)))
    return _edges_case(graph, bridges, far)


def _matching(graph: nx.Graph) -> Case:
    """The rule: the greedy matching, heaviest edge first."""
    best = {frozenset(edge) for edge in nx.max_weight_matching(graph)}
    greedy = {frozenset((u, v)) for u, v, _ in _heaviest_first(graph.edges(data="weight"))}
    return _edges_case(graph, best, greedy)


def _heaviest_first(edges: Iterable[tuple[int, int, float]]) -> Iterator[tuple[int, int, float]]:
    """Yield the edges of the greedy matching: the heaviest one first, and none at a node that has one."""
    matched: set[int] = set()
    for u, v, weight in sorted(edges, key=lambda edge: -edge[2]):
        if matched.isdisjoint((u, v)):
            matched |= {u, v}
            yield u, v, weight


def _steiner(graph: nx.Graph, rng: Rng) -> Case:
    """The rule: the two shorter ones of the three shortest paths between the terminals."""
    terminals = rng.choice(len(graph), TERMINALS, replace=False).tolist()
    routes = {t: nx.single_source_dijkstra(graph, t) for t in terminals}
    centre = min(graph, key=lambda node: sum(routes[t][0][node] for t in terminals))

    def union(pairs: list[tuple[int, int]]) -> set[frozenset[int]]:
        paths = [routes[t][1][node] for t, node in pairs]
        return {frozenset(edge) for path in paths for edge in pairwise(path)}

    shorter = sorted(combinations(terminals, 2), key=lambda pair: routes[pair[0]][0][pair[1]])[:2]
    marks = np.isin(np.arange(len(graph)), terminals).astype(np.int64)
    return _edges_case(graph, union([(t, centre) for t in terminals]), union(shorter), is_terminal=marks)


def _order(graph: nx.DiGraph, rng: Rng) -> Case:
    """The rule: nodes by the largest priority among them and their ancestors, ties by the number of ancestors."""
    size, graph = len(graph), _renumbered(graph, rng)
    priority = rng.random(size).astype(np.float32)
    ranks, guessed = np.zeros(size), np.zeros(size)
    for place, node in enumerate(nx.lexicographical_topological_sort(graph, key=lambda node: float(priority[node]))):
        ranks[node] = place / (size - 1)
    above = {node: nx.ancestors(graph, node) for node in graph}
    keys = {node: (max(priority[[node, *above[node]]]), len(above[node])) for node in graph}
    for place, node in enumerate(sorted(graph, key=lambda node: keys[node])):
        guessed[node] = place / (size - 1)
    return Case(_sample(list(graph.edges), size, priority=priority), ranks, guessed)


def _flow(graph: nx.Graph, rng: Rng, source: int, sink: int) -> Case:
    """The rule: the smaller one of the capacities out of the source and into the sink."""
    order = rng.permutation(len(graph)).tolist()
    arcs = [(order[u], order[v]) for u, v in _both_ways(graph)]
    capacity = rng.uniform(0, 3, len(arcs)).astype(np.float32)
    directed = nx.DiGraph()
    directed.add_weighted_edges_from(
        [(u, v, float(c)) for (u, v), c in zip(arcs, capacity, strict=True)], weight="capacity"
    )
    start, end = order[source], order[sink]
    value = nx.maximum_flow_value(directed, start, end)
    out = sum(directed[start][v]["capacity"] for v in directed[start])
    into = sum(directed[u][end]["capacity"] for u in directed.predecessors(end))
    marks = {
        name: (np.arange(len(graph)) == node).astype(np.int64) for name, node in (("source", start), ("sink", end))
    }
    data = _sample(arcs, len(graph), capacity=capacity, **marks)
    return Case(data, np.array([value]), np.array([min(out, into)]))


# --------------------------------------------------------------------------------------------------------------------
# Graphs


def _connected(nodes: int, p: float, rng: Rng) -> nx.Graph:
    while True:
        graph = nx.gnp_random_graph(nodes, p, seed=int(rng.integers(1 << 31)))
        if nx.is_connected(graph):
            return graph


def grid(side: int) -> nx.Graph:
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))


def _regular(nodes: int, rng: Rng) -> nx.Graph:
    return nx.random_regular_graph(3, nodes, seed=int(rng.integers(1 << 31)))


def _halves(nodes: int, p: float, joined: int, rng: Rng) -> nx.Graph:
    """Two random graphs that a few edges join: the smallest cut lies between them."""
    half = nodes // 2
    graph = nx.disjoint_union(_connected(half, p, rng), _connected(half, p, rng))
    while joined:
        edge = int(rng.integers(half)), int(rng.integers(half, nodes))
        if not graph.has_edge(*edge):
            graph.add_edge(*edge)
            joined -= 1
    return graph


def _rings(lengths: tuple[int, ...]) -> nx.Graph:
    """Rings of some lengths in a row, an edge between one and the next."""
    graph, begin = nx.Graph(), 0
    for length in lengths:
        nx.add_cycle(graph, range(begin, begin + length))
        if begin:
            graph.add_edge(begin - 1, begin)
        begin += length
    return graph


def _layers(count: int, width: int, rng: Rng) -> nx.DiGraph:
    """Layers of nodes, each node after two nodes of the layer before."""
    graph = nx.DiGraph()
    for layer in range(1, count):
        for node in range(width):
            for before in rng.choice(width, 2, replace=False).tolist():
                graph.add_edge((layer - 1) * width + before, layer * width + node)
    graph.add_nodes_from(range(count * width))
    return graph


def _random_order(nodes: int, p: float, rng: Rng) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from((u, v) for u, v in combinations(range(nodes), 2) if rng.random() < p)
    return graph


def tree_and_edges(nodes: int, edges: int, rng: Rng) -> nx.Graph:
    """Return a random tree and as many further edges as give the graph ``edges`` edges."""
    graph = nx.Graph([(node, int(rng.integers(node))) for node in range(1, nodes)])
    while graph.number_of_edges() < edges:
        graph.add_edge(*rng.choice(nodes, 2, replace=False).tolist())
    return graph


Draw = Callable[[Rng], Case]
ATTACKS: Mapping[str, Mapping[str, Draw]] = {
    "mst": {
        "rings of 128 nodes": lambda rng: _spanning(weigh(nx.cycle_graph(128), rng, 0, 10)),
        "rings of 512 nodes": lambda rng: _spanning(weigh(nx.cycle_graph(512), rng, 0, 10)),
        "grids of 12 x 12 nodes": lambda rng: _spanning(weigh(grid(12), rng, 0, 10)),
        "complete graphs of 64 nodes": lambda rng: _spanning(weigh(nx.complete_graph(64), rng, 0, 10)),
        "random graphs of 128 nodes, weights from 5 to 5.5": lambda rng: _spanning(
            weigh(_connected(128, 0.08, rng), rng, 5, 5.5)
        ),
        "random graphs of 128 nodes, weights up to 20 (training: 10)": lambda rng: _spanning(
            weigh(_connected(128, 0.08, rng), rng, 0, 20)
        ),
        "random graphs of 128 nodes, weights up to 100 (training: 10)": lambda rng: _spanning(
            weigh(_connected(128, 0.08, rng), rng, 0, 100)
        ),
    },
    "bridges": {
        "two rings of 64 nodes and an edge between them": lambda rng: _bridges(_renumbered(_rings((64, 64)), rng)),
        "rings of 3 to 60 nodes in a row": lambda rng: _bridges(_renumbered(_rings((3, 5, 10, 20, 30, 60)), rng)),
        "two complete graphs of 20 nodes and a path of 80": lambda rng: _bridges(
            _renumbered(nx.barbell_graph(20, 80), rng)
        ),
        "trees of 128 nodes and one more edge": lambda rng: _bridges(_renumbered(tree_and_edges(128, 128, rng), rng)),
    },
    "topological_sort": {
        "paths of 128 nodes": lambda rng: _order(nx.path_graph(128, create_using=nx.DiGraph), rng),
        "16 layers of 8 nodes": lambda rng: _order(_layers(16, 8, rng), rng),
        "64 layers of 2 nodes": lambda rng: _order(_layers(64, 2, rng), rng),
        "random orders of 128 nodes, 1 % of the pairs joined": lambda rng: _order(_random_order(128, 0.01, rng), rng),
        "random orders of 128 nodes, half of the pairs joined": lambda rng: _order(_random_order(128, 0.5, rng), rng),
    },
    "max_matching": {
        "rings of 128 nodes": lambda rng: _matching(weigh(nx.cycle_graph(128), rng, 0, 5)),
        "paths of 512 nodes": lambda rng: _matching(weigh(nx.path_graph(512), rng, 0, 5)),
        "grids of 12 x 12 nodes": lambda rng: _matching(weigh(grid(12), rng, 0, 5)),
        "128 nodes with three neighbours each": lambda rng: _matching(weigh(_regular(128, rng), rng, 0, 5)),
        "random graphs of 16 nodes": lambda rng: _matching(weigh(_connected(16, 0.3, rng), rng, 0, 5)),
        "complete graphs of 32 nodes": lambda rng: _matching(weigh(nx.complete_graph(32), rng, 0, 5)),
        "complete bipartite graphs of 40 + 40 nodes": lambda rng: _matching(
            weigh(nx.complete_bipartite_graph(40, 40), rng, 0, 5)
        ),
    },
    "steiner_tree": {
        "rings of 128 nodes": lambda rng: _steiner(weigh(nx.cycle_graph(128), rng, 0, 10), rng),
        "grids of 10 x 10 nodes": lambda rng: _steiner(weigh(grid(10), rng, 0, 10), rng),
        "128 nodes with three neighbours each": lambda rng: _steiner(weigh(_regular(128, rng), rng, 0, 10), rng),
    },
    "flow": {
        "paths of 32 nodes": lambda rng: _flow(nx.path_graph(32), rng, 0, 31),
        "grids of 8 x 8 nodes": lambda rng: _flow(grid(8), rng, 9, 54),
        "random graphs of 64 nodes": lambda rng: _flow(_connected(64, 0.25, rng), rng, 0, 63),
        "two random graphs of 8 nodes, joined by 3 edges": lambda rng: _flow(_halves(16, 0.5, 3, rng), rng, 0, 15),
        "two random graphs of 32 nodes, joined by 3 edges": lambda rng: _flow(_halves(64, 0.25, 3, rng), rng, 0, 63),
        "two random graphs of 32 nodes, joined by 10 edges": lambda rng: _flow(_halves(64, 0.25, 10, rng), rng, 0, 63),
    },
}


# --------------------------------------------------------------------------------------------------------------------
# Scores


def _card(task: str) -> Card:
    return graphbench.card(f"algoreas/{task}_easy")


@cache
def _model(task: str) -> torch.nn.Module:
    return graphbench.load_model(_card(task).id, MODELS[task])


def _predicted(task: str, data: Data) -> np.ndarray:
    """Return what the model predicts: a number for each label, or a decision where labels are decisions."""
    card = _card(task)
    (output,) = card.outputs
    with torch.no_grad():
        raw = _model(task)(Batch.from_data_list([data]))
    values = (raw[output.name] if isinstance(raw, Mapping) else raw).reshape(-1).numpy()
    return values > 0 if card.metrics.primary == "f1" else values


def rng_of(name: str) -> Rng:
    """Return random numbers that follow from the name of what is drawn."""
    return np.random.default_rng(np.random.SeedSequence([ord(letter) for letter in name]))


def exact(answers: list[np.ndarray], cases: list[Case]) -> float:
    """Return the share of graphs on which every decision is right."""
    return float(np.mean([np.array_equal(given, case.label) for given, case in zip(answers, cases, strict=True)]))


def matched_weight(answers: list[np.ndarray], cases: list[Case]) -> float:
    """Return the mean weight of matchings relative to the largest; of edges at one node only the heaviest counts."""
    shares = []
    for given, case in zip(answers, cases, strict=True):
        weights, arcs = case.data.weight.numpy(), case.data.edge_index.T.numpy()
        chosen = zip(*arcs[given].T.tolist(), weights[given].tolist(), strict=True)
        total = sum(weight for *_, weight in _heaviest_first(chosen))
        shares.append(2 * total / float(weights[case.label].sum()))
    return float(np.mean(shares))


def attack(task: str, kind: str, count: int) -> Row:
    """Return the scores of a task's model and of its rule on ``count`` graphs of one kind."""
    metric = _card(task).metrics.primary
    score = {"f1": f1_score, "mae": mean_absolute_error}[metric]
    rng = rng_of(f"{task} {kind}")
    cases = [ATTACKS[task][kind](rng) for _ in range(count)]
    labels = np.concatenate([case.label for case in cases])
    answers = {"ours": [_predicted(task, case.data) for case in cases], "peer": [case.rule for case in cases]}
    ours, peer = (float(score(labels, np.concatenate(given))) for given in answers.values())
    details: dict[str, Any] = {"task": task, "model": MODELS[task], "kind": kind}
    if metric == "f1":
        details["exact"] = {side: exact(given, cases) for side, given in answers.items()}
    if task == "max_matching":
        details["weight"] = {side: matched_weight(given, cases) for side, given in answers.items()}
    return Row(f"{task}: {kind}", metric, ours, peer, metric == "mae", n={"graphs": count}, details=details)


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``attacks.json``."""
    for task, kinds in ATTACKS.items():
        metric = _card(task).metrics.primary
        for kind in kinds:
            what = f"{task}: {kind}"
            yield row_or_failure(what, metric, lambda task=task, kind=kind: attack(task, kind, sizes(30, 2)))


if __name__ == "__main__":
    main("attacks", "Attacks on trained models", measure, SETTINGS)
