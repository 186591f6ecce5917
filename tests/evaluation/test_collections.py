"""Averages and counts of a collection, against those the CLRS paper prints."""

import pytest

from graphbench.catalog.names import catalog
from graphbench.evaluation.collections import published_scores, win_tie_loss

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
