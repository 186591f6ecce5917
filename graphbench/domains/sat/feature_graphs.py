"""Features of the graphs of a formula: degrees, clustering, distances and communities.

Degrees and clustering do not depend on the names of variables. Some features may change a little when variables are
renamed: distances, which are sampled in formulas of more than `SOURCES` variables; communities, which are found by a
heuristic; and clustering, if it would take more than `CLUSTERING_STEPS` steps and is sampled, too.

The variable graph here leaves out clauses of more than `LONGEST` literals, because their pairs would make up nearly all
of its edges. The clause graph leaves out variables with more than `MOST_OCCURRENCES` occurrences for the same reason.

Steps of different kinds are counted in proportion to the times measured.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.rng import permutation, seed
from graphbench.domains.sat.feature_communities import communities, modularity
from graphbench.domains.sat.feature_graph_kernels import clustering, component_sizes, distances, symmetric
from graphbench.domains.sat.feature_tables import (
    KEY,
    LOG_STATISTICS,
    Group,
    Tables,
    log,
    names,
    ratio,
    restricted,
    statistics,
    variation,
)
from graphbench.domains.sat.graph_kernels import joined, transposed, variable_occurrences

LONGEST = 100
MOST_OCCURRENCES = 200
SOURCES = 16
CLUSTERING_STEPS = 20_000_000
_ANY = 1 << 62

_Upper = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]


def _variable_graph(tables: Tables) -> tuple[_Upper, int]:
    """Return the variable graph of the clauses of at most `LONGEST` literals.

    Returns:
        The larger neighbours of every variable as ``first`` and ``items``, with the number of clauses of each pair; and
        the number of pairs of literals, which measures the cost.
    """
    first, clauses, _ = variable_occurrences(*tables.holders)
    kept = restricted((first, clauses), tables.lengths[clauses] <= LONGEST)
    starts, larger, counts, _ = joined(*kept, *transposed(*kept, tables.cnf.num_clauses), 0, _ANY)
    lengths = tables.lengths[tables.lengths <= LONGEST]
    return (starts, larger, counts), int((lengths * lengths).sum())


def _measure_variable_graph(tables: Tables) -> tuple[list[float], int]:
    (starts, larger, counts), pairs = _variable_graph(tables)
    first, nodes, _ = symmetric(starts, larger, counts)
    coefficients, stride, took = clustering(first, nodes, starts, larger, CLUSTERING_STEPS)
    degrees = statistics(np.diff(first)[tables.used], logs=True)
    values = [log(len(larger)), *degrees, *statistics(coefficients[tables.used[::stride]])]
    return values, 3 * pairs + 12 * len(nodes) + took // 4 + tables.size


VARIABLE_GRAPH = Group(
    ("log_variable_graph_edges", *names("variable_graph_degree", LOG_STATISTICS), *names("clustering")),
    _measure_variable_graph,
)


def _measure_clause_graph(tables: Tables) -> tuple[list[float], int]:
    first, clauses = tables.holders
    occurrences = tables.degrees.sum(axis=1)
    kept = restricted((first, clauses), np.repeat(np.repeat(occurrences <= MOST_OCCURRENCES, 2), np.diff(first)))
    m = tables.cnf.num_clauses
    starts, larger, _, _ = joined(*transposed(*kept, m), *kept, 1, _ANY)
    degrees = np.diff(starts) + np.bincount(larger, minlength=m)
    counts = np.diff(kept[0]).reshape(-1, 2)
    steps = 2 * int((counts[:, 0] * counts[:, 1]).sum()) + 8 * tables.size
    return [log(len(larger)), *statistics(degrees, logs=True)], steps


CLAUSE_GRAPH = Group(("log_clause_graph_edges", *names("clause_graph_degree", LOG_STATISTICS)), _measure_clause_graph)


def _measure_distances(tables: Tables) -> tuple[list[float], int]:
    relations = (*tables.holders, *tables.members)
    sizes = component_sizes(*relations)
    used = np.flatnonzero(tables.used)
    components = len(sizes) - (tables.cnf.num_variables - len(used))
    largest = ratio(int(sizes.max(initial=0)), len(used)) if components else 0.0
    if len(used) > SOURCES:
        used = used[permutation(seed(KEY, 0, 0, 0), len(used))[:SOURCES]]
    furthest, means, steps = distances(*relations, used)
    distance = [ratio(float(np.sort(means).sum()), len(means)), variation(means)]
    return [log(components), largest, *statistics(furthest)[:4], *distance], steps + 2 * tables.size


DISTANCE = Group(
    (
        "log_components",
        "largest_component_share",
        *names("eccentricity")[:4],
        "distance_mean",
        "distance_cv",
    ),
    _measure_distances,
)


def _measure_communities(tables: Tables) -> tuple[list[float], int]:
    upper, pairs = _variable_graph(tables)
    first, nodes, weights = symmetric(*upper)
    community, took = communities(first, nodes, weights, KEY)
    sizes = np.bincount(community[tables.used])
    sizes = sizes[sizes > 0]
    counts = [log(len(sizes)), ratio(int(sizes.max(initial=0)), int(sizes.sum())), variation(sizes)]
    quality = modularity(first, nodes, weights, community)
    return [quality, *counts], pairs + took + 2 * len(nodes) + tables.size


COMMUNITY = Group(
    ("modularity", "log_communities", "largest_community_share", "community_size_cv"), _measure_communities
)
