import json

import numpy as np
import pytest

from graphbench.core.errors import TuningError
from graphbench.tuning.history import History
from graphbench.tuning.parameters import active_codes, read_parameters, short_names, value_text
from graphbench.tuning.space import describe, space_from
from graphbench.tuning.trial import Status, Trial

from .synthetic import CONDITIONS, SPACE, make_result, make_trials


def trial(number, cost, budget=9, start=0, seconds=1.0, status=Status.SUCCESS, before=0, config_id=None):
    return Trial(
        number, number if config_id is None else config_id, {"x": 0.5}, budget, before, 0, status, cost, seconds,
        budget - before, f"2025-05-01T12:00:{start:02d}+00:00",
    )  # fmt: skip


def history(*trials):
    space = {"x": {"type": "float", "range": [0, 1], "log": False, "default": 0.25}}
    return History({"schema": 1, "what": {}, "space": space, "trials": [own.to_json() for own in trials]})


def test_parameters_read_what_the_space_describes():
    written = {
        "lr": {"type": "float", "range": [1e-5, 1e-1], "log": True},
        "layers": {"type": "int", "range": [2, 6], "default": 3},
        "batch": {"type": "int", "range": [32, 128], "quantum": 32},
        "bias": {"type": "categorical", "choices": [True, False]},
        "kind": {"type": "ordinal", "sequence": ["small", "large"]},
        "seed": {"type": "constant", "value": 4},
    }
    conditions = [
        {"child": "batch", "parent": "layers", "greater_than": 3},
        {"child": "batch", "parent": "kind", "values": ["large"]},
    ]
    found = {p.name: p for p in read_parameters(describe(space_from(written, conditions)), [])}
    assert set(found) == set(written)
    assert found["lr"].range_text == "1e-05 to 0.1, logarithmic" and found["lr"].default == pytest.approx(1e-3)
    assert found["layers"].range_text == "2 to 6" and found["layers"].default == 3 and found["layers"].whole
    assert found["batch"].values == (32, 64, 96, 128) and found["batch"].ordered
    assert found["batch"].range_text == "32, 64, 96, 128; where layers > 3; where kind is large"
    assert found["bias"].range_text == "true, false" and not found["bias"].ordered
    assert not found["seed"].varies and found["lr"].varies
    assert [found["lr"].place(value) for value in (1e-5, 1e-3, 1e-1)] == pytest.approx([0, 0.5, 1])
    assert [found["bias"].place(value) for value in (True, False)] == [0, 1]
    assert found["layers"].place(3) == pytest.approx(0.25)


def test_long_lists_are_shortened():
    (long,) = read_parameters({"n": {"type": "ordinal", "sequence": list(range(0, 500, 5)), "default": 5}}, [])
    assert long.range_text == "0, 5, ..., 495 (100 values)"


def test_parameters_without_bounds_have_those_of_what_was_tried():
    tried = [{"sigma": 0.5, "word": "a"}, {"sigma": -2.0, "word": "b"}]
    sigma, word = read_parameters({"sigma": {"type": "normal_float", "mu": 0.0}, "word": {"type": "odd"}}, tried)
    assert (sigma.low, sigma.high) == (-2.0, 0.5)
    assert word.values == ("a", "b")


def test_codes_are_drawn_evenly_from_all_values():
    found = {p.name: p for p in read_parameters(SPACE, [])}
    shares = (np.arange(5000) + 0.5) / 5000
    values, counts = np.unique(found["model.layers"].codes_at(shares), return_counts=True)
    assert values.tolist() == [2, 3, 4, 5, 6] and counts.tolist() == [1000] * 5
    assert np.unique(found["training.schedule"].codes_at(shares)).tolist() == [0, 1, 2]
    hidden = np.exp(found["model.hidden"].codes_at(shares))
    assert np.allclose(hidden, np.rint(hidden)) and hidden.min() == pytest.approx(16)
    assert hidden.max() == pytest.approx(512) and np.median(hidden) == pytest.approx(90, abs=2)
    rate = found["training.lr"].codes_at(shares)
    assert rate.min() >= np.log(1e-5) and rate.max() <= np.log(1e-1)


def test_inactive_codes_are_the_default_s_also_below_an_inactive_parent():
    space = {
        "a": {"type": "int", "range": [0, 9], "log": False, "default": 0},
        "b": {"type": "categorical", "choices": ["off", "on"], "default": "on"},
        "c": {"type": "float", "range": [0.0, 1.0], "log": False, "default": 0.5},
    }
    conditions = [{"child": "b", "parent": "a", "greater_than": 4}, {"child": "c", "parent": "b", "values": ["on"]}]
    parameters = read_parameters({"space": space, "conditions": conditions, "forbidden": []}, [])
    codes = np.array([[5.0, 1.0, 0.9], [5.0, 0.0, 0.9], [4.0, 1.0, 0.9]])
    assert active_codes(parameters, codes).tolist() == [[5, 1, 0.9], [5, 0, 0.5], [4, 1, 0.5]]


def test_short_names_stay_clear():
    names = ["training.lr", "model.hidden", "model.positional.hidden", "lr2"]
    assert short_names(names) == {
        "training.lr": "lr",
        "model.hidden": "model.hidden",
        "model.positional.hidden": "positional.hidden",
        "lr2": "lr2",
    }


def test_values_as_text():
    assert [value_text(v) for v in (0.00014643, 3, True, "gelu", [1, 2], None)] == [
        "0.0001464",
        "3",
        "true",
        "gelu",
        "[1, 2]",
        "null",
    ]


def test_moments_count_steps_and_time_without_pauses():
    run = history(
        trial(0, 0.5, start=0, seconds=2.0),
        trial(1, 0.4, start=1, seconds=4.0),  # beside the first one
        trial(2, 0.9, start=30, seconds=1.0, status=Status.RAISED),  # after a pause
        trial(3, 0.3, budget=27, start=31, seconds=3.0, before=9, config_id=1),
    )
    moments = run.moments
    assert [m.steps for m in moments] == [9, 18, 27, 45]
    assert [m.seconds for m in moments] == [2.0, 5.0, 6.0, 9.0]
    assert [m.incumbent.number for m in moments] == [0, 1, 1, 3]


def test_the_incumbent_is_the_best_at_the_largest_budget_reached():
    run = history(
        trial(0, 0.1), trial(1, 0.5, budget=27), trial(2, 0.4, budget=27), trial(3, 0.0, 81, status=Status.TIMEOUT)
    )
    assert run.incumbent.number == 2
    assert [own.number for own in run.ranking(10)] == [2, 1, 0]
    assert history(trial(0, 1.0, status=Status.RAISED)).incumbent is None


def test_one_row_per_configuration_in_the_ranking():
    run = history(
        trial(0, 0.5, 9, config_id=0), trial(1, 0.4, 27, before=9, config_id=0), trial(2, 0.3, 9, config_id=1)
    )
    assert [(own.config_id, own.budget) for own in run.ranking(10)] == [(0, 27), (1, 9)]


def test_rungs_add_up():
    trials = make_trials()
    rungs = History(make_result(trials)).rungs()
    assert [rung.budget for rung in rungs] == [27, 81, 243, 729]
    assert sum(rung.trials for rung in rungs) == len(trials)
    assert sum(rung.failed for rung in rungs) == sum(not own.succeeded for own in trials)
    assert sum(rung.steps for rung in rungs) == make_result(trials)["steps"]["done"]
    saved = make_result(trials)["steps"]["without_continuing"] - make_result(trials)["steps"]["done"]
    assert sum(rung.saved for rung in rungs) == saved > 0


def test_trials_of_the_default_configuration_are_found():
    run = History(make_result())
    assert run.default_trials[0].number == 0
    assert {own.config_id for own in run.default_trials} == {0}


def test_scores_stand_in_their_natural_direction():
    ours, free = History(make_result()), History(make_result(ours=False))
    assert ours.measure.head == "validation f1 ↑" and ours.measure.text(0.25) == "validation f1 0.7500"
    assert free.measure.head == "cost ↓" and free.measure.text(0.25) == "cost 0.2500"
    assert free.measure.text(1.5e-7, named=False) == "1.5e-07"


def test_a_result_read_back_from_json_is_the_same():
    result = make_result()
    again = History(json.loads(json.dumps(result)))
    assert again.trials == History(result).trials and again.parameters == History(result).parameters
    assert again.parameters[2].conditions[0].parent == CONDITIONS[0]["parent"]


def test_results_that_are_none():
    with pytest.raises(TuningError, match=r"schema 2, expected 1"):
        History(make_result() | {"schema": 2})
    with pytest.raises(TuningError, match=r"has no space, what"):
        History({"schema": 1, "trials": []})
    with pytest.raises(TuningError, match=r"not the record of a trial"):
        History(make_result() | {"trials": [{"number": 1}]})
