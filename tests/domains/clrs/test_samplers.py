"""Samplers against the reference's draws, bit for bit, and against the distributions they are said to have."""

import gzip
import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.random import RandomState

from graphbench.domains.clrs import samplers, trace
from graphbench.domains.clrs.algorithm import UnknownAlgorithm
from graphbench.domains.clrs.arguments import ArgumentError
from graphbench.domains.clrs.distributions import has_collinear_triple, points_of_a_disc, truncate
from graphbench.domains.clrs.names import NAMES
from graphbench.domains.clrs.samplers import Sampler, draw, draw_multi_size, least_length, sample, sampler

GOLDEN = Path(__file__).parent / "golden"
HULLS = ("graham_scan", "jarvis_march")
MATCHERS = ("naive_string_matcher", "kmp_matcher")
UNDIRECTED = ("bfs", "articulation_points", "bridges", "mst_kruskal", "mst_prim", "dijkstra", "floyd_warshall")


def same(own, expected):
    if not isinstance(expected, np.ndarray):
        return type(own) is type(expected) and own == expected
    return own.dtype == expected.dtype and np.array_equal(own, expected)


def assert_same_arguments(own, expected, where):
    assert isinstance(own, tuple) and len(own) == len(expected), where
    assert all(map(same, own, expected)), (where, own, expected)


def graphs(algorithm, length=16, count=400, **options):
    """Return the matrices of many draws, ``[count, n, n]``."""
    return np.stack([args[0] for args in sample(algorithm, length, count, 5, **options)])


def density(graphs):
    """Return the share of joined pairs, and the share of nodes with a loop."""
    n = graphs.shape[1]
    loops = (graphs[:, range(n), range(n)] != 0).mean()
    return (graphs[:, ~np.eye(n, dtype=bool)] != 0).mean(), loops


@pytest.mark.parametrize("algorithm", NAMES)
def test_draws_are_the_reference_s(golden, algorithm):
    lengths = set()
    for number, args, *_, meta in golden("default", algorithm):
        length, seed, which = (int(meta[name]) for name in ("length", "seed", "draw"))
        found = sample(algorithm, length, which + 1, seed)
        assert_same_arguments(found[-1], args, f"{algorithm} {number}")
        lengths.add(length)
    assert lengths == {4, 7, 16}


@pytest.fixture(scope="module")
def text_lines():
    with gzip.open(GOLDEN / "text.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize("algorithm", NAMES)
def test_truncated_draws_are_the_reference_s(golden, text_lines, algorithm):
    lines = [line for line in text_lines if line["algorithm"] == algorithm and line["use_hints"]]
    lines = [line for line in lines if line["decimals"] == 3] or lines  # without floats there is nothing to cut
    dtypes = [np.asarray(value).dtype for value in next(golden("default", algorithm))[1]]
    compared = 0
    for line in lines:
        length, count, seed = line["length"], line["draw"] + 1, line["seed"]
        expected = [np.array(value, dtype) for value, dtype in zip(line["inputs"].values(), dtypes, strict=True)]
        if algorithm in HULLS:  # in these lines points are cut once and never drawn again
            if has_redraws(length, count, seed):
                continue
            expected = [truncate(values, 3) for values in expected]
        expected = [value if value.ndim else value.item() for value in expected]
        assert_same_arguments(sample(algorithm, length, count, seed, 3)[-1], expected, line["index"])
        compared += 1
    assert compared >= 8


def has_redraws(length, count, seed):
    """Return whether points cut to three decimals are drawn again in the first draws of a hull."""
    return any(
        has_collinear_triple(truncate(xs, 3), truncate(ys, 3), 1e-12)
        for xs, ys in sample("graham_scan", length, count, seed)
    )


@pytest.mark.parametrize("algorithm", NAMES)
def test_fewer_samples_are_the_start_of_more(algorithm):
    many, few = sample(algorithm, 9, 12, 7), sample(algorithm, 9, 5, 7)
    assert (len(many), len(few)) == (12, 5)
    for index, (own, expected) in enumerate(zip(few, many, strict=False)):
        assert_same_arguments(own, expected, index)
    assert any(not same(a, b) for a, b in zip(many[0], many[1], strict=True))
    assert any(not same(a, b) for a, b in zip(many[0], sample(algorithm, 9, 1, 8)[0], strict=True))
    assert sample(algorithm, 9, 0, 7) == []


@pytest.mark.parametrize("algorithm", NAMES)
def test_draws_from_one_generator_are_the_samples_of_its_seed(algorithm):
    rng = RandomState(3)
    for index, expected in enumerate(sample(algorithm, 8, 4, 3)):
        assert_same_arguments(draw(algorithm, 8, rng), expected, index)


@pytest.mark.parametrize("algorithm", NAMES)
def test_algorithms_take_the_shortest_draws(algorithm):
    least = least_length(algorithm)
    for args in sample(algorithm, least, 30, 0):
        trace(algorithm, *args)
    with pytest.raises(ArgumentError, match=f"length of {algorithm} is {least - 1}.*{least} or more"):
        sample(algorithm, least - 1, 1, 0)


@pytest.mark.parametrize("algorithm", UNDIRECTED)
def test_pairs_are_joined_with_the_square_of_the_probability(algorithm):
    p = 0.2 if algorithm in ("articulation_points", "bridges", "mst_kruskal") else 0.5
    drawn = graphs(algorithm)
    joined, loops = density(drawn)
    np.testing.assert_array_equal(drawn, drawn.transpose(0, 2, 1))
    assert joined == pytest.approx(p**2, abs=0.01)
    assert loops == pytest.approx(p, abs=0.02)
    assert density(graphs(algorithm, edge_probability=0.8))[0] == pytest.approx(0.64, abs=0.01)


def test_directed_graphs_keep_loops_and_acyclic_ones_are_relabelled():
    joined, loops = density(graphs("dfs"))
    assert joined == pytest.approx(0.5, abs=0.01) and loops == pytest.approx(0.5, abs=0.02)
    for algorithm in ("topological_sort", "dag_shortest_paths"):
        drawn = graphs(algorithm)
        joined, loops = density(drawn)
        assert loops == 0 and joined == pytest.approx(0.25, abs=0.01)
        assert (np.tril(drawn) != 0).any() and (np.triu(drawn) != 0).any()
        assert all(not np.linalg.matrix_power((graph != 0).astype(float), 16).any() for graph in drawn)


def test_weights_of_undirected_graphs_are_symmetrised_and_those_of_acyclic_ones_uniform():
    weights = graphs("dijkstra")
    weights = weights[:, np.triu(np.ones((16, 16), bool), 1)]
    weights = weights[weights > 0]
    assert weights.min() >= np.sqrt(1e-3) and weights.max() < np.sqrt(1.001)
    assert (weights**2 - 1e-3).mean() == pytest.approx(1 / 4, abs=0.01)  # a product of two uniform numbers
    weights = graphs("dag_shortest_paths")
    weights = weights[weights > 0]
    assert weights.mean() == pytest.approx(1 / 2, abs=0.01) and weights.var() == pytest.approx(1 / 12, abs=0.005)


def test_sources_are_uniform():
    for algorithm in ("bfs", "mst_prim", "bellman_ford", "dijkstra", "dag_shortest_paths"):
        counts = np.bincount([args[1] for args in sample(algorithm, 4, 2000, 1)], minlength=4)
        assert counts.min() > 430 and len(counts) == 4


def test_strongly_connected_components_lie_in_communities():
    drawn = graphs("strongly_connected_components", count=300)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    joined, loops = density(drawn)
    inside = 4 * 4 * 3 / 240  # ordered pairs in four communities of four
    expected = inside * 0.5 + (1 - inside) / 2 * 0.01  # half of the other pairs may be joined
    assert joined == pytest.approx(expected, abs=0.005) and loops == pytest.approx(0.5, abs=0.02)
    for graph in drawn:
        paths = np.linalg.matrix_power(np.eye(16) + graph, 16) > 0
        assert (paths & paths.T).sum(axis=1).max() <= 4
    (lopsided,) = sample("strongly_connected_components", 7, 1, 0, edge_probability=1.0)
    sizes = np.sort((lopsided[0] + lopsided[0].T > 0).sum(axis=0))
    assert sizes[-4:].min() >= 4  # the last community has 1 + 3 nodes


def test_lists():
    for (keys,) in sample("find_maximum_subarray_kadane", 64, 20, 0):
        assert keys.min() < -0.5 and keys.max() > 0.5 and abs(keys).max() <= 1
    for target, keys in sample("binary_search", 64, 20, 0):
        assert 0 <= target < 1 and (np.diff(keys) >= 0).all()
    for p, q in sample("optimal_bst", 10, 20, 0):
        assert (len(p), len(q)) == (10, 11) and p.sum() + q.sum() == pytest.approx(1)
    for start, finish in sample("activity_selector", 10, 20, 0):
        assert (start <= finish).all()
    deadlines = np.concatenate([deadlines for deadlines, _ in sample("task_scheduling", 10, 200, 0)])
    assert set(deadlines) == set(range(1, 11))


def test_strings():
    for x, y in sample("lcs_length", 9, 20, 0):
        assert (len(x), len(y)) == (5, 4)
    letters = np.concatenate([x for x, _ in sample("lcs_length", 40, 200, 0)])
    assert np.bincount(letters).min() > 900 and letters.max() == 3


@pytest.mark.parametrize("algorithm", MATCHERS)
@pytest.mark.parametrize("length, size", [(3, 1), (4, 1), (5, 1), (9, 1), (10, 2), (16, 3), (64, 12)])
def test_needles_are_a_fifth_and_stand_in_the_haystack(algorithm, length, size):
    starts = set()
    for haystack, needle in sample(algorithm, length, 200, 0):
        assert (len(haystack), len(needle)) == (length - size, size)
        windows = np.lib.stride_tricks.sliding_window_view(haystack, size)
        starts.add(int((windows == needle).all(axis=1).nonzero()[0][0]))
    assert min(starts) == 0 and max(starts) <= length - 2 * size


def test_needle_lengths_can_be_given():
    sizes = [len(needle) for _, needle in sample("kmp_matcher", 20, 400, 0, needle_length=(2, 4))]
    assert set(sizes) == {2, 3, 4}
    assert {len(needle) for _, needle in sample("kmp_matcher", 20, 5, 0, needle_length=7)} == {7}
    with pytest.raises(ArgumentError, match=r"needle_length 8.*length 16.*7 or less.*17"):
        sample("kmp_matcher", 16, 1, 0, needle_length=(1, 8))
    with pytest.raises(ArgumentError, match="needle_length is 0"):
        sample("kmp_matcher", 16, 1, 0, needle_length=0)
    with pytest.raises(ArgumentError, match="the pair of the shortest and the longest"):
        sample("kmp_matcher", 16, 1, 0, needle_length=(1, 2, 3))


def test_half_of_the_segments_cross_whatever_the_length():
    crossing = []
    for xs, ys in sample("segments_intersect", 16, 600, 0):
        assert xs.shape == ys.shape == (4,) and xs.min() >= 0 and ys.max() < 1
        a, b, c, d = np.stack([xs, ys], axis=1)
        along_first, along_second = np.linalg.solve(np.stack([b - a, c - d], axis=1), c - a)
        crossing.append(0 < along_first < 1 and 0 < along_second < 1)
    assert np.mean(crossing) == pytest.approx(0.5, abs=0.06)
    assert_same_arguments(sample("segments_intersect", 4, 1, 0)[0], sample("segments_intersect", 99, 1, 0)[0], "")


def test_points_are_uniform_over_a_disc_of_radius_two():
    xs, ys = (np.concatenate(values) for values in zip(*sample("graham_scan", 16, 300, 0), strict=True))
    distances = np.hypot(xs, ys)
    assert distances.max() <= 2 and distances.max() > 1.95
    assert (distances < 1).mean() == pytest.approx(1 / 4, abs=0.02)
    assert abs(xs.mean()) < 0.05 and abs(ys.mean()) < 0.05


@pytest.mark.parametrize("algorithm", HULLS)
def test_points_are_drawn_again_while_three_are_on_a_line(algorithm):
    redrawn = 0
    for seed in range(40):
        ((xs, ys),) = sample(algorithm, 6, 1, seed, decimals=1)
        ((whole_xs, whole_ys),) = sample(algorithm, 6, 1, seed)
        if has_collinear_triple(truncate(whole_xs, 1), truncate(whole_ys, 1), 1e-12):
            redrawn += 1
            assert abs(xs - whole_xs).max() > 0.2
        else:
            np.testing.assert_array_equal(xs, truncate(truncate(whole_xs, 1), 1))
            np.testing.assert_array_equal(ys, truncate(truncate(whole_ys, 1), 1))
    assert 0 < redrawn < 40
    with pytest.raises(ArgumentError, match="1000 draws of 16 points cut to 0 decimals"):
        sample(algorithm, 16, 1, 0, decimals=0)


def test_points_cut_once_have_no_three_on_a_line():
    rng = RandomState(0)
    for _ in range(100):
        xs, ys = points_of_a_disc(7, rng, 1)
        tenths = [(round(10 * x), round(10 * y)) for x, y in zip(xs, ys, strict=True)]
        for (ax, ay), (bx, by), (cx, cy) in combinations(tenths, 3):
            assert (bx - ax) * (cy - ay) != (by - ay) * (cx - ax)


@pytest.mark.parametrize("on_a_line", [(0, 1, 2), (0, 3, 4), (2, 3, 4)])
def test_any_collinear_triple_is_found(on_a_line):
    xs, ys = np.array([0.0, 1.0, 4.0, 9.0, 16.0]), np.array([0.0, 1.0, 16.0, 81.0, 256.0])
    assert not has_collinear_triple(xs, ys, 1e-12)
    for place, node in enumerate(on_a_line):
        xs[node], ys[node] = 20 + place, 30 - 2 * place
    assert has_collinear_triple(xs, ys, 1e-12)


def test_floats_are_cut_towards_zero_and_whole_numbers_are_left():
    ((keys,),) = sample("find_maximum_subarray_kadane", 8, 1, 0, decimals=2)
    ((whole,),) = sample("find_maximum_subarray_kadane", 8, 1, 0)
    assert (keys < 0).any()
    np.testing.assert_array_equal(keys, np.sign(whole) * np.floor(abs(whole) * 100) / 100)
    assert type(sample("binary_search", 4, 1, 0, decimals=1)[0][0]) is float
    assert_same_arguments(sample("bfs", 6, 1, 0, decimals=1)[0], sample("bfs", 6, 1, 0)[0], "bfs")


@pytest.mark.parametrize("algorithm", NAMES)
def test_multi_size_draws_can_be_repeated(algorithm):
    for length in (20,) if algorithm in MATCHERS else (4, 7, 11, 13, 16):
        assert_same_arguments(
            draw_multi_size(algorithm, length, RandomState([1, 2])),
            draw_multi_size(algorithm, length, RandomState([1, 2])),
            length,
        )


@pytest.mark.parametrize("algorithm, mean", [("dfs", 0.5), ("bridges", 0.25), ("mst_kruskal", 0.25), ("mst_prim", 0.5)])
def test_multi_size_graphs_draw_their_edge_probability(algorithm, mean):
    rng = RandomState(0)
    loops = [np.diagonal(draw_multi_size(algorithm, 32, rng)[0]).astype(bool).mean() for _ in range(1000)]
    assert np.mean(loops) == pytest.approx(mean, abs=0.02)
    spread = np.var(np.arange(1, 10) / 10) * (2 * mean) ** 2
    sampling = np.mean([p * (1 - p) / 32 for p in np.arange(1, 10) / 10 * 2 * mean])
    assert np.var(loops) == pytest.approx(spread + sampling, rel=0.15)


@pytest.mark.parametrize("algorithm", MATCHERS)
@pytest.mark.parametrize("length, longest", [(20, 8), (17, 8), (16, 7), (3, 1)])
def test_multi_size_needles_have_one_to_eight_letters(algorithm, length, longest):
    rng = RandomState(0)
    sizes = [len(draw_multi_size(algorithm, length, rng)[1]) for _ in range(300)]
    assert set(sizes) == set(range(1, longest + 1))


def test_multi_size_keeps_the_default_distribution_of_all_else():
    rng = RandomState(6)
    for expected in sample("heapsort", 7, 3, 6):
        assert_same_arguments(draw_multi_size("heapsort", 7, rng), expected, "heapsort")


def test_several_probabilities_are_drawn_from_and_one_alone_costs_no_draw():
    assert {density(graph[None])[0] for graph in graphs("dfs", count=50, edge_probability=(0, 1))} == {0, 1}
    np.testing.assert_array_equal(graphs("dfs", count=3, edge_probability=[0.5]), graphs("dfs", count=3))
    np.testing.assert_array_equal(graphs("dfs", count=3, edge_probability=None), graphs("dfs", count=3))
    np.testing.assert_array_equal(
        graphs("dfs", count=3, edge_probability=np.array([0.3, 0.6])),
        graphs("dfs", count=3, edge_probability=(0.3, 0.6)),
    )


@pytest.mark.parametrize("call", [lambda n: sample(n, 4, 1, 0), lambda n: draw(n, 4, RandomState(0)), least_length])
def test_unknown_algorithms_are_told(call):
    with pytest.raises(UnknownAlgorithm, match="did you mean 'bfs'"):
        call("bsf")


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        (("bfs", 4.0, 1, 0), {}, "length of bfs is 4.0.*2"),
        (("bfs", True, 1, 0), {}, "length of bfs is True"),
        (("bfs", "4", 1, 0), {}, "length of bfs is '4'"),
        (("kmp_matcher", 2, 1, 0), {}, "length of kmp_matcher is 2.*3"),
        (("strongly_connected_components", 3, 1, 0), {}, "is 3; give a whole number, 4 or more"),
        (("bfs", 4, -1, 0), {}, "count is -1.*0"),
        (("bfs", 4, 1.5, 0), {}, "count is 1.5"),
        (("bfs", 4, 1, -1), {}, "seed is -1.*0 to 4294967295"),
        (("bfs", 4, 1, None), {}, "seed is None"),
        (("bfs", 4, 1, 0), {"decimals": -1}, "decimals is -1.*0 to 15"),
        (("bfs", 4, 1, 0), {"decimals": 2.5}, "decimals is 2.5"),
        (("bfs", 4, 1, 0), {"needle_length": 3}, "bfs has no option 'needle_length'.*edge_probability"),
        (("heapsort", 4, 1, 0), {"p": 3}, "heapsort has no option 'p'.*options"),
        (("graham_scan", 4, 1, 0), {"p": 3}, "graham_scan has no option 'p'.*options"),
        (("bfs", 4, 1, 0), {"edge_probability": 1.5}, r"edge_probability is 1\.5.*0 to 1"),
        (("bfs", 4, 1, 0), {"edge_probability": "half"}, "edge_probability is 'half'"),
        (("bfs", 4, 1, 0), {"edge_probability": (2.0,)}, r"edge_probability is 2\.0"),
        (("bfs", 4, 1, 0), {"edge_probability": ()}, "edge_probability is empty"),
    ],
)
def test_bad_requests_are_told(arguments, options, message):
    with pytest.raises(ArgumentError, match=message):
        sample(*arguments, **options)


def test_other_generators_are_told():
    with pytest.raises(ArgumentError, match=r"rng.*numpy\.random\.RandomState"):
        draw("bfs", 4, np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="length of kmp_matcher is 2"):
        draw_multi_size("kmp_matcher", 2, RandomState(0))


def test_one_more_algorithm_adds_one_sampler(monkeypatch):
    monkeypatch.setattr(samplers, "_SAMPLERS", dict(samplers._SAMPLERS))

    @sampler("doubling", least=1)
    def numbers(length, rng, *, scale=2):
        return (scale * rng.random_sample(length),)

    assert samplers._SAMPLERS["doubling"] == Sampler(numbers, 1, ("scale",))
    ((own,),), ((keys,),) = sample("doubling", 3, 1, 4, scale=8), sample("heapsort", 3, 1, 4)
    np.testing.assert_array_equal(own, 8 * keys)
    assert least_length("doubling") == 1


def test_an_algorithm_without_a_sampler_is_told(monkeypatch):
    monkeypatch.setattr(samplers, "_SAMPLERS", {})
    with pytest.raises(ArgumentError, match=r"algorithm 'bfs'.*@sampler\('bfs'"):
        sample("bfs", 4, 1, 0)
