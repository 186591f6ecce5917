from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.domains.clrs import trace
from graphbench.domains.clrs.arguments import ArgumentError

ON_DIRECTED = ["dfs", "strongly_connected_components"]
ON_UNDIRECTED = ["articulation_points", "bridges"]
TIMED = [*ON_DIRECTED, *ON_UNDIRECTED]
ALL = [*TIMED, "topological_sort"]
many = settings(max_examples=80, deadline=None)


@st.composite
def directed(draw, largest=14):
    """Any graph, self-loops and isolated nodes included, with weights of any sign; arcs rare to frequent."""
    n, p, seed = draw(st.integers(2, largest)), draw(st.floats(0, 1)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, n)) < p**2, rng.choice([-1.5, 0.25, 1.0], (n, n)), 0.0)


@st.composite
def undirected(draw):
    A = np.triu(draw(directed()))
    return A + np.triu(A, 1).T


@st.composite
def acyclic(draw):
    A = np.triu(draw(directed()), 1)
    order = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).permutation(len(A))
    return A[np.ix_(order, order)]


def graphs_of(algorithm):
    return {"topological_sort": acyclic(), **dict.fromkeys(ON_UNDIRECTED, undirected())}.get(algorithm, directed())


def networkx_graph(A, kind):
    graph = nx.empty_graph(len(A), kind)
    graph.add_edges_from((u, v) for u, v in np.argwhere(A != 0).tolist() if u != v)
    return graph


def search(A, order):
    """Recursive search: forest, whole times of entering and finishing, root of every node, nodes as they finish."""
    n = len(A)
    forest, entered, finished, root_of, ends = list(range(n)), [0] * n, [0] * n, [-1] * n, []
    time = 0

    def visit(u, root):
        nonlocal time
        time += 1
        entered[u], root_of[u] = time, root
        for v in np.flatnonzero(A[u]).tolist():
            if not entered[v]:
                forest[v] = u
                visit(v, root)
        time += 1
        finished[u] = time
        ends.append(u)

    for root in order:
        if not entered[root]:
            visit(root, root)
    return forest, entered, finished, root_of, ends


def follow(pointers, node):
    """Return the nodes from one on to the first that points to itself; fail where there is none."""
    path = [node]
    while pointers[path[-1]] != path[-1]:
        path.append(int(pointers[path[-1]]))
        assert len(path) <= len(pointers), f"pointers go round in a circle: {path}"
    return path


def in_ticks(times):
    ticks = np.rint(times * 100)
    assert np.abs(times * 100 - ticks).max() < 1e-6
    return ticks.astype(int).tolist()


@many
@given(directed())
def test_depth_first_search_is_the_recursive_one(A):
    found = trace("dfs", A)
    forest, entered, finished, _, _ = search(A, range(len(A)))
    assert found.outputs["pi"].tolist() == forest
    assert in_ticks(found.hints["d"][-1]) == entered
    assert in_ticks(found.hints["f"][-1]) == finished
    assert len(found.hints["time"]) == 3 * len(A)


@many
@given(acyclic())
def test_topological_order_is_reversed_finishing_order(A):
    found = trace("topological_sort", A)
    *_, root_of, ends = search(A, range(len(A)))
    order = follow(found.outputs["topo"], int(found.outputs["topo_head"].argmax()))
    assert order == ends[::-1]
    place = np.argsort(order)
    assert all(place[u] < place[v] for u, v in np.argwhere(A != 0))
    assert found.outputs["topo_head"].sum() == 1
    assert len(found.hints["u"]) == 2 * len(A) + len(set(root_of))


@many
@given(directed())
def test_find_cycle_is_right(A):
    if nx.is_directed_acyclic_graph(nx.from_numpy_array(A != 0, create_using=nx.DiGraph)):
        trace("topological_sort", A)
        return
    with pytest.raises(ArgumentError, match="give a graph without cycles") as error:
        trace("topological_sort", A)
    named = str(error.value).split("has the cycle ")[1].split(";")[0].split(" -> ")
    assert named[0] == named[-1] and len(set(named)) == len(named) - 1
    assert all("..." in (u, v) or A[int(u), int(v)] != 0 for u, v in pairwise(named))


@many
@given(directed())
def test_strong_components_are_those_of_networkx(A):
    found = trace("strongly_connected_components", A)
    root_of = found.outputs["scc_id"].tolist()
    components = list(nx.strongly_connected_components(networkx_graph(A, nx.DiGraph)))
    assert {frozenset(c) for c in components} == {
        frozenset(u for u, r in enumerate(root_of) if r == root) for root in set(root_of)
    }
    n = len(A)
    ends = search(A, range(n))[-1]
    for component in components:  # the root is the node that was finished last in the first phase
        assert {root_of[u] for u in component} == {max(component, key=ends.index)}
    *_, expected, ends = search(A.T, ends[::-1])
    assert root_of == expected
    roots = list(dict.fromkeys(root_of[u] for u in ends))
    # the second phase has a tick for every root that is entered and for every node that is finished
    ticks = [2 * n + roots.index(root_of[u]) + 1 + ends.index(u) + 1 for u in range(n)]
    assert in_ticks(found.hints["f"][-1]) == ticks


@many
@given(directed())
def test_phases_of_the_strong_components(A):
    found = trace("strongly_connected_components", A)
    n, phase = len(A), found.hints["phase"]
    roots = len(set(found.outputs["scc_id"].tolist()))
    assert phase.tolist() == [0] * (3 * n) + [1] * (2 * n + roots)
    first = trace("dfs", A).hints
    for name in ("color", "d", "f", "s_prev", "s", "u", "v", "s_last", "time"):
        np.testing.assert_array_equal(found.hints[name][: 3 * n], first[name], err_msg=name)
    assert (found.hints["scc_id_h"][: 3 * n] == np.arange(n)).all()
    assert (found.hints["A_t"] == found.inputs["adj"].T).all()


@many
@given(undirected())
def test_articulation_points_are_those_of_networkx(A):
    found = trace("articulation_points", A).outputs["is_cut"]
    expected = set(nx.articulation_points(networkx_graph(A, nx.Graph)))
    assert set(np.flatnonzero(found).tolist()) == expected


@many
@given(undirected())
def test_bridges_are_those_of_networkx(A):
    expected = np.where((A != 0) | np.eye(len(A), dtype=bool), 0, -1)
    for u, v in nx.bridges(networkx_graph(A, nx.Graph)):
        expected[u, v] = expected[v, u] = 1
    assert trace("bridges", A).outputs["is_bridge"].tolist() == expected.tolist()


@many
@given(undirected(), st.integers(0, 2**32 - 1))
def test_cuts_do_not_depend_on_the_numbers_of_nodes(A, seed):
    order = np.random.default_rng(seed).permutation(len(A))
    B = A[np.ix_(order, order)]
    cuts, bridges = (
        trace(name, A).outputs[out] for name, out in (("articulation_points", "is_cut"), ("bridges", "is_bridge"))
    )
    assert (trace("articulation_points", B).outputs["is_cut"] == cuts[order]).all()
    assert (trace("bridges", B).outputs["is_bridge"] == bridges[np.ix_(order, order)]).all()


@many
@given(undirected())
def test_low_is_the_earliest_node_one_edge_from_the_subtree(A):
    hints = trace("articulation_points", A).hints
    n = len(A)
    pi, d, f = (hints[name][-1] for name in ("pi_h", "d", "f"))
    for node in range(n):
        subtree = [v for v in range(n) if d[node] <= d[v] and f[v] <= f[node]]
        near = [d[w] for v in subtree for w in np.flatnonzero(A[v]) if w != pi[v]]
        assert hints["low"][-1][node] == min([d[node], *near])
    children = [sum(pi[v] == u and v != u for v in range(n)) for u in range(n)]
    assert in_ticks(hints["child_cnt"][-1]) == children


@many
@given(undirected())
def test_bridges_and_articulation_points_walk_alike(A):
    cuts, bridges = trace("articulation_points", A).hints, trace("bridges", A).hints
    for name in bridges.keys() & cuts.keys():
        np.testing.assert_array_equal(cuts[name], bridges[name], err_msg=name)
    found_before = sum(v != cuts["pi_h"][-1][u] for u, v in looks(cuts))
    assert len(cuts["time"]) == 3 * len(A) + found_before


def looks(hints):
    """Yield (u, v) of the steps in which nothing was found, entered or finished."""
    same = (hints["color"][1:] == hints["color"][:-1]).all(axis=(1, 2)) & (hints["time"][1:] == hints["time"][:-1])
    for step in np.flatnonzero(same & (hints["s"][1:] == hints["s"][:-1]).all(axis=1)) + 1:
        yield int(hints["u"][step].argmax()), int(hints["v"][step].argmax())


@pytest.mark.parametrize("algorithm", ALL)
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_stack_of_every_step_is_the_path_of_grey_nodes(algorithm, data):
    A = data.draw(graphs_of(algorithm))
    hints = trace(algorithm, A).hints
    everyone = set(range(len(A)))
    for step in range(len(hints["u"])):
        s, u, top = (int(hints[name][step].argmax()) for name in ("s", "u", "s_last"))
        below, color = hints["s_prev"][step], hints["color"][step].argmax(axis=1)
        stack = follow(below, top)
        assert all(A[lower, upper] != 0 or A[upper, lower] != 0 for upper, lower in pairwise(stack))
        assert stack[-1] == s and u in stack[:2]
        assert set(np.flatnonzero(color == 1).tolist()) == {v for v in stack if color[v] == 1}
        assert all(color[v] == 1 for v in stack[1:])
        assert all(below[v] == v for v in everyone - set(stack))


@pytest.mark.parametrize("algorithm", ALL)
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_neighbour_looked_at_last_is_the_last_node_after_a_whole_scan(algorithm, data):
    A = data.draw(graphs_of(algorithm))
    hints = trace(algorithm, A).hints
    black = hints["color"][..., 2].sum(axis=1)
    finishing = np.flatnonzero(black[1:] > black[:-1]) + 1
    assert len(finishing) >= len(A)
    assert (hints["v"][finishing].argmax(axis=1) == len(A) - 1).all()


@pytest.mark.parametrize("algorithm", TIMED)
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_clock_adds_ticks_and_the_last_hint_is_the_output(algorithm, data):
    found = trace(algorithm, data.draw(graphs_of(algorithm)))
    clock = [0.0]
    for now in found.hints["time"][1:].tolist():
        assert now in (clock[-1], clock[-1] + 0.01)
        clock.append(now)
    assert clock[-1] == found.hints["f"][-1].max()
    (name, output), *_ = found.outputs.items()
    np.testing.assert_array_equal(found.hints[f"{name}_h"][-1], output)


@pytest.mark.parametrize("algorithm", ALL)
def test_hundreds_of_nodes_in_one_path(algorithm):
    n = 256
    A = np.eye(n, k=1)
    if algorithm in ON_UNDIRECTED:
        A += A.T
    found = trace(algorithm, A)
    expected = {
        "dfs": {"pi": [0, *range(n - 1)]},
        "topological_sort": {"topo": [*range(1, n), n - 1], "topo_head": [1] + [0] * (n - 1)},
        "strongly_connected_components": {"scc_id": list(range(n))},
        "articulation_points": {"is_cut": [0] + [1] * (n - 2) + [0]},
        "bridges": {"is_bridge": (2 * A - 1 + np.eye(n)).tolist()},
    }[algorithm]
    assert {name: output.tolist() for name, output in found.outputs.items()} == expected


def test_edge_mask_of_the_bridges_only_grows():
    A = np.zeros((7, 7))
    for u, v in [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (5, 5)]:
        A[u, v] = A[v, u] = 1
    found = trace("bridges", A)
    masks = found.hints["is_bridge_h"].astype(int)
    assert (np.diff(masks, axis=0) >= 0).all()
    assert (masks[0] == found.inputs["adj"].astype(int) - 1).all()
    assert np.argwhere(masks[-1] == 1).tolist() == [[2, 3], [3, 2], [3, 4], [4, 3]]


@pytest.mark.parametrize("algorithm", ALL)
@pytest.mark.parametrize(
    ("A", "message"),
    [
        (np.zeros((2, 3)), r"shape \(2, 3\); give a square matrix"),
        (np.zeros((1, 1)), r"shape \(1, 1\).*2 or more"),
        (np.zeros(4), r"shape \(4,\); give a square matrix"),
        ([[0, np.nan], [0, 0]], r"A\[0, 1\] is nan; give finite numbers"),
        ([["a", "b"], ["c", "d"]], "not an array of numbers"),
    ],
)
def test_what_is_no_graph_is_refused(algorithm, A, message):
    with pytest.raises(ArgumentError, match=message):
        trace(algorithm, A)


@pytest.mark.parametrize("algorithm", ON_UNDIRECTED)
def test_directed_graphs_are_refused_where_undirected_are_needed(algorithm):
    with pytest.raises(ArgumentError, match=r"A\[0, 1\] = 1.0.*A\[1, 0\] = 0.0.*undirected"):
        trace(algorithm, [[0, 1], [0, 0]])


def test_cyclic_graphs_have_no_topological_order():
    for A, cycle in (
        (np.eye(3), "0 -> 0"),
        ([[0, 1, 0], [0, 0, 1], [0, 1, 0]], "1 -> 2 -> 1"),
        (np.roll(np.eye(20), 1, axis=1), "0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> ... -> 0"),
    ):
        with pytest.raises(ArgumentError, match=f"cycle {cycle}.*without cycles"):
            trace("topological_sort", A)


@pytest.mark.parametrize("algorithm", ALL)
def test_arguments_are_not_changed(algorithm):
    A = np.zeros((5, 5))
    A[0, 1] = A[1, 4] = 0.5
    if algorithm in ON_UNDIRECTED:
        A += A.T
    before = A.copy()
    trace(algorithm, A)
    np.testing.assert_array_equal(A, before)
