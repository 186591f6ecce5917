"""Scores of texts by problem size in tables, figures and reports."""

from datetime import UTC, datetime

import pytest

import graphbench
from graphbench.records.aggregates import aggregate
from graphbench.records.budgets import Budget
from graphbench.records.record import RunRecord
from graphbench.reports.ood import ood_splits, ood_table, plot_ood
from graphbench.reports.report import build_report
from graphbench.reports.tables import ood_grid

ID = "clrs_text/minimum"
SIZES = tuple(range(4, 20))


@pytest.fixture(scope="module")
def card():
    return graphbench.card(ID)


def record(seed, low, high, **changes):
    scores = {f"test_n{size}": {"exact_match": high if size < 10 else low} for size in SIZES}
    fields = {
        "dataset": ID,
        "dataset_version": 1,
        "model": "transformer_small",
        "config": {"model": {"kind": "text"}},
        "parameters": 1,
        "seed": seed,
        "steps": 10,
        "batch_size": 4,
        "budget": Budget(small=True),
        "started": datetime(2026, 1, 2, tzinfo=UTC),
        "wall_seconds": 1.0,
        "curves": {"train_loss": [(5, 2.0), (10, 0.01)], "val_loss": [(10, 0.5)]},
        "scores": {"val": {"exact_match": 0.5}, "test": {"exact_match": 0.25}, **scores},
    }
    return RunRecord.model_validate(fields | changes)


def test_a_table_has_a_row_for_every_size(card):
    results = aggregate([record(0, 0.0, 0.5), record(1, 0.0, 1.0)])
    assert ood_splits(card) == ["test"]
    assert ood_splits(card, results) == ["test", *(f"test_n{size}" for size in SIZES)]
    rows = ood_table(results[0], card)
    assert (rows[0].split, rows[0].nodes, rows[0].mean) == ("test", None, 0.25)
    assert [(row.nodes, row.mean) for row in rows[1:]] == [(float(n), 0.75 if n < 10 else 0.0) for n in SIZES]
    assert rows[1].std == pytest.approx(0.3536, abs=1e-4)
    fewer = record(0, 0.1, 0.2, model="other", scores={"test": {"exact_match": 0.5}, "test_n4": {"exact_match": 0.5}})
    grid = ood_grid(card, [*results, *aggregate([fewer])])
    assert grid.heads[:3] == ("split (exact_match ↑)", "size", "transformer_small (small run)")
    assert grid.rows[1][:4] == ("test_n4", "4", "0.7500 ± 0.3536", "0.5000")
    assert len(grid.rows) == 1 + len(SIZES)
    whole = record(0, 0.0, 0.0, scores={"test": {"exact_match": 0.5}})
    assert ood_grid(card, aggregate([whole])) is None


def test_the_figure_marks_the_sizes_trained_on(card):
    figure = plot_ood(aggregate([record(0, 0.0, 0.5)]), card)
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines["size trained on"].get_xdata()) == [4, 5, 10, 11, 12, 15, 19]
    assert list(axes.containers[0].lines[0].get_xdata()) == list(SIZES)
    assert axes.get_xlabel() == "problem size"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["4", "8", "16"]


def test_the_report_of_texts(card, tmp_path):
    markdown, page = build_report([record(0, 0.0, 0.5)], tmp_path / "out", cards={ID: card})
    text = markdown.read_text(encoding="utf-8")
    assert "exact_match against problem size, clrs_text/minimum" in text
    assert "| test_n4 | 4 | 0.5000 |" in text
    assert "validation loss" in page.read_text(encoding="utf-8")
