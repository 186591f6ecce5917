"""Means over datasets: anchors, missing datasets, who is ranked, and by whom."""

from types import SimpleNamespace
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphbench
from graphbench.catalog.sections import MeasuredTask
from graphbench.evaluation.references import SampleSet
from graphbench.leaderboard import leaderboard_of, texts
from graphbench.leaderboard.aggregation import normalised
from graphbench.leaderboard.references import anchors
from graphbench.records.budgets import Budget

from .conftest import bootstrapped, make_record

MST, BRIDGES, KINSHIP = "algoreas/mst_easy", "algoreas/bridges_easy", "clutrr/gen_23"
MEMBERS = "algoreas/clique_membership_easy"


def runs(model, seeds=(0, 1, 2), **scores):
    """Return records of one model, whose scores have a spread of its own; the keywords are mst, bridges and kinship."""
    own = 1e-6 * crc32(model.encode()) / 2**32
    ids = {"mst": (MST, "f1"), "bridges": (BRIDGES, "f1"), "kinship": (KINSHIP, "accuracy")}
    found = []
    for name, value in scores.items():
        id_, metric = ids[name]
        changes = {"dataset": id_, "dataset_version": graphbench.card(id_).version, "model": model}
        for i, seed in enumerate(seeds):
            score = value + 0.001 * i + own * (1, -2, 1)[i % 3]
            found.append(bootstrapped(make_record(seed, scores={"test": {metric: score}}, **changes)))
    return found


def group(records, name, budget_class="open"):
    return next(g for g in leaderboard_of(records).groups if (g.name, g.budget_class) == (name, budget_class))


def toy_card(metric, floor, solvers=None, rule=None):
    rules = {} if rule is None else {"structural": {metric: rule}}
    measured = MeasuredTask(
        floor={"test": {f"t{i}": {metric: v} for i, v in enumerate(floor)} | rules},
        solvers={"test": {f"s{i}": {metric: v} for i, v in enumerate(solvers or [])}},
        scored_samples={"test": 64},
    )
    about = {"task": SimpleNamespace(rules=dict.fromkeys(rules, "toy.rule"))}
    about |= {"version": 1, "representation": None, "all_splits": {"test": None}, "measured_scores": measured}
    return SimpleNamespace(metrics=SimpleNamespace(primary=metric), **about)


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        (toy_card("f1", [0.2, 0.4]), (0.4, 1.0)),
        (toy_card("mae", [3.0, 2.0]), (2.0, 0.0)),
        (toy_card("set_size", [10.0], [12.0, 11.0]), (10.0, 12.0)),
        (toy_card("num_colors", [5.0], [4.0, 3.0]), (5.0, 3.0)),
        (toy_card("f1", [0.4], [0.3]), (0.4, 1.0)),  # a solver that is no better than the trivial predictor
        (toy_card("set_size", [10.0], [9.0]), None),
        (toy_card("f1", []), None),
        (toy_card("f1", [1.0]), None),
        (toy_card("f1", [0.2, 0.4], rule=0.999), (0.4, 1.0)),  # a rule that reads the graph is no zero
        (toy_card("mae", [3.0, 2.0], rule=0.0), (2.0, 0.0)),
        (toy_card("f1", [], rule=0.9), None),
    ],
)
def test_anchors_are_the_best_trivial_and_the_best_known_score(card, expected):
    assert anchors(card, SampleSet(1, 0, 64)) == expected


@pytest.mark.parametrize(
    "samples", [SampleSet(1, 0, 364), SampleSet(1, 1, 64), SampleSet(2, 0, 64), SampleSet(1, 0, None)]
)
def test_scores_on_other_samples_are_no_anchors(samples):
    card = toy_card("f1", [0.2, 0.4])
    assert anchors(card, SampleSet(1, 0, 64)) is not None and anchors(card, samples) is None


def test_normalised_scores_are_cut():
    assert [normalised(x, 0.4, 1.0) for x in (0.1, 0.4, 0.7, 1.0)] == pytest.approx([0, 0, 0.5, 1])
    assert [normalised(x, 10, 5) for x in (12, 7.5, 5, -100)] == [0, 0.5, 1, 2]


def test_complete_models_are_ranked_among_each_other_and_others_are_counted():
    records = runs("a", mst=0.9, bridges=0.9) + runs("b", mst=0.8, bridges=0.95) + runs("c", mst=0.99)
    found = group(records, "algoreas")
    assert found.units == (BRIDGES, MST) and found.without_anchors == ()
    by_name = {row.model: row for row in found.rows}
    assert by_name["c"].rank is None and by_name["c"].mean_rank is None and by_name["c"].missing == (BRIDGES,)
    assert by_name["a"].mean_rank == by_name["b"].mean_rank == 1.5 and by_name["a"].rank == by_name["b"].rank == 1
    assert found.rows[-1].model == "c"
    floor = graphbench.card(MST).floor["test"]["all_positive"]["f1"]
    assert by_name["c"].mean_normalised_own == pytest.approx((0.991 - floor) / (1 - floor))
    assert by_name["c"].mean_normalised == pytest.approx(by_name["c"].mean_normalised_own / 2)
    assert found.pairs[0].shared == 2 and {(p.first, p.second) for p in found.pairs} >= {("a", "b")}


def test_mean_ranks_are_of_complete_models_alone():
    records = runs("a", mst=0.9, bridges=0.9) + runs("b", mst=0.8, bridges=0.85)
    records += [record for i in range(4) for record in runs(f"m{i}", mst=0.95 + 0.001 * i)]
    by_name = {row.model: row for row in group(records, "algoreas").rows}
    assert (by_name["a"].mean_rank, by_name["b"].mean_rank) == (1.0, 2.0)
    assert (by_name["a"].rank, by_name["b"].rank) == (1, 2)


def test_pairs_count_what_tests_separate_on_shared_datasets():
    records = runs("a", mst=0.9, bridges=0.9) + runs("b", mst=0.8, bridges=0.95) + runs("c", mst=0.901)
    one_seed = runs("d", (0,), mst=0.1)
    algoreas = group(records + one_seed, "algoreas")
    pairs = {frozenset((p.first, p.second)): p for p in algoreas.pairs}
    found = pairs[frozenset("ab")]
    assert (found.shared, found.better, found.worse, found.untested, found.tied) == (2, 1, 1, 0, 0)
    found = pairs[frozenset("ac")]
    assert (found.shared, found.better, found.worse, found.untested, found.tied) == (1, 0, 0, 0, 1)
    found = pairs[frozenset("ad")]
    assert (found.shared, found.better, found.worse, found.untested, found.tied) == (1, 0, 0, 1, 0)
    grid = texts.pair_grid(algoreas)
    cells = {(row[0], name): cell for row in grid.rows for name, cell in zip(grid.heads[1:], row[1:], strict=True)}
    assert cells["a", "b"] == cells["b", "a"] == "1/0/1"
    assert cells["a", "c"] == "0/1/0" and cells["d", "a"] == cells["a", "d"] == "untested"


def test_a_model_that_is_alone_is_not_ranked():
    (row,) = group(runs("a", mst=0.9, bridges=0.9), "algoreas").rows
    assert row.rank is None and row.missing == () and row.mean_normalised > 0.8


def test_every_domain_counts_the_same_in_the_suite():
    records = runs("a", mst=0.9, bridges=0.7, kinship=0.5)
    board = leaderboard_of(records)
    suite, algoreas, clutrr = (g for g in board.groups if g.budget_class == "open")
    assert [g.name for g in (suite, algoreas, clutrr)] == ["suite", "algoreas", "clutrr"]
    means = [g.rows[0].mean_normalised for g in (algoreas, clutrr)]
    assert suite.rows[0].mean_normalised == pytest.approx(sum(means) / 2)


@settings(max_examples=15, deadline=None)
@given(st.dictionaries(st.sampled_from(["mst", "bridges", "kinship"]), st.floats(0.0, 0.99), min_size=2))
@pytest.mark.thorough
def test_leaving_a_dataset_out_never_raises_a_mean(scores):
    others = runs("other", (0,), mst=0.5, bridges=0.5, kinship=0.5)
    rows = group(others + runs("own", (0,), **scores), "suite").rows
    whole = next(row.mean_normalised for row in rows if row.model == "own")
    for name in scores:
        fewer = runs("own", (0,), **{key: value for key, value in scores.items() if key != name})
        rows = group(others + fewer, "suite").rows
        assert next(row.mean_normalised for row in rows if row.model == "own") <= whole + 1e-12


def test_every_class_has_means_of_its_own():
    long = [r.model_copy(update={"cpu_seconds": 9000.0, "steps": 10**9}) for r in runs("long", mst=0.9, bridges=0.5)]
    board = leaderboard_of(long + runs("quick", mst=0.9))
    units = {(g.budget_class, tuple(sorted(row.model for row in g.rows))): len(g.units) for g in board.groups}
    assert units == {("minutes", ("quick",)): 1, ("paper", ("quick",)): 1, ("open", ("long", "quick")): 2}


def test_a_changed_configuration_does_not_take_the_models_name():
    changed = {"model": {"processor": "gin", "hidden": 2}}
    own = Budget(small=False, label="100 steps, a configuration of one's own (gin with another model.hidden)")
    records = runs("gin", mst=0.9, bridges=0.9)
    records += [r.model_copy(update={"config": changed, "budget": own}) for r in runs("gin", mst=0.95)]
    rows = {row.model: len(row.scores) for row in group(records, "algoreas").rows}
    (other,) = rows.keys() - {"gin"}
    assert rows["gin"] == 2 and rows[other] == 1 and other.startswith("gin [")


def test_models_with_fewer_than_half_of_the_datasets_are_not_shown_beside_others():
    records = [
        *runs("whole", mst=0.8, bridges=0.7, kinship=0.6),
        *runs("most", mst=0.9, bridges=0.7),
        *runs("one", mst=0.95),
    ]
    suite = group(records, "suite")
    assert [row.model for row in suite.shown] == [row.model for row in suite.rows if row.model != "one"]
    assert {row[0] for row in texts.group_grid(suite).rows} == {"whole", "most"}
    assert "1 model with a score on fewer than half of them: not shown here." in texts.group_notes(suite)
    assert {row.model for row in suite.rows} == {"whole", "most", "one"}  # in the JSON they stay


def test_protocols_do_not_split_models_and_each_dataset_counts_once():
    """A run of the main protocol stands in the means under its configuration's name; other protocols have their own."""
    bfs, score = graphbench.card("clrs/bfs"), {"score": 0.8}
    about = {"dataset": bfs.id, "dataset_version": bfs.version, "model": "a", "scores": {"test": score}}
    records = runs("a", mst=0.9) + [make_record(seed, protocol="canonical", **about) for seed in (0, 1, 2)]
    suite = group(records, "suite")
    assert [(row.model, row.missing) for row in suite.rows] == [("a", ())]
    assert suite.rows[0].mean_normalised == suite.rows[0].mean_normalised_own

    records += [make_record(seed, protocol="multi_size", **about) for seed in (0, 1, 2)]
    records += [make_record(seed, protocol="made_up", **{**about, "model": "b"}) for seed in (0, 1, 2)]
    board = leaderboard_of(records)
    assert [(g.name, g.protocol, g.units) for g in board.groups if g.budget_class == "open"] == [
        ("suite", None, (MST, "clrs/bfs (canonical)")),
        ("algoreas", None, (MST,)),
        ("clrs", None, ("clrs/bfs (canonical)",)),
        ("clrs", "multi_size", ("clrs/bfs (multi_size)",)),
    ]
    assert {row.model for g in board.groups for row in g.rows} == {"a"}
    assert next(g for g in board.groups if g.protocol).title == "At most 30 minutes on one core (multi_size)"


def test_supplementary_datasets_have_tables_and_count_in_no_mean():
    records = runs("a", mst=0.9, bridges=0.9) + runs("b", mst=0.8, bridges=0.95)
    members = [
        bootstrapped(make_record(seed, dataset=MEMBERS, model="a", scores={"test": {"f1": 0.9 + 0.01 * seed}}))
        for seed in range(3)
    ]
    before, after = leaderboard_of(records), leaderboard_of(records + members)
    assert MEMBERS in {board.dataset for board in after.boards} - {board.dataset for board in before.boards}
    assert after.groups == before.groups
    assert {group.units for group in leaderboard_of(runs("a", mst=0.9) + members).groups} == {(MST,)}
    assert leaderboard_of(members).groups == ()
