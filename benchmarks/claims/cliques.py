"""How well nodes of the labelled maximum clique can be predicted without node ids.

A graph with several maximum cliques has one label, the lexicographically smallest of them. A model whose predictions do
not depend on the numbers of nodes knows at best how probable it is that a node is in the label if the nodes are
numbered at random. The best F1 that such a model can expect is that of all nodes above a threshold of this probability.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

import graphbench
from benchmarks.claims.recipe import DIFFICULTIES
from benchmarks.claims.records import printed_scores
from benchmarks.claims.registry import Outcome, check
from benchmarks.claims.running import outcome_of
from benchmarks.claims.structure import maximum_cliques
from graphbench.catalog.cards import Card
from graphbench.data.arrays.samples import Samples
from graphbench.data.build.generation import draw_samples
from graphbench.domains.algoreas.checks import Graph, graphs
from graphbench.domains.algoreas.clique_membership import count_maximum_cliques
from graphbench.domains.algoreas.max_clique import DEFAULT_NODE_LIMIT, maximum_clique
from graphbench.verification.measuring import arrays_hash

Floats = NDArray[np.float64]
_HASH_DIGITS = 12
_LISTED_NODES = 16  # networkx lists the cliques of graphs up to this size for comparison
_STATED = 0.0005  # scores are stated to three digits after the point


def best_f1(probability: Floats, target: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the best F1, pooled over all nodes, of predicting the nodes above a threshold, and the threshold.

    Args:
        probability: float64 ``[N]``.
        target: bool ``[N]``.
    """
    order = np.argsort(-probability, kind="stable")
    hits, predicted = np.cumsum(target[order]), np.arange(1, len(order) + 1)
    ends = np.r_[np.diff(probability[order]) != 0, True]  # nodes of one probability are predicted together
    f1 = np.where(ends, 2 * hits / (predicted + target.sum()), 0.0)
    best = int(f1.argmax())
    return float(f1[best]), float(probability[order][best])


def shares_of_cliques(graph: Graph) -> Floats:
    """Return the share of the maximum cliques that contain each node, ``[n]``.

    Raises:
        ValueError: If the cliques cannot be listed within the limit of a search.
    """
    size = int(np.sum(graph.values["in_clique"]))
    through, cliques, ended = count_maximum_cliques(
        graph.nodes, graph.edges.astype(np.int32), size, 20 * DEFAULT_NODE_LIMIT
    )
    if not ended:
        raise ValueError(f"a graph of {graph.nodes} nodes has more than {cliques:,} maximum cliques; leave it out")
    return through / cliques


def shares_of_numberings(graph: Graph, numberings: int, rng: np.random.Generator) -> Floats:
    """Return the share of random numberings of the nodes for which each node is in the label, ``[n]``."""
    chosen = np.zeros(graph.nodes)
    for _ in range(numberings):
        number = rng.permutation(graph.nodes).astype(np.int32)
        edges = np.sort(number[graph.edges], axis=1)
        chosen += maximum_clique(graph.nodes, edges, DEFAULT_NODE_LIMIT)[0][number]
    return chosen / numberings


def graphs_of(dataset: str, graphs_read: int) -> dict[str, Samples]:
    """Return first draws of the validation split, of the same distribution with 64 nodes, and of the test split."""
    card = graphbench.card(dataset)
    val = card.split("val")
    larger: Card = card.model_copy(
        update={
            "splits": {
                **card.splits,
                "val": val.model_copy(update={"parameters": {**val.parameters, "nodes": 64}}),
            }
        }
    )
    indices = np.arange(graphs_read)
    return {
        "val": draw_samples(card, "val", indices),
        "n64": draw_samples(larger, "val", indices),
        "test": draw_samples(card, "test", indices),
    }


@check
def ceiling_without_ids(
    graphs_read: int, numberings: Mapping[str, int], stated: Mapping[str, Mapping[str, float]]
) -> Outcome:
    """Best F1 of predictors of the labelled clique whose predictions do not depend on node ids.

    Two such predictors are scored on the labels, each with its best threshold: nodes by the share of the maximum
    cliques that contain them, and nodes by the share of random numberings for which they are in the label. The second
    is an estimate of what is best.

    Args:
        graphs_read: Number of first graphs of every split.
        numberings: Split -> number of random numberings of every graph.
        stated: Split -> difficulty -> the first F1 as stated, to three digits after the point.
    """
    problems: list[str] = []
    ceiling: dict[str, dict[str, float]] = {split: {} for split in stated}
    numbered: dict[str, dict[str, float]] = {split: {} for split in stated}
    hashes = {}
    printed: dict[str, dict[str, float]] = {}
    for difficulty in DIFFICULTIES:
        printed[difficulty] = printed_scores(f"algoreas/max_clique_{difficulty}", "f1")
        for split, samples in graphs_of(f"algoreas/max_clique_{difficulty}", graphs_read).items():
            rng, shares, drawn = np.random.default_rng(0), [], []
            for graph in graphs(samples):
                shares.append(shares_of_cliques(graph))
                drawn.append(shares_of_numberings(graph, numberings[split], rng))
                if graph.nodes <= _LISTED_NODES and not np.allclose(shares[-1], _listed(graph)):
                    problems.append(f"{difficulty} {split}: networkx lists other maximum cliques")
            target = samples.values["in_clique"] != 0
            ceiling[split][difficulty], _ = best_f1(np.concatenate(shares), target)
            numbered[split][difficulty], _ = best_f1(np.concatenate(drawn), target)
            hashes[f"{difficulty} {split}"] = arrays_hash(samples)[:_HASH_DIGITS]
            if abs(ceiling[split][difficulty] - stated[split][difficulty]) > _STATED:
                problems.append(
                    f"{difficulty} {split}: F1 {ceiling[split][difficulty]:.4f}, stated {stated[split][difficulty]}"
                )
    return outcome_of(problems, **ceiling, numbered=numbered, printed=printed, graphs=graphs_read, data=hashes)


def _listed(graph: Graph) -> Floats:
    """Return the result of :func:`shares_of_cliques` by networkx."""
    cliques = maximum_cliques(graph)
    return np.bincount(np.concatenate(cliques), minlength=graph.nodes) / len(cliques)
