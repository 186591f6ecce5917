"""Outputs of the algorithms against independent implementations: networkx, SciPy, NumPy, or the definition itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Location

if TYPE_CHECKING:
    import networkx as nx

    from graphbench.data.arrays.samples import Samples
    from graphbench.domains.clrs.algorithm import Algorithm

Array = NDArray[Any]
Values = Mapping[str, Array]
Check = Callable[[Values], bool]
_CLOSE = 1e-9


def check_outputs(algorithm: Algorithm, samples: Samples) -> list[str]:
    """Return the problems of the outputs of samples, one line per sample; none for algorithms without a check."""
    check = CHECKS.get(algorithm.name)
    if check is None:
        return []
    problems = []
    for i in range(len(samples)):
        values = sample_values(algorithm, samples, i)
        if not check(values):
            outputs = {f.name: values[f.name].tolist() for f in algorithm.outputs}
            problems.append(f"sample {i}: {algorithm.name} has the outputs {outputs!r:.200}")
    return problems


def sample_values(algorithm: Algorithm, samples: Samples, number: int) -> dict[str, Array]:
    """Return the inputs and outputs of one sample: node ``[n]``, edge ``[n, n]``, graph a number."""
    n = int(samples.num_nodes[number])
    shapes: dict[Location, tuple[int, ...]] = {Location.NODE: (n,), Location.EDGE: (n, n), Location.GRAPH: ()}
    by_column = {"xs": "x", "ys": "y"}
    values = {}
    for name, column in samples.values.items():
        feature = next(f for f in algorithm.features if f.name == by_column.get(name, name))
        rows = column[samples.rows(feature.location, number, number + 1)]
        values[name] = rows.reshape(shapes[feature.location])
    return values


# --------------------------------------------------------------------------------------------------------------------
# Lists


def _is_sorted(v: Values) -> bool:
    order = _order(v["pred"])
    return order is not None and bool((np.diff(v["key"][order]) >= 0).all())


def _order(pred: Array) -> list[int] | None:
    """Return the nodes from first to last where ``pred`` puts all of them in one order, else None."""
    following = {int(p): node for node, p in enumerate(pred.tolist()) if p != node}
    heads = [node for node, p in enumerate(pred.tolist()) if p == node]
    order = heads[:1]
    while order and order[-1] in following:
        order.append(following.pop(order[-1]))
    return order if len(heads) == 1 and len(order) == len(pred) else None


def _one(mask: Array) -> int:
    assert mask.sum() == 1
    return int(mask.argmax())


def _is_minimum(v: Values) -> bool:
    return bool(v["key"][_one(v["min"])] == v["key"].min())


def _is_insertion_point(v: Values) -> bool:
    position = np.searchsorted(v["key"], v["target"])
    return _one(v["return"]) == min(int(position), len(v["key"]) - 1)


def _is_median(v: Values) -> bool:
    return bool(v["key"][_one(v["median"])] == np.sort(v["key"])[len(v["key"]) // 2])


def _is_largest_sum(v: Values) -> bool:
    sums = np.concatenate([[0.0], np.cumsum(v["key"])])
    first, last = _one(v["start"]), _one(v["end"])
    best = max(float(sums[j] - sums[:j].min()) for j in range(1, len(sums)))
    return first <= last and abs(sums[last + 1] - sums[first] - best) < _CLOSE


def _is_largest_selection(v: Values) -> bool:
    chosen = np.flatnonzero(v["selected"])
    chosen = chosen[np.argsort(v["f"][chosen])]
    if any(v["s"][b] < v["f"][a] for a, b in pairwise(chosen)):
        return False
    ends = np.argsort(v["f"])
    most: list[int] = []  # of the activities that end first
    for position, activity in enumerate(ends):
        compatible = [most[p] for p in range(position) if v["f"][ends[p]] <= v["s"][activity]]
        most.append(max([most[-1] if most else 0, 1 + max(compatible, default=0)]))
    return len(chosen) == most[-1]


def _is_greedy_schedule(v: Values) -> bool:
    time, selected = 0, np.zeros_like(v["selected"])
    for task in sorted(range(len(v["w"])), key=lambda i: -v["w"][i]):
        if time < v["d"][task]:
            selected[task] = 1
            time += 1
    return bool((selected == v["selected"]).all())


# --------------------------------------------------------------------------------------------------------------------
# Dynamic programming and strings


def _is_cheapest_product(v: Values) -> bool:
    p, n = v["p"], len(v["p"])
    cost = np.zeros((n, n))
    chosen = np.zeros((n, n))
    for length in range(1, n - 1):
        for i in range(1, n - length):
            j = i + length
            k = np.arange(i, j)
            options = cost[i, k] + cost[k + 1, j] + p[i - 1] * p[k] * p[j]
            cost[i, j] = options.min()
            split = int(v["s"][i, j])
            if not i <= split < j:
                return False
            chosen[i, j] = chosen[i, split] + chosen[split + 1, j] + p[i - 1] * p[split] * p[j]
    return bool(np.abs(chosen - cost).max() < _CLOSE)


def _is_cheapest_tree(v: Values) -> bool:
    p, q, n = v["p"][:-1], v["q"], len(v["q"])
    cost, chosen = np.diag(q), np.diag(q)
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            weight = p[i:j].sum() + q[i : j + 1].sum()
            r = np.arange(i, j)
            cost[i, j] = (cost[i, r] + cost[r + 1, j]).min() + weight
            root = int(v["root"][i, j])
            if not i <= root < j:
                return False
            chosen[i, j] = chosen[i, root] + chosen[root + 1, j] + weight
    return bool(np.abs(chosen - cost).max() < _CLOSE)


def _strings(v: Values) -> tuple[str, str]:
    """Return the two strings of a sample, as text."""
    letters = "".join("abcd"[k] for k in v["key"])
    first = int((v["string"] == 0).sum())
    return letters[:first], letters[first:]


def _is_common_subsequence(v: Values) -> bool:
    x, y = _strings(v)
    longest = np.zeros((len(x) + 1, len(y) + 1), int)
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            longest[i + 1, j + 1] = longest[i, j] + 1 if a == b else max(longest[i, j + 1], longest[i + 1, j])
    directions = v["b"][: len(x), len(x) :]
    i, j, matches = len(x) - 1, len(y) - 1, 0
    while i >= 0 and j >= 0:
        step = int(directions[i, j])
        if step not in (0, 1, 2) or (step == 0 and x[i] != y[j]):
            return False
        matches += step == 0
        i, j = i - (step in (0, 1)), j - (step in (0, 2))
    return matches == longest[-1, -1]


def _is_first_match(v: Values) -> bool:
    haystack, needle = _strings(v)
    shift = haystack.find(needle)
    return _one(v["match"]) == (shift if shift >= 0 else len(haystack))


# --------------------------------------------------------------------------------------------------------------------
# Geometry


def _do_intersect(v: Values) -> bool:
    a, b, c, d = ((Fraction(float(x)), Fraction(float(y))) for x, y in zip(v["xs"], v["ys"], strict=True))

    def side(p: tuple[Fraction, Fraction], q: tuple[Fraction, Fraction], r: tuple[Fraction, Fraction]) -> int:
        cross = (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])
        return (cross > 0) - (cross < 0)

    def within(p: tuple[Fraction, Fraction], q: tuple[Fraction, Fraction], r: tuple[Fraction, Fraction]) -> bool:
        return all(min(p[i], q[i]) <= r[i] <= max(p[i], q[i]) for i in range(2))

    crossing = side(a, b, c) != side(a, b, d) and side(c, d, a) != side(c, d, b)
    touching = any(side(p, q, r) == 0 and within(p, q, r) for p, q, r in ((a, b, c), (a, b, d), (c, d, a), (c, d, b)))
    return bool(v["intersect"]) == (crossing or touching)


def _is_hull(v: Values) -> bool:
    from scipy.spatial import ConvexHull

    points = np.stack([v["xs"], v["ys"]], axis=1)
    return bool(np.array_equal(np.flatnonzero(v["in_hull"]), np.sort(ConvexHull(points).vertices)))


# --------------------------------------------------------------------------------------------------------------------
# Graphs


def _graph(v: Values, *, directed: bool) -> nx.Graph:
    import networkx as nx

    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(len(v["A"])))
    rows, columns = np.nonzero(v["A"])
    graph.add_weighted_edges_from(zip(rows.tolist(), columns.tolist(), v["A"][rows, columns].tolist(), strict=True))
    graph.remove_edges_from([(u, u) for u in range(len(v["A"])) if graph.has_edge(u, u)])
    return graph


def _tree_distances(v: Values, source: int, hop: Callable[[int, int], float]) -> list[float] | None:
    """Return each node's distance from the source along ``pi``: infinite where unreached, None where pi is no tree."""
    parents = v["pi"].tolist()
    distances = []
    for node in range(len(parents)):
        length, at, seen = 0.0, node, 0
        while parents[at] != at and seen <= len(parents):
            if v["A"][parents[at], at] == 0:
                return None
            length, at, seen = length + hop(parents[at], at), parents[at], seen + 1
        if seen > len(parents) or (at != source and at != node):
            return None
        distances.append(length if at == source else np.inf)
    return distances


def _same(distances: list[float] | None, expected: Array) -> bool:
    return distances is not None and bool(np.allclose(distances, expected, rtol=0, atol=_CLOSE))


def _are_levels(v: Values) -> bool:
    import networkx as nx

    source = _one(v["s"])
    levels = nx.single_source_shortest_path_length(_graph(v, directed=True), source)
    return _same(
        _tree_distances(v, source, lambda *_: 1), np.array([levels.get(u, np.inf) for u in range(len(v["A"]))])
    )


def _are_shortest_paths(v: Values) -> bool:
    import networkx as nx

    source = _one(v["s"])
    lengths = nx.single_source_bellman_ford_path_length(_graph(v, directed=True), source)
    distances = _tree_distances(v, source, lambda p, u: float(v["A"][p, u]))
    return _same(distances, np.array([lengths.get(u, np.inf) for u in range(len(v["A"]))]))


def _are_all_shortest_paths(v: Values) -> bool:
    import networkx as nx

    expected = dict(nx.all_pairs_dijkstra_path_length(_graph(v, directed=True)))
    n = len(v["A"])
    for i in range(n):
        row = {"A": v["A"], "pi": np.where(np.isin(np.arange(n), list(expected[i])), v["Pi"][i], np.arange(n))}
        row["pi"][i] = i
        distances = _tree_distances(row, i, lambda p, u: float(v["A"][p, u]))
        if not _same(distances, np.array([expected[i].get(j, np.inf) for j in range(n)])):
            return False
    return True


def _is_depth_first_forest(v: Values) -> bool:
    import networkx as nx

    graph, seen = _graph(v, directed=True), set[int]()
    expected = list(range(len(v["A"])))
    for root in range(len(v["A"])):
        if root not in seen:
            seen.add(root)
            part = graph.subgraph(set(graph) - (seen - {root}))
            for parent, child in nx.dfs_edges(part, root, sort_neighbors=sorted):
                expected[child] = parent
                seen.add(child)
    return bool(v["pi"].tolist() == expected)


def _is_topological(v: Values) -> bool:
    following = v["topo"].tolist()
    rank: dict[int, int] = {}
    node = _one(v["topo_head"])
    while node not in rank:
        rank[node] = len(rank)
        node = following[node]
    return len(rank) == len(following) and all(rank[u] < rank[w] for u, w in np.argwhere(v["A"] != 0).tolist())


def _are_cut_nodes(v: Values) -> bool:
    import networkx as nx

    cuts = set(nx.articulation_points(_graph(v, directed=False)))
    return set(np.flatnonzero(v["is_cut"]).tolist()) == cuts


def _are_bridges(v: Values) -> bool:
    import networkx as nx

    expected = np.where(v["adj"] == 1, 0, -1)
    for u, w in nx.bridges(_graph(v, directed=False)):
        expected[u, w] = expected[w, u] = 1
    return bool((v["is_bridge"] == expected).all())


def _are_components(v: Values) -> bool:
    import networkx as nx

    roots = v["scc_id"].tolist()
    components = list(nx.strongly_connected_components(_graph(v, directed=True)))
    return all(len({roots[u] for u in c}) == 1 and roots[next(iter(c))] in c for c in components)


def _is_spanning_forest(v: Values) -> bool:
    import networkx as nx

    chosen = v["in_mst"] != 0
    if not (chosen == chosen.T).all() or (v["A"][chosen] == 0).any():
        return False
    expected = nx.minimum_spanning_tree(_graph(v, directed=False))
    count, weight = expected.number_of_edges(), expected.size("weight")
    return 2 * count == chosen.sum() and abs(v["A"][chosen].sum() / 2 - weight) < _CLOSE


def _is_spanning_tree(v: Values) -> bool:
    import networkx as nx

    source, graph = _one(v["s"]), _graph(v, directed=False)
    component = nx.node_connected_component(graph, source)
    distances = _tree_distances(v, source, lambda *_: 1)
    if distances is None or {u for u, d in enumerate(distances) if d < np.inf} != component:
        return False
    weight = sum(v["A"][p, u] for u, p in enumerate(v["pi"].tolist()) if p != u)
    return bool(abs(weight - nx.minimum_spanning_tree(graph.subgraph(component)).size("weight")) < _CLOSE)


CHECKS: Mapping[str, Check] = {
    "insertion_sort": _is_sorted,
    "bubble_sort": _is_sorted,
    "heapsort": _is_sorted,
    "quicksort": _is_sorted,
    "minimum": _is_minimum,
    "binary_search": _is_insertion_point,
    "quickselect": _is_median,
    "find_maximum_subarray_kadane": _is_largest_sum,
    "activity_selector": _is_largest_selection,
    "task_scheduling": _is_greedy_schedule,
    "matrix_chain_order": _is_cheapest_product,
    "lcs_length": _is_common_subsequence,
    "optimal_bst": _is_cheapest_tree,
    "naive_string_matcher": _is_first_match,
    "kmp_matcher": _is_first_match,
    "segments_intersect": _do_intersect,
    "graham_scan": _is_hull,
    "jarvis_march": _is_hull,
    "bfs": _are_levels,
    "dfs": _is_depth_first_forest,
    "topological_sort": _is_topological,
    "articulation_points": _are_cut_nodes,
    "bridges": _are_bridges,
    "strongly_connected_components": _are_components,
    "mst_kruskal": _is_spanning_forest,
    "mst_prim": _is_spanning_tree,
    "bellman_ford": _are_shortest_paths,
    "dijkstra": _are_shortest_paths,
    "dag_shortest_paths": _are_shortest_paths,
    "floyd_warshall": _are_all_shortest_paths,
}
