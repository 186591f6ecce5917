import heapq
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.domains.clrs import trace
from graphbench.domains.clrs.arguments import ArgumentError

ALL = ["mst_kruskal", "mst_prim"]
many = settings(max_examples=80, deadline=None)


@st.composite
def undirected(draw, largest=14):
    """Any undirected graph: rare to frequent edges, self-loops; weights often equal and of any sign, or all unequal."""
    n, p, seed = draw(st.integers(2, largest)), draw(st.floats(0, 1)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    few = np.array([-1.5, 0.25, 0.5, 1.0])
    weights = few[rng.integers(0, 4, (n, n))] if draw(st.booleans()) else rng.random((n, n)) + 0.1
    A = np.triu(np.where(rng.random((n, n)) < p, weights, 0.0))
    return A + np.triu(A, 1).T


@st.composite
def undirected_with_source(draw):
    A = draw(undirected())
    return A, draw(st.integers(0, len(A) - 1))


def linked(nodes, edges):
    graph = nx.empty_graph(nodes)
    graph.add_edges_from(edges)
    return graph


def networkx_graph(A):
    graph = nx.empty_graph(len(A))
    graph.add_weighted_edges_from((u, v, A[u, v]) for u, v in np.argwhere(np.triu(A, 1)).tolist())
    return graph


def total(graph):
    return graph.size("weight")


def edges_by_weight(A):
    """The edges (u, v), u < v, of which equal ones stay in the order of rows and columns."""
    return sorted(map(tuple, np.argwhere(np.triu(A, 1)).tolist()), key=lambda edge: A[edge])


def parts(n, edges):
    return {frozenset(part) for part in nx.connected_components(linked(n, edges))}


def greedy_forest(A):
    """Take every edge that joins two parts, lightest first."""
    part_of, taken = [{u} for u in range(len(A))], []
    for u, v in edges_by_weight(A):
        if part_of[u] is not part_of[v]:
            part_of[u] |= part_of[v]
            for w in part_of[v]:
                part_of[w] = part_of[u]
            taken.append((u, v))
    return taken


def pairs(mask):
    assert (mask == mask.T).all()
    return [(u, v) for u, v in np.argwhere(mask).tolist() if u < v]


@many
@given(undirected())
def test_kruskal_s_forest_is_the_lightest(A):
    found = trace("mst_kruskal", A).outputs["in_mst"]
    forest = linked(len(A), pairs(found))
    graph = networkx_graph(A)
    assert nx.is_forest(forest) and not np.diag(found).any()
    assert parts(len(A), forest.edges) == parts(len(A), graph.edges)
    expected = total(nx.minimum_spanning_tree(graph))
    assert sum(A[edge] for edge in forest.edges) == pytest.approx(expected, abs=1e-12)


@many
@given(undirected())
def test_kruskal_takes_equal_edges_in_their_order(A):
    assert pairs(trace("mst_kruskal", A).outputs["in_mst"]) == sorted(greedy_forest(A))


@many
@given(undirected())
def test_kruskal_takes_edges_up_by_weight_in_three_phases(A):
    hints = trace("mst_kruskal", A).hints
    u, v, phase = (hints[name].argmax(axis=-1) for name in ("u", "v", "phase"))
    taken_up = (phase == 1) & np.roll(phase == 0, 1)
    assert phase[0] == 0 and (u[0], v[0]) == (0, 0) and (phase == 0).sum() == taken_up.sum() + 1
    assert list(zip(u[taken_up].tolist(), v[taken_up].tolist(), strict=True)) == edges_by_weight(A)
    assert set(pairwise(phase.tolist())) <= {(0, 1), (1, 1), (1, 2), (2, 2), (1, 0), (2, 0)}
    forest = greedy_forest(A)
    united = np.flatnonzero(phase == 0)[1:]
    before = np.flatnonzero(phase == 0)[:-1]
    for step, last in zip(united, before, strict=True):
        grown = hints["in_mst_h"][step].astype(int) - hints["in_mst_h"][last]
        edge = (int(u[step]), int(v[step]))
        assert pairs(grown) == ([edge] if edge in forest else [])


@many
@given(undirected())
def test_kruskal_s_pointers_are_the_trees_of_the_forest(A):
    hints = trace("mst_kruskal", A).hints
    n = len(A)
    for step in range(len(hints["pi"])):
        pi = hints["pi"][step]
        trees = parts(n, enumerate(pi.tolist()))
        assert trees == parts(n, pairs(hints["in_mst_h"][step]))
        assert (pi >= np.arange(n)).all()  # the root is the highest node of its tree
        for end, root, mask in (("u", "root_u", "mask_u"), ("v", "root_v", "mask_v")):
            start, top = (int(hints[name][step].argmax()) for name in (end, root))
            seen = set(np.flatnonzero(hints[mask][step]).tolist())
            if step == 0:
                assert seen == set()
                continue
            tree = next(tree for tree in trees if start in tree)
            assert {start, top} <= seen <= tree
            assert all(pi[w] == top for w in seen - {top})
    assert (trees == parts(n, networkx_graph(A).edges)) if len(hints["pi"]) > 1 else not pairs(A != 0)


@many
@given(undirected())
def test_kruskal_s_steps_are_moves_to_the_roots(A):
    """Walk to the roots in trees of our own, in which a walk leaves what it saw pointing at its end."""
    above, steps = list(range(len(A))), 1
    for edge in edges_by_weight(A):
        roots = []
        for end in edge:
            path = [end]
            while above[path[-1]] != path[-1]:
                path.append(above[path[-1]])
            for node in path:
                above[node] = path[-1]
            steps += len(path) - 1
            roots.append(path[-1])
        above[min(roots)] = max(roots)
        steps += 2
    hints = trace("mst_kruskal", A).hints
    assert len(hints["pi"]) == steps
    assert hints["pi"][-1].tolist() == above


@many
@given(undirected())
def test_last_hint_is_the_output(A):
    found = trace("mst_kruskal", A)
    np.testing.assert_array_equal(found.hints["in_mst_h"][-1], found.outputs["in_mst"])
    found = trace("mst_prim", A, 0)
    np.testing.assert_array_equal(found.hints["pi_h"][-1], found.outputs["pi"])


@many
@given(undirected_with_source())
def test_prim_s_tree_spans_the_component_and_is_the_lightest(instance):
    A, s = instance
    pi = trace("mst_prim", A, s).outputs["pi"].tolist()
    graph = networkx_graph(A)
    component = nx.node_connected_component(graph, s)
    edges = [(p, v) for v, p in enumerate(pi) if p != v]
    tree = linked(list(component), edges)
    assert nx.is_tree(tree) and set(tree) == component
    assert pi[s] == s and all(pi[v] == v for v in set(graph) - component)
    expected = total(nx.minimum_spanning_tree(graph.subgraph(component)))
    assert sum(A[edge] for edge in edges) == pytest.approx(expected, abs=1e-12)


def prim_by_heap(A, s):
    """The nodes in the order in which they join, their parents and the weights of their edges."""
    order, parent, weight, heap = [], list(range(len(A))), [0.0] * len(A), [(0.0, s)]
    while heap:
        _, u = heapq.heappop(heap)
        if u in order:
            continue
        order.append(u)
        for v in np.flatnonzero(A[u]).tolist():
            if v not in order and (parent[v] == v or A[u, v] < weight[v]):
                parent[v], weight[v] = u, A[u, v]
                heapq.heappush(heap, (A[u, v], v))
    return order, parent, weight


@many
@given(undirected_with_source())
def test_prim_takes_nodes_as_a_heap_would(instance):
    A, s = instance
    found = trace("mst_prim", A, s)
    order, parent, weight = prim_by_heap(A, s)
    assert found.hints["u"].argmax(axis=1).tolist() == [s, *order]
    assert found.outputs["pi"].tolist() == parent
    assert found.hints["key"][-1].tolist() == weight


@many
@given(undirected_with_source())
def test_every_step_of_prim_is_the_cut_of_its_tree(instance):
    A, s = instance
    hints = trace("mst_prim", A, s).hints
    assert hints["in_queue"][0].tolist() == hints["u"][0].tolist() and not hints["mark"][0].any()
    for step in range(1, len(hints["mark"])):
        tree = hints["mark"][step] == 1
        assert set(np.flatnonzero(tree)) == set(hints["u"][: step + 1].argmax(axis=1))
        cut = np.where((A != 0) & tree[:, None] & ~tree, A, np.inf)
        lightest = cut.min(axis=0)
        assert (hints["in_queue"][step] == (lightest < np.inf)).all()
        queued = np.flatnonzero(hints["in_queue"][step])
        assert (hints["key"][step][queued] == lightest[queued]).all()
        parents = hints["pi_h"][step][queued]
        assert tree[parents].all() and (A[parents, queued] == lightest[queued]).all()


@many
@given(undirected(), st.integers(0, 2**32 - 1))
def test_forest_of_unequal_weights_does_not_depend_on_the_numbers_of_nodes(A, seed):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.permutation(A.size).reshape(A.shape) + 1.0)
    A = np.where(A != 0, weights + np.triu(weights, 1).T, 0)
    order = rng.permutation(len(A))
    whole = trace("mst_kruskal", A).outputs["in_mst"]
    permuted = trace("mst_kruskal", A[np.ix_(order, order)]).outputs["in_mst"]
    assert (permuted == whole[np.ix_(order, order)]).all()
    expected = sorted(tuple(sorted(edge)) for edge in nx.minimum_spanning_tree(networkx_graph(A)).edges)
    assert pairs(whole) == expected
    trees = [trace("mst_prim", A, s).outputs["pi"].tolist() for s in range(len(A))]
    assert {(min(p, v), max(p, v)) for pi in trees for v, p in enumerate(pi) if p != v} == set(expected)


@pytest.mark.parametrize("A", [np.zeros((5, 5)), np.eye(5)])
def test_graphs_without_edges(A):
    found = trace("mst_kruskal", A)
    assert len(found.hints["pi"]) == 1 and not found.outputs["in_mst"].any()
    found = trace("mst_prim", A, 3)
    assert len(found.hints["u"]) == 2 and found.outputs["pi"].tolist() == [0, 1, 2, 3, 4]


def test_hundreds_of_nodes():
    n = 256
    A = np.eye(n, k=1) * np.arange(1.0, n + 1)
    A += A.T + np.eye(n)
    assert (trace("mst_kruskal", A).outputs["in_mst"] == ((A != 0) & ~np.eye(n, dtype=bool))).all()
    assert trace("mst_prim", A, 200).outputs["pi"].tolist() == [*range(1, 201), 200, *range(200, n - 1)]


def test_keys_beyond_any_bound():
    A = np.zeros((4, 4))
    for u, v, weight in ((0, 1, 3e12), (0, 2, 4e12), (1, 3, 5e12), (2, 3, 1e12)):
        A[u, v] = A[v, u] = weight
    assert trace("mst_prim", A, 0).outputs["pi"].tolist() == [0, 0, 0, 2]


@pytest.mark.parametrize("algorithm", ALL)
@pytest.mark.parametrize(
    ("A", "message"),
    [
        (np.zeros((2, 3)), r"A has the shape \(2, 3\).*square"),
        (np.zeros((1, 1)), r"A has the shape \(1, 1\).*2"),
        ([[0, np.nan], [np.nan, 0]], r"A\[0, 1\] is nan; give finite numbers"),
        ([[0, 2], [1, 0]], r"A\[0, 1\] = 2.0.*A\[1, 0\] = 1.0.*undirected"),
    ],
)
def test_what_is_no_undirected_graph_is_refused(algorithm, A, message):
    with pytest.raises(ArgumentError, match=message):
        trace(algorithm, A, *([0] if algorithm == "mst_prim" else []))


@pytest.mark.parametrize("s", [-1, 3, 1.0, [0], None])
def test_sources_that_are_no_nodes_are_refused(s):
    with pytest.raises(ArgumentError, match=r"s is.*0 to 2"):
        trace("mst_prim", np.zeros((3, 3)), s)


@pytest.mark.parametrize("algorithm", ALL)
def test_arguments_are_not_changed(algorithm):
    A = np.eye(5)
    A[0, 1] = A[1, 0] = 0.5
    before = A.copy()
    trace(algorithm, A, *([0] if algorithm == "mst_prim" else []))
    np.testing.assert_array_equal(A, before)
