from functools import lru_cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.domains.clrs import trace
from graphbench.domains.clrs.arguments import ArgumentError
from graphbench.domains.clrs.tracing import run_all

DIAGONAL, UP, LEFT, NONE = range(4)
many = settings(max_examples=60, deadline=None)
some = settings(max_examples=30, deadline=None)


@lru_cache
def trees(first, last):
    """All binary trees with the inner nodes first .. last - 1 in order: (root, left, right), None for a leaf."""
    if first == last:
        return [None]
    return [(r, a, b) for r in range(first, last) for a in trees(first, r) for b in trees(r + 1, last)]


# Matrix chains: a product of the matrices i .. j is a tree whose inner nodes are its splits i .. j - 1

few_dimensions = st.lists(st.integers(1, 3).map(float), min_size=2, max_size=7)
dimensions = st.one_of(few_dimensions, st.lists(st.integers(1, 60).map(float), min_size=2, max_size=7)).map(np.array)


def cost_of_product(p, i, j, tree):
    """The multiplications of a tree, split by split: exact, as all are small whole numbers."""
    if tree is None:
        return 0
    split, left, right = tree
    own = p[i - 1] * p[split] * p[j]
    return own + cost_of_product(p, i, split, left) + cost_of_product(p, split + 1, j, right)


def least_costs(p):
    costs = np.zeros((len(p), len(p)))
    for i, j in combinations(range(1, len(p)), 2):
        costs[i, j] = min(cost_of_product(p, i, j, tree) for tree in trees(i, j))
    return costs


def tree_of_splits(s, i, j):
    """The tree that the splits say; fails where one is not inside its product."""
    if i == j:
        return None
    assert i <= s[i, j] < j
    return int(s[i, j]), tree_of_splits(s, i, s[i, j]), tree_of_splits(s, s[i, j] + 1, j)


@many
@given(dimensions)
def test_splits_give_the_cheapest_of_all_products(p):
    s, costs = trace("matrix_chain_order", p).outputs["s"], least_costs(p)
    for i, j in combinations(range(1, len(p)), 2):
        assert cost_of_product(p, i, j, tree_of_splits(s, i, j)) == costs[i, j]
    above = np.triu(np.ones(s.shape, bool), 1)
    above[0] = False
    assert not s[~above].any()


@some
@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=7).map(np.array))
def test_splits_are_the_cheapest_of_fractions_too(p):
    s, costs = trace("matrix_chain_order", p).outputs["s"], least_costs(p)
    for i, j in combinations(range(1, len(p)), 2):
        assert cost_of_product(p, i, j, tree_of_splits(s, i, j)) == pytest.approx(costs[i, j], rel=1e-12)


def after_a_round(p, costs, splits):
    """Costs, infinite where unknown, and splits: the first of the cheapest, where that is cheaper than before."""
    new_costs, new_splits = costs.copy(), splits.copy()
    for i, j in combinations(range(1, len(p)), 2):
        cost, k = min((costs[i, k] + costs[k + 1, j] + p[i - 1] * p[k] * p[j], k) for k in range(i, j))
        if cost < costs[i, j]:
            new_costs[i, j], new_splits[i, j] = cost, k
    return new_costs, new_splits


@many
@given(dimensions)
def test_every_round_improves_on_the_one_before(p):
    found = trace("matrix_chain_order", p)
    hints, n, least = found.hints, len(p), least_costs(p)
    i, j = np.indices((n, n))
    costs, splits = np.where((i == j) & (i > 0), 0, np.inf), np.zeros((n, n), int)
    for step, (m, s_h, msk) in enumerate(zip(hints["m"], hints["s_h"], hints["msk"], strict=True)):
        np.testing.assert_array_equal(m, np.where(np.isfinite(costs), costs, 0))
        np.testing.assert_array_equal(msk, np.isfinite(costs))
        np.testing.assert_array_equal(s_h, splits)
        done = (i >= 1) & (j >= i) & (j - i <= step)
        np.testing.assert_array_equal(costs[done], least[done])
        before = costs
        costs, splits = after_a_round(p, costs, splits)
        assert (costs == before).all() == (step == len(hints["m"]) - 1)
    np.testing.assert_array_equal(splits, found.outputs["s"])
    np.testing.assert_array_equal(hints["pred_h"], np.tile([0, *range(n - 1)], (len(hints["m"]), 1)))


def test_two_dimensions_are_one_matrix():
    found = trace("matrix_chain_order", [2, 3])
    assert len(found.hints["m"]) == 1 and not found.outputs["s"].any()


@many
@given(st.lists(st.integers(0, 2).map(float), min_size=2, max_size=7).map(np.array))
def test_splits_are_splits_or_0_where_products_cost_nothing(p):
    s = trace("matrix_chain_order", p).outputs["s"]
    for i, j in combinations(range(1, len(p)), 2):
        assert s[i, j] or (j - i > 1 and not p.all())
        if s[i, j]:
            tree_of_splits(s, i, j)


# Longest common subsequences

letters = st.integers(0, 3)


@st.composite
def strings(draw, longest):
    of = draw(st.sampled_from([st.just(2), st.integers(0, 1), letters]))
    return tuple(np.array(draw(st.lists(of, min_size=1, max_size=longest))) for _ in range(2))


def is_subsequence(word, text):
    rest = iter(text)
    return all(letter in rest for letter in word)


def longest_common(x, y):
    """The length of the longest of all subsequences of ``x`` that ``y`` has too."""
    return next(k for k in range(len(x), -1, -1) if any(is_subsequence(word, y) for word in combinations(x, k)))


def block(edges, x, y):
    return edges[: len(x), len(x) : len(x) + len(y)]


def word_on_the_way_back(x, y, b):
    """The letters at the diagonal steps on the way from the last letters back."""
    word, i, j = [], len(x) - 1, len(y) - 1
    while i >= 0 and j >= 0:
        if b[i, j] == DIAGONAL:
            assert x[i] == y[j]
            word.append(int(x[i]))
        i, j = i - (b[i, j] in (DIAGONAL, UP)), j - (b[i, j] in (DIAGONAL, LEFT))
    return word[::-1]


@many
@given(strings(longest=6))
def test_way_back_spells_the_longest_of_all_subsequences(pair):
    x, y = (string.tolist() for string in pair)
    found = trace("lcs_length", *pair)
    b = block(found.outputs["b"].argmax(-1), x, y)
    c = block(found.hints["c"][-1], x, y)
    for i in range(len(x)):
        for j in range(len(y)):
            word = word_on_the_way_back(x[: i + 1], y[: j + 1], b)
            assert is_subsequence(word, x[: i + 1]) and is_subsequence(word, y[: j + 1])
            assert len(word) == c[i, j] == longest_common(x[: i + 1], y[: j + 1])


def directions(x, y, c):
    """Where every length comes from; of equal ones, from above. Letters before the first have none to come from."""
    expected = np.empty((len(x), len(y)), int)
    for i in range(len(x)):
        for j in range(len(y)):
            above, before = (c[i - 1, j] if i else -1), (c[i, j - 1] if j else -1)
            first_row = LEFT if before == 1 else UP  # up where nothing agrees yet
            expected[i, j] = DIAGONAL if x[i] == y[j] else first_row if i == 0 else UP if above >= before else LEFT
    return expected


@many
@given(strings(longest=12))
def test_directions_follow_from_the_lengths(pair):
    x, y = pair
    found = trace("lcs_length", x, y)
    lengths = [block(c, x, y) for c in found.hints["c"]]
    steps = [block(b, x, y).argmax(-1) for b in found.hints["b_h"]]
    np.testing.assert_array_equal(block(found.outputs["b"].argmax(-1), x, y), directions(x, y, lengths[-1]))
    np.testing.assert_array_equal(steps[0][1:, 1:], DIAGONAL)
    np.testing.assert_array_equal(steps[0][0], directions(x, y, lengths[0])[0])
    np.testing.assert_array_equal(steps[0][:, 0], directions(x, y, lengths[0])[:, 0])
    for step in range(1, len(steps)):
        np.testing.assert_array_equal(steps[step], directions(x, y, lengths[step - 1]))


@many
@given(strings(longest=12))
def test_lengths_are_known_from_the_start_on(pair):
    x, y = pair
    c = trace("lcs_length", x, y).hints["c"]
    n = len(x) + len(y)
    i, j = np.indices((len(x), len(y)))
    last = block(c[-1], x, y)
    for step, lengths in enumerate(c):
        outside = lengths.copy()
        outside[: len(x), len(x) :] = 0
        assert not outside.any() and lengths.shape == (n, n)
        known = (i == 0) | (j == 0) | (i + j <= step + 1)
        np.testing.assert_array_equal(block(lengths, x, y)[known], last[known])
        if step:
            assert (lengths != c[step - 1]).any()
        else:
            assert not lengths[1 : len(x), len(x) + 1 :].any()


@some
@given(strings(longest=8))
def test_edges_between_letters_of_one_string_are_masked(pair):
    x, y = pair
    found = trace("lcs_length", x, y)
    for b in (found.outputs["b"], *found.hints["b_h"]):
        between = np.zeros(b.shape[:2], bool)
        between[: len(x), len(x) :] = True
        assert (b[~between] == [0, 0, 0, -1]).all()
        assert (b[between].sum(-1) == 1).all() and not b[between][:, NONE].any()


@some
@given(strings(longest=8))
def test_strings_are_two_lists_of_nodes(pair):
    x, y = pair
    found = trace("lcs_length", x, y)
    assert found.inputs["string"].tolist() == [0] * len(x) + [1] * len(y)
    assert found.inputs["key"].argmax(-1).tolist() == [*x.tolist(), *y.tolist()]
    assert found.inputs["pos"].tolist() == [k / len(s) for s in (x, y) for k in range(len(s))]
    order = [0, *range(len(x) - 1), len(x), *range(len(x), len(x) + len(y) - 1)]
    assert all(pred.tolist() == order for pred in found.hints["pred_h"])


# Optimal search trees

exact = st.integers(0, 64).map(lambda share: share / 64)  # sums of a few are exact
ties = st.sampled_from([0.0, 0.125])


@st.composite
def probabilities(draw):
    n, share = draw(st.integers(1, 6)), draw(st.sampled_from([exact, ties]))
    return tuple(np.array(draw(st.lists(share, min_size=k, max_size=k))) for k in (n, n + 1))


def expected_depth(p, q, i, j, tree, depth=1):
    """The expected number of nodes on the way to keys i .. j - 1 and the gaps i .. j."""
    if tree is None:
        return depth * q[i]
    root, left, right = tree
    below = expected_depth(p, q, i, root, left, depth + 1) + expected_depth(p, q, root + 1, j, right, depth + 1)
    return depth * p[root] + below


def best_trees(p, q, i, j):
    """The least cost, and the first root of a tree that has it."""
    return min((expected_depth(p, q, i, j, tree), tree[0] if tree else 0) for tree in trees(i, j))


@many
@given(probabilities())
def test_roots_are_the_first_of_the_best_of_all_trees(args):
    p, q = args
    found = trace("optimal_bst", p, q)
    root = found.outputs["root"]
    assert root.shape == (len(q), len(q)) and not root[np.tril_indices(len(q))].any()
    for i, j in combinations(range(len(q)), 2):
        assert (found.hints["e"][-1, i, j], root[i, j]) == best_trees(p, q, i, j)


@many
@given(probabilities())
def test_every_step_adds_the_trees_of_one_more_key(args):
    p, q = args
    found = trace("optimal_bst", p, q)
    hints, n = found.hints, len(q)
    assert len(hints["e"]) == n
    i, j = np.indices((n, n))
    costs, roots, weights = np.zeros((n, n)), np.zeros((n, n), int), np.zeros((n, n))
    for a in range(n):
        for b in range(a, n):
            costs[a, b], roots[a, b] = best_trees(p, q, a, b)
            weights[a, b] = p[a:b].sum() + q[a : b + 1].sum()
    for step in range(n):
        known = (i <= j) & (j - i <= step)
        np.testing.assert_array_equal(hints["msk"][step], known)
        np.testing.assert_array_equal(hints["e"][step], np.where(known, costs, 0))
        np.testing.assert_array_equal(hints["w"][step], np.where(known, weights, 0))
        np.testing.assert_array_equal(hints["root_h"][step], np.where(known, roots, 0))
        assert hints["pred_h"][step].tolist() == [0, *range(n - 1)]
    np.testing.assert_array_equal(hints["root_h"][-1], found.outputs["root"])


def test_there_is_one_node_more_than_keys():
    found = trace("optimal_bst", [0.25, 0.5], [0.125, 0.0, 0.125])
    assert found.inputs["p"].tolist() == [0.25, 0.5, 0]
    assert found.inputs["q"].tolist() == [0.125, 0, 0.125]
    assert found.inputs["pos"].tolist() == [0, 1 / 3, 2 / 3]


# All three


def test_longer_instances():
    """Without gaps and with falling shares by halves, every tree is a list; a string in itself; a chain of bottles."""
    n = 64
    p = 0.5 ** np.arange(1, n + 1)
    i, j = np.triu_indices(n + 1, 1)
    assert (trace("optimal_bst", p, np.zeros(n + 1)).outputs["root"][i, j] == i).all()
    x = np.random.default_rng(5).integers(0, 4, n)
    found = trace("lcs_length", x, x)
    assert word_on_the_way_back(x, x, block(found.outputs["b"].argmax(-1), x, x)) == x.tolist()
    falling = np.arange(n, 0, -1.0)  # from the right the factors stay the smallest
    s = trace("matrix_chain_order", falling).outputs["s"]
    i, j = np.triu_indices(n - 1, 1)
    assert (s[i + 1, j + 1] == i + 1).all()


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([2], r"p has the shape \(1,\).*2"),
        (2, r"p has the shape \(\)"),
        ([[2, 3]], r"p has the shape \(1, 2\); give a list"),
        ([2, np.nan], r"p\[1\] is nan; give finite numbers"),
        ([2, np.inf, 3], r"p\[1\] is inf; give finite numbers"),
        ([2, 3, -4], r"p\[2\] is -4.0.*0 to 1e\+100"),
        ([1e101, 3, 4], r"p\[0\] is 1e\+101.*0 to 1e\+100"),
        (["a", "b"], "p is not an array of numbers"),
    ],
)
def test_what_are_no_dimensions_is_refused(p, message):
    with pytest.raises(ArgumentError, match=message):
        trace("matrix_chain_order", p)


def test_costs_of_the_largest_dimensions_are_finite():
    found = trace("matrix_chain_order", [1e100] * 8)
    assert np.isfinite(found.hints["m"]).all() and found.hints["msk"][-1, 1, 7] == 1


@pytest.mark.parametrize(
    ("p", "q", "message"),
    [
        ([], [0.5], r"p has the shape \(0,\).*1"),
        ([0.5], [0.5], r"q has the shape \(1,\).*2"),
        ([0.5], [[0.25, 0.25]], r"q has the shape \(1, 2\); give a list"),
        ([0.5, 0.5], [0, 0], r"p has 2 entries and q has 2; it needs 3"),
        ([0.5], [0, 0.25, 0.25], r"p has 1 entries and q has 3; it needs 2"),
        ([np.nan], [0.5, 0.5], r"p\[0\] is nan; give finite numbers"),
        ([0.5], [0.5, -np.inf], r"q\[1\] is -inf; give finite numbers"),
        ([0.5, -0.25], [0.25, 0.25, 0.25], r"p\[1\] is -0.25.*0 to 1"),
        ([0.5], [0.5, 2], r"q\[1\] is 2.0.*0 to 1"),
    ],
)
def test_what_are_no_probabilities_is_refused(p, q, message):
    with pytest.raises(ArgumentError, match=message):
        trace("optimal_bst", p, q)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([], [0], r"x has the shape \(0,\).*1"),
        ([0], [], r"y has the shape \(0,\).*1"),
        ([0], [[0, 1]], r"y has the shape \(1, 2\); give a list"),
        ([0, 4], [0], r"x has values from 0 to 4.*0 to 3"),
        ([0], [-1, 1], r"y has values from -1 to 1.*0 to 3"),
        ([0, 0.5], [0], r"x has values from 0.0 to 0.5.*0 to 3"),
        ([0, np.nan], [0], r"x\[1\] is nan; give finite numbers"),
        ([0], ["a", "b"], "y is not an array of numbers"),
        ("abc", [0], "x is not an array of numbers"),
    ],
)
def test_what_are_no_strings_is_refused(x, y, message):
    with pytest.raises(ArgumentError, match=message):
        trace("lcs_length", x, y)


def test_one_bad_instance_of_many_is_named():
    with pytest.raises(ArgumentError, match=r"p\[1\] is -3.0; give dimensions"):
        run_all("matrix_chain_order", [([1.0, 2.0],), ([4.0, -3.0],)])
    with pytest.raises(ArgumentError, match=r"q\[0\] is 3.0; give probabilities"):
        run_all("optimal_bst", [([0.5], [0.25, 0.25]), ([0.5], [3.0, 0.25])])


@pytest.mark.parametrize(
    ("algorithm", "args"),
    [("matrix_chain_order", [[3.0, 1, 2]]), ("optimal_bst", [[0.5], [0.25, 0]]), ("lcs_length", [[0, 1], [1]])],
)
def test_arguments_are_not_changed(algorithm, args):
    arrays = [np.array(a) for a in args]
    trace(algorithm, *arrays)
    assert [a.tolist() for a in arrays] == args
