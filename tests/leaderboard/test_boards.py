"""Which records share a table, which of them are one model, and what stands beside them."""

import numpy as np
import pytest
from scipy import stats

from graphbench.catalog.features import parse_features
from graphbench.evaluation.evaluator import FeatureEvaluator
from graphbench.leaderboard.boards import graphs_scored, tables_of
from graphbench.records.aggregates import absurd_number
from graphbench.records.budgets import Budget

from .conftest import bootstrapped, make_record

ID = "algoreas/mst_medium"


@pytest.fixture
def build(card):
    """Return a function that gives the tables of some records of the toy card."""
    return lambda *records: tables_of(records, {ID: card})


def on_test(tables):
    """Return the tables of all models on the test split."""
    return [board for board in tables.boards if board.split == "test" and board.budget_class == "open"]


def names(board):
    return [(row.label, row.seeds) for row in board.rows]


def test_models_are_listed_by_their_means_and_ranked_by_tests(build):
    records = [make_record(seed, f1=f1, model="gt") for seed, f1 in ((0, 0.906), (1, 0.911), (2, 0.916))]
    records += [make_record(seed, f1=f1) for seed, f1 in ((0, 0.80), (1, 0.805), (2, 0.811))]
    records += [make_record(seed, f1=f1, model="gat") for seed, f1 in ((0, 0.5), (1, 0.99), (2, 0.7))]
    board = on_test(build(*map(bootstrapped, records)))[0]
    assert [(row.label, row.rank, row.worst_rank) for row in board.rows] == [
        ("gt", 1, 2),
        ("gin", 2, 3),
        ("gat", 1, 3),
    ]
    assert board.rows[0].values == (0.906, 0.911, 0.916) and board.rows[0].mean == pytest.approx(0.911)
    assert board.pairs_tested == 3 and board.metric == "f1" and board.budget_class == "open" and board.main


@pytest.mark.parametrize(
    ("changes", "main"),
    [
        ({"data_hashes": {"test": "ffff"}}, None),
        ({"data_seed": 3, "data_fingerprint": "ab12cd34ef56-draw3"}, False),
        ({"dataset_version": 1}, False),
        ({"graphs_scored": {"test": 20}}, False),
        ({"notes": "graphs scored: test 20 of 10,000, n192 5 of 10"}, False),
    ],
)
def test_other_samples_have_a_table_of_their_own(build, changes, main):
    usual, other = make_record(f1=0.7), make_record(f1=0.9, model="gt", **changes)
    found = on_test(build(usual, other))
    assert [names(board) for board in found].count([("gin", (0,))]) == 1 and len(found) == 2
    assert sum(board.main for board in found) == 1
    own = next(board for board in found if board.rows[0].label == "gt")
    assert main is None or own.main is main
    assert all(board.rows[0].rank is None and board.rows[0].unranked == "seeds" for board in found)


def test_runs_of_several_draws_are_not_averaged(build):
    runs = [make_record(k, f1=f1, data_seed=k, data_fingerprint=f"v2-draw{k}", data_hashes={"test": f"{k}"})
            for k, f1 in ((1, 0.7), (2, 0.8))]  # fmt: skip
    assert [(b.data.draw, b.rows[0].values, b.references) for b in on_test(build(*runs))] == [
        (1, (0.7,), ()),
        (2, (0.8,), ()),
    ]


def test_configurations_and_budgets_are_rows_of_their_own(build):
    wide = {"model": {"processor": "gin", "hidden": 512}, "training": {"steps": 100, "seed": 0}}
    records = [make_record(f1=0.7), make_record(f1=0.8, config=wide), make_record(1, f1=0.9, batch_size=8)]
    (board,) = on_test(build(*records))
    assert len(board.rows) == 3 and len({row.label for row in board.rows}) == 3
    assert all(row.label == f"gin [{row.config_hash}]" and len(row.seeds) == 1 for row in board.rows)


def budgets():
    """Return three seeds of models with different budgets, and of one whose budget is not stated; the best is last."""
    hours = {"cpu_seconds": 9000.0}
    models = {
        "quick": {"cpu_seconds": 1700.0, "budget": Budget(small=True, label="5 steps")},
        "long": hours,
        "huge": {**hours, "steps": 10**9},
        "own": {"steps": None, "batch_size": None, "wall_seconds": None, "budget": Budget(small=None)},
    }
    return [
        bootstrapped(make_record(seed, f1=0.5 + 0.1 * i + 0.001 * seed, model=model, **changes))
        for i, (model, changes) in enumerate(models.items())
        for seed in (0, 1, 2)
    ]


def test_a_model_stands_in_every_class_whose_limit_it_keeps(build):
    boards = [board for board in build(*budgets()).boards if board.split == "test"]
    assert [(board.budget_class, [row.label for row in board.rows], board.main) for board in boards] == [
        ("minutes", ["quick"], True),
        ("paper", ["long", "quick"], True),
        ("open", ["own", "huge", "long", "quick"], True),
    ]
    rows = {row.label: row for row in boards[-1].rows}
    assert {name: row.budget_class for name, row in rows.items()} == {
        "own": "open", "huge": "open", "long": "paper", "quick": "minutes",
    }  # fmt: skip
    assert rows["quick"].budget == "5 steps" and rows["quick"].rank == 4
    assert (rows["long"].rank, rows["long"].class_rank) == (3, 1)
    assert rows["quick"].class_rank is None  # it is alone in its class


def test_the_mean_over_seeds_decides_on_the_class(build):
    seconds = {0: 1790.0, 1: 1900.0, 2: 1700.0}
    (board,) = on_test(build(*(make_record(k, f1=0.8 + 0.01 * k, cpu_seconds=s) for k, s in seconds.items())))
    assert board.rows[0].budget_class == "minutes"
    slower = {**seconds, 2: 1800.0}
    (board,) = on_test(build(*(make_record(k, f1=0.8 + 0.01 * k, cpu_seconds=s) for k, s in slower.items())))
    assert board.rows[0].budget_class == "paper" and board.rows[0].seeds == (0, 1, 2)


@pytest.mark.parametrize(("operations", "expected"), [(3e13, "minutes"), (4e13, "paper"), (None, "paper")])
def test_on_a_gpu_operations_decide_instead_of_seconds(build, operations, expected):
    record = make_record(hardware={"device": "cuda:0"}, cpu_seconds=5.0, operations=operations)
    assert on_test(build(record))[0].rows[0].budget_class == expected


def test_a_dataset_without_printed_scores_has_no_class_of_the_paper():
    boards = tables_of([make_record(dataset="algoreas/clique_membership_easy", cpu_seconds=9000.0)]).boards
    assert {board.budget_class for board in boards} == {"open"}


def test_whole_splits_count_before_many_models(build):
    part = [make_record(f1=0.5, model=f"m{i}", graphs_scored={"test": 10}) for i in range(3)]
    found = on_test(build(*part, make_record(f1=0.6, graphs_scored={"test": 100})))
    assert [(len(b.rows), b.main, b.data.whole, b.data.graphs) for b in found] == [
        (1, True, True, 100),
        (3, False, False, 10),
    ]


def test_references_stand_beside_and_are_not_ranked(build):
    board = on_test(build(make_record(f1=0.7)))[0]
    found = [(r.kind, r.name, r.value, r.basis) for r in board.references]
    assert ("trivial", "all positive", 0.4, "the best of the trivial predictors") in found
    assert ("published", "gt", 0.8504, "GraphBench, Table 16") in found
    assert [value for _, _, value, _ in found] == sorted((value for _, _, value, _ in found), reverse=True)
    assert len(board.rows) == 1 and board.rows[0].rank is None
    away = {b.split: b for b in build(make_record()).boards}
    assert [r.kind for r in away["n192"].references].count("trivial") == 1
    assert "trivial" not in [r.kind for r in away["n512"].references]


def test_published_scores_of_other_protocols_do_not_stand_beside(build):
    (board,) = on_test(build(make_record(protocol="canonical")))
    assert board.protocol == "canonical" and board.unit == f"{ID} (canonical)"
    assert [r.kind for r in board.references] == ["trivial"]


def test_replicates_are_averaged_over_seeds_and_separate_deterministic_models(build):
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.02, 200)

    def record(seed, f1, values, **changes):
        return make_record(seed, f1=f1, replicates={"test": list(values)}, **changes)

    def pair(**changes):
        other = list(0.7 + noise + np.random.default_rng(1).normal(0, 0.001, 200))
        return [record(0, 0.8, 0.8 + noise, **changes), record(0, 0.7, other, model="gt", **changes)]

    (board,) = on_test(build(*pair(deterministic=True)))
    assert [(row.rank, row.worst_rank, row.replicates) for row in board.rows] == [(1, 1, 200), (2, 2, 200)]
    assert board.rows[0].interval.method == "bootstrap" and board.rows[1].against_best.p < 1e-6
    assert all(row.deterministic for row in board.rows)
    (board,) = on_test(build(*pair()))  # one seed of a learner
    assert [(row.rank, row.unranked, row.deterministic) for row in board.rows] == [(None, "seeds", False)] * 2
    assert board.rows[1].against_best.p is None and board.pairs_tested == 0
    tables = build(*pair(), record(1, 0.82, 0.82 + noise))
    assert np.allclose(tables.samples[ID, "open", "gin"].mean_replicates, 0.81 + noise)
    (board,) = on_test(build(*pair(), make_record(1, f1=0.82)))  # one of two runs has no replicates
    assert board.rows[0].replicates == 0 and board.rows[1].against_best.p is None


def test_a_deterministic_model_whose_runs_differ_is_none(build):
    runs = [bootstrapped(make_record(seed, f1=f1, deterministic=True)) for seed, f1 in ((0, 0.8), (1, 0.9))]
    (board,) = on_test(build(*runs))
    assert not board.rows[0].deterministic and board.rows[0].unranked == "seeds"
    (board,) = on_test(build(runs[0], runs[0].model_copy(update={"seed": 1})))
    assert board.rows[0].deterministic and board.rows[0].seeds == (0,)


def test_copied_runs_are_dropped_and_named(build):
    runs = [bootstrapped(make_record(seed, f1=f1)) for seed, f1 in ((0, 0.8), (1, 0.81), (2, 0.85))]
    runs += [bootstrapped(make_record(seed, f1=f1, model="gt")) for seed, f1 in ((0, 0.9), (1, 0.97), (2, 0.93))]
    copies = [run.model_copy(update={"seed": 3 + run.seed, "wall_seconds": 1.0}) for run in runs[3:]]
    (whole,), (copied,) = on_test(build(*runs)), on_test(build(*runs, *copies))
    assert [(r.label, r.values, r.rank, r.worst_rank) for r in copied.rows] == [
        (r.label, r.values, r.rank, r.worst_rank) for r in whole.rows
    ]
    assert copied.rows[0].copies == (3, 4, 5) and whole.rows[0].copies == ()


def test_where_there_can_be_no_bootstrap_the_samples_are_taken_as_given(build):
    few = {"graphs_scored": {"test": 1}}
    runs = [make_record(seed, f1=0.8 + 0.001 * seed, **few) for seed in range(3)]
    runs += [make_record(seed, f1=0.9 + 0.001 * seed**2, model="gt", **few) for seed in range(3)]
    (board,) = on_test(build(*runs))
    assert [(row.label, row.rank) for row in board.rows] == [("gt", 1), ("gin", 2)]
    assert not board.rows[1].against_best.bootstrap and board.rows[1].against_best.seeds == 3
    (board,) = on_test(build(*(run.model_copy(update={"graphs_scored": {"test": 20}}) for run in runs)))
    assert [(row.rank, row.unranked) for row in board.rows] == [(None, "bootstrap")] * 2


def test_costs_are_means_and_devices_are_named(build):
    fast = {"cpu": "Example CPU", "cores": 8, "gpu": "Big GPU", "gpus": 1, "torch": "2.9"}
    records = [
        make_record(0, peak_memory_bytes=2**30),
        make_record(1, f1=0.81, hardware=fast, throughput_graphs_per_s=50.0),
    ]
    cost = on_test(build(*records))[0].rows[0].cost
    assert (cost.parameters, cost.seconds, cost.memory_bytes) == (2_680_000, 10.5, 2**30)
    assert cost.graphs_per_second == 50.0 and cost.latency_ms is None
    assert cost.devices == ("Example CPU, 2 cores", "1 x Big GPU; Example CPU, 8 cores")


def test_datasets_without_a_card_are_left_out_and_named(card):
    tables = tables_of([make_record(dataset="gone/away"), make_record()], {ID: card})
    assert tables.unknown == ["gone/away"] and {b.dataset for b in tables.boards} == {ID}
    assert tables_of([]).boards == []


@pytest.mark.parametrize(
    "changes",
    [
        {"scores": {"test": {"rse": 1e200}}},
        {"wall_seconds": 1e300},
        {"replicates": {"test": [0.5, -1e200]}},
        {"parameters": 10**400},
    ],
)
def test_numbers_that_cannot_be_averaged_are_refused_and_named(build, changes):
    tables = build(make_record(), make_record(1, **changes))
    assert [names(board) for board in on_test(tables)] == [[("gin", (0,))]]
    (text,) = tables.refused
    assert text.startswith(f"{ID}, gin, seed 1: ") and text.endswith(" is beyond 1e+100")


def test_numbers_of_graphs_of_older_records_are_in_their_notes():
    record = make_record(notes="warm start; graphs scored: test 200 of 10,000, n192 1,000 of 5,000")
    assert [graphs_scored(record, split) for split in ("test", "n192", "n512")] == [200, 1000, None]
    assert graphs_scored(make_record(graphs_scored={"test": 7}, notes="graphs scored: test 200 of 300"), "test") == 7
    assert graphs_scored(make_record(notes=f"graphs scored: test {'9' * 5000} of 5"), "test") is None


def test_lead_times_are_scored_on_the_samples_of_their_split(card):
    record = make_record(scores={"test": {"f1": 0.5}, "test_n16": {"f1": 0.4}}, data_hashes={"val": "v", "test": "abc"})
    found = {board.split: board for board in tables_of([record], {ID: card}).boards}
    assert found["test_n16"].data.hash == "abc" and found["test_n16"].main


def test_models_scored_by_evaluators_are_separated_as_mcnemars_test_separates_them(build):
    (feature,) = parse_features({"kind": ["output", "graph", "categorical(4)"]})
    rng, graphs = np.random.default_rng(3), 600
    truth = rng.integers(0, 4, graphs)
    hard = rng.random(graphs) < 0.4
    right = {"first": ~hard, "second": ~hard ^ (rng.random(graphs) < 0.05), "third": ~hard & (rng.random(graphs) > 0.1)}
    records = []
    for model, own in right.items():
        evaluator = FeatureEvaluator(feature, "accuracy")
        evaluator.draw_replicates(11)
        for part in np.split(np.arange(graphs), 4):
            evaluator.update(truth[part], np.where(own, truth, (truth + 1) % 4)[part], np.arange(len(part)))
        score = evaluator.compute()
        found = {"f1": score["accuracy"]}  # the toy card's metric; its replicates are those of the accuracy
        replicates = {"test": list(score.replicates)}
        records.append(make_record(model=model, scores={"test": found}, replicates=replicates, deterministic=True))
    (board,) = on_test(build(*records))
    by_name = {row.label: row for row in board.rows}
    best = board.rows[0].label
    assert [row.mean for row in board.rows] == sorted((own.mean() for own in right.values()), reverse=True)
    for model, own in right.items():
        row = by_name[model]
        error = 1.96 * (own.mean() * (1 - own.mean()) / graphs) ** 0.5
        assert (row.interval.low, row.interval.high) == pytest.approx((row.mean - error, row.mean + error), abs=0.012)
        if model != best:
            changed = [np.count_nonzero(own & ~right[best]), np.count_nonzero(~own & right[best])]
            expected = stats.binomtest(changed[0], sum(changed)).pvalue
            assert (row.against_best.raw_p < 0.05) == (expected < 0.05)
            assert row.against_best.raw_p == pytest.approx(expected, abs=0.1)
    assert {name: (row.rank, row.worst_rank) for name, row in by_name.items()} == {
        "first": (1, 2),
        "second": (1, 2),
        "third": (3, 3),
    }


def test_a_learner_whose_first_run_lacks_replicates_says_so(build):
    runs = [bootstrapped(make_record(seed, f1=f1)) for seed, f1 in ((0, 0.8), (1, 0.81), (2, 0.85))]
    others = [bootstrapped(make_record(seed, f1=f1, model="gt")) for seed, f1 in ((0, 0.9), (1, 0.97), (2, 0.93))]
    others[0] = others[0].model_copy(update={"replicates": {}})
    (board,) = on_test(build(*runs, *others))
    assert {row.label: row.unranked for row in board.rows} == {"gt": "bootstrap", "gin": "alone"}


def test_huge_numbers_in_curves_are_named():
    record = make_record(0).model_copy(update={"curves": {"train_loss": [(10**300, 1.0), (0, 2.0)]}})
    assert "the curve train_loss is beyond" in absurd_number(record)
