"""Scores of algorithm selection, against plain Python and a few lines of NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import graphbench.tasks.select
from graphbench.catalog.features import parse_features
from graphbench.core.errors import EvaluationError
from graphbench.tasks.select import closed_gap, par
from graphbench.tasks.select.evaluator import SelectionEvaluator

NAMES = ("b_cost", "c_cost", "a_cost")
OUTPUTS = parse_features({name: ["output", "graph", "scalar"] for name in NAMES})
TRAIN = {"a_cost": 4.0, "b_cost": 5.0, "c_cost": 6.0}
ALL = ("closed_gap", "par10", "best_share", "regret")
COSTS = st.floats(0.01, 5e4).map(lambda value: float(np.float32(value)))
SMALL = st.integers(1, 4).map(float)  # values that tie


WIDTHS = st.integers(2, 5)


def tables(elements=COSTS, algorithms=WIDTHS):
    """(costs [S, K], training costs [T, K], choices [S])."""

    @st.composite
    def made(draw):
        k, s, t = draw(algorithms), draw(st.integers(1, 8)), draw(st.integers(1, 5))
        costs, train = (draw(hnp.arrays(np.float64, (rows, k), elements=elements)) for rows in (s, t))
        return costs, train, draw(hnp.arrays(np.int64, s, elements=st.integers(0, k - 1)))

    return made()


def plain_gap(costs, train, choices, overhead=0.0):
    """The closed gap in plain Python with exact sums; None where there is no gap."""
    count, width = len(costs), len(costs[0])
    means = [math.fsum(row[k] for row in train) / len(train) for k in range(width)]
    tied = [k for k in range(width) if means[k] <= min(means) * (1 + 1e-9)]
    single = math.fsum(math.fsum(row[k] for row in costs) / count for k in tied) / len(tied)
    virtual = math.fsum(min(row) for row in costs) / count
    chosen = math.fsum(row[k] for row, k in zip(costs, choices, strict=True)) / count + overhead
    return None if single - virtual <= 1e-12 * single else (single - chosen) / (single - virtual)


def evaluator(**changes):
    return SelectionEvaluator(OUTPUTS, ALL[0], ALL[1:], **{"train_costs": TRAIN, **changes})


# ------------------------------------------------------------------------------------------------ PAR10


def test_par10_counts_ten_cutoffs_for_what_is_not_solved():
    assert par([1.0, 3.0, 50.0, 49.0], cutoff=50) == pytest.approx((1 + 3 + 500 + 49) / 4)
    assert par([1.0, math.inf], cutoff=50, factor=2) == pytest.approx((1 + 100) / 2)
    assert par([7.0, math.nan, 60.0], cutoff=50, solved=[True, False, True]) == pytest.approx((7 + 500 + 500) / 3)
    assert par(torch.tensor([0, 5]), 10) == pytest.approx(2.5)


@given(
    hnp.arrays(np.float64, st.integers(1, 9), elements=st.floats(0, 1e4)),
    st.floats(0.1, 1e4),
    st.floats(1, 20),
    st.data(),
)
def test_par_is_that_of_plain_python(times, cutoff, factor, data):
    solved = data.draw(hnp.arrays(bool, len(times)))
    terms = [t if t < cutoff and ok else factor * cutoff for t, ok in zip(times.tolist(), solved, strict=True)]
    assert par(times, cutoff, factor, solved) == pytest.approx(math.fsum(terms) / len(terms))
    assert par(times, cutoff, factor) <= par(times, cutoff, factor, solved) + 1e-9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, math.nan], 5), "times holds nan at row 1"),
        (([-1.0], 5), "times holds -1.0 at row 0"),
        (([], 5), r"times has shape \[0\]"),
        (([[1.0]], 5), r"times has shape \[1, 1\]"),
        (([1.0], 0), "cutoff is 0.*above 0"),
        (([1.0], math.inf), "cutoff is inf"),
        (([1.0], 5, 0.5), "factor is 0.5.*from 1"),
        (([1.0], 5, 10, [1.0]), r"solved is float64 \[1\]; give bool \[1\]"),
        (([1.0], 5, 10, [True, False]), r"solved is bool \[2\]; give bool \[1\]"),
    ],
)
def test_times_that_are_none_are_refused(arguments, message):
    with pytest.raises(EvaluationError, match=message):
        par(*arguments)


# ------------------------------------------------------------------------------------------------ closed gap


@settings(max_examples=100)
@given(st.one_of(tables(), tables(SMALL)), st.floats(0, 100))
def test_the_closed_gap_is_that_of_plain_python(made, overhead):
    costs, train, choices = made
    expected, found = plain_gap(costs, train, choices, overhead), closed_gap(costs, choices, train, overhead)
    assert math.isfinite(found) and found <= 1 + 1e-12
    if expected is not None:
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)
    else:
        assert found <= 0
    assert closed_gap(costs, choices, train.mean(axis=0), overhead) == pytest.approx(found)


@settings(max_examples=100)
@given(st.one_of(tables(), tables(SMALL)), st.randoms(use_true_random=False))
def test_the_order_of_algorithms_and_of_instances_does_not_matter(made, random):
    costs, train, choices = made
    order, rows = list(range(costs.shape[1])), list(range(len(costs)))
    random.shuffle(order)
    random.shuffle(rows)
    moved = np.argsort(order)[choices]
    again = closed_gap(costs[rows][:, order], moved[rows], train[:, order])
    assert again == pytest.approx(closed_gap(costs, choices, train), rel=1e-6, abs=1e-9)


@given(st.one_of(tables(), tables(SMALL)), st.sampled_from([2.0, 0.125, 3.7, 1e-3]), st.floats(0, 10))
def test_the_unit_of_costs_does_not_matter(made, unit, overhead):
    costs, train, choices = made
    found = closed_gap(costs * unit, choices, train * unit, overhead * unit)
    assert found == pytest.approx(closed_gap(costs, choices, train, overhead), rel=1e-6, abs=1e-9)


@given(tables())
def test_the_virtual_best_closes_all_of_a_gap_and_the_single_best_none(made):
    costs, train, _ = made
    single = int(train.mean(axis=0).argmin())
    best = closed_gap(costs, costs.argmin(axis=1), train)
    no_gap = plain_gap(costs, train, costs.argmin(axis=1)) is None
    assert best == (0.0 if no_gap else pytest.approx(1.0))
    if np.count_nonzero(train.mean(axis=0) <= train.mean(axis=0).min() * (1 + 1e-9)) == 1:
        assert closed_gap(costs, np.full(len(costs), single), train) == pytest.approx(0.0, abs=1e-9)


def test_ties_in_training_count_as_the_mean_and_are_not_decided_by_the_scored_costs():
    costs = np.array([[2.0, 4.0, 1.0], [2.0, 4.0, 1.0]])
    found = [closed_gap(costs, [k, k], [3.0, 3.0, 9.0]) for k in range(3)]
    assert found == pytest.approx([(3 - 2) / (3 - 1), (3 - 4) / (3 - 1), 1.0])


def test_without_a_gap_nothing_is_rewarded_and_nothing_is_infinite():
    costs, train = np.array([[1.0, 3.0], [2.0, 5.0]]), [1.0, 2.0]
    assert closed_gap(costs, [0, 0], train) == 0.0
    assert closed_gap(costs, [0, 1], train) == pytest.approx((1.5 - 3.0) / 1.5)
    assert closed_gap(costs, [0, 0], train, overhead=0.3) == pytest.approx(-0.3 / 1.5)


def test_overhead_counts_for_the_choices_alone():
    costs, train = [[1.0, 9.0], [8.0, 2.0]], [5.0, 4.0]
    assert closed_gap(costs, [0, 1], train, overhead=1.0) == pytest.approx((5.5 - 2.5) / (5.5 - 1.5))
    assert closed_gap(costs, [0, 1], train, overhead=[2.0, 0.0]) == pytest.approx((5.5 - 2.5) / (5.5 - 1.5))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"costs": [1.0, 2.0]}, r"costs has shape \[2\].*\[instances, algorithms\]"),
        ({"costs": np.ones((0, 2))}, r"costs has shape \[0, 2\]"),
        ({"costs": [[1.0, math.nan]]}, "costs holds nan at row 0, column 1"),
        ({"costs": [[1.0, math.inf]]}, "costs holds inf at row 0, column 1"),
        ({"costs": [[0.0, 1.0]]}, "costs holds 0.0 at row 0, column 0.*above 0"),
        ({"train_costs": [1.0, 2.0, 3.0]}, r"train_costs has shape \[1, 3\].*\[instances, 2\]"),
        ({"train_costs": [1.0, -2.0]}, "train_costs holds -2.0"),
        ({"train_costs": 1.0}, r"train_costs has shape \[\]"),
        ({"choices": [2]}, "choices holds 2 at row 0.*numbers 0 to 1"),
        ({"choices": [-1]}, "choices holds -1"),
        ({"choices": [0.5]}, "choices holds 0.5"),
        ({"choices": [True]}, r"choices is bool \[1\]"),
        ({"choices": [0, 1]}, r"choices is int64 \[2\]; give int \[1\]"),
        ({"overhead": -1.0}, "overhead holds -1.0"),
        ({"overhead": [1.0, 2.0]}, r"overhead has shape \[2\].*\[1\]"),
        ({"overhead": math.nan}, "overhead holds nan"),
    ],
)
def test_costs_and_choices_that_are_none_are_refused(changes, message):
    given_ = {"costs": [[1.0, 2.0]], "choices": [0], "train_costs": [1.0, 2.0], **changes}
    with pytest.raises(EvaluationError, match=message):
        closed_gap(**given_)


def test_the_functions_are_exported_by_name():
    assert set(dir(graphbench.tasks.select)) >= {"closed_gap", "par"}
    with pytest.raises(AttributeError, match=r"attribute 'gap'.*best_portfolios, closed_gap"):
        getattr(graphbench.tasks.select, "gap")  # noqa: B009


# ------------------------------------------------------------------------------------------------ evaluator


@settings(max_examples=60)
@given(tables(algorithms=st.just(3)), st.integers(1, 4), st.floats(0, 5))
def test_every_metric_is_that_of_numpy_and_any_split_into_updates_gives_it(made, size, overhead):
    costs, _, choices = made
    score = evaluator(overhead=overhead).evaluate(costs, choices)
    own, best = costs[np.arange(len(costs)), choices], costs.min(axis=1)
    assert score["par10"] == pytest.approx((own + overhead).mean())
    assert score["regret"] == pytest.approx((own + overhead - best).mean(), abs=1e-9)
    assert score["best_share"] == pytest.approx((own == best).mean())
    train = [TRAIN[name] for name in NAMES]
    assert score["closed_gap"] == pytest.approx(closed_gap(costs, choices, train, overhead), rel=1e-9, abs=1e-9)
    assert (score.graphs, score.primary_name, score.higher_is_better) == (len(costs), "closed_gap", True)
    streamed = evaluator(overhead=overhead)
    for first in range(0, len(costs), size):
        streamed.update(costs[first : first + size], choices[first : first + size])
    assert dict(streamed.compute()) == pytest.approx(dict(score), rel=1e-9, abs=1e-9)


def test_the_forms_of_predictions_choose_alike():
    rng = np.random.default_rng(0)
    costs, values = rng.uniform(1, 9, (20, 3)), rng.uniform(0, 1, (20, 3)).astype(np.float32)
    expected = dict(evaluator().evaluate(costs, values.argmin(axis=1)))
    predicted = {name: values[:, k] for k, name in enumerate(NAMES)}
    mapped = {name: torch.tensor(costs[:, k]) for k, name in enumerate(NAMES)}
    for found in (
        evaluator().evaluate(costs, -values),
        evaluator().evaluate(costs, torch.tensor(1 - values)),
        evaluator(scores="probability").evaluate(costs, 1 - values),
        evaluator().evaluate(mapped, predicted),
        evaluator(scores="label").evaluate(costs, values.argmin(axis=1).astype(float)),
    ):
        assert dict(found) == expected


@given(
    hnp.arrays(np.float64, (5, 3), elements=SMALL),
    hnp.arrays(np.float64, (5, 3), elements=SMALL),
    st.permutations(range(3)),
)
def test_equal_scores_choose_alike_in_any_order_of_outputs(costs, values, order):
    first = evaluator().evaluate(costs, values)
    again = SelectionEvaluator([OUTPUTS[k] for k in order], ALL[0], ALL[1:], train_costs=TRAIN)
    assert dict(again.evaluate(costs[:, order], values[:, order])) == pytest.approx(dict(first))


@pytest.mark.parametrize(
    ("y_pred", "message"),
    [
        (np.zeros((2, 2)), r"y_pred has shape \[2, 2\] for 2 instances"),
        (np.zeros((1, 3)), r"y_pred has shape \[1, 3\] for 2 instances"),
        (np.zeros(2), r"y_pred has shape \[2\].*int \[2\]"),
        (np.zeros(3, int), r"y_pred is int64 \[3\]; give int \[2\]"),
        (np.array([0, 3]), "y_pred holds 3 at row 1.*numbers 0 to 2"),
        (np.full((2, 3), np.nan), "y_pred holds nan at row 0, column 0"),
        ({"a_cost": [1.0, 2.0]}, "y_pred lacks the output 'b_cost'.*a_cost"),
        ({"a_cost": [1.0], "b_cost": [1.0, 2.0], "c_cost": [1.0, 2.0]}, "y_pred has columns of different lengths"),
        ({name: [1.0, np.inf] for name in NAMES}, "y_pred holds inf at row 1"),
    ],
)
def test_predictions_that_are_none_are_refused_and_change_nothing(y_pred, message):
    scoring = evaluator()
    scoring.update(np.ones((2, 3)), [0, 1])
    before = dict(scoring.compute())
    with pytest.raises(EvaluationError, match=message):
        scoring.update(np.ones((2, 3)), y_pred)
    assert dict(scoring.compute()) == before


def test_other_mistakes_are_told():
    with pytest.raises(EvaluationError, match=r"y_true has shape \[2, 4\].*\[instances, 3\]"):
        evaluator().evaluate(np.ones((2, 4)), [0, 1])
    with pytest.raises(EvaluationError, match="y_true holds nan at row 0"):
        evaluator().evaluate(np.full((2, 3), np.nan), [0, 1])
    with pytest.raises(EvaluationError, match=r"2 graphs.*3 are expected: 1 missing"):
        evaluator(expected_graphs=3).evaluate(np.ones((2, 3)), [0, 1])
    with pytest.raises(EvaluationError, match="leave batch out"):
        evaluator().evaluate(np.ones((2, 3)), [0, 1], [0, 1])
    with pytest.raises(EvaluationError, match=r"y_pred holds 1.5 at row 0, column 0.*\[0, 1\]"):
        evaluator(scores="probability").evaluate(np.ones((1, 3)), np.array([[1.5, 0.0, 0.0]]))
    with pytest.raises(EvaluationError, match="before any update"):
        evaluator().compute()
    with pytest.raises(EvaluationError, match="'f1' cannot score the choice"):
        SelectionEvaluator(OUTPUTS, "f1")
    with pytest.raises(EvaluationError, match="a choice needs at least two algorithms"):
        SelectionEvaluator(OUTPUTS[:1])
    with pytest.raises(EvaluationError, match="training cost of b_cost, c_cost, a_cost"):
        evaluator(train_costs={"a_cost": 1.0})
    with pytest.raises(EvaluationError, match=r"train_costs\['c_cost'\] is nan"):
        evaluator(train_costs={**TRAIN, "c_cost": math.nan})
    with pytest.raises(EvaluationError, match="'seconds' of the graphs"):
        evaluator(overhead="seconds").evaluate(np.ones((2, 3)), [0, 1])


def test_without_training_costs_the_closed_gap_alone_is_undefined():
    costs = [[1.0, 2.0, 3.0]]
    with pytest.raises(EvaluationError, match=r"closed_gap.*train_costs="):
        evaluator(train_costs=None).evaluate(costs, [0])
    score = SelectionEvaluator(OUTPUTS, "par10", ("closed_gap", "regret")).evaluate(costs, [1])
    assert dict(score) == {"par10": 2.0, "regret": 1.0} and "closed_gap" in score.undefined


def test_an_overhead_of_several_fields_is_their_sum():
    from torch_geometric.data import Batch, Data

    fields = {"a_cost": 1.0, "b_cost": 5.0, "features": 0.25, "probes": 0.5}
    graphs = Batch.from_data_list(
        [Data(num_nodes=1, **{name: torch.tensor([value + i]) for name, value in fields.items()}) for i in range(3)]
    )
    outputs = parse_features({"a_cost": ["output", "graph", "scalar"], "b_cost": ["output", "graph", "scalar"]})
    trained = {"a_cost": 1.0, "b_cost": 2.0}
    for overhead, paid in ((("features", "probes"), 0.75 + 2), ("features", 0.25 + 1), ((), 0.0)):
        evaluator = SelectionEvaluator(outputs, "par10", train_costs=trained, overhead=overhead)
        assert evaluator.evaluate(graphs, np.zeros(3, np.int64))["par10"] == pytest.approx(2.0 + paid)
    with pytest.raises(EvaluationError, match="'other' of the graphs"):
        SelectionEvaluator(outputs, "par10", overhead=("features", "other")).evaluate(graphs, np.zeros(3, np.int64))
