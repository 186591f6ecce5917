"""Graphs that networkx draws from tables 14 and 15 of GraphBench, independently of this package's generators."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from statistics import mean, stdev
from typing import Any

import networkx as nx
import yaml

from benchmarks.claims.model import FOLDER

TASKS = ("topological_sort", "mst", "bridges", "steiner_tree", "max_clique", "flow", "max_matching")
DIFFICULTIES = ("easy", "medium", "hard")


@cache
def printed_parameters() -> dict[str, Any]:
    """Return tables 14 and 15."""
    content: dict[str, Any] = yaml.safe_load((FOLDER / "printed" / "graphbench_graphs.yaml").read_text("utf-8"))
    return content


def models_of(task: str, split: str) -> dict[str, dict[str, Any]]:
    """Return the random graph models of a task on a split; test graphs of MST have a column of their own."""
    column = "mst_shift" if task == "mst" and split == "test" else task
    models: dict[str, dict[str, Any]] = printed_parameters()["models"][column]
    return models


def mixture_of(task: str, difficulty: str, split: str) -> dict[str, int]:
    """Return the shares of the models; those without parameters are left out."""
    shares = printed_parameters()["mixtures"]["test" if split == "test" else "train"][difficulty]
    return {model: share for model, share in shares.items() if model in models_of(task, split)}


def nodes_of(task: str, split: str) -> int:
    """Return the number of nodes (table 2)."""
    return 16 if split != "test" else 64 if task == "flow" else 128


def draw(model: str, parameters: dict[str, Any], nodes: int, source: random.Random) -> nx.Graph:
    """Return one graph of a random graph model, before components are linked."""
    seed = source.randrange(2**32)
    p = parameters
    if model == "er":
        return nx.gnp_random_graph(nodes, p["p"], seed=seed)
    if model == "nws":
        return nx.newman_watts_strogatz_graph(nodes, p["k"], p["p"], seed=seed)
    if model == "ba":
        return nx.barabasi_albert_graph(nodes, p["m"], seed=seed)
    if model == "dba":
        return nx.dual_barabasi_albert_graph(nodes, p["m1"], p["m2"], p["p"], seed=seed)
    if model == "pc":
        return nx.powerlaw_cluster_graph(nodes, p["m"], p["p"], seed=seed)
    return nx.Graph(nx.stochastic_block_model([nodes // 2, nodes - nodes // 2], p["p"], seed=seed))


def link_each(graph: nx.Graph, source: random.Random) -> nx.Graph:
    """Give every component one edge to a random other one; the graph may stay disconnected."""
    parts = [sorted(part) for part in nx.connected_components(graph)]
    for i, part in enumerate(parts) if len(parts) > 1 else ():
        other = source.choice([j for j in range(len(parts)) if j != i])
        graph.add_edge(source.choice(part), source.choice(parts[other]))
    return graph


def link_all(graph: nx.Graph, source: random.Random) -> nx.Graph:
    """Join the components in a chain, with as few edges as connect the graph."""
    parts = [sorted(part) for part in nx.connected_components(graph)]
    for before, after in pairwise(parts):
        graph.add_edge(source.choice(before), source.choice(after))
    return graph


def graphs(
    task: str,
    difficulty: str,
    split: str,
    count: int,
    link: Any = link_each,
    mixture: Sequence[str] | None = None,
) -> Iterator[nx.Graph]:
    """Yield graphs of a split; the models of the mixture in turn.

    Args:
        task: The task.
        difficulty: Easy, medium or hard.
        split: ``train`` or ``test``.
        count: Number of graphs.
        link: How components are linked.
        mixture: Models in place of those of table 15.
    """
    source = random.Random(f"{task} {difficulty} {split} {mixture}")
    models, names = models_of(task, split), mixture or list(mixture_of(task, difficulty, split))
    for i in range(count):
        name = names[i % len(names)]
        yield link(draw(name, models[name], nodes_of(task, split), source), source)


def edges_drawn(
    task: str, difficulty: str, split: str, count: int, link: Any = link_each
) -> tuple[float, float, float]:
    """Return mean edges of drawn graphs, the error of that mean, and the deviation of a graph of the mixture.

    Args:
        task: The task.
        difficulty: Easy, medium or hard.
        split: ``train`` (of which validation graphs are, too) or ``test``.
        count: Graphs of each model; each model counts with its share.
        link: How components are linked.
    """
    source = random.Random(f"edges {task} {difficulty} {split}")
    models, mixture = models_of(task, split), mixture_of(task, difficulty, split)
    n = nodes_of(task, split)
    drawn = [
        [link(draw(name, models[name], n, source), source).number_of_edges() for _ in range(count)] for name in mixture
    ]
    centre = mean(mean(found) for found in drawn)
    error = sum(stdev(found) ** 2 / count for found in drawn) ** 0.5 / len(drawn)
    spread = mean(mean((value - centre) ** 2 for value in found) for found in drawn) ** 0.5
    return centre, error, spread
