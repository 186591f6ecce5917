"""Runs that differ in protocol or configuration stand apart in every table and figure, and are compared within one."""

import re

from graphbench.records.aggregates import aggregate
from graphbench.records.budgets import Budget
from graphbench.records.published import published, read_published
from graphbench.reports.collections import summaries
from graphbench.reports.labels import Labels
from graphbench.reports.ood import ood_table, plot_ood
from graphbench.reports.plots import curve_figure
from graphbench.reports.report import build_report
from graphbench.reports.tables import overview_rows, score_rows

from .conftest import make_record


def clrs(dataset="clrs/bfs", score=0.5, protocol="canonical", model="mpnn", processor="mpnn", width=128, **changes):
    config = {"dataset": dataset, "model": {"processor": processor, "hidden": width}, "training": {"steps": 100}}
    scores = {"test": {"score": score}, "n32": {"score": min(score + 0.01, 1.0)}}
    fields = {"dataset": dataset, "dataset_version": 1, "model": model, "config": config, "protocol": protocol}
    return make_record(**{"scores": scores, "curves": {"val_score": [(100, score)]}} | fields | changes)


def test_labels_name_protocols_and_tell_configurations_apart():
    records = [clrs(), clrs(protocol="multi_size"), clrs(protocol=None), clrs(model="gat"), clrs(model="gat", width=64)]
    results = aggregate([*records, clrs(seed=1)])
    labels = [Labels(results)[runs] for runs in results]
    assert len(set(labels)) == len(results) == 5
    gats = [f"gat (canonical) [{record.config_hash}]" for record in records[3:]]
    assert set(labels) == {"mpnn", "mpnn (canonical)", "mpnn (multi_size)", *gats}


def test_labels_say_from_which_weights_runs_started_where_these_differ():
    def begun(source, steps=100, **changes):
        config = {"training": {"steps": steps, "start": source and {"source": source, "weights": source}}}
        return make_record(dataset="clrs/bfs", model="mpnn", protocol="fine_tuned", config=config, **changes)

    records = [begun("clrs/dfs/mpnn"), begun("clrs/dfs/mpnn", seed=1), begun("clrs/dijkstra/gat"), begun(None)]
    names = ["mpnn (fine_tuned), from clrs/dfs", "mpnn (fine_tuned), from clrs/dijkstra/gat", "mpnn (fine_tuned)"]
    for across in (False, True):
        results = aggregate(records)
        labels = Labels(results, across=across)
        assert sorted(labels[runs] for runs in results) == sorted(names)
        results = aggregate(records[:2])
        assert [Labels(results, across=across)[runs] for runs in results] == ["mpnn (fine_tuned)"]
    results = aggregate([*records, begun("clrs/dfs/mpnn", steps=200)])
    labels = Labels(results)
    assert len({labels[runs] for runs in results}) == len(results) == 4
    for unusable in ("imagenet", {"start": "imagenet"}, {"start": {"source": "../x/gin" * 99}}, {"start": {}}):
        (runs,) = aggregate([make_record(dataset="clrs/bfs", model="mpnn", config={"training": unusable})])
        assert Labels([runs, *results])[runs] == "mpnn"
    assert sum(labels[runs].startswith("mpnn (fine_tuned), from clrs/dfs [") for runs in results) == 2


def test_labels_across_datasets_are_those_of_the_setup():
    first, second = clrs("clrs/bfs"), clrs("clrs/dfs")
    assert first.config_hash != second.config_hash and first.setup_hash == second.setup_hash
    results = aggregate([first, second])
    labels = Labels(results, across=True)
    assert {labels[runs] for runs in results} == {"mpnn (canonical)"}
    wide = clrs("clrs/bfs", width=256)
    results = aggregate([first, second, wide])
    labels = Labels(results, across=True)
    assert {labels[runs] for runs in results} == {
        f"mpnn (canonical) [{first.setup_hash}]",
        f"mpnn (canonical) [{wide.setup_hash}]",
    }
    results = aggregate([first, clrs("clrs/bfs", data_fingerprint="other data")])
    labels = Labels(results, across=True)
    assert {labels[runs] for runs in results} == {f"mpnn (canonical) [{runs.config_hash}]" for runs in results}


def test_published_tables_name_their_protocol(tmp_path):
    assert {s.protocol for s in published("clrs/bfs")} == {"canonical"}
    assert {s.protocol for s in published("algoreas/mst_easy")} == {None}
    path = tmp_path / "x.yaml"
    table = "{metric: f1, split: test, protocol: odd, scores: {d: {gin: [0.5, 0.1]}}}"
    path.write_text(f"paper: P\ndomain: d\ntables:\n  - {table}\n", encoding="utf-8")
    assert [s.protocol for s in read_published(path)] == ["odd"]


def test_scores_are_compared_within_one_protocol():
    from graphbench import card

    records = [
        clrs(score=0.95),
        clrs(score=0.9, protocol="multi_size"),
        clrs(score=0.9, protocol="multi_size", model="mpnn_generalist"),
        clrs(score=0.9, protocol=None),
    ]
    results = aggregate(records)
    rows = {row.model: (row.published, row.difference) for row in overview_rows(card("clrs/bfs"), results)}
    assert rows == {
        "mpnn (canonical)": ("0.9989 ± 0.0005", "−0.0489"),  # noqa: RUF001
        "mpnn (multi_size)": ("–", "other protocol"),  # noqa: RUF001
        "mpnn_generalist (multi_size)": ("–", "other protocol"),  # noqa: RUF001
        "mpnn": ("–", "other protocol"),  # noqa: RUF001
    }
    kinds = [(row.name, row.kind) for row in score_rows(card("clrs/bfs"), results)]
    assert ("mpnn (canonical)", "published") in kinds and ("mpnn (multi_size)", "ours") in kinds
    by_label = {Labels(results)[runs]: ood_table(runs)[0].published for runs in results}
    assert by_label == {
        "mpnn": None, "mpnn (canonical)": 0.9989, "mpnn (multi_size)": None, "mpnn_generalist (multi_size)": None,
    }  # fmt: skip


def test_every_table_of_a_report_names_the_protocols(tmp_path):
    records = [clrs(score=0.21), clrs(score=0.98, protocol="multi_size")]
    (page,) = build_report(records, tmp_path / "page.md")
    blocks = re.findall(r"(?:^\|.*\n)+", page.read_text(encoding="utf-8"), re.MULTILINE)
    with_ours = [block for block in blocks if "mpnn" in block]
    assert len(with_ours) == 5  # overview, scores, out of distribution, cost, provenance
    assert all("mpnn (canonical)" in block and "mpnn (multi_size)" in block for block in with_ours)


def test_no_run_of_a_collection_overwrites_another():
    records = [
        clrs("clrs/bfs", 0.21),
        clrs("clrs/bfs", 0.98, "multi_size"),
        clrs("clrs/dfs", 0.1),
        clrs("clrs/dfs", 0.2, width=9),
    ]
    (summary,) = summaries(aggregate(records))
    scores = summary.tables["Scores on the test split"]
    bfs = dict(zip(scores.heads, next(row for row in scores.rows if row[0] == "clrs/bfs"), strict=True))
    dfs = dict(zip(scores.heads, next(row for row in scores.rows if row[0] == "clrs/dfs"), strict=True))
    plain, wide = (f"mpnn (canonical) [{records[i].setup_hash}], ours" for i in (2, 3))
    assert (bfs[plain], bfs["mpnn (multi_size), ours"]) == ("0.2100", "0.9800")
    assert (dfs[plain], dfs[wide]) == ("0.1000", "0.2000")
    averages = summary.tables["Averages by class"]
    graphs = dict(zip(averages.heads, next(row for row in averages.rows if row[0] == "Graphs"), strict=True))
    assert graphs[plain] == "0.1550 (2 of 12)" and graphs["mpnn (multi_size), ours"] == "0.9800 (1 of 12)"


def test_counts_of_a_collection_stay_within_one_protocol():
    records = [
        clrs("clrs/bfs", 0.9999),
        clrs("clrs/dfs", 0.5),
        clrs("clrs/bfs", 0.99995, "multi_size"),
        clrs("clrs/dfs", 1.0, budget=Budget(small=True)),
        clrs("clrs/bfs", 1.0, dataset_version=7),
    ]
    (summary,) = summaries(aggregate(records))
    counts = {row[0]: row[1:] for row in summary.tables["Wins/ties/losses"].rows}
    ours = next(name for name in counts if "ours" in name)
    assert [name for name in counts if "ours" in name] == [ours] and ours.startswith("mpnn (canonical)")
    assert counts[ours][1] == "2/0/0"
    assert counts["mpnn (canonical)"] == ("8/3/19", "0/0/2")
    assert any("older data" in head for head in summary.tables["Scores on the test split"].heads)


def test_learning_curves_have_a_legend_entry_each_and_marks_where_short():
    long = {"val_score": [(step, step / 100) for step in range(0, 101, 10)]}
    results = aggregate([clrs(), clrs(width=9, curves=long), clrs(protocol="multi_size"), clrs(model="gat")])
    (axes,) = curve_figure(results, "score").axes
    labels = axes.get_legend_handles_labels()[1]
    assert len(labels) == len(set(labels)) == 4
    assert set(labels) == {Labels(results)[runs] for runs in results}
    marked = {line.get_label(): line.get_marker() == "o" for line in axes.get_lines()}
    assert sum(marked.values()) == 3
    assert [label for label, mark in marked.items() if not mark] == [
        Labels(results)[runs] for runs in results if runs.records[0].curves == long
    ]


def test_curves_over_sizes_have_an_entry_each():
    results = aggregate([clrs(), clrs(width=9), clrs(protocol="multi_size")])
    labels = plot_ood(results).axes[0].get_legend_handles_labels()[1]
    assert {Labels(results)[runs] for runs in results} < set(labels)
    assert [label for label in labels if label.endswith("published")] == ["mpnn (canonical), published"]


def test_the_curve_over_clauses_runs_by_size():
    scores = {"test": {"accuracy": 0.9}, **{f"k{k}": {"accuracy": 1 - k / 20} for k in range(2, 11)}}
    results = aggregate(
        [make_record(dataset="clutrr/gen_23", dataset_version=1, scores=scores, model="gat", config={})]
    )
    (axes,) = plot_ood(results).axes
    assert (axes.get_xlabel(), axes.get_xscale()) == ("facts (k)", "linear")
    handles, labels = axes.get_legend_handles_labels()
    lines = dict(zip(labels, handles, strict=True))
    assert list(lines["gat"].lines[0].get_xdata()) == list(range(2, 11))  # the test, k = 2 and 3, stands nowhere
    assert list(lines["size trained on"].get_xdata()) == [2, 3]
    assert list(lines["human time limited, published"].get_xdata()) == [2, 3, 4, 5, 6]
    assert list(lines["exact reasoner (solver)"].get_ydata()) == [1.0] * 9
    assert lines["best trivial"].get_linestyle() == ":" and lines["left fold (solver)"].is_dashed()
    assert [text.get_text() for text in axes.get_xticklabels()] == [str(k) for k in range(2, 11)]
    (legend,) = axes.figure.legends
    order = [text.get_text() for text in legend.get_texts()]
    assert order[0] == "gat" and order[-2:] == ["size trained on", "best trivial"]


def test_scores_on_different_validation_splits_have_panels_of_their_own():
    large = clrs(model="pairs").config | {"training": {"steps": 100, "val_split": "val_large"}}
    results = aggregate([clrs(), clrs(model="pairs", config=large)])
    panels = curve_figure(results, "score").axes
    assert [panel.get_ylabel() for panel in panels] == ["score on val", "score on val_large"]
    assert [len(panel.get_lines()) for panel in panels] == [1, 1]
    (panel,) = curve_figure(results[:1], "score").axes
    assert panel.get_ylabel() == "validation score"
