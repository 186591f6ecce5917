import heapq
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import floyd_warshall as scipy_floyd_warshall

from graphbench.domains.clrs import trace
from graphbench.domains.clrs.arguments import ArgumentError

FROM_SOURCE = ["bellman_ford", "dijkstra", "dag_shortest_paths"]
ALL = [*FROM_SOURCE, "floyd_warshall"]
MASKS = {"bellman_ford": "msk", "dijkstra": "mark", "dag_shortest_paths": "mark"}
many = settings(max_examples=80, deadline=None)


@st.composite
def directed(draw, largest=12):
    """Any graph with positive weights, often equal; their sums are exact."""
    n, p, seed = draw(st.integers(2, largest)), draw(st.floats(0, 1)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, draw(st.sampled_from([2, 5, 1000])), (n, n)) / 4
    return np.where(rng.random((n, n)) < p**2, weights, 0.0)


@st.composite
def without_negative_cycles(draw):
    """Weights of both signs: moving from u to v costs height[v] - height[u] more, which cycles do not feel."""
    A = draw(directed())
    height = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).integers(0, 5, len(A)) / 2
    return np.where(A != 0, A + height - height[:, None], 0)


@st.composite
def of_any_sign(draw):
    A = draw(directed(largest=8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return np.where(rng.random(A.shape) < draw(st.floats(0, 0.5)), -A, A)


@st.composite
def acyclic(draw):
    A = np.triu(draw(of_any_sign()), 1)
    order = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).permutation(len(A))
    return A[np.ix_(order, order)]


GRAPHS = {
    "bellman_ford": without_negative_cycles(),
    "dijkstra": directed(),
    "dag_shortest_paths": acyclic(),
    "floyd_warshall": without_negative_cycles(),
}


@st.composite
def with_source(draw, graphs):
    A = draw(graphs)
    return A, draw(st.integers(0, len(A) - 1))


def networkx_graph(A, keep=lambda u, v: True):
    graph = nx.empty_graph(len(A), nx.DiGraph)
    graph.add_weighted_edges_from((u, v, A[u, v]) for u, v in np.argwhere(A != 0).tolist() if keep(u, v))
    return graph


def lengths_from(A, s):
    """Distances by networkx, infinite where there is no path."""
    found = nx.single_source_bellman_ford_path_length(networkx_graph(A), s)
    return [found.get(v, np.inf) for v in range(len(A))]


def length_along(A, predecessors, s, v):
    """Weight of the path to v along the predecessors, which must be one from s; infinite where v is its own."""
    if v != s and predecessors[v] == v:
        return np.inf
    path = [v]
    while path[-1] != s:
        path.append(int(predecessors[path[-1]]))
        assert len(path) <= len(A) and A[path[-1], path[-2]] != 0
    return sum(A[u, w] for w, u in pairwise(path))


@pytest.mark.parametrize("algorithm", FROM_SOURCE)
@many
@given(st.data())
def test_paths_from_the_source_are_the_shortest(algorithm, data):
    A, s = data.draw(with_source(GRAPHS[algorithm]))
    found = trace(algorithm, A, s)
    pi, d, reached = found.outputs["pi"], found.hints["d"][-1], found.hints[MASKS[algorithm]][-1]
    expected = lengths_from(A, s)
    assert [length_along(A, pi, s, v) for v in range(len(A))] == expected
    assert np.where(reached == 1, d, np.inf).tolist() == expected
    assert not d[reached == 0].any() and pi[s] == s
    np.testing.assert_array_equal(found.hints["pi_h"][-1], pi)


@many
@given(without_negative_cycles())
def test_paths_of_all_pairs_are_the_shortest(A):
    Pi = trace("floyd_warshall", A).outputs["Pi"]
    for i in range(len(A)):
        expected = lengths_from(A, i)
        own = [i if j != i and expected[j] == np.inf else Pi[i, j] for j in range(len(A))]
        assert own == Pi[i].tolist()  # without a path, the predecessor is the start
        row = np.where(np.isinf(expected), np.arange(len(A)), Pi[i])
        assert [length_along(A, row, i, j) for j in range(len(A))] == expected


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 20), st.floats(0.1, 1), st.integers(0, 2**32 - 1))
def test_weights_of_the_unit_interval(n, p, seed):
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((n, n)) < p, rng.random((n, n)) + 1e-3, 0)
    expected = scipy_floyd_warshall(np.where(A != 0, A, np.inf))
    for algorithm in ("bellman_ford", "dijkstra"):
        hints = trace(algorithm, A, 0).hints
        reached = hints[MASKS[algorithm]][-1] == 1
        np.testing.assert_allclose(np.where(reached, hints["d"][-1], np.inf), expected[0], atol=1e-12)
    Pi = trace("floyd_warshall", A).outputs["Pi"]
    i, j = np.nonzero(np.isfinite(expected) & ~np.eye(n, dtype=bool))
    np.testing.assert_allclose(expected[i, Pi[i, j]] + A[Pi[i, j], j], expected[i, j], atol=1e-12)


def walks(d, A):
    """Weights of the lightest walks to every node of one arc more, ``[from the node before, to the node]``."""
    return d[:, None] + np.where(A != 0, A, np.inf)


@many
@given(with_source(without_negative_cycles()))
def test_rounds_of_bellman_ford_are_walks_of_as_many_arcs(instance):
    A, s = instance
    hints = trace("bellman_ford", A, s).hints
    nearest = np.where(np.arange(len(A)) == s, 0, np.inf)
    parents = np.arange(len(A))
    for d, reached, pi in zip(hints["d"], hints["msk"], hints["pi_h"], strict=True):
        assert np.where(reached == 1, d, np.inf).tolist() == nearest.tolist()
        assert pi.tolist() == parents.tolist()
        longer = walks(nearest, A)
        nearer = longer.min(axis=0) < nearest
        parents = np.where(nearer, longer.argmin(axis=0), parents)  # the lowest of equally good nodes
        nearest = np.where(nearer, longer.min(axis=0), nearest)
    assert not nearer.any() and len(hints["d"]) <= len(A)


def test_bellman_ford_goes_on_past_a_distance_of_zero():
    """A node that is reached at distance 0 changes no number of ``d``; the next round still starts from it."""
    A = np.zeros((4, 4))
    A[0, 1], A[1, 2], A[2, 3] = 1, -1, 5
    found = trace("bellman_ford", A, 0)
    assert found.outputs["pi"].tolist() == [0, 0, 1, 2]
    assert found.hints["d"][-1].tolist() == [0, 1, 0, 5]


def dijkstra_by_heap(A, s):
    """The nodes in the order in which they are taken, and their predecessors."""
    order, parent, d, heap = [], list(range(len(A))), {s: 0.0}, [(0.0, s)]
    while heap:
        _, u = heapq.heappop(heap)
        if u in order:
            continue
        order.append(u)
        for v in np.flatnonzero(A[u]).tolist():
            if v not in d or d[u] + A[u, v] < d[v]:
                d[v], parent[v] = d[u] + A[u, v], u
                heapq.heappush(heap, (d[v], v))
    return order, parent


@many
@given(with_source(directed()))
def test_dijkstra_takes_nodes_as_a_heap_would(instance):
    A, s = instance
    found = trace("dijkstra", A, s)
    order, parent = dijkstra_by_heap(A, s)
    assert found.hints["u"].argmax(axis=1).tolist() == [s, *order]
    assert found.outputs["pi"].tolist() == parent


@many
@given(with_source(directed()))
def test_every_step_of_dijkstra_has_the_paths_through_the_nodes_taken(instance):
    A, s = instance
    hints = trace("dijkstra", A, s).hints
    expected = np.array(lengths_from(A, s))
    assert hints["in_queue"][0].tolist() == hints["u"][0].tolist() and not hints["mark"][0].any()
    for step in range(1, len(hints["mark"])):
        taken, d = hints["mark"][step] == 1, hints["d"][step]
        assert taken.sum() == step and (d[taken] == expected[taken]).all()
        assert d[taken].max() <= expected[~taken].min(initial=np.inf)
        last_arcs = walks(np.where(taken, expected, np.inf), A).min(axis=0)
        queued = ~taken & (last_arcs < np.inf)
        assert (hints["in_queue"][step] == queued).all() and (d[queued] == last_arcs[queued]).all()


def listed(topo, head):
    order = [int(head)]
    while topo[order[-1]] != order[-1]:
        order.append(int(topo[order[-1]]))
    return order


@many
@given(with_source(acyclic()))
@example((np.triu(np.ones((6, 6)), 1) * np.subtract.outer(range(6), range(6)), 0))  # all paths are equally long
def test_acyclic_graphs_are_sorted_then_relaxed_in_order(instance):
    A, s = instance
    found = trace("dag_shortest_paths", A, s)
    hints = found.hints
    reachable = nx.descendants(networkx_graph(A), s) | {s}
    k = len(reachable)
    assert hints["phase"].tolist() == [0] * (2 * k + 1) + [1] * k
    assert not hints["d"][: 2 * k + 1].any() and not hints["mark"][: 2 * k + 1].any()
    order = listed(hints["topo_h"][-1], hints["topo_head_h"][2 * k].argmax())
    assert set(order) == reachable and order[0] == s
    assert all(order.index(u) < order.index(v) for u, v in np.argwhere(A != 0).tolist() if u in reachable)
    assert hints["topo_head_h"][2 * k + 1 :].argmax(axis=1).tolist() == order
    expected = np.array(lengths_from(A, s))
    for place in range(k):
        done = order[:place]
        step = 2 * k + 1 + place
        before = np.full(len(A), np.inf)
        before[done] = expected[done]
        known = walks(before, A).min(axis=0)
        known[s] = 0
        mark = hints["mark"][step] == 1
        assert np.where(mark, hints["d"][step], np.inf).tolist() == known.tolist()
    for v in reachable - {s}:  # of equally good predecessors, the first of the list
        assert found.outputs["pi"][v] == next(u for u in order if A[u, v] and expected[u] + A[u, v] == expected[v])


@many
@given(acyclic())
def test_first_phase_is_the_topological_sort_from_the_source(A):
    """The search of the topological sort begins at node 0."""
    found = trace("dag_shortest_paths", A, 0).hints
    expected = trace("topological_sort", A).hints
    steps = int((found["phase"] == 0).sum())
    for name in expected.keys() & found.keys():
        np.testing.assert_array_equal(found[name][:steps], expected[name][:steps], err_msg=name)
        if name not in ("s_prev", "topo_head_h"):
            assert (found[name][steps:] == found[name][steps - 1]).all(), name


def closure(weights):
    """Weights of the lightest walks between all pairs, that of no arc included."""
    found = np.minimum(weights, np.where(np.eye(len(weights), dtype=bool), 0, np.inf))
    for _ in range(len(weights)):
        found = (found[:, :, None] + found[None]).min(axis=1, initial=np.inf)
    return found


@many
@given(without_negative_cycles())
def test_steps_of_floyd_warshall_allow_one_node_more_on_the_way(A):
    hints = trace("floyd_warshall", A).hints
    n = len(A)
    arcs = np.where(A != 0, A, np.inf)
    assert hints["k"].argmax(axis=1).tolist() == list(range(n))
    for k in range(n):
        middle = closure(arcs[:k, :k])
        through = ((arcs[:, :k, None] + middle).min(axis=1, initial=np.inf)[:, :, None] + arcs[:k]).min(
            axis=1, initial=np.inf
        )
        expected = np.minimum(arcs, through)
        expected[np.eye(n, dtype=bool) & (A == 0)] = 0  # the path of no arc, but for self-loops
        msk, D, Pi = (hints[name][k] for name in ("msk", "D", "Pi_h"))
        assert np.where(msk == 1, D, np.inf).tolist() == expected.tolist()
        assert not D[msk == 0].any()
        i, j = np.nonzero((msk == 1) & ~np.eye(n, dtype=bool))
        before = np.where(Pi[i, j] == i, 0, expected[i, Pi[i, j]])
        assert (before + arcs[Pi[i, j], j] == expected[i, j]).all()
        assert ((Pi[i, j] == i) | (Pi[i, j] < k)).all()
        i, j = np.nonzero(msk == 0)
        assert (Pi[i, j] == i).all()


def test_last_hint_of_floyd_warshall_lacks_the_last_node():
    A = np.zeros((3, 3))
    A[0, 2], A[2, 1] = 1, 1
    found = trace("floyd_warshall", A)
    assert found.hints["Pi_h"][-1].tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    assert found.outputs["Pi"].tolist() == [[0, 2, 0], [1, 1, 1], [2, 2, 2]]


def nodes_on_negative_cycles(A, nodes):
    """Brute force: cycles of a small graph."""
    cycles = nx.simple_cycles(networkx_graph(A).subgraph(nodes))
    return {u for cycle in cycles if sum(A[cycle[i - 1], cycle[i]] for i in range(len(cycle))) < 0 for u in cycle}


@settings(max_examples=100, deadline=None)
@given(with_source(of_any_sign().filter(lambda A: len(A) <= 6)))
def test_negative_cycles_are_refused_where_they_matter(instance):
    A, s = instance
    graph = networkx_graph(A)
    cyclic = nodes_on_negative_cycles(A, graph)
    if cyclic:
        with pytest.raises(ArgumentError, match="negative weight through node") as error:
            trace("floyd_warshall", A)
        assert int(str(error.value).split("through node ")[1].split(",")[0]) in cyclic
    else:
        trace("floyd_warshall", A)
    reached = cyclic & (nx.descendants(graph, s) | {s})
    if reached:
        with pytest.raises(ArgumentError, match=f"negative weight.*s = {s} to node") as error:
            trace("bellman_ford", A, s)
        named = int(str(error.value).split("to node ")[1].split(",")[0])
        assert named in reached.union(*(nx.descendants(graph, u) for u in reached))
    else:
        trace("bellman_ford", A, s)


def test_undirected_edges_of_negative_weight_are_refused():
    A = np.zeros((3, 3))
    A[1, 2] = A[2, 1] = -1
    for algorithm, args in (("bellman_ford", (A, 1)), ("floyd_warshall", (A,))):
        with pytest.raises(ArgumentError, match="undirected edge of negative weight"):
            trace(algorithm, *args)
    assert trace("bellman_ford", A, 0).outputs["pi"].tolist() == [0, 1, 2]


def test_dijkstra_refuses_negative_weights():
    A = np.zeros((3, 3))
    A[0, 1], A[0, 2], A[1, 2] = 2, 1, -1.5
    with pytest.raises(ArgumentError, match=r"A\[1, 2\] is -1.5; .* use bellman_ford"):
        trace("dijkstra", A, 0)
    assert trace("bellman_ford", A, 0).outputs["pi"].tolist() == [0, 0, 1]


@many
@given(with_source(of_any_sign()))
@example((np.diag([0.0, 0, 1]), 0))
def test_cyclic_graphs_are_refused_where_an_order_is_needed(instance):
    A, s = instance
    if nx.is_directed_acyclic_graph(networkx_graph(A)):
        trace("dag_shortest_paths", A, s)
    else:
        with pytest.raises(ArgumentError, match="A has the cycle"):
            trace("dag_shortest_paths", A, s)


@pytest.mark.parametrize("algorithm", ALL)
def test_graphs_without_arcs(algorithm):
    found = trace(algorithm, np.zeros((4, 4)), *([2] if algorithm != "floyd_warshall" else []))
    steps = {"bellman_ford": 1, "dijkstra": 2, "dag_shortest_paths": 4, "floyd_warshall": 4}
    assert len(next(iter(found.hints.values()))) == steps[algorithm]
    if algorithm == "floyd_warshall":
        assert (found.outputs["Pi"] == np.arange(4)[:, None]).all()
    else:
        assert found.outputs["pi"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("algorithm", ALL)
def test_hundreds_of_nodes_in_one_path(algorithm):
    n = 256
    A = np.eye(n, k=1)
    if algorithm == "floyd_warshall":
        before = np.maximum(np.arange(n) - 1, 0)
        i, j = np.indices((n, n))
        assert (trace(algorithm, A).outputs["Pi"] == np.where(i < j, before[j], i)).all()
    else:
        assert trace(algorithm, A, 1).outputs["pi"].tolist() == [0, 1, *range(1, n - 1)]
        assert trace(algorithm, A, 1).hints["d"][-1].tolist() == [0, *range(n - 1)]


@pytest.mark.parametrize("algorithm", ALL)
@pytest.mark.parametrize(
    ("A", "message"),
    [
        (np.zeros((2, 3)), r"A has the shape \(2, 3\).*square"),
        (np.zeros((1, 1)), r"A has the shape \(1, 1\).*2"),
        ([[0, np.inf], [0, 0]], r"A\[0, 1\] is inf; give finite numbers"),
        ([["a", "b"], ["c", "d"]], r"A is not an array of numbers"),
    ],
)
def test_what_is_no_graph_is_refused(algorithm, A, message):
    with pytest.raises(ArgumentError, match=message):
        trace(algorithm, A, *([0] if algorithm in FROM_SOURCE else []))


@pytest.mark.parametrize("algorithm", FROM_SOURCE)
@pytest.mark.parametrize("s", [-1, 3, 1.0, [0], None])
def test_sources_that_are_no_nodes_are_refused(algorithm, s):
    with pytest.raises(ArgumentError, match=r"s is.*0 to 2"):
        trace(algorithm, np.zeros((3, 3)), s)


@pytest.mark.parametrize("algorithm", ALL)
def test_arguments_are_not_changed(algorithm):
    A = np.zeros((5, 5))
    A[0, 1] = A[1, 4] = 0.5
    before = A.copy()
    trace(algorithm, A, *([0] if algorithm in FROM_SOURCE else []))
    np.testing.assert_array_equal(A, before)
