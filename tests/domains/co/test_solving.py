import networkx as nx
import numpy as np
import pytest

from graphbench.core.errors import MissingDependency
from graphbench.domains.co.problems import PROBLEMS
from graphbench.domains.co.solvers import Label, checked_edges
from graphbench.domains.co.solving import SOLVERS

PENTAGON = np.array([[0, 1], [0, 4], [1, 2], [2, 3], [3, 4]], np.int32)


def label(value, solution, bound):
    return Label(value, np.array(solution, np.int32), bound, "test")


@pytest.mark.parametrize(
    ("task", "good", "bad"),
    [
        (
            "mis",
            label(2, [1, 0, 1, 0, 0], 2),
            [
                (label(2, [1, 1, 0, 0, 0], 2), "members 0 and 1 are joined"),
                (label(1, [1, 0, 0, 0, 0], 2), "node 2 could join"),
                (label(3, [1, 0, 1, 0, 0], 3), "given as 3 but is 2"),
                (label(2, [1, 0, 1, 0, 0], 1), "bound 1 rules out"),
                (label(2, [1, 0, 1, 0], 2), "shape"),
                (label(2, [1, 0, 2, 0, 0], 2), "entry 2"),
            ],
        ),
        (
            "max_cut",
            label(4, [0, 1, 0, 1, 0], 4),
            [
                (label(2, [0, 1, 0, 0, 0], 4), "moving node 3"),
                (label(5, [0, 1, 0, 1, 0], 5), "given as 5 but is 4"),
                (label(4, [0, 1, 0, 1, 0], 3), "bound 3 rules out"),
                (label(4, [0, -1, 0, 1, 0], 4), "entry -1"),
            ],
        ),
        (
            "coloring",
            label(3, [0, 1, 0, 1, 2], 3),
            [
                (label(2, [0, 1, 0, 1, 0], 2), "nodes 0 and 4 are joined"),
                (label(3, [0, 1, 0, 1, 3], 3), "without gaps"),
                (label(4, [0, 1, 0, 1, 2], 3), "given as 4 but is 3"),
                (label(3, [0, 1, 0, 1, 2], 4), "bound 4 rules out"),
                (label(3, [0, 1, 0, 1, 5], 3), "entry 5"),
            ],
        ),
        (
            "vertex_cover",
            label(3, [1, 0, 1, 0, 1], 3),
            [
                (label(2, [1, 0, 1, 0, 0], 2), "edge between 3 and 4 has no member"),
                (label(4, [1, 1, 1, 0, 1], 3), "node 0 could leave"),
                (label(2, [1, 0, 1, 0, 1], 2), "given as 2 but is 3"),
                (label(3, [1, 0, 1, 0, 1], 4), "bound 4 rules out"),
                (label(3, [1, 0, 1, 0, 3], 3), "entry 3"),
            ],
        ),
        (
            "max_clique",
            label(2, [1, 1, 0, 0, 0], 2),
            [
                (label(3, [1, 1, 1, 0, 0], 3), "members 0 and 2 are not joined"),
                (label(1, [1, 0, 0, 0, 0], 2), "node 1 could join"),
                (label(3, [1, 1, 0, 0, 0], 3), "given as 3 but is 2"),
                (label(2, [1, 1, 0, 0, 0], 1), "bound 1 rules out"),
            ],
        ),
    ],
)
def test_checkers(task, good, bad):
    check = SOLVERS[task].check
    assert check(5, PENTAGON, good) == []
    for wrong, message in bad:
        assert any(message in problem for problem in check(5, PENTAGON, wrong)), message


@pytest.mark.parametrize("name", list(SOLVERS))
def test_baselines_are_solutions_and_no_better_than_solvers(drawn, name):
    task = SOLVERS[name]
    sign = 1 if PROBLEMS[name].maximise else -1
    for family in ("ba_small", "er_small", "rb_small"):
        values = []
        for n, edges in drawn(family, 4):
            solved, greedy = task.solve(n, edges), task.greedy(n, edges)
            random = [task.random(n, edges, seed) for seed in range(3)]
            for other in (greedy, *random):
                problems = task.check(n, edges, other)
                assert [p for p in problems if "moving node" not in p] == []
            values.append([sign * x.value for x in (random[0], greedy, solved)])
            np.testing.assert_array_equal(random[0].solution, task.random(n, edges, 0).solution)
            assert not np.array_equal(random[0].solution, random[1].solution)
        random_mean, greedy_mean, solved_mean = np.mean(values, axis=0)
        assert random_mean < greedy_mean <= solved_mean


@pytest.mark.parametrize("name", list(SOLVERS))
def test_baselines_on_small_graphs(atlas, name):
    task = SOLVERS[name]
    for n, edges in atlas[::5]:
        for other in (task.greedy(n, edges), task.random(n, edges, 1)):
            assert [p for p in task.check(n, edges, other) if "moving node" not in p] == []


def test_greedy_is_exact_on_stars():
    n, edges = 9, np.array([[0, v] for v in range(1, 9)], np.int32)
    assert [task.greedy(n, edges).value for task in SOLVERS.values()] == [8, 8, 2, 1, 2]


@pytest.mark.parametrize("name", list(SOLVERS))
def test_solvers_report_their_time_and_effort(name):
    solved = SOLVERS[name].solve(5, PENTAGON)
    assert solved.seconds > 0
    assert solved.effort
    assert SOLVERS[name].effort().model_dump()


@pytest.mark.parametrize(
    ("num_nodes", "edges", "message"),
    [
        (0, [], "0 nodes"),
        (3, [[0, 1, 2]], "shape"),
        (3, [[0, 3]], "nodes 0 to 3 of a graph of 3"),
        (3, [[-1, 2]], "nodes -1 to 2"),
        (3, [[1, 0]], "sorted pairs"),
        (3, [[0, 2], [0, 1]], "sorted pairs"),
        (3, [[0, 1], [0, 1]], "sorted pairs"),
    ],
)
def test_wrong_graphs(num_nodes, edges, message):
    with pytest.raises(ValueError, match=message):
        checked_edges(num_nodes, np.array(edges, np.int64).reshape(len(edges), -1 if edges else 2))
    if num_nodes:
        with pytest.raises(ValueError, match=message):
            SOLVERS["mis"].solve(num_nodes, np.array(edges))


@pytest.mark.parametrize("algorithm", ["redumis", "branch_reduce", "chils", "online_mis"])
def test_kamis(drawn, algorithm):
    pytest.importorskip("chszlablib")
    from graphbench.domains.co.external import kamis_independent_set

    n, edges = drawn("ba_small", 1)[0]
    theirs = kamis_independent_set(n, edges, algorithm, seconds=0.2)
    assert SOLVERS["mis"].check(n, edges, theirs) == []
    assert theirs.value <= SOLVERS["mis"].solve(n, edges).value
    if algorithm == "branch_reduce":
        assert theirs.value == SOLVERS["mis"].solve(n, edges).value
    with pytest.raises(ValueError, match="give one of redumis"):
        kamis_independent_set(n, edges, "kamis")


def test_gcol(edges_of):
    pytest.importorskip("gcol")
    from graphbench.domains.co.external import gcol_colouring

    edges = edges_of(nx.gnp_random_graph(40, 0.3, seed=1))
    theirs, again = gcol_colouring(40, edges, 200, seed=3), gcol_colouring(40, edges, 200, seed=3)
    assert SOLVERS["coloring"].check(40, edges, theirs) == []
    np.testing.assert_array_equal(theirs.solution, again.solution)
    exact = gcol_colouring(40, edges, algorithm=1)
    ours = SOLVERS["coloring"].solve(40, edges)
    assert ours.bound <= exact.value <= ours.value <= theirs.value


@pytest.mark.parametrize("solver", ["scip", "highs"])
def test_integer_programs(random_edges, solver):
    external = pytest.importorskip("graphbench.domains.co.external")
    for edges in (random_edges(14, 0.4, 1), np.empty((0, 2), np.int32)):
        try:
            theirs = getattr(external, f"{solver}_cut")(14, edges, 30.0)
        except MissingDependency as error:
            pytest.skip(str(error))
        assert [p for p in SOLVERS["max_cut"].check(14, edges, theirs) if "moving node" not in p] == []
        assert theirs.proved
        assert theirs.value == SOLVERS["max_cut"].solve(14, edges).value


def test_missing_solvers_are_named(monkeypatch):
    from graphbench.domains.co import external

    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr(external.importlib, "import_module", refuse)
    with pytest.raises(MissingDependency, match=r"gcol.*'graphbench\[solvers\]'"):
        external.gcol_colouring(3, np.array([[0, 1]]))
    monkeypatch.setitem(external.sys.modules, "ortools", external)
    with pytest.raises(MissingDependency, match="import highspy first"):
        external.highs_cut(3, np.array([[0, 1]]))


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 1.7]], "edges are float64; give whole numbers"),
        ([[0, 2**32 + 1]], "0 to 4294967297.*3 nodes"),
        ([[1, 1]], "node 1 is joined to itself"),
        ([[1, 0]], "not sorted pairs"),
        ([[0, 1], [0, 1]], "each once"),
    ],
)
@pytest.mark.parametrize("task", SOLVERS)
def test_edges_are_checked_before_they_are_cast(task, edges, message):
    with pytest.raises(ValueError, match=message):
        SOLVERS[task].solve(3, np.array(edges))


@pytest.mark.parametrize("seconds", [-1, 0, float("nan"), float("inf"), "a", True])
@pytest.mark.parametrize("solver", ["kamis_independent_set", "scip_cut", "highs_cut"])
def test_limits_of_time_are_numbers_above_0(solver, seconds):
    from graphbench.domains.co import external

    try:
        with pytest.raises(ValueError, match=f"seconds = {seconds!r}; give a number above 0"):
            getattr(external, solver)(3, np.array([[0, 1]]), seconds=seconds)
    except MissingDependency as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("seed", range(12))
def test_cliques_and_covers_are_those_of_networkx(seed):
    """An independent solver of cliques, and of covers by the sets of the complement."""
    graph = nx.gnp_random_graph(18 + seed, 0.1 + 0.07 * seed, seed=seed)
    edges = np.array(sorted(tuple(sorted(edge)) for edge in graph.edges), np.int32).reshape(-1, 2)
    clique = SOLVERS["max_clique"].solve(len(graph), edges)
    cover = SOLVERS["vertex_cover"].solve(len(graph), edges)
    assert clique.proved and clique.value == nx.max_weight_clique(graph, weight=None)[1]
    assert cover.proved and cover.value == len(graph) - nx.max_weight_clique(nx.complement(graph), weight=None)[1]
    assert SOLVERS["max_clique"].check(len(graph), edges, clique) == []
    assert SOLVERS["vertex_cover"].check(len(graph), edges, cover) == []
