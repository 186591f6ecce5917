"""Trained models of CLRS on inputs that no split holds: more samples, 128 nodes, rings, grids, small ranges of numbers.

Most test splits have 32 samples, all of one distribution. Each row scores the committed weights of a model on
one kind of input, with the score of the dataset; the answers are those of the package's algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import networkx as nx
import numpy as np
import torch

import graphbench
from benchmarks.attacks import Rng, grid, rng_of, tree_and_edges, weigh
from benchmarks.common import Row, Sizes, main, row_or_failure
from graphbench.data.batches.trajectory_batch import TrajectoryBatch, batch_of_samples
from graphbench.data.store.casting import compact
from graphbench.domains.clrs import sample
from graphbench.domains.clrs.algorithm import find_algorithm
from graphbench.domains.clrs.generators import GENERATORS, samples_of_runs
from graphbench.domains.clrs.tracing import run_all
from graphbench.tasks.registry import task_of

SETTINGS = {
    "weights": "committed ones of one seed, as graphbench.load_model returns them",
    "labels": "the package's algorithms; every kind of input is drawn from a seed of its own",
    "score": "the primary score of the dataset",
    "page": "docs/clrs.md",
}
MODELS = {
    "bfs": "mpnn_sizes",
    "bellman_ford": "mpnn_long",
    "dijkstra": "mpnn_long",
    "mst_prim": "pairs_long",
    "minimum": "mpnn_long",
    "insertion_sort": "mpnn_long",
    "floyd_warshall": "pairs",
}
Arguments = tuple[Any, ...]
_AT_ONCE = 8  # samples of a batch

# --------------------------------------------------------------------------------------------------------------------
# Inputs


def _weights(graph: nx.Graph, rng: Rng, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Return the symmetric matrix of random weights of a graph whose nodes are renumbered at random; 0 is no edge."""
    matrix: np.ndarray = nx.to_numpy_array(weigh(graph, rng, low, high), nodelist=range(len(graph)))
    return matrix


GRAPHS: Mapping[str, Callable[[Rng], np.ndarray]] = {
    "rings of 64 nodes": lambda rng: _weights(nx.cycle_graph(64), rng),
    "grids of 8 x 8 nodes": lambda rng: _weights(grid(8), rng),
    "64 nodes with three neighbours on average": lambda rng: _weights(tree_and_edges(64, 96, rng), rng),
    "complete graphs of 64 nodes": lambda rng: _weights(nx.complete_graph(64), rng),
    "complete graphs of 64 nodes, weights from .5 to .55": lambda rng: _weights(nx.complete_graph(64), rng, 0.5, 0.55),
}
KEYS: Mapping[str, Callable[[Rng], np.ndarray]] = {
    "64 numbers in ascending order": lambda rng: np.sort(rng.random(64)),
    "64 numbers in descending order": lambda rng: np.sort(rng.random(64))[::-1].copy(),
    "64 numbers from .5 to .55": lambda rng: rng.uniform(0.5, 0.55, 64),
    "64 numbers, all but one below .1": lambda rng: np.append(rng.uniform(0, 0.1, 63), rng.random())[
        rng.permutation(64)
    ],
}


def _of_graph(algorithm: str, weights: np.ndarray, rng: Rng) -> Arguments:
    if algorithm == "floyd_warshall":
        return (weights,)
    matrix = (weights > 0).astype(np.int64) if algorithm == "bfs" else weights
    return matrix, int(rng.integers(len(weights)))


def kinds(algorithm: str) -> dict[str, Callable[[int, Rng], list[Arguments]]]:
    """Return the kinds of inputs of an algorithm: kind -> ``(number of samples, random numbers) -> arguments``."""

    def drawn(length: int) -> Callable[[int, Rng], list[Arguments]]:
        return lambda count, rng: sample(algorithm, length, count, int(rng.integers(1 << 31)))

    draws = {"64 nodes, drawn like the test split": drawn(64)}
    if not MODELS[algorithm].startswith("pairs"):  # whose products of matrices take minutes on 128 nodes
        draws["128 nodes, drawn like the test split"] = drawn(128)
    for kind, keys in KEYS.items() if len(sample(algorithm, 4, 1, 0)[0][0].shape) == 1 else ():
        draws[kind] = lambda count, rng, keys=keys: [(keys(rng),) for _ in range(count)]
    for kind, graph in GRAPHS.items() if algorithm not in ("minimum", "insertion_sort") else ():
        if algorithm == "bfs" and "weights" in kind:  # which it does not read
            continue
        draws[kind] = lambda count, rng, graph=graph: [_of_graph(algorithm, graph(rng), rng) for _ in range(count)]
    return draws


# --------------------------------------------------------------------------------------------------------------------
# Scores


def batch_of(algorithm: str, arguments: list[Arguments]) -> TrajectoryBatch:
    """Return the runs of an algorithm on arguments of one size as a batch."""
    card = graphbench.card(f"clrs/{algorithm}")
    made = samples_of_runs(find_algorithm(algorithm), *run_all(algorithm, arguments))
    return batch_of_samples(compact(card.stored_schema, made, GENERATORS[algorithm]), card.features)


@cache
def _model(algorithm: str) -> torch.nn.Module:
    return graphbench.load_model(f"clrs/{algorithm}", MODELS[algorithm])


def attack(algorithm: str, kind: str, count: int) -> Row:
    """Return the score of an algorithm's model on ``count`` samples of one kind."""
    card, model = graphbench.card(f"clrs/{algorithm}"), _model(algorithm)
    rng = rng_of(f"{algorithm} {kind}")
    arguments = kinds(algorithm)[kind](count, rng)
    task = task_of(card)
    evaluator = task.evaluator(expected_graphs=count)
    generator = torch.Generator().manual_seed(0)
    for first in range(0, count, _AT_ONCE):
        batch = model.prepare(batch_of(algorithm, arguments[first : first + _AT_ONCE]), card.address, generator)
        with torch.inference_mode():
            evaluator.update(batch, task.predictions(model.predict(batch, card.address), batch))
    score = float(evaluator.compute().primary)
    details = {"algorithm": algorithm, "model": MODELS[algorithm], "kind": kind}
    return Row(f"{algorithm}: {kind}", card.metrics.primary, score, None, False, n={"samples": count}, details=details)


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``attacks_clrs.json``."""
    for algorithm in MODELS:
        for kind in kinds(algorithm):
            count = sizes(100 if "like the test" in kind else 30, 2)
            what = f"{algorithm}: {kind}"
            yield row_or_failure(what, "score", lambda a=algorithm, k=kind, n=count: attack(a, k, n))


if __name__ == "__main__":
    main("attacks_clrs", "Attacks on trained models of CLRS", measure, SETTINGS)
