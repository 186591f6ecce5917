"""Random graphs for combinatorial optimisation: model RB, Erdos-Renyi and Barabasi-Albert (GraphBench, Table 11).

Model RB (Xu and Li 2000; as independent sets: Xu et al. 2007, "Random constraint satisfaction: easy generation of hard
(satisfiable) instances"). A graph has N disjoint cliques of K nodes, the N variables of a constraint problem with K
values each. With tightness p, alpha = log K / log N and r = -alpha / log(1 - p), which is where satisfiability turns,
there are r N log N constraints. A constraint takes two cliques and adds p K^2 edges between them. An independent set
of N nodes is a solution.

The details follow the generator that work on learning has used since Toenshoff et al. (2021), from whom GraphBench has
its parameters: the number of constraints is r N log N - 1, rounded down, and the number of edges p K^2, rounded down; a
constraint takes two cliques in an order, and constraints on the same cliques in the same order add different edges, as
far as there are any, while edges in the other order are drawn independently; and no solution is planted. The means of
nodes and edges then agree with GraphBench's table 2. (In the model of Xu and Li all constraints are drawn
independently.) With ``planted``, one node of every clique is set aside and no edge joins two of them, so that the
largest independent set has N nodes ("forced satisfiable").

Node ids are shuffled, so they tell neither a node's clique nor its age.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator

from graphbench.core.validation import StrictModel
from graphbench.domains.co.graph_kernels import draw_growing_graphs, draw_model_rb_graphs, draw_uniform_graphs


def _ordered(bounds: tuple[Any, Any]) -> tuple[Any, Any]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"{list(bounds)} is empty; give the lower end first")
    return bounds


_Count = Annotated[int, Field(ge=1)]
CountRange = Annotated[tuple[_Count, _Count], AfterValidator(_ordered)]
"""Whole numbers drawn uniformly, both ends included."""

_Tightness = Annotated[float, Field(gt=0, le=1)]
TightnessRange = Annotated[tuple[_Tightness, _Tightness], AfterValidator(_ordered)]


class RBParameters(StrictModel):
    """Model RB: ``cliques`` cliques of ``clique_size`` nodes, each drawn until their product lies in ``nodes``.

    Attributes:
        model: "rb".
        cliques: Range of the number N of cliques.
        clique_size: Range of the number K of nodes in a clique.
        tightness: Range of p, the share of pairs between two cliques that a constraint joins.
        nodes: Range in which N K must lie.
        planted: Whether an independent set of N nodes is kept.
    """

    model: Literal["rb"] = "rb"
    cliques: CountRange
    clique_size: CountRange
    tightness: TightnessRange
    nodes: CountRange
    planted: bool = False

    @model_validator(mode="after")
    def _check_sizes(self) -> RBParameters:
        if self.cliques[0] < 2 or self.clique_size[0] < 2:
            raise ValueError(
                f"cliques {list(self.cliques)}, clique_size {list(self.clique_size)}: give 2 or more of each"
            )
        counts = range(self.cliques[0], self.cliques[1] + 1)
        sizes = range(self.clique_size[0], self.clique_size[1] + 1)
        if not any(self.nodes[0] <= count * size <= self.nodes[1] for count in counts for size in sizes):
            raise ValueError(f"no product of cliques and clique_size lies in nodes {list(self.nodes)}; widen a range")
        return self


class ERParameters(StrictModel):
    """Erdos-Renyi G(n, p): every pair of nodes is joined with probability p, whether or not the graph is connected.

    Attributes:
        model: "er".
        nodes: Range of the number n of nodes.
        p: Probability of an edge.
    """

    model: Literal["er"] = "er"
    nodes: CountRange
    p: Annotated[float, Field(ge=0, le=1)]


class BAParameters(StrictModel):
    """Barabasi-Albert growth: each new node is joined to m older ones, chosen with probability as their degree.

    As in networkx 3.6, growth starts from a star of m + 1 nodes, so a graph has m (n - m) edges.

    Attributes:
        model: "ba".
        nodes: Range of the number n of nodes.
        m: Edges that a new node brings.
    """

    model: Literal["ba"] = "ba"
    nodes: CountRange
    m: _Count

    @model_validator(mode="after")
    def _check_sizes(self) -> BAParameters:
        if self.m >= self.nodes[0]:
            raise ValueError(f"m = {self.m} for {self.nodes[0]} nodes; give m below the number of nodes")
        return self


GraphParameters = RBParameters | ERParameters | BAParameters


def draw_graphs(
    parameters: GraphParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Draw one graph per sample; graph ``i`` is a function of ``(parameters, key, indices[i], attempts[i])`` alone.

    Args:
        parameters: The random model and its parameters.
        key: Key of the split, from ``graphbench.data.arrays.seeds.stream_key``.
        indices: ``int64[S]`` positions in the split.
        attempts: ``int64[S]``, 0 for a first draw, 1, 2, ... for redraws of a duplicate.

    Returns:
        ``num_nodes int64[S]``, ``num_edges int64[S]``, and ``edges int32[E, 2]``, graph after graph, ``u < v``,
        sorted within each graph.
    """
    low, high = parameters.nodes
    if isinstance(parameters, ERParameters):
        return draw_uniform_graphs(key, indices, attempts, low, high, parameters.p)
    if isinstance(parameters, BAParameters):
        return draw_growing_graphs(key, indices, attempts, low, high, parameters.m)
    return draw_model_rb_graphs(
        key,
        indices,
        attempts,
        parameters.cliques,
        parameters.clique_size,
        parameters.tightness,
        parameters.nodes,
        parameters.planted,
    )
