"""Averages and counts of a collection, against those the CLRS paper prints."""

import re

import pytest

from graphbench.catalog.names import catalog
from graphbench.core.errors import ResultError
from graphbench.records.aggregates import aggregate
from graphbench.records.budgets import Budget
from graphbench.records.published import read_published
from graphbench.reports.collections import published_scores, summaries, win_tie_loss
from graphbench.reports.report import build_report

from .conftest import make_record

PRINTED_COUNTS = {
    "deepsets": (0, 3, 27),
    "gat": (1, 5, 24),
    "memnet": (4, 2, 24),
    "mpnn": (8, 3, 19),
    "pgn": (8, 6, 16),
}
TABLE_1 = {  # per cent; columns as above. Rows whose averages the paper's own table 2 gives
    "clrs_divide_and_conquer": (12.48, 24.43, 13.05, 20.30, 65.23),
    "clrs_dynamic_programming": (66.05, 67.19, 67.94, 65.10, 70.58),
    "clrs_geometry": (64.08, 73.27, 45.14, 73.11, 61.19),
    "clrs_graphs": (37.65, 46.80, 24.12, 62.79, 60.25),
    "clrs_greedy": (75.47, 78.96, 53.42, 82.39, 75.84),
    "clrs_search": (43.79, 37.35, 34.35, 41.20, 56.11),
    "clrs_sorting": (39.60, 14.35, 71.53, 11.83, 15.45),
    "clrs_strings": (2.64, 3.02, 1.51, 3.21, 2.04),
}


def test_win_tie_loss_counts_are_those_of_table_3():
    assert win_tie_loss(published_scores(catalog().resolve("clrs30"), "canonical")) == PRINTED_COUNTS


@pytest.mark.parametrize("group", TABLE_1)
def test_averages_by_class_are_those_of_table_1(group):
    scores = published_scores(catalog().resolve(group), "canonical")
    for model, printed in zip(PRINTED_COUNTS, TABLE_1[group], strict=True):
        mean = sum(models[model][0] for models in scores.values()) / len(scores)
        assert 100 * mean == pytest.approx(printed, abs=0.011)


def test_a_model_wins_only_beyond_its_deviation():
    scores = {"a": {"x": (0.9, 0.2), "y": (0.8, 0.0)}, "b": {"x": (0.9, 0.05), "y": (0.8, 0.0)}}
    assert win_tie_loss(scores) == {"x": (1, 1, 0), "y": (0, 1, 1)}


def test_of_errors_the_smaller_one_wins():
    scores = {"a": {"x": (0.1, None), "y": (5.0, None)}}
    assert win_tie_loss(scores, {"a"}) == {"x": (1, 0, 0), "y": (0, 0, 1)}


def test_a_model_alone_wins_nothing():
    assert win_tie_loss({"a": {"x": (0.9, 0.2)}}) == {}


def robustness(kind, family="rob", seed=0, model="gat", **changes):
    noises = ("clean", "supporting", "irrelevant", "disconnected")
    scores = {noise: {"accuracy": 0.9 - 0.1 * i - 0.01 * seed} for i, noise in enumerate(noises)}
    fields = {
        "dataset": f"clutrr/{family}_{kind}",
        "dataset_version": 1,
        "model": model,
        "config": {},
        "scores": scores,
    }
    return make_record(seed, **fields | changes)


@pytest.mark.thorough
def test_a_matrix_holds_what_was_trained_on_by_what_was_tested_on(tmp_path):
    few = {"test": {"accuracy": 0.5}, "clean": {"accuracy": 0.25}}
    records = [
        robustness("clean"),
        robustness("clean", seed=1),
        robustness("supporting"),
        robustness("disconnected", model="rn_own", scores=few, budget=Budget(small=True)),
        robustness("clean", protocol="official"),
        robustness("clean", family="paper_rob"),
    ]
    (summary,) = summaries(aggregate(records))  # one dataset of paper_rob alone makes no matrix
    assert list(summary.tables) == [
        "gat (official), ours, accuracy",
        "gat, ours, accuracy",
        "rn_own, ours (small run, not comparable), accuracy",
    ]
    grid = summary.tables["gat, ours, accuracy"]
    assert grid.heads == ("trained on", "clean", "supporting", "irrelevant", "disconnected")
    assert grid.rows[0][:3] == ("clutrr/rob_clean", "0.8950 ± 0.0071 [1.0000]", "0.7950 ± 0.0071 [0.2400]")
    assert grid.rows[1][:2] == ("clutrr/rob_supporting", "0.9000 [0.9200]") and len(grid.rows) == 2
    alone = summary.tables["rn_own, ours (small run, not comparable), accuracy"]
    assert alone.rows == (("clutrr/rob_disconnected", "0.2500", "–", "–", "–"),)  # noqa: RUF001
    assert summary.tables["gat (official), ours, accuracy"].rows[0][1] == "0.9000"
    for page in build_report(records, tmp_path):
        text = page.read_text(encoding="utf-8")
        assert "trained on one kind of noise" in text and "0.8950 ± 0.0071 [1.0000]" in text.replace("\\[", "[")
        assert "in brackets the score of the same architecture in the paper" in text


def test_a_matrix_has_no_classes(tmp_path):
    path = tmp_path / "x.yaml"
    entry = "{title: T, kind: matrix, classes: {A: b}}"
    path.write_text(f"paper: P\ndomain: d\ncollections: {{g: {entry}}}\ntables: []\n", encoding="utf-8")
    with pytest.raises(ResultError, match=re.escape("neither 'classes' nor 'averages'")):
        read_published(path)
