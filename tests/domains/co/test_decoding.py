"""Decoders: feasible, deterministic, as good as their description says, and independent of names and neighbours."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.errors import DecodingError
from graphbench.domains.co.decoding import decode_colourings, decode_cuts, decode_independent_sets
from graphbench.domains.co.decoding_graphs import UndirectedGraphs
from graphbench.domains.co.problems import PROBLEMS
from graphbench.domains.co.solvers import Label
from graphbench.domains.co.solving import SOLVERS

OPTIONS = {
    "mis": ({}, {"restarts": 4}),
    "vertex_cover": ({}, {"restarts": 4}),
    "max_clique": ({}, {"restarts": 4}),
    "max_cut": (
        {},
        {"conditional": True},
        {"local_search": True},
        {"restarts": 4},
        {"restarts": 3, "conditional": True, "local_search": True},
    ),
    "coloring": ({}, {"local_search": True}, {"restarts": 4}, {"restarts": 3, "local_search": True}),
}
CASES = [(task, options) for task, several in OPTIONS.items() for options in several]


def flat(graphs):
    ptr = np.concatenate([[0], np.cumsum([n for n, _ in graphs])])
    edges = np.concatenate([pairs.astype(np.int64) + start for (_, pairs), start in zip(graphs, ptr, strict=False)])
    return UndirectedGraphs.checked(ptr, np.stack([edges.T, edges.T[::-1]], axis=-1).reshape(2, -1))


def absent(nodes, edges):
    """The pairs of nodes that are not joined."""
    joined = {tuple(edge) for edge in edges.tolist()}
    pairs = [pair for pair in itertools.combinations(range(nodes), 2) if pair not in joined]
    return np.array(pairs, np.int32).reshape(-1, 2)


def scores_for(task, nodes, seed=0, colours=60):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(nodes, colours) if task == "coloring" else nodes)


def check_with_the_checker(task, graphs, solution, values, exact_cut=False):
    """The checkers of labels share no code with decoders or their checks."""
    starts = np.cumsum([n for n, _ in graphs])[:-1]
    for (n, edges), own, value in zip(graphs, np.split(solution, starts), values.tolist(), strict=True):
        bound = 10**6 if PROBLEMS[task].maximise else 0
        problems = SOLVERS[task].check(n, edges, Label(value, own, bound, "decoder"))
        assert [p for p in problems if exact_cut or not p.startswith("moving node")] == []


@st.composite
def small_graphs(draw):
    n = draw(st.integers(1, 9))
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return n, np.array(sorted(chosen), np.int32).reshape(-1, 2)


@given(st.lists(small_graphs(), min_size=1, max_size=4), st.integers(0, 10), st.sampled_from(CASES), st.booleans())
@settings(max_examples=150, deadline=None)
def test_solutions_are_feasible(graphs, seed, case, ties):
    task, options = case
    batch = flat(graphs)
    scores = scores_for(task, batch.num_nodes, seed, colours=12)
    solution = PROBLEMS[task].decode(batch, np.round(scores) if ties else scores, **options)
    values = PROBLEMS[task].objectives(batch, solution)
    check_with_the_checker(task, graphs, solution, values, exact_cut=options.get("local_search", False))


@pytest.mark.parametrize(("task", "options"), CASES)
@pytest.mark.parametrize("family", ["rb_small", "er_small", "ba_small"])
def test_solutions_of_the_families(drawn, family, task, options):
    graphs = drawn(family, 3)
    batch = flat(graphs)
    solution = PROBLEMS[task].decode(batch, scores_for(task, batch.num_nodes), **options)
    values = PROBLEMS[task].objectives(batch, solution)
    check_with_the_checker(task, graphs, solution, values, exact_cut=options.get("local_search", False))


@pytest.mark.parametrize("ties", [False, True])
def test_sets_are_greedy_in_the_order_of_scores(drawn, ties):
    graphs = drawn("er_small", 2) + drawn("ba_small", 2)
    scores = scores_for("mis", sum(n for n, _ in graphs))
    scores = np.round(scores, 1) if ties else scores
    expected, start = [], 0
    for n, edges in graphs:
        found = nx.Graph(edges.tolist())
        found.add_nodes_from(range(n))
        own, members = scores[start : start + n], set()
        for v in sorted(range(n), key=lambda v, own=own: (-own[v], v)):
            if not members & set(found[v]):
                members.add(v)
        expected += [int(v in members) for v in range(n)]
        start += n
    np.testing.assert_array_equal(decode_independent_sets(flat(graphs), scores), expected)


def test_sets_have_no_limit_on_their_size():
    batch = flat([(1200, np.empty((0, 2), np.int32))])
    assert decode_independent_sets(batch, scores_for("mis", 1200)).sum() == 1200


def test_cuts_are_thresholds_and_local_search_improves_them(drawn):
    batch = flat(drawn("rb_small", 4))
    scores = scores_for("max_cut", batch.num_nodes)
    scores[7] = 0.0
    plain = decode_cuts(batch, scores)
    np.testing.assert_array_equal(plain, scores > 0)
    better = PROBLEMS["max_cut"].objectives(batch, decode_cuts(batch, scores, local_search=True))
    assert (better > PROBLEMS["max_cut"].objectives(batch, plain)).all()


@given(st.lists(small_graphs(), min_size=1, max_size=4), st.integers(0, 10), st.floats(0.0, 20.0))
@settings(max_examples=150, deadline=None)
def test_cuts_by_conditional_expectation_keep_what_scores_promise(graphs, seed, scale):
    batch = flat(graphs)
    scores = scale * scores_for("max_cut", batch.num_nodes, seed)
    solution = decode_cuts(batch, scores, conditional=True)
    values = PROBLEMS["max_cut"].objectives(batch, solution)
    start = 0
    for (n, edges), value in zip(graphs, values.tolist(), strict=True):
        p = 1 / (1 + np.exp(-scores[start : start + n]))
        u, v = edges.T
        assert value >= (p[u] * (1 - p[v]) + p[v] * (1 - p[u])).sum() - 1e-9
        start += n


def test_conditional_cuts_are_those_of_the_definition(atlas):
    rng = np.random.default_rng(0)
    for n, edges in atlas:
        scores = rng.normal(size=n)
        p, side = 1 / (1 + np.exp(-scores)), np.zeros(n, np.int32)
        for i in np.argsort(-np.abs(scores), kind="stable"):
            expected = []
            for choice in (0.0, 1.0):
                q = p.copy()
                q[i] = choice
                u, v = edges.T
                expected.append((q[u] * (1 - q[v]) + q[v] * (1 - q[u])).sum())
            same = abs(expected[0] - expected[1]) < 1e-12
            side[i] = p[i] > 0.5 if same else expected[1] > expected[0]
            p[i] = side[i]
        assert decode_cuts(flat([(n, edges)]), scores, conditional=True).tolist() == side.tolist()


def test_one_score_colours_as_networkx_does(drawn):
    for n, edges in drawn("er_small", 2) + drawn("ba_small", 2):
        scores = np.round(scores_for("max_cut", n), 1)
        found = nx.Graph()
        found.add_nodes_from(range(n))
        found.add_edges_from(edges.tolist())
        order = sorted(range(n), key=lambda v, scores=scores: (-scores[v], v))
        expected = nx.greedy_color(found, strategy=lambda graph, colours, order=order: order)
        solution = decode_colourings(flat([(n, edges)]), scores)
        assert solution.max() + 1 == max(expected.values()) + 1
        assert len({(expected[v], c) for v, c in enumerate(solution.tolist())}) == solution.max() + 1


def best_fit_colours(n, edges, scores):
    neighbours = [set() for _ in range(n)]
    for u, v in edges.tolist():
        neighbours[u].add(v)
        neighbours[v].add(u)
    chance = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    colour = {}
    for v in sorted(range(n), key=lambda v: (-chance[v].max(), v)):
        taken = {colour[u] for u in neighbours[v] if u in colour}
        free = [c for c in range(scores.shape[1]) if c not in taken]
        further = min(set(range(scores.shape[1], scores.shape[1] + n)) - taken)
        colour[v] = max(free, key=lambda c: scores[v, c]) if free else further
    return len(set(colour.values()))


def test_colourings_are_the_better_of_best_and_first_fit(drawn):
    better = set()
    for n, edges in drawn("ba_small", 6) + drawn("er_small", 2):
        solved = SOLVERS["coloring"].solve(n, edges).solution
        for scores in (scores_for("coloring", n), scores_for("coloring", n, 1, 8), 6.0 * np.eye(20)[solved]):
            scores = scores + 0.4 * scores_for("coloring", n, 2, scores.shape[1])
            confidence = np.exp(scores).max(1) / np.exp(scores).sum(1)
            best = best_fit_colours(n, edges, scores)
            first = decode_colourings(flat([(n, edges)]), confidence).max() + 1
            found = decode_colourings(flat([(n, edges)]), scores, num_colors=300).max() + 1
            assert found == min(best, first)
            better.add(np.sign(best - first))
    assert {-1, 1} <= better  # each is the better one at times


def test_local_search_never_needs_more_colours(drawn):
    batch = flat(drawn("rb_small", 4) + drawn("ba_small", 4))
    scores = scores_for("coloring", batch.num_nodes)
    plain = PROBLEMS["coloring"].objectives(batch, decode_colourings(batch, scores))
    better = PROBLEMS["coloring"].objectives(batch, decode_colourings(batch, scores, local_search=True))
    assert (better <= plain).all()
    assert better.sum() < plain.sum()


@pytest.mark.parametrize("options", [{}, {"local_search": True}, {"restarts": 3}])
def test_scores_of_an_optimum_give_an_optimum(atlas, options, largest_set, heaviest, chromatic_number):
    graphs = [graph for graph in atlas[::40] if graph[0] > 1]
    batch = flat(graphs)
    best = {"mis": largest_set, "max_cut": heaviest, "coloring": chromatic_number}
    best["vertex_cover"] = lambda n, edges: n - largest_set(n, edges)
    best["max_clique"] = lambda n, edges: largest_set(n, absent(n, edges))
    assert set(best) == set(PROBLEMS)
    for task, solve in best.items():
        solver = SOLVERS[task].solve
        known = np.concatenate([solver(n, edges).solution for n, edges in graphs])
        scores = 5.0 * np.eye(8)[known] if task == "coloring" else known - 0.5
        chosen = {key: value for key, value in options.items() if key in PROBLEMS[task].options}
        found = PROBLEMS[task].objectives(batch, PROBLEMS[task].decode(batch, scores, **chosen))
        np.testing.assert_array_equal(found, [solve(n, edges) for n, edges in graphs])


@pytest.mark.parametrize(("task", "options"), CASES)
def test_a_graph_is_solved_as_if_it_were_alone(drawn, task, options):
    graphs = drawn("ba_small", 2) + drawn("rb_small", 1) + [(1, np.empty((0, 2), np.int32))] + drawn("er_small", 1)
    scores = scores_for(task, sum(n for n, _ in graphs))
    together = PROBLEMS[task].decode(flat(graphs), scores, **options)
    parts = np.split(scores, np.cumsum([n for n, _ in graphs])[:-1])
    alone = [PROBLEMS[task].decode(flat([graph]), part, **options) for graph, part in zip(graphs, parts, strict=True)]
    np.testing.assert_array_equal(together, np.concatenate(alone))


@pytest.mark.parametrize(("task", "options"), [case for case in CASES if "restarts" not in case[1]])
def test_names_of_nodes_do_not_matter(drawn, task, options):
    for n, edges in drawn("ba_small", 2) + drawn("er_small", 1):
        scores = scores_for(task, n)
        new = np.random.default_rng(1).permutation(n)
        moved = np.empty_like(scores)
        moved[new] = scores
        pairs = np.sort(new[edges], axis=1)
        renamed = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].astype(np.int32)
        first = PROBLEMS[task].decode(flat([(n, edges)]), scores, **options)
        second = PROBLEMS[task].decode(flat([(n, renamed)]), moved, **options)[new]
        if task == "coloring":
            assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == first.max() + 1 == second.max() + 1
        else:
            np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("task", list(PROBLEMS))
def test_restarts_keep_the_best_and_follow_their_seed(drawn, task):
    batch = flat(drawn("er_small", 6))
    scores = scores_for(task, batch.num_nodes)
    sign = 1 if PROBLEMS[task].maximise else -1

    def found(**options):
        return PROBLEMS[task].decode(batch, scores, **options)

    one, eight = (sign * PROBLEMS[task].objectives(batch, found(restarts=r)) for r in (1, 8))
    assert (eight >= one).all()
    assert eight.sum() > one.sum()
    np.testing.assert_array_equal(found(restarts=8), found(restarts=8, seed=0))
    assert not np.array_equal(found(restarts=8), found(restarts=8, seed=1))
    np.testing.assert_array_equal(found(restarts=8, temperature=1e-9), found())


def test_noise_draws_sides_with_the_probability_of_their_logits():
    batch, scores = flat([(2, np.array([[0, 1]], np.int32))]), np.array([-1.0, -1.0])
    cut = [PROBLEMS["max_cut"].objectives(batch, decode_cuts(batch, scores, restarts=2, seed=s))[0] for s in range(400)]
    p = 1 / (1 + np.exp(1))
    assert np.mean(cut) == pytest.approx(2 * p * (1 - p), abs=0.08)


@pytest.mark.parametrize("task", list(PROBLEMS))
def test_the_order_of_edges_does_not_matter(drawn, task):
    batch = flat(drawn("ba_small", 3))
    scores = scores_for(task, batch.num_nodes)
    expected = PROBLEMS[task].decode(batch, scores)
    shuffled = batch.edge_index[:, np.random.default_rng(0).permutation(batch.edge_index.shape[1])]
    for order in (shuffled, batch.edge_index[:, np.lexsort((batch.edge_index[1], batch.edge_index[0]))]):
        again = UndirectedGraphs.checked(batch.ptr, order.astype(np.int32))
        np.testing.assert_array_equal(PROBLEMS[task].decode(again, scores), expected)


@given(small_graphs(), st.data())
@settings(max_examples=150, deadline=None)
def test_missing_and_repeated_arcs_are_found(graph, data):
    n, edges = graph
    both = np.concatenate([edges, edges[:, ::-1]]).astype(np.int64)
    both = both[data.draw(st.permutations(range(len(both))))] if len(both) else both
    UndirectedGraphs.checked(np.array([0, n]), both.T)
    if not len(both):
        return
    arc = data.draw(st.integers(0, len(both) - 1))
    u, v = both[arc]
    with pytest.raises(DecodingError, match=f"edge {v}-{u} of graph 0 lacks"):
        UndirectedGraphs.checked(np.array([0, n]), np.delete(both, arc, axis=0).T)
    with pytest.raises(DecodingError, match=rf"edge {u}-{v} of graph 0.*twice"):
        UndirectedGraphs.checked(np.array([0, n]), np.insert(both, arc, both[arc], axis=0).T)


PATH = ([0, 2, 5], [[0, 1, 2, 3, 3, 4], [1, 0, 3, 2, 4, 3]])


@pytest.mark.parametrize(
    ("ptr", "edge_index", "message"),
    [
        (PATH[0], [[0, 1, 2, 3, 3], [1, 0, 3, 2, 4]], "edge 1-2 of graph 1 lacks its reverse"),
        (PATH[0], [[0, 1, 2, 3, 4, 4], [1, 0, 3, 2, 4, 4]], "edge 2-2 of graph 1 is a self-loop"),
        (PATH[0], [[0, 1, 0, 1], [1, 0, 1, 0]], "edge 0-1 of graph 0 is given twice"),
        (PATH[0], [[1, 2], [2, 1]], "edge 1-2 joins graph 0 to graph 1"),
        (PATH[0], [[4, 5], [5, 4]], "edge 4-5 names a node beyond the 5"),
        (PATH[0], [[-1, 0], [0, -1]], "edge -1-0 names a node beyond the 5"),
        (PATH[0], [[0, 1]], r"edge_index is int64 \[1, 2\]"),
        (PATH[0], [[0.0, 1.0], [1.0, 0.0]], "edge_index is float64"),
        ([0, 2, 2], PATH[1], r"graphs are \[0, 2, 2\]"),
        ([0], np.empty((2, 0), int), "there is at least one graph"),
    ],
)
def test_bad_graphs_are_named(ptr, edge_index, message):
    with pytest.raises(DecodingError, match=message):
        UndirectedGraphs.checked(np.array(ptr), np.array(edge_index))


def test_bad_arguments_are_named():
    batch = UndirectedGraphs.checked(np.array(PATH[0]), np.array(PATH[1]))
    nan = np.array([0, 0, 0, np.nan, 0])
    refused = [
        ("mis", np.zeros(4), {}, r"shape \[4\]; give \[5\]"),
        ("mis", np.zeros((5, 1)), {}, r"shape \[5, 1\]; give \[5\]"),
        ("coloring", np.zeros((5, 0)), {}, r"give \[5\] or \[5, colours\]"),
        ("mis", nan, {}, "node 1 of graph 1 is nan"),
        ("max_cut", np.full(5, np.inf), {}, "node 0 of graph 0 is inf"),
        ("coloring", np.stack([nan, nan], 1), {}, "node 1 of graph 1"),
        ("mis", np.zeros(5, complex), {}, "the scores are complex128"),
        ("mis", np.zeros(5), {"restarts": 0}, "restarts is 0"),
        ("max_cut", np.zeros(5), {"restarts": 2.5}, r"restarts is 2\.5"),
        ("mis", np.zeros(5), {"seed": -1}, "seed is -1"),
        ("mis", np.zeros(5), {"temperature": 0.0}, r"temperature is 0\.0"),
        ("coloring", np.zeros(5), {"num_colors": 0}, "num_colors is 0"),
        ("coloring", np.zeros(5), {"num_colors": 1}, "graph 0 is coloured with 2 colours, 1 are allowed"),
    ]
    for task, scores, options, message in refused:
        with pytest.raises(DecodingError, match=message):
            PROBLEMS[task].decode(batch, scores, **options)


def test_too_few_colours_name_the_graph():
    triangle = np.array([[0, 1], [0, 2], [1, 2]], np.int32)
    batch = flat([(3, triangle[:1]), (3, triangle), (3, triangle)])
    with pytest.raises(DecodingError, match=r"graph 1.*3 colours.*2 of 3 graphs"):
        decode_colourings(batch, np.zeros((9, 2)))
    for scores, options in ((np.zeros((9, 2)), {"num_colors": 3}), (np.zeros((9, 3)), {}), (np.zeros(9), {})):
        solution = decode_colourings(batch, scores, **options)
        np.testing.assert_array_equal(PROBLEMS["coloring"].objectives(batch, solution), [2, 3, 3])


def test_objectives_are_those_of_networkx(random_edges):
    graphs = [(n, random_edges(n, 0.3, n)) for n in range(2, 15)]
    batch, rng = flat(graphs), np.random.default_rng(0)
    side = rng.integers(0, 2, batch.num_nodes)
    cuts = PROBLEMS["max_cut"].objectives(batch, side.astype(bool))
    colours = decode_colourings(batch, rng.normal(size=batch.num_nodes)) * 7 + 2
    numbers = PROBLEMS["coloring"].objectives(batch, colours)
    for g, (n, edges) in enumerate(graphs):
        own = slice(batch.ptr[g], batch.ptr[g] + n)
        found = nx.empty_graph(n)
        found.add_edges_from(edges.tolist())
        assert cuts[g] == nx.cut_size(found, np.flatnonzero(side[own]).tolist())
        assert numbers[g] == len(set(colours[own].tolist()))


def test_infeasible_solutions_have_no_value():
    batch = UndirectedGraphs.checked(np.array(PATH[0]), np.array(PATH[1]))
    refused = [
        ("mis", [0, 0, 0, 1, 1], "edge 1-2 of graph 1 joins two members"),
        ("coloring", [0, 1, 1, 0, 0], "edge 1-2 of graph 1 joins two nodes of one colour"),
        ("mis", [0, 0, 0, 2, 0], "node 1 of graph 1 has the entry 2; give 0 to 1"),
        ("vertex_cover", [1, 1, 0, 0, 1], "edge 0-1 of graph 1 has no member of the vertex cover"),
        ("max_clique", [0, 0, 1, 1, 1], "members 0 and 2 of graph 1 are not joined"),
        ("vertex_cover", [0, 0, 0, 2, 0], "node 1 of graph 1 has the entry 2; give 0 to 1"),
        ("max_clique", [0, 0, 0, -1, 0], "node 1 of graph 1 has the entry -1; give 0 to 1"),
        ("max_cut", [-1, 0, 0, 0, 0], "node 0 of graph 0 has the entry -1"),
        ("coloring", [-1, 0, 0, 1, 0], "node 0 of graph 0 has the entry -1"),
        ("mis", [0, 0, 0, 1], r"the solution is int64 \[4\]"),
        ("mis", [0.0] * 5, "the solution is float64"),
    ]
    for task, solution, message in refused:
        with pytest.raises(DecodingError, match=message):
            PROBLEMS[task].objectives(batch, np.array(solution))
