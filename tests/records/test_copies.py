"""Copied runs are told from runs that happen to agree."""

from datetime import timedelta

import numpy as np
import pytest

from graphbench.records.aggregates import aggregate
from graphbench.records.copies import copied_runs

from .conftest import make_record


def run(seed, f1=0.8, spread=0.01, **changes):
    replicates = {"test": (f1 + spread * np.random.default_rng(round(1e6 * f1)).normal(size=200)).tolist()}
    fields = {"scores": {"test": {"f1": f1}}, "replicates": replicates, **changes}
    return make_record(seed, **fields)


def test_runs_of_other_scores_are_no_copies():
    assert copied_runs([run(0), run(1, 0.81), run(2, 0.82)]) == {}


@pytest.mark.parametrize(
    "changes", [{}, {"wall_seconds": 3.0}, {"curves": {}}, {"started": run(0).started + timedelta(days=1)}]
)
def test_a_run_with_equal_scores_and_replicates_is_a_copy(changes):
    assert copied_runs([run(0), run(1, 0.81), run(5, **changes)]) == {(5, 0): (0, 0)}


def test_runs_with_equal_scores_and_other_replicates_are_none():
    other = run(1).model_copy(update={"replicates": run(1, 0.81).replicates})
    assert copied_runs([run(0), other]) == {}


def test_splits_that_one_run_lacks_do_not_hide_a_copy():
    wider = run(1, scores={"test": {"f1": 0.8}, "n192": {"f1": 0.7}})
    assert copied_runs([run(0), wider]) == {(1, 0): (0, 0)}
    assert copied_runs([run(0, scores={"n512": {"f1": 0.8}}), run(1)]) == {}


def test_times_are_not_compared():
    runs = [run(seed, scores={"test": {"f1": 0.8, "seconds_per_graph": 1.0 + seed}}) for seed in (0, 1)]
    assert copied_runs(runs) == {(1, 0): (0, 0)}


def test_models_that_solve_every_sample_are_told_apart_by_curves_or_start():
    solved = {"scores": {"test": {"f1": 1.0}}, "replicates": {"test": [1.0] * 200}}
    assert copied_runs([run(0, **solved), run(1, **solved)]) == {(1, 0): (0, 0)}
    curves = {"train_loss": [(0, 1.0), (10, 0.25)]}
    assert copied_runs([run(0, **solved), run(1, **solved, curves=curves)]) == {}
    later = run(1, **solved, curves={}, started=run(0).started + timedelta(seconds=1))
    assert copied_runs([run(0, **solved, curves={}), later]) == {}
    bare = {"scores": {"test": {"f1": 1.0}}, "replicates": {}}
    assert copied_runs([run(0, **bare), run(1, **bare)]) == {(1, 0): (0, 0)}
    assert copied_runs([run(0, **bare), run(1, **bare, curves=curves)]) == {}


def test_copies_enter_no_statistics():
    runs = [run(0), run(1, 0.81), run(2, 0.85)]
    (whole,) = aggregate(runs)
    (copied,) = aggregate([*runs, *(run(3 + i, 0.85, wall_seconds=1e6) for i in range(3))])
    assert copied.scores == whole.scores and copied.measure("wall_seconds") == whole.measure("wall_seconds")
    assert copied.copies == {(seed, 0): (2, 0) for seed in (3, 4, 5)} and len(copied.distinct) == 3
    assert not copied.deterministic


def test_equal_runs_of_a_deterministic_model_are_one_run():
    (runs,) = aggregate([run(seed, deterministic=True) for seed in range(3)])
    assert runs.deterministic and runs.scores["test"]["f1"].std is None and runs.scores["test"]["f1"].n == 1
    (runs,) = aggregate([run(0, deterministic=True), run(1, 0.9, deterministic=True)])
    assert not runs.deterministic


def test_a_change_in_the_last_digits_makes_no_other_run():
    def nudged(record):
        scores = {split: {m: float(np.nextafter(v, 2)) for m, v in own.items()} for split, own in record.scores.items()}
        replicates = {split: [float(np.nextafter(v, 2)) for v in own] for split, own in record.replicates.items()}
        return record.model_copy(update={"scores": scores, "replicates": replicates})

    assert copied_runs([run(0), nudged(run(1)), nudged(nudged(run(2)))]) == {(1, 0): (0, 0), (2, 0): (0, 0)}
    assert copied_runs([run(0), run(1, 0.8 * (1 + 1e-5))]) == {}
