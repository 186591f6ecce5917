"""The simulated network: one history, whoever simulates it, with the shares, degrees and causes that it should have."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import graphbench
from graphbench.core.errors import CardError, GraphBenchError
from graphbench.data.build.generation import draw_samples
from graphbench.data.build.limits import apply_limit
from graphbench.domains.social import Interactions, end_of_day, simulate, simulator
from graphbench.domains.social.calibration import Calibration
from graphbench.domains.social.checks import check_snapshot
from graphbench.domains.social.generators import SnapshotParameters, network, simulated_snapshot
from graphbench.domains.social.persistence import persistence_scores
from graphbench.domains.social.simulator_tables import DATES, SHARES, START, calendar, period_ends
from graphbench.domains.social.snapshots import snapshot
from graphbench.domains.social.tables import COUNTS, KINDS

T0 = end_of_day(START) - 1440
TIMES = [end_of_day(day) for day in DATES]


@pytest.fixture(scope="module")
def history():
    return simulate(2000, 5, width=16)


def smaller(name, users):
    return graphbench.card(f"social/{name}").with_limited("users", dict.fromkeys(("train", "val", "test"), users))


def tables(own):
    posts = own.posts
    found = {name: getattr(posts, name) for name in ("user", "time", *COUNTS)} | {"topics": own.topics}
    found |= {f"content_{name}": getattr(posts.contents, name) for name in ("user", "time", "vectors")}
    for kind, rows in own.interactions.items():
        found |= {f"{kind}_{name}": getattr(rows, name) for name in ("source", "target", "time")}
    return found


def test_a_history_depends_on_users_and_seed_and_not_on_who_simulates_it(history, monkeypatch):
    monkeypatch.setattr(simulator, "_USER_BATCH", 700)
    monkeypatch.setattr(simulator, "_EVENTS_PER_POST", 1)  # parts are simulated again with more room
    again, first = tables(simulate(2000, 5, width=16, threads=3)), tables(history)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    other = tables(simulate(2000, 6, width=16))
    assert not np.array_equal(first["user"], other["user"])


def test_posts_have_the_shares_of_the_paper_before_the_dates(history):
    shares = [np.mean(history.posts.time <= time) for time in (T0, *TIMES)]
    np.testing.assert_allclose(shares, SHARES, atol=0.01)
    assert history.posts.time.min() > T0 and history.posts.time.max() <= TIMES[-1]


def test_counts_are_those_of_the_interactions_of_others_and_oneself(history):
    """Reposts are interactions one by one; replies are more, as authors answer."""
    posts, users = history.posts, len(history.followers)

    def of_target(kind):
        return np.bincount(history.interactions[kind].target, minlength=users)

    assert np.array_equal(of_target("reposts"), np.bincount(posts.user, posts.reposts, users).astype(int))
    replies = np.bincount(posts.user, posts.replies, users).astype(int)
    assert (of_target("replies") >= replies).all() and of_target("replies").sum() > replies.sum()


def test_interactions_follow_posts_of_their_targets(history):
    posts = history.posts
    first = np.full(len(history.followers), np.iinfo(np.int32).max)
    np.minimum.at(first, posts.user, posts.time)
    reposts = history.interactions["reposts"]
    assert (reposts.time >= first[reposts.target]).all() and (reposts.time <= TIMES[-1]).all()


def test_earlier_snapshots_are_parts_of_later_ones(history):
    for kind in KINDS:
        found = [
            snapshot(history.posts, history.interactions, T0, seen, until, kind) for seen, until in pairwise(TIMES)
        ]
        for earlier, later in pairwise(found):
            both = np.intersect1d(earlier.users, later.users)
            pairs = [{tuple(pair) for pair in own.users[own.edges].tolist()} for own in (earlier, later)]
            known = set(both.tolist())
            assert {pair for pair in pairs[0] if set(pair) <= known} <= pairs[1]


def test_kinds_share_users_and_their_engagement(history):
    found = [snapshot(history.posts, history.interactions, T0, TIMES[0], TIMES[1], kind) for kind in KINDS]
    _, i, j = np.intersect1d(found[1].users, found[2].users, return_indices=True)
    assert len(i) > 300
    assert np.array_equal(found[1].targets[i], found[2].targets[j])
    assert np.array_equal(found[1].content[i], found[2].content[j])


def test_degrees_and_medians_are_heavy_tailed(history):
    found = snapshot(history.posts, history.interactions, T0, TIMES[0], TIMES[1], "reposts")
    degrees = np.bincount(found.edges[:, 1], minlength=len(found.users))
    assert degrees.max() > 8 * degrees.mean() and np.mean(degrees == 0) > 0.05
    assert 0.3 < np.mean(found.targets[:, 1] == 0) < 0.95  # most users get no reply to most posts


def test_followers_of_the_same_topic_react_more():
    """Engagement depends on the match of topics: without it, posts on other topics are liked as often."""
    flat = replace(Calibration(), attraction=(1.0, 1.0, 1.0))
    shares = {}
    for name, calibration in (("flat", flat), ("own", None)):
        own = simulate(2000, 5, width=8, calibration=calibration)
        favourite = np.zeros((len(own.followers), 32))
        np.add.at(favourite, (own.posts.user, own.topics), 1)
        is_main = favourite.argmax(axis=1)[own.posts.user] == own.topics
        shares[name] = own.posts.likes[is_main].mean() / own.posts.likes[~is_main].mean()
    assert shares["own"] > 1.3 * shares["flat"]


def test_the_calendar_rises_through_the_dates():
    shares, minutes = calendar()
    assert (np.diff(shares) > 0).all() and (np.diff(minutes) > 0).all()
    assert np.interp(TIMES, minutes, shares).tolist() == pytest.approx(SHARES[1:])
    assert set(TIMES) <= set(period_ends().tolist()) and (np.diff(period_ends()) > 0).all()


def test_contents_show_topics_before_their_time_alone(history):
    contents, ends = history.posts.contents, period_ends()
    posts = history.posts
    period = np.searchsorted(ends, posts.time)
    expected = np.unique(np.stack([posts.user, ends[period]], axis=1), axis=0)
    assert np.array_equal(np.stack([contents.user, contents.time], axis=1), expected)
    assert contents.vectors.dtype == np.float16 and np.isfinite(contents.vectors).all()
    lengths = np.linalg.norm(contents.vectors.astype(float), axis=1)
    assert 0.5 < lengths.mean() < 2


PARAMETERS = SnapshotParameters.model_validate(
    {"users": 1000, "seed": 2, "kind": "replies", "seen_until": DATES[0], "predicted_until": DATES[1]}
)


def test_the_check_passes_what_is_drawn_and_finds_what_is_not():
    from graphbench.domains.social.generators import GENERATORS

    generator = GENERATORS["simulated"]
    index = np.zeros(1, np.int64)

    def drawn():
        return generator.generate(PARAMETERS, np.uint64(0), index, index)

    assert generator.check(PARAMETERS, drawn()) == []
    for name in ("past", "likes", "activity", "content"):
        spoiled = drawn()
        spoiled.values[name][0] += 1
        assert any("node 0" in problem for problem in generator.check(PARAMETERS, spoiled)), name
    spoiled = drawn()
    edges = spoiled.edges.copy()
    edges[3] = edges[3][::-1]
    spoiled = replace(spoiled, edges=edges)
    assert "other edges" in generator.check(PARAMETERS, spoiled)[0]
    own = network(PARAMETERS.users, PARAMETERS.seed, PARAMETERS.width)
    times = (T0, TIMES[0], TIMES[1])
    assert "has" in check_snapshot(own, times, ("quotes", "lower", True), drawn(), 0)[0]


def test_persistence_is_scored_as_the_evaluator_scores_it():
    card = smaller("sim_replies_small", 900)
    samples = draw_samples(card, "test", [0])
    evaluator = graphbench.Evaluator("social/sim_replies_small")
    past = {name: samples.values["past"][:, i] for i, name in enumerate(COUNTS)}
    expected = evaluator.evaluate({name: samples.values[name] for name in COUNTS}, past)
    found = persistence_scores(samples)
    assert found.keys() == expected.to_dict().keys()
    for name, value in found.items():
        assert value == pytest.approx(expected[name], abs=1e-6), name


def test_another_draw_is_another_history():
    card = smaller("sim_replies_small", 900)
    first, second = (draw_samples(own, "train", [0]) for own in (card, card.with_data_seed(3)))
    assert first.num_nodes[0] != second.num_nodes[0] or not np.array_equal(first.edges, second.edges)


def test_cards_with_past_engagement_have_the_same_graphs_and_read_more():
    first, second = (smaller(f"sim_quotes{past}", 900) for past in ("", "_past"))
    assert [f.name for f in first.inputs] == ["content"]
    assert [f.name for f in second.inputs] == ["content", "past", "activity"]
    drawn = [draw_samples(card, "train", [0]) for card in (first, second)]
    assert np.array_equal(drawn[0].edges, drawn[1].edges)
    assert all(np.array_equal(drawn[0].values[name], drawn[1].values[name]) for name in drawn[0].values)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"users": 10}, "users = 10 is refused"),
        ({"seen_until": "2024-02-01", "predicted_until": "2024-01-01"}, "are not in order"),
        ({"kind": "likes"}, "kind"),
    ],
)
def test_bad_parameters_are_named(changes, words):
    from graphbench.domains.social.generators import GENERATORS

    card = graphbench.card("social/sim_quotes")
    spec = card.split("train")
    changed = spec.model_copy(update={"parameters": {**spec.parameters, **changes}})
    card = card.model_copy(update={"splits": {**card.splits, "train": changed}})
    with pytest.raises(CardError, match=words):
        GENERATORS["simulated"].parse(card, "train")


@pytest.mark.parametrize("limit", [0, -1, 10])
def test_limits_are_numbers_of_users_and_checked(limit, tmp_path):
    with pytest.raises(GraphBenchError, match="limit") as error:
        graphbench.Loader("social/sim_quotes", root=tmp_path, limit=limit).load(())
    assert "\n" not in str(error.value)


def test_a_limit_beyond_the_users_changes_nothing():
    card = graphbench.card("social/sim_quotes_small")
    assert apply_limit(card, 10**9)[0].fingerprint(1) == card.fingerprint(1)
    assert apply_limit(card, 600)[0].split("val").parameters["users"] == 600


def test_snapshots_of_the_generator_are_those_of_the_public_function():
    own = simulate(PARAMETERS.users, PARAMETERS.seed)
    expected = snapshot(own.posts, own.interactions, T0, TIMES[0], TIMES[1], "replies")
    found = simulated_snapshot(PARAMETERS)
    assert np.array_equal(found.edges, expected.edges) and np.array_equal(found.targets, expected.targets)
    assert isinstance(own.interactions["replies"], Interactions)
