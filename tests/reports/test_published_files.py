"""Reports hold runs on published files apart: nothing measured on generated data stands beside them."""

import pytest

from graphbench.catalog.names import card as card_of
from graphbench.records.aggregates import aggregate
from graphbench.reports.ood import plot_ood, size_axis
from graphbench.reports.published_files import card_of_files, heading_of, scored_rows
from graphbench.reports.report import build_report
from graphbench.reports.tables import ood_grid, overview_rows, score_rows

from .conftest import make_record

NOISES = ("clean", "supporting", "irrelevant", "disconnected")


def record(dataset, splits, official=True, seed=0, **changes):
    scores = {split: {"accuracy": 0.9 - 0.01 * i, "macro_f1": 0.5} for i, split in enumerate(splits)}
    fields = {"dataset": dataset, "dataset_version": 1, "model": "gat", "config": {"model": {"processor": "gat"}}}
    own = {"protocol": "official", "graphs_scored": {split: 38 for split in splits}} if official else {}
    return make_record(seed, **fields, scores=scores, **own | changes)


def test_runs_on_files_have_no_floor_solver_or_statistics():
    lengths = ["test", *(f"k{k}" for k in range(2, 11))]
    results = aggregate([record("clutrr/gen_23", lengths)])
    card = card_of("clutrr/gen_23")
    files = card_of_files(card, results)
    assert overview_rows(card, results)[0].trivial != "–"  # noqa: RUF001
    (row,) = overview_rows(files, results)
    assert (row.trivial, row.dataset, row.anchor) == ("–", "clutrr/gen_23, official files", "clutrr-gen_23-files")  # noqa: RUF001
    assert {row.kind for row in score_rows(card, results)} == {"trivial", "solver", "ours"}
    assert [row.kind for row in score_rows(files, results)] == ["ours"]
    grid = ood_grid(files, results)
    assert grid.rows[3][0] == "k4" and grid.rows[3][-1] == "–"  # noqa: RUF001
    assert not [head for head in grid.heads if "(solver)" in head]
    assert size_axis(files, lengths).label == "facts (k)" and size_axis(files, lengths).trained == (2, 3)
    (axes,) = plot_ood(results, files).axes
    shown = axes.get_legend_handles_labels()[1]
    assert {"gat (official)", "size trained on"} <= set(shown) and "best trivial" not in shown
    assert not [label for label in shown if "(solver)" in label]
    assert scored_rows(files, results).rows[:4] == (
        ("train", "–"), ("val", "–"), ("test", "38"), ("k2", "38"),  # noqa: RUF001
    )  # fmt: skip


def test_noise_is_shown_under_the_names_of_the_card_and_older_names_stay():
    new = record("clutrr/rob_clean", ["test", *NOISES])
    older = record("clutrr/rob_clean", ["test", "k2", "supporting_k3"], data_fingerprint="older")
    results = aggregate([new, older])
    files = card_of_files(card_of("clutrr/rob_clean"), results)
    assert list(files.ood) == [*NOISES, "k2", "supporting_k3"]
    grid = ood_grid(files, results)
    assert [row[0] for row in grid.rows] == ["test", *NOISES, "k2", "supporting_k3"]
    (axes,) = plot_ood(aggregate([new]), files).axes
    assert [text.get_text() for text in axes.get_xticklabels()][:4] == list(NOISES)


@pytest.mark.thorough
def test_the_report_has_a_section_for_the_files(tmp_path):
    splits = ["test", *NOISES]
    records = [
        record("clutrr/rob_clean", splits),
        record("clutrr/rob_clean", splits, official=False),
        record("clutrr/rob_supporting", splits),
    ]
    for page in build_report(records, tmp_path):
        text = page.read_text(encoding="utf-8")
        assert "clutrr/rob_clean, official files" in text and "clutrr-rob_clean-files" in text
        assert "gat (official), ours, accuracy" in text  # the robustness matrix
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    own, files = (html.split(f'<section id="clutrr-rob_clean{end}">')[1].split("<section")[0] for end in ("", "-files"))
    assert "exact reasoner" in own and "best trivial" in own and "Apache-2.0" in own
    assert "exact reasoner" not in files and "CC BY-NC 4.0" in files and "Apache" not in files
    assert "graphs scored" in files and "0.8900" in files
    assert sorted(path.name for path in (tmp_path / "figures").glob("*ood*")) == [
        "clutrr-rob_clean-files-ood.png", "clutrr-rob_clean-ood.png", "clutrr-rob_supporting-files-ood.png",
    ]  # fmt: skip


def test_other_protocols_are_of_the_dataset_itself(tmp_path):
    runs = make_record(dataset="clrs/bfs", dataset_version=1, protocol="canonical", scores={"test": {"score": 0.5}})
    card = card_of("clrs/bfs")
    assert (
        heading_of("clrs/bfs", card) == "clrs/bfs" and overview_rows(card, aggregate([runs]))[0].dataset == "clrs/bfs"
    )


@pytest.mark.parametrize(("counts", "is_marked"), [((2000, 2000), False), ((2000, 100), True)])
def test_runs_scored_on_different_numbers_are_marked(counts, is_marked, tmp_path):
    records = [
        record("clutrr/rob_clean", ["test"], official=False, seed=i, graphs_scored={"test": count})
        for i, count in enumerate(counts)
    ]
    (runs,) = aggregate(records)
    assert runs.partly_scored == is_marked
    card = card_of("clutrr/rob_clean")
    words = "scored on part of the graphs"
    ours = [row.basis for row in score_rows(card, [runs]) if row.kind == "ours"]
    assert (words in overview_rows(card, [runs])[0].runs, words in ours[0]) == (is_marked, is_marked)
