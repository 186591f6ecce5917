"""Datasets of texts: samples as strings, scores by problem size, and their place in tables and figures."""

from datetime import UTC, datetime

import pytest

import graphbench
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.results import Budget, RunRecord, aggregate
from graphbench.evaluation.texts import TextSamples, asks_for_text, by_size, split_and_size, text_scores
from graphbench.reports.ood import ood_splits, ood_table, plot_ood
from graphbench.reports.report import build_report
from graphbench.reports.tables import ood_grid

ID = "clrs_text/minimum"
SIZES = tuple(range(4, 20))


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    return graphbench.Loader(ID, root=tmp_path_factory.mktemp("data"), limit=13, workers=1).load(())


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


def test_samples_are_the_splits_strings(splits):
    samples = TextSamples.of(splits.test)
    assert len(samples) == 13
    assert [samples.prompts[3], samples.references[3]] == [splits.test[3].prompt, splits.test[3].reference]
    assert samples.sizes == list(range(4, 17))
    assert TextSamples.of(splits.test[2:5]).prompts == samples.prompts[2:5]
    assert len(TextSamples.of(splits.test[:0])) == 0
    few = samples.take([5, 1])
    assert (few.prompts, few.sizes) == ([samples.prompts[5], samples.prompts[1]], [9, 5])
    assert asks_for_text(splits.card) and not asks_for_text(graphbench.card("mst_easy"))
    graphs = graphbench.Loader("mst_easy", root=splits.train.path.parents[3], limit=3, workers=1).load(())
    with pytest.raises(EvaluationError, match="algoreas/mst_easy has no text in and text out"):
        TextSamples.of(graphs["val"])


def test_scores_of_a_split_and_of_its_sizes(splits):
    samples = TextSamples(["a", "b", "c", "d"], ["1\n\n", "2\n\n", "3\n\n", "4\n\n"], [16, 5, 16, 4])
    scores = text_scores(splits.card, "test", samples, ["1", "2", "nothing", "5"])
    assert {name: score.primary for name, score in scores.items()} == {
        "test": 0.5, "test_n4": 0.0, "test_n5": 1.0, "test_n16": 0.5
    }  # fmt: skip
    assert [score.graphs for score in scores.values()] == [4, 1, 1, 2]
    whole, sizes = by_size(scores)
    assert list(whole) == ["test"]
    assert [(size, list(own)) for size, own in sizes.items()] == [(4, ["test"]), (5, ["test"]), (16, ["test"])]
    assert sizes[16]["test"]["exact_match"] == 0.5


def test_names_of_sizes_are_no_other_names():
    assert split_and_size("val_multi_n7") == ("val_multi", 7)
    for name in ("test", "n16", "val_multi_size", "test_n", "test_n1x"):
        assert split_and_size(name) == (name, None)
    assert by_size({"n16": {"f1": 1.0}, "test_n4": {"f1": 0.5}}) == ({"n16": {"f1": 1.0}, "test_n4": {"f1": 0.5}}, {})


def test_a_table_has_a_row_for_every_size(splits):
    results = aggregate([record(0, 0.0, 0.5), record(1, 0.0, 1.0)])
    assert ood_splits(splits.card) == ["test"]
    assert ood_splits(splits.card, results) == ["test", *(f"test_n{size}" for size in SIZES)]
    rows = ood_table(results[0], splits.card)
    assert (rows[0].split, rows[0].nodes, rows[0].mean) == ("test", None, 0.25)
    assert [(row.nodes, row.mean) for row in rows[1:]] == [(float(n), 0.75 if n < 10 else 0.0) for n in SIZES]
    assert rows[1].std == pytest.approx(0.3536, abs=1e-4)
    fewer = record(0, 0.1, 0.2, model="other", scores={"test": {"exact_match": 0.5}, "test_n4": {"exact_match": 0.5}})
    grid = ood_grid(splits.card, [*results, *aggregate([fewer])])
    assert grid.heads[:3] == ("split (exact_match ↑)", "size", "transformer_small (small run)")
    assert grid.rows[1][:4] == ("test_n4", "4", "0.7500 ± 0.3536", "0.5000")
    assert len(grid.rows) == 1 + len(SIZES)
    whole = record(0, 0.0, 0.0, scores={"test": {"exact_match": 0.5}})
    assert ood_grid(splits.card, aggregate([whole])) is None


def test_the_figure_marks_the_sizes_trained_on(splits):
    figure = plot_ood(aggregate([record(0, 0.0, 0.5)]), splits.card)
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines["size trained on"].get_xdata()) == [4, 5, 10, 11, 12, 15, 19]
    assert list(axes.containers[0].lines[0].get_xdata()) == list(SIZES)
    assert axes.get_xlabel() == "problem size"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["4", "8", "16"]


def test_the_report_of_texts(splits, tmp_path):
    markdown, page = build_report([record(0, 0.0, 0.5)], tmp_path / "out", cards={ID: splits.card})
    text = markdown.read_text(encoding="utf-8")
    assert "exact_match against problem size, clrs_text/minimum" in text
    assert "| test_n4 | 4 | 0.5000 |" in text
    assert "validation loss" in page.read_text(encoding="utf-8")
