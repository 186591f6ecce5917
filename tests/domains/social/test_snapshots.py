"""Snapshots against a slow implementation, and the property that the future does not reach the features."""

from __future__ import annotations

import inspect
import statistics
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphbench
from graphbench.core.errors import ArgumentError
from graphbench.data.components.domain import find
from graphbench.domains.social import Contents, Interactions, Posts, end_of_day, read_snapshot, snapshot
from graphbench.domains.social.snapshot_kernels import each_once, engagement, kept_pairs, order_by, renumbered, rising
from graphbench.domains.social.snapshots import snapshot_of_parts

T0, T1, T2 = 10, 20, 30


def make_tables(seed, users=8, posts=90, interactions=90, rows=30, spread=1):
    """Return random tables with times from 5 to 35; ``spread`` multiplies the numbers of users."""
    rng = np.random.default_rng(seed)

    def who(count):
        return rng.integers(0, users, count) * spread

    def when(count):
        return rng.integers(5, 36, count)

    counts = [rng.integers(0, 6, posts) for _ in range(3)]
    contents = Contents(who(rows), when(rows), rng.integers(-8, 9, (rows, 3)).astype(np.float32))
    table = Interactions(who(interactions), who(interactions), when(interactions))
    return Posts(who(posts), when(posts), *counts, contents), {"replies": table}


def test_targets_are_the_lower_median_of_an_even_number_of_posts():
    """Two users answer each other; each has two or four posts after the day, whose middle counts differ."""
    user = np.array([0, 1, 0, 0, 1, 1, 1, 1])
    time = np.array([15, 15, 25, 26, 25, 26, 27, 28])
    likes = np.array([9, 9, 2, 7, 1, 3, 6, 8])  # afterwards 2, 7 and 1, 3, 6, 8
    zeros = np.zeros(8, np.int64)
    contents = Contents(np.array([0]), np.array([15]), np.zeros((1, 3), np.float32))
    posts = Posts(user, time, likes, zeros, zeros, contents)
    answers = {"replies": Interactions(np.array([0, 1]), np.array([1, 0]), np.array([16, 16]))}
    found = snapshot(posts, answers, T0, T1, T2, "replies")
    after = [sorted(likes[(user == node) & (time > T1)].tolist()) for node in (0, 1)]
    assert after == [[2, 7], [1, 3, 6, 8]]
    lower = [statistics.median_low(counts) for counts in after]
    np.testing.assert_allclose(found.targets[:, 0], np.log1p(lower), rtol=1e-6)
    assert lower == [2, 3] != [statistics.median(counts) for counts in after]
    both = snapshot(posts, answers, T0, T1, T2, "replies", median="mean")
    np.testing.assert_allclose(both.targets[:, 0], np.log1p([4.5, 4.5]), rtol=1e-6)


ENGAGEMENT = [name for name in graphbench.list_datasets() if name.startswith("social/") and "_links_" not in name]


@pytest.mark.parametrize("id_", ENGAGEMENT)
def test_cards_say_which_median_their_generator_takes(id_):
    card = graphbench.card(id_)
    parameters = find("generator", card.generator).parse(card, "test")
    of_archive = inspect.signature(read_snapshot).parameters["median"].default
    assert getattr(parameters, "median", of_archive) == "lower"
    assert "lower median" in card.summary.lower()


def slow_snapshot(posts, interactions, t0, t1, t2, kind, median="mean", loops=True):
    """The same by pandas, dictionaries and sets; None where there is no node."""
    frame = pd.DataFrame({name: getattr(posts, name) for name in ("user", "time", "likes", "replies", "reposts")})
    earlier = frame[(frame.time > t0) & (frame.time <= t1)]
    later = frame[(frame.time > t1) & (frame.time <= t2)]
    kept = set(earlier.user) & set(later.user)
    own = interactions[kind]
    pairs = set()
    for u, v, t in zip(own.source.tolist(), own.target.tolist(), own.time.tolist(), strict=True):
        if t0 < t <= t1 and u in kept and v in kept and (loops or u != v):
            pairs.add((u, v))
    users = sorted({user for pair in pairs for user in pair})
    if not users:
        return None
    number = {user: i for i, user in enumerate(users)}

    def log_medians(part):
        grouped = part[part.user.isin(users)].groupby("user")[["likes", "replies", "reposts"]]
        middle = grouped.quantile(0.5, interpolation="lower") if median == "lower" else grouped.median()
        return np.log1p(middle.to_numpy())

    content = np.zeros((len(users), posts.contents.vectors.shape[1]))
    for user, i in number.items():
        rows = [
            posts.contents.vectors[r]
            for r in range(len(posts.contents.user))
            if posts.contents.user[r] == user and t0 < posts.contents.time[r] <= t1
        ]
        if rows:
            content[i] = np.mean(rows, axis=0)
    return {
        "users": users,
        "edges": sorted((number[u], number[v]) for u, v in pairs),
        "content": content,
        "posts": [int((earlier.user == user).sum()) for user in users],
        "past": log_medians(earlier),
        "targets": log_medians(later),
    }


def assert_equal(found, expected):
    for name in ("users", "edges", "posts"):
        assert getattr(found, name).tolist() == [list(x) if name == "edges" else x for x in expected[name]], name
    for name in ("content", "past", "targets"):
        np.testing.assert_allclose(getattr(found, name), expected[name], rtol=1e-6, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    users=st.integers(1, 12),
    posts=st.integers(0, 60),
    interactions=st.integers(0, 60),
    spread=st.sampled_from([1, 7, 1_000_003]),
    median=st.sampled_from(["mean", "lower"]),
    loops=st.booleans(),
)
def test_snapshot_is_that_of_the_slow_implementation(seed, users, posts, interactions, spread, median, loops):
    tables = make_tables(seed, users, posts, interactions, spread=spread)
    expected = slow_snapshot(*tables, T0, T1, T2, "replies", median, loops)
    if expected is None:
        with pytest.raises(ArgumentError, match="no user who posted in both intervals"):
            snapshot(*tables, T0, T1, T2, "replies", median=median, loops=loops)
        return
    assert_equal(snapshot(*tables, T0, T1, T2, "replies", median=median, loops=loops), expected)


@pytest.mark.parametrize("median", ["mean", "lower"])
def test_users_with_many_posts(median):
    tables = make_tables(3, users=3, posts=1500)
    assert_equal(
        snapshot(*tables, T0, T1, T2, "replies", median=median), slow_snapshot(*tables, T0, T1, T2, "replies", median)
    )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), other=st.integers(0, 10_000))
def test_rows_may_be_in_any_order(seed, other):
    posts, interactions = make_tables(seed)
    rng = np.random.default_rng(other)
    by, own = rng.permutation(len(posts)), interactions["replies"]
    among = rng.permutation(len(own))
    columns = [getattr(posts, name)[by] for name in ("user", "time", "likes", "replies", "reposts")]
    shuffled = {"replies": Interactions(own.source[among], own.target[among], own.time[among])}
    first = snapshot(posts, interactions, T0, T1, T2, "replies")
    second = snapshot(Posts(*columns, posts.contents), shuffled, T0, T1, T2, "replies")
    for name in ("users", "edges", "content", "posts", "past", "targets"):
        assert np.array_equal(getattr(first, name), getattr(second, name))


def changed_after(tables, time, seed, keep_authors_until=None):
    """Return tables in which all rows after a time are replaced by others.

    With ``keep_authors_until`` the users who post between the two times stay the same; their posts' counts and the
    number of their posts change.
    """
    posts, interactions = tables
    others, other_interactions = make_tables(seed + 1, users=11, posts=70, interactions=80)
    rng = np.random.default_rng(seed)

    def rows(own, new):
        columns = {}
        for name in own.__dataclass_fields__:
            if name == "contents":
                continue
            columns[name] = np.concatenate([getattr(own, name)[own.time <= time], getattr(new, name)[new.time > time]])
        return columns

    mixed = rows(posts, others)
    if keep_authors_until is not None:
        middle = (posts.time > time) & (posts.time <= keep_authors_until)
        authors = np.repeat(np.unique(posts.user[middle]), 2)
        first = posts.time <= time
        when = rng.integers(time + 1, keep_authors_until + 1, len(authors))
        mixed = {
            "user": np.concatenate([posts.user[first], authors]),
            "time": np.concatenate([posts.time[first], when]),
        }
        for name in ("likes", "replies", "reposts"):
            mixed[name] = np.concatenate([getattr(posts, name)[first], rng.integers(0, 99, len(authors))])
    contents = Contents(**rows(posts.contents, others.contents))
    own = Interactions(**rows(interactions["replies"], other_interactions["replies"]))
    return Posts(**mixed, contents=contents), {"replies": own}


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_what_follows_t1_changes_targets_alone(seed):
    tables = make_tables(seed)
    changed = changed_after(tables, T1, seed, keep_authors_until=T2)
    first, second = (snapshot(*own, T0, T1, T2, "replies") for own in (tables, changed))
    for name in ("users", "edges", "content", "posts", "past"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_who_posts_after_t1_decides_who_is_a_node_and_nothing_else(seed):
    """Nodes of both snapshots have the same features, and the same edges between them."""
    tables = make_tables(seed)
    try:
        first, second = (snapshot(*own, T0, T1, T2, "replies") for own in (tables, changed_after(tables, T1, seed)))
    except ArgumentError:
        return
    common, i, j = np.intersect1d(first.users, second.users, return_indices=True)
    for name in ("content", "posts", "past"):
        assert np.array_equal(getattr(first, name)[i], getattr(second, name)[j]), name

    def edges(found):
        pairs = found.users[found.edges]
        return {tuple(pair) for pair in pairs.tolist() if set(pair) <= set(common.tolist())}

    assert edges(first) == edges(second)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_what_follows_t2_changes_nothing(seed):
    tables = make_tables(seed)
    first, second = (snapshot(*own, T0, T1, T2, "replies") for own in (tables, changed_after(tables, T2, seed)))
    for name in ("users", "edges", "content", "posts", "past", "targets"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name


def test_a_change_of_targets_is_seen():
    """The tests above could not fail if nothing depended on the future."""
    posts, interactions = make_tables(3)
    doubled = replace(posts, likes=np.where(posts.time > T1, posts.likes + 5, posts.likes))
    first, second = (snapshot(p, interactions, T0, T1, T2, "replies") for p in (posts, doubled))
    assert (second.targets[:, 0] > first.targets[:, 0]).all()
    assert np.array_equal(first.targets[:, 1:], second.targets[:, 1:])


def test_posts_without_contents_have_no_columns():
    posts, interactions = make_tables(3)
    assert snapshot(replace(posts, contents=None), interactions, T0, T1, T2, "replies").content.shape[1] == 0


def test_an_interval_contains_its_last_day():
    minutes = (np.datetime64("2023-12-12T00:00") - np.datetime64("1970-01-01")) // np.timedelta64(1, "m")
    assert end_of_day(date(2023, 12, 11)) == int(minutes) - 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "likes"}, "kind='likes' is unknown"),
        ({"kind": "quotes"}, "interactions lacks 'quotes'.*replies"),
        ({"t1": 10}, "not in order"),
        ({"median": "upper"}, "median='upper' is unknown"),
    ],
)
def test_bad_arguments_are_named(changes, words):
    arguments = {"t0": T0, "t1": T1, "t2": T2, "kind": "replies", **changes}
    with pytest.raises(ArgumentError, match=words):
        snapshot(*make_tables(3), **arguments)


def test_bad_tables_are_named():
    posts, interactions = make_tables(3)
    spoiled = posts.likes.copy()
    spoiled[4] = -2
    with pytest.raises(ArgumentError, match=r"posts\.likes has -2 in row 4"):
        snapshot(replace(posts, likes=spoiled), interactions, T0, T1, T2, "replies")
    with pytest.raises(ArgumentError, match="columns of posts have the shapes"):
        replace(posts, likes=posts.likes[1:])
    with pytest.raises(ArgumentError, match=r"posts\.time has the type float64"):
        replace(posts, time=posts.time.astype(float))
    with pytest.raises(ArgumentError, match=r"contents\.vectors has the shape"):
        Contents(posts.user, posts.time, np.zeros(3))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), spread=st.sampled_from([1, 1_000_003, 100_000_007]))
def test_tables_in_parts_give_the_same(seed, spread):
    posts, interactions = make_tables(seed, spread=spread)
    own, contents, rng = interactions["replies"], posts.contents, np.random.default_rng(seed)

    def parted(table, of):
        columns = [name for name in table.__dataclass_fields__ if name != "contents"]
        return [type(table)(**{name: getattr(table, name)[of == i] for name in columns}) for i in range(3)]

    by_user = parted(posts, posts.user // spread % 3)
    among = [parted(table, rng.integers(0, 3, len(table.time))) for table in (own, contents)]
    whole = snapshot(posts, interactions, T0, T1, T2, "replies")
    joined = snapshot_of_parts(by_user, *among, (T0, T1, T2))
    for name in ("users", "edges", "content", "posts", "past", "targets"):
        assert np.array_equal(getattr(whole, name), getattr(joined, name)), name
    with pytest.raises(ArgumentError, match="has posts in two parts"):
        snapshot_of_parts([posts, *by_user], *among, (T0, T1, T2))


@pytest.mark.parametrize("name", ["user", "time", "likes"])
def test_columns_that_were_replaced_are_refused(name):
    posts, interactions = make_tables(0)[:2]
    object.__setattr__(posts, name, np.array([1]))
    with pytest.raises(ArgumentError):
        snapshot(posts, interactions, T0, T1, T2, "replies")


@pytest.mark.parametrize("largest", [3, 14, 15, 16, 40, 10**6])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64])
@pytest.mark.thorough
def test_medians_of_users_are_those_of_python(largest, dtype):
    rng = np.random.default_rng(largest)
    user = np.sort(rng.integers(0, 40, 1500).astype(dtype))
    time = rng.integers(5, 36, 1500)
    columns = tuple(rng.integers(0, largest + 1, 1500).astype(dtype) for _ in range(3))
    for lower, median in ((True, statistics.median_low), (False, statistics.median)):
        users, posts, medians = engagement(user, time, columns, (T0, T1, T2), lower)
        earlier, later = (time > T0) & (time <= T1), (time > T1) & (time <= T2)
        assert users.tolist() == np.intersect1d(user[earlier], user[later]).tolist()
        assert posts.tolist() == [np.sum(user[earlier] == author) for author in users]
        for row, author in zip(medians, users, strict=True):
            for part, interval in enumerate((earlier, later)):
                of_user = interval & (user == author)
                assert row[part].tolist() == [median(column[of_user].tolist()) for column in columns]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60))
def test_pairs_are_listed_once_in_order(pairs):
    source, target = np.array(pairs, np.int32).reshape(-1, 2).T.copy()
    listed = each_once(source, target, 10)
    assert listed.T.tolist() == sorted(map(list, set(pairs)))
    nodes, edges = renumbered(listed, 10)
    assert nodes.tolist() == sorted({node for pair in pairs for node in pair})
    assert nodes[edges].reshape(-1, 2).tolist() == listed.T.tolist()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=60), st.sampled_from([np.int32, np.uint64]))
def test_order_of_users_is_stable(users, dtype):
    values = np.array(users, dtype)
    assert order_by(values, 10).tolist() == np.argsort(values, kind="stable").tolist()
    assert rising(values) == (users == sorted(users))


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64])
def test_pairs_of_an_interval_are_between_nodes(loops, dtype):
    rng = np.random.default_rng(3)
    source, target = rng.integers(0, 30, (2, 400)).astype(dtype)  # users from 20 on are beyond the table
    time, node_of = rng.integers(5, 36, 400), np.where(rng.random(20) < 0.3, -1, np.arange(20)).astype(np.int32)
    expected = [
        (node_of[a], node_of[b])
        for a, b, when in zip(source.tolist(), target.tolist(), time.tolist(), strict=True)
        if T0 < when <= T1 and a < 20 and b < 20 and min(node_of[a], node_of[b]) >= 0 and (loops or a != b)
    ]
    assert list(zip(*kept_pairs(source, target, time, node_of, T0, T1, loops), strict=True)) == expected
